//! What a person does to a topic: nothing is lost and nothing doubled, whatever is answered and wherever it stops.

mod adopting;
mod answering;
mod crashing;
mod parking;
mod world;
