//! Orders as a shop would send them, Avro-encoded, always the same.

/// How many orders fill an event of 4.4 MB raw.
pub(crate) const ORDERS: usize = 45_072;

/// The orders' schema.
pub(crate) const SCHEMA: &str = r#"{
  "type": "record", "name": "Order", "namespace": "shop", "fields": [
    {"name": "id", "type": "string"},
    {"name": "status", "type": {"type": "enum", "name": "Status", "symbols": ["NEW", "PAID", "SHIPPED", "RETURNED"]}},
    {"name": "total", "type": {"type": "bytes", "logicalType": "decimal", "precision": 12, "scale": 2}},
    {"name": "placedAt", "type": {"type": "long", "logicalType": "timestamp-millis"}},
    {"name": "note", "type": ["null", "string"], "default": null},
    {"name": "items", "type": {"type": "array", "items": {"type": "record", "name": "Item", "fields": [
      {"name": "sku", "type": "string"},
      {"name": "quantity", "type": "int"},
      {"name": "price", "type": "double"}
    ]}}}
  ]
}"#;

/// The same orders' JSON Schema, as a person would write it.
pub(crate) const JSON_SCHEMA: &str = r#"{
  "$schema": "https://json-schema.org/draft/2020-12/schema", "type": "object", "properties": {
    "id": {"type": "string"},
    "status": {"enum": ["NEW", "PAID", "SHIPPED", "RETURNED"]},
    "total": {"type": "number", "title": "org.apache.kafka.connect.data.Decimal", "connect.type": "bytes",
      "connect.parameters": {"scale": "2", "connect.decimal.precision": "12"}},
    "placedAt": {"type": "string", "format": "date-time"},
    "note": {"type": ["string", "null"]},
    "items": {"type": "array", "items": {"type": "object", "properties": {
      "sku": {"type": "string"}, "quantity": {"type": "integer", "connect.type": "int32"}, "price": {"type": "number"}
    }}}
  }
}"#;

/// `count` orders as JSON text: 212 bytes each on average.
pub(crate) fn json_orders(count: usize) -> Vec<String> {
    let mut random = Random(0x5eed);
    (0..count).map(|index| json_order(index, &mut random)).collect()
}

fn json_order(index: usize, random: &mut Random) -> String {
    let id = random.below(u64::from(u32::MAX));
    let status = ["NEW", "PAID", "SHIPPED", "RETURNED"][random.below(4) as usize];
    let cents = random.below(2_000_000);
    let (second, milli) = (index * 17 / 1_000 % 60, index * 17 % 1_000);
    let note = match random.below(2) {
        0 => "null",
        _ => [
            r#""leave at the door""#,
            r#""gift""#,
            r#""call first""#,
            r#""second floor, ring twice""#,
        ][random.below(4) as usize],
    };
    let items: Vec<String> = (0..=random.below(3))
        .map(|_| {
            let (sku, quantity) = (random.below(20_000), 1 + random.below(9));
            let price = random.below(50_000) as f64 / 100.0;
            format!(r#"{{"sku":"sku-{sku:05}","quantity":{quantity},"price":{price}}}"#)
        })
        .collect();
    format!(
        r#"{{"id":"order-{id:08x}-{index:06}","status":"{status}","total":{}.{:02},"placedAt":"2025-11-30T10:53:{second:02}.{milli:03}Z","note":{note},"items":[{}]}}"#,
        cents / 100,
        cents % 100,
        items.join(",")
    )
}

/// The encoded values of `count` orders, without framing: 97 bytes each on average.
pub(crate) fn orders(count: usize) -> Vec<Vec<u8>> {
    let mut random = Random(0x5eed);
    (0..count).map(|index| order(index, &mut random)).collect()
}

fn order(index: usize, random: &mut Random) -> Vec<u8> {
    let mut out = Vec::with_capacity(128);
    text(
        &mut out,
        &format!("order-{:08x}-{index:06}", random.below(u64::from(u32::MAX))),
    );
    long(&mut out, random.below(4).cast_signed());
    let cents = random.below(2_000_000).cast_signed().to_be_bytes();
    long(&mut out, 4);
    out.extend_from_slice(&cents[4..]);
    long(&mut out, 1_764_500_000_000 + (index as i64) * 17);
    if random.below(2) == 0 {
        long(&mut out, 0);
    } else {
        long(&mut out, 1);
        text(
            &mut out,
            [
                "leave at the door",
                "gift",
                "call first",
                "second floor, ring twice",
            ][random.below(4) as usize],
        );
    }
    let items = 1 + random.below(3);
    long(&mut out, items.cast_signed());
    for _ in 0..items {
        text(&mut out, &format!("sku-{:05}", random.below(20_000)));
        long(&mut out, 1 + random.below(9).cast_signed());
        out.extend_from_slice(&(random.below(50_000) as f64 / 100.0).to_le_bytes());
    }
    long(&mut out, 0);
    out
}

fn text(out: &mut Vec<u8>, text: &str) {
    long(out, text.len() as i64);
    out.extend_from_slice(text.as_bytes());
}

fn long(out: &mut Vec<u8>, value: i64) {
    let mut zigzag = ((value << 1) ^ (value >> 63)).cast_unsigned();
    while zigzag >= 0x80 {
        out.push((zigzag as u8 & 0x7f) | 0x80);
        zigzag >>= 7;
    }
    out.push(zigzag as u8);
}

/// Knuth's MMIX generator: the same orders on every machine.
struct Random(u64);

impl Random {
    fn below(&mut self, limit: u64) -> u64 {
        self.0 = self
            .0
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % limit
    }
}

/// The same orders' `.proto` file, as a person would write it.
pub(crate) const PROTO: &str = r#"syntax = "proto3";
package shop;
import "google/protobuf/timestamp.proto";
import "confluent/meta.proto";
import "confluent/type/decimal.proto";
message Order {
  string id = 1;
  Status status = 2;
  confluent.type.Decimal total = 3 [(confluent.field_meta) = {
    params: [{key: "precision", value: "12"}, {key: "scale", value: "2"}]
  }];
  google.protobuf.Timestamp placed_at = 4;
  optional string note = 5;
  repeated Item items = 6;
  message Item {
    string sku = 1;
    int32 quantity = 2;
    double price = 3;
  }
  enum Status {
    NEW = 0;
    PAID = 1;
    SHIPPED = 2;
    RETURNED = 3;
  }
}
"#;

/// `count` orders in Protobuf, without framing: 113 bytes each on average.
pub(crate) fn protobuf_orders(count: usize) -> Vec<Vec<u8>> {
    let mut random = Random(0x5eed);
    (0..count)
        .map(|index| protobuf_order(index, &mut random))
        .collect()
}

fn protobuf_order(index: usize, random: &mut Random) -> Vec<u8> {
    let mut out = Vec::with_capacity(128);
    let id = format!("order-{:08x}-{index:06}", random.below(u64::from(u32::MAX)));
    field(&mut out, 1, id.as_bytes());
    number(&mut out, 2, random.below(4));
    let mut total = Vec::new();
    field(&mut total, 1, &random.below(2_000_000).to_be_bytes()[4..]);
    number(&mut total, 2, 12);
    number(&mut total, 3, 2);
    field(&mut out, 3, &total);
    let millis = 1_764_500_000_000 + index as u64 * 17;
    let mut placed_at = Vec::new();
    number(&mut placed_at, 1, millis / 1_000);
    number(&mut placed_at, 2, millis % 1_000 * 1_000_000);
    field(&mut out, 4, &placed_at);
    if random.below(2) == 1 {
        let notes = [
            "leave at the door",
            "gift",
            "call first",
            "second floor, ring twice",
        ];
        field(&mut out, 5, notes[random.below(4) as usize].as_bytes());
    }
    for _ in 0..=random.below(3) {
        let mut item = Vec::new();
        field(
            &mut item,
            1,
            format!("sku-{:05}", random.below(20_000)).as_bytes(),
        );
        number(&mut item, 2, 1 + random.below(9));
        item.push(3 << 3 | 1);
        item.extend_from_slice(&(random.below(50_000) as f64 / 100.0).to_le_bytes());
        field(&mut out, 6, &item);
    }
    out
}

fn field(out: &mut Vec<u8>, field: u8, bytes: &[u8]) {
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
