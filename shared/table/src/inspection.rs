//! Looking, and never writing: what tables hold, what waits, how a topic stands, and whether rows and ledger agree.
//!
//! Everything here serialises: `frazil --output json` prints these values as they are. Times are milliseconds since
//! 1970, ranges of offsets are `[first, last]`, both included.

mod letters;
mod overview;
mod reconcile;
mod scan;
mod shelves;
mod status;
mod tally;

pub use letters::{DeadLetters, dead_letters_of};
pub use overview::{
    ColumnOverview, SnapshotOverview, TableKind, TableOverview, column_overviews, list_tables,
    snapshot_overviews, table_overview,
};
pub use reconcile::{
    MAX_RANGES_SHOWN, PartitionReconciliation, Reconciliation, TableReconciliation, reconcile_topic,
};
pub use scan::{MAX_FILES_PLANNED, ScanRequest, ScannedRows, scan_rows};
pub use shelves::{Kept, KeptClaim, Place, find_kept, list_kept};
pub use status::{
    DeadLetterStatus, Heap, PartitionStatus, SuspensionStatus, TableStatus, TopicStatus, topic_status,
    topic_statuses,
};
