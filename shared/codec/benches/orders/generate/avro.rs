use super::{Item, Order, Shape};

pub(super) fn schema(shape: Shape) -> String {
    let item = r#"{"name": "sku", "type": "string"},
    {"name": "quantity", "type": "int"},
    {"name": "price", "type": "double"}"#;
    let items = match shape {
        Shape::Flat => item.to_owned(),
        Shape::Nested => format!(
            r#"{{"name": "items", "type": {{"type": "array", "items": {{"type": "record", "name": "Item", "fields": [
    {item}]}}}}}}"#
        ),
    };
    format!(
        r#"{{
  "type": "record", "name": "Order", "namespace": "shop", "fields": [
    {{"name": "id", "type": "string"}},
    {{"name": "status", "type": {{"type": "enum", "name": "Status", "symbols": ["NEW", "PAID", "SHIPPED", "RETURNED"]}}}},
    {{"name": "total", "type": {{"type": "bytes", "logicalType": "decimal", "precision": 12, "scale": 2}}}},
    {{"name": "placedAt", "type": {{"type": "long", "logicalType": "timestamp-millis"}}}},
    {{"name": "note", "type": ["null", "string"], "default": null}},
    {items}
  ]
}}"#
    )
}

pub(super) fn value(order: &Order, shape: Shape) -> Vec<u8> {
    let mut out = Vec::with_capacity(128);
    bytes(&mut out, order.id.as_bytes());
    long(&mut out, order.status as u64);
    bytes(&mut out, &order.total_cents.to_be_bytes()[4..]);
    long(&mut out, order.placed_at_ms);
    match order.note {
        None => long(&mut out, 0),
        Some(note) => {
            long(&mut out, 1);
            bytes(&mut out, note.as_bytes());
        }
    }
    match shape {
        Shape::Flat => item(&mut out, &order.items[0]),
        Shape::Nested => {
            long(&mut out, order.items.len() as u64);
            for one in &order.items {
                item(&mut out, one);
            }
            long(&mut out, 0);
        }
    }
    out
}

fn item(out: &mut Vec<u8>, item: &Item) {
    bytes(out, item.sku.as_bytes());
    long(out, item.quantity);
    out.extend_from_slice(&item.price.to_le_bytes());
}

fn bytes(out: &mut Vec<u8>, bytes: &[u8]) {
    long(out, bytes.len() as u64);
    out.extend_from_slice(bytes);
}

/// Zigzag, of which nothing here is negative.
fn long(out: &mut Vec<u8>, value: u64) {
    let mut zigzag = value << 1;
    while zigzag >= 0x80 {
        out.push((zigzag as u8 & 0x7f) | 0x80);
        zigzag >>= 7;
    }
    out.push(zigzag as u8);
}
