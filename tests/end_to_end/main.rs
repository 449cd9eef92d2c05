//! Everything end to end, in one binary.

mod checkers;
mod events;
mod faults;
mod growth;
mod house;
mod operations;
mod processes;
mod twice;
