//! Everything end to end, in one binary.

#![allow(clippy::unwrap_used)] // tests: what is not there fails them

mod aws;
mod bad_input;
mod checkers;
mod dev;
mod events;
mod faults;
mod growth;
mod house;
mod lambda;
mod memory;
mod model;
mod operations;
mod processes;
mod registries;
mod retry;
mod schema;
mod show;
mod topics;
mod twice;
mod whole;
