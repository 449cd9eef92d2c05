use frazil_core::{Offset, Partition};
use frazil_schema::SourceSchema;

/// A record as Kafka delivered it, with what is known about how to read its value.
#[derive(Debug, Clone)]
pub struct EncodedRecord<'a> {
    /// The partition.
    pub partition: Partition,
    /// The offset.
    pub offset: Offset,
    /// Milliseconds since 1970-01-01 UTC; −1 counts as none.
    pub timestamp_ms: Option<i64>,
    /// `CREATE_TIME` or `LOG_APPEND_TIME`.
    pub timestamp_type: Option<&'a str>,
    /// The key's bytes.
    pub key: Option<&'a [u8]>,
    /// Names and values, in Kafka's order; names may repeat.
    pub headers: Vec<(&'a str, Option<&'a [u8]>)>,
    /// The value.
    pub payload: Payload<'a>,
}

/// A record's value and the format that it is in.
#[derive(Debug, Clone, Copy)]
pub enum Payload<'a> {
    /// No value: a row of nulls.
    Tombstone,
    /// Bytes without any framing, and the schema that wrote them.
    Encoded {
        /// The writer's schema. Records with the same reference are decoded together.
        schema: &'a SourceSchema,
        /// The encoded value.
        body: &'a [u8],
    },
    /// JSON text without a schema: columns come from what arrives.
    Json(&'a [u8]),
    /// Bytes of a format that nobody reads here: one column, [`DecodeOptions::raw`](crate::DecodeOptions::raw).
    Raw(&'a [u8]),
}
