//! Everything end to end, in one binary.

#![allow(clippy::unwrap_used)] // tests: what is not there fails them

mod checkers;
mod events;
mod house;
mod lambda;
mod operations;
mod processes;
