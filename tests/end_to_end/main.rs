//! Everything end to end, in one binary.

mod checkers;
mod events;
mod house;
mod lambda;
mod operations;
mod processes;
