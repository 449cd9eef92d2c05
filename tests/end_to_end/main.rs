//! Everything end to end, in one binary.

mod bad_input;
mod checkers;
mod events;
mod faults;
mod growth;
mod house;
mod lambda;
mod operations;
mod processes;
mod twice;
