//! What a person does to a topic, and the catalog's run on a person's behalf: suspend and resume, announce a replay,
//! choose after history has moved, adopt a new log, take back a drop, set a descriptor aside, park and drain.
//!
//! Every operation can be run again after a crash anywhere in it, and beside any number of commits and ingests.

mod adopt;
mod history;
mod lifecycle;
mod parked;
mod restage;
mod retry;
mod shelves;
mod undrop;

pub use adopt::{ADOPT_WAIT, AdoptOptions, AdoptProgress, Adopted, Adoption, Life, Sorted, Unclear, adopt};
pub use history::{HistoryChoice, restore_history};
pub use lifecycle::{REPLAY_FOR, Resume, announce_replay, resume_topic, suspend_topic};
pub use parked::{
    DrainReport, EventSink, MAX_EVENT_BYTES, PARKED_FORMAT, ParkedEvent, ParkedTopic, Stopped, drain_parked,
    drain_topic, park, parked_topics,
};
pub(crate) use retry::read_letters;
pub use retry::{LetterReader, LettersLeft, MAX_RETRIED, ReadAgain, Reread, RetryReport, retry_dead_letters};
pub use shelves::{quarantine_descriptor, release_descriptor};
pub use undrop::{Undropped, undrop};
