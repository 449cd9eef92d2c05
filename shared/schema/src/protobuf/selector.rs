/// Which message of a `.proto` file a record holds.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum MessageSelector {
    /// The first message of the file.
    First,
    /// Confluent's message indexes: a top-level message, then one nested in it, and so on. As Confluent's own
    /// deserializer counts them, entries of maps and groups are no messages.
    Path(Vec<i32>),
    /// Glue's index: the position among all messages of the file, nested ones and entries of maps included, sorted
    /// by full name.
    Sorted(u32),
    /// The full name, such as `shop.Order.Item`, with or without a dot in front.
    Name(String),
}
