//! Everything end to end, in one binary.

mod checkers;
mod events;
mod house;
mod model;
mod processes;
