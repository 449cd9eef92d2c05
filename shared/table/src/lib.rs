//! Iceberg tables fed from Kafka: data files, descriptors, the ledger, and the commit that moves them together.

mod anchor;
mod catalog;
mod commit;
/// Records that cannot be read, and the table that takes them.
pub mod dead_letters;
mod descriptor;
mod ensure;
mod environment;
mod file_io;
mod inspect;
pub mod inspection;
mod layout;
mod ledger;
mod metadata;
mod operations;
mod outbox;
pub mod plan;
pub mod properties;
mod rows;
#[cfg(feature = "sabotage")]
pub mod sabotage;
#[cfg(not(feature = "sabotage"))]
mod sabotage;
mod snapshot;
mod stage;
mod state;
mod storage;
mod topic_state;
mod trim;
mod warehouse;

pub use anchor::Anchor;
pub use catalog::{Catalog, Pointer};
pub use commit::{CommitReport, CommitSettings, Committed, change_ledger, commit_table};
pub use descriptor::{
    Claim, DESCRIPTOR_FORMAT, Descriptor, Judgement, MAX_DESCRIPTOR_BYTES, StagedDeadLetters, StagedFile,
    claims_from_attributes, claims_to_attributes,
};
pub use ensure::{Ensured, TableDesign, WantedColumns, ensure_table};
pub use environment::system_environment;
pub use file_io::{MAX_WHOLE_FILE_BYTES, file_io, storage_error};
pub use layout::{Layout, LogName, Shelf};
pub use ledger::{
    Added, Hole, LEDGER_FORMAT, Ledger, LogLedger, MAX_HOLES, MAX_LEDGER_BYTES, MAX_UNCERTAIN, OutboxEntry,
    Part, PartitionLedger, RetryEntry, Settled,
};
pub use operations::{
    ADOPT_WAIT, AdoptOptions, AdoptProgress, Adopted, Adoption, DrainReport, EventSink, HistoryChoice,
    LetterReader, LettersLeft, Life, MAX_EVENT_BYTES, MAX_RETRIED, PARKED_FORMAT, ParkedEvent, ParkedTopic,
    REPLAY_FOR, ReadAgain, Reread, Resume, RetryReport, Sorted, Stopped, Unclear, Undropped, adopt,
    announce_replay, drain_parked, drain_topic, park, parked_topics, quarantine_descriptor,
    release_descriptor, restore_history, resume_topic, retry_dead_letters, suspend_topic, undrop,
};
pub use rows::{
    Comparison, Dictionary, EncodedFile, FileSettings, MAX_DECODED_BYTES, MAX_DECODED_ROWS, MAX_FILE_BYTES,
    MAX_LEAF_COLUMNS, RowIdentity, compare_rows, data_file_from_json, data_file_to_json, filter_rows,
    offsets_of, read_data_file, split_by_partition, write_data_file,
};
pub use snapshot::{MANIFEST_TARGET_BYTES, MANIFESTS_TO_MERGE, SnapshotRetention};
pub use stage::{StageRequest, Staged, stage};
pub use state::{StateEntry, StateStore};
pub use storage::{
    MAX_ATTRIBUTES_BYTES, ObjectHead, ObjectInfo, ObjectStorage, Page, check_attributes, list_all,
};
pub use topic_state::{Cause, STATE_FORMAT, SuspendedTopic, TopicState, ValueFormat, ValueFraming};
pub use warehouse::{LoadedTable, Warehouse};

#[cfg(feature = "conformance")]
pub mod conformance;
