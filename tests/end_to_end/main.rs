//! Everything end to end, in one binary.

mod checkers;
mod house;
mod operations;
