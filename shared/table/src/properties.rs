//! Table properties that Frazil sets. They move in the same swap as the rows.

/// The format number of a table's Frazil properties (promise I9).
pub const FORMAT: &str = "frazil.format";
/// What the table holds: `rows` or `dead-letters`.
pub const KIND: &str = "frazil.kind";
/// Where the ledger of the current metadata is.
pub const LEDGER: &str = "frazil.ledger";
/// That ledger's checksum.
pub const LEDGER_SHA256: &str = "frazil.ledger.sha256";
/// The exact topic that made the table.
pub const TOPIC: &str = "frazil.topic";
/// The source of that topic.
pub const SOURCE: &str = "frazil.source";
/// The settings that the table was created with, as JSON: they do not change, but for those of fields that come later.
pub const SETTINGS: &str = "frazil.settings";
/// The full name of the records' type, in a table that is for one type of a topic with several.
pub const RECORD_NAME: &str = "frazil.record-name";
/// When the schema last changed, in milliseconds since 1970.
pub const SCHEMA_CHANGED_AT: &str = "frazil.schema.changed-at";
/// In a dead-letter table: the outbox entries that it has taken, as JSON.
pub const TAKEN_OUTBOX: &str = "frazil.outbox.taken";
/// In a snapshot's summary: the commit's ledger file.
pub const SUMMARY_LEDGER: &str = "frazil.ledger";
/// In a snapshot's summary: the commit's number.
pub const SUMMARY_COMMIT: &str = "frazil.commit";

/// The value of [`FORMAT`] that this version writes.
pub const FORMAT_NUMBER: u32 = 1;
