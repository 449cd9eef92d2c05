use super::{Item, Order, STATUSES, Shape};

pub(super) fn schema(shape: Shape) -> String {
    let item = r#""sku": {"type": "string"}, "quantity": {"type": "integer", "connect.type": "int32"}, "price": {"type": "number"}"#;
    let items = match shape {
        Shape::Flat => item.to_owned(),
        Shape::Nested => format!(
            r#""items": {{"type": "array", "items": {{"type": "object", "properties": {{
      {item}
    }}}}}}"#
        ),
    };
    format!(
        r#"{{
  "$schema": "https://json-schema.org/draft/2020-12/schema", "type": "object", "properties": {{
    "id": {{"type": "string"}},
    "status": {{"enum": ["NEW", "PAID", "SHIPPED", "RETURNED"]}},
    "total": {{"type": "number", "title": "org.apache.kafka.connect.data.Decimal", "connect.type": "bytes",
      "connect.parameters": {{"scale": "2", "connect.decimal.precision": "12"}}}},
    "placedAt": {{"type": "string", "format": "date-time"}},
    "note": {{"type": ["string", "null"]}},
    {items}
  }}
}}"#
    )
}

pub(super) fn value(order: &Order, shape: Shape) -> Vec<u8> {
    let note = match order.note {
        None => "null".to_owned(),
        Some(note) => format!(r#""{note}""#),
    };
    // All orders are of one morning.
    let (second, millis) = (order.placed_at_ms / 1_000 % 86_400, order.placed_at_ms % 1_000);
    let placed_at = format!(
        "2025-11-30T{:02}:{:02}:{:02}.{millis:03}Z",
        second / 3_600,
        second / 60 % 60,
        second % 60
    );
    let items = match shape {
        Shape::Flat => item(&order.items[0]),
        Shape::Nested => {
            let items: Vec<String> = order
                .items
                .iter()
                .map(|one| format!("{{{}}}", item(one)))
                .collect();
            format!(r#""items":[{}]"#, items.join(","))
        }
    };
    format!(
        r#"{{"id":"{}","status":"{}","total":{}.{:02},"placedAt":"{placed_at}","note":{note},{items}}}"#,
        order.id,
        STATUSES[order.status],
        order.total_cents / 100,
        order.total_cents % 100,
    )
    .into_bytes()
}

fn item(item: &Item) -> String {
    format!(
        r#""sku":"{}","quantity":{},"price":{}"#,
        item.sku, item.quantity, item.price
    )
}
