use super::{Item, Order, Shape};

pub(super) fn schema(shape: Shape) -> String {
    let item = |first: u8| {
        let [quantity, price] = [first + 1, first + 2];
        format!("string sku = {first};\n  int32 quantity = {quantity};\n  double price = {price};")
    };
    let items = match shape {
        Shape::Flat => item(6),
        Shape::Nested => format!("repeated Item items = 6;\n  message Item {{\n  {}\n  }}", item(1)),
    };
    format!(
        r#"syntax = "proto3";
package shop;
import "google/protobuf/timestamp.proto";
import "confluent/meta.proto";
import "confluent/type/decimal.proto";
message Order {{
  string id = 1;
  Status status = 2;
  confluent.type.Decimal total = 3 [(confluent.field_meta) = {{
    params: [{{key: "precision", value: "12"}}, {{key: "scale", value: "2"}}]
  }}];
  google.protobuf.Timestamp placed_at = 4;
  optional string note = 5;
  {items}
  enum Status {{
    NEW = 0;
    PAID = 1;
    SHIPPED = 2;
    RETURNED = 3;
  }}
}}
"#
    )
}

pub(super) fn value(order: &Order, shape: Shape) -> Vec<u8> {
    let mut out = Vec::with_capacity(128);
    bytes(&mut out, 1, order.id.as_bytes());
    number(&mut out, 2, order.status as u64);
    let mut total = Vec::new();
    bytes(&mut total, 1, &order.total_cents.to_be_bytes()[4..]);
    number(&mut total, 2, 12);
    number(&mut total, 3, 2);
    bytes(&mut out, 3, &total);
    let mut placed_at = Vec::new();
    number(&mut placed_at, 1, order.placed_at_ms / 1_000);
    number(&mut placed_at, 2, order.placed_at_ms % 1_000 * 1_000_000);
    bytes(&mut out, 4, &placed_at);
    if let Some(note) = order.note {
        bytes(&mut out, 5, note.as_bytes());
    }
    match shape {
        Shape::Flat => item(&mut out, 6, &order.items[0]),
        Shape::Nested => {
            for one in &order.items {
                let mut message = Vec::new();
                item(&mut message, 1, one);
                bytes(&mut out, 6, &message);
            }
        }
    }
    out
}

/// In three fields from `first` on.
fn item(out: &mut Vec<u8>, first: u8, item: &Item) {
    bytes(out, first, item.sku.as_bytes());
    number(out, first + 1, item.quantity);
    out.push((first + 2) << 3 | 1);
    out.extend_from_slice(&item.price.to_le_bytes());
}

fn bytes(out: &mut Vec<u8>, field: u8, bytes: &[u8]) {
    out.push(field << 3 | 2);
    varint(out, bytes.len() as u64);
    out.extend_from_slice(bytes);
}

/// Numbers without presence are not written when they are zero.
fn number(out: &mut Vec<u8>, field: u8, number: u64) {
    if number != 0 {
        out.push(field << 3);
        varint(out, number);
    }
}

fn varint(out: &mut Vec<u8>, mut value: u64) {
    while value >= 0x80 {
        out.push((value as u8 & 0x7f) | 0x80);
        value >>= 7;
    }
    out.push(value as u8);
}
