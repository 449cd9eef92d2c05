use super::{ProtobufField, ProtobufKind};

/// A message that is mapped as a value. It is known by its full name and its fields: a file may use the name for
/// something else.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WellKnown {
    /// `google.protobuf.Timestamp`.
    Timestamp,
    /// `google.protobuf.Duration`.
    Duration,
    /// `google.protobuf.StringValue` and its like: an optional scalar, field 1.
    Wrapper,
    /// `google.protobuf.Struct`.
    Struct,
    /// `google.protobuf.Value`.
    Value,
    /// `google.protobuf.ListValue`.
    ListValue,
    /// `google.protobuf.Any`.
    Any,
    /// `google.protobuf.FieldMask`.
    FieldMask,
    /// `google.type.Date`.
    Date,
    /// `google.type.TimeOfDay`.
    TimeOfDay,
    /// `google.type.Decimal`: text.
    TextDecimal,
    /// `confluent.type.Decimal`: a big-endian number, and in each value its precision and scale.
    ScaledDecimal,
}

impl WellKnown {
    pub(super) fn of(name: &str, fields: &[ProtobufField]) -> Option<Self> {
        use ProtobufKind as K;
        let kinds: Vec<(u32, ProtobufKind)> = fields.iter().map(|field| (field.number, field.kind)).collect();
        Some(match (name, &kinds[..]) {
            ("google.protobuf.Timestamp", [(1, K::Int64), (2, K::Int32)]) => Self::Timestamp,
            ("google.protobuf.Duration", [(1, K::Int64), (2, K::Int32)]) => Self::Duration,
            ("google.protobuf.DoubleValue", [(1, K::Double)])
            | ("google.protobuf.FloatValue", [(1, K::Float)])
            | ("google.protobuf.Int64Value", [(1, K::Int64)])
            | ("google.protobuf.UInt64Value", [(1, K::Uint64)])
            | ("google.protobuf.Int32Value", [(1, K::Int32)])
            | ("google.protobuf.UInt32Value", [(1, K::Uint32)])
            | ("google.protobuf.BoolValue", [(1, K::Bool)])
            | ("google.protobuf.StringValue", [(1, K::String)])
            | ("google.protobuf.BytesValue", [(1, K::Bytes)]) => Self::Wrapper,
            ("google.protobuf.Struct", [(1, K::Message(_))]) => Self::Struct,
            (
                "google.protobuf.Value",
                [
                    (1, K::Enum(_)),
                    (2, K::Double),
                    (3, K::String),
                    (4, K::Bool),
                    (5, K::Message(_)),
                    (6, K::Message(_)),
                ],
            ) => Self::Value,
            ("google.protobuf.ListValue", [(1, K::Message(_))]) => Self::ListValue,
            ("google.protobuf.Any", [(1, K::String), (2, K::Bytes)]) => Self::Any,
            ("google.protobuf.FieldMask", [(1, K::String)]) => Self::FieldMask,
            ("google.type.Date", [(1, K::Int32), (2, K::Int32), (3, K::Int32)]) => Self::Date,
            ("google.type.TimeOfDay", [(1, K::Int32), (2, K::Int32), (3, K::Int32), (4, K::Int32)]) => {
                Self::TimeOfDay
            }
            ("google.type.Decimal", [(1, K::String)]) => Self::TextDecimal,
            ("confluent.type.Decimal", [(1, K::Bytes), (2, K::Uint32), (3, K::Int32)]) => Self::ScaledDecimal,
            _ => return None,
        })
    }
}
