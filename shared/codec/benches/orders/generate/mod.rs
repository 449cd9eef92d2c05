//! Orders as a shop would send them, in every language and two shapes, always the same.

use std::fmt;

mod avro;
mod json;
mod protobuf;

/// How many orders the benchmarks take.
pub(crate) const ORDERS: usize = 45_072;

/// The languages and shapes of orders.
pub(crate) const CASES: [Case; 6] = [
    Case::new(Language::Avro, Shape::Nested),
    Case::new(Language::Avro, Shape::Flat),
    Case::new(Language::Protobuf, Shape::Nested),
    Case::new(Language::Protobuf, Shape::Flat),
    Case::new(Language::JsonSchema, Shape::Nested),
    Case::new(Language::JsonSchema, Shape::Flat),
];

/// How an order is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Case {
    pub(crate) language: Language,
    pub(crate) shape: Shape,
}

/// What an order's schema is written in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Language {
    Avro,
    Protobuf,
    JsonSchema,
}

/// Where an order has its items.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Shape {
    /// In a list of records.
    Nested,
    /// It has one, in fields of its own.
    Flat,
}

impl Case {
    const fn new(language: Language, shape: Shape) -> Self {
        Self { language, shape }
    }

    /// The schema, as a person would write it.
    pub(crate) fn schema(self) -> String {
        match self.language {
            Language::Avro => avro::schema(self.shape),
            Language::Protobuf => protobuf::schema(self.shape),
            Language::JsonSchema => json::schema(self.shape),
        }
    }

    /// The values of `count` orders, without framing. On average a nested one has 83 bytes in Avro, 106 in Protobuf and
    /// 225 in JSON.
    pub(crate) fn values(self, count: usize) -> Vec<Vec<u8>> {
        let mut random = Random(0x5eed);
        let encode = match self.language {
            Language::Avro => avro::value,
            Language::Protobuf => protobuf::value,
            Language::JsonSchema => json::value,
        };
        (0..count)
            .map(|index| encode(&Order::new(index, &mut random), self.shape))
            .collect()
    }
}

impl fmt::Display for Case {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let language = match self.language {
            Language::Avro => "Avro",
            Language::Protobuf => "Protobuf",
            Language::JsonSchema => "JSON Schema",
        };
        let shape = match self.shape {
            Shape::Nested => "nested",
            Shape::Flat => "flat",
        };
        write!(f, "{language}, {shape}")
    }
}

const STATUSES: [&str; 4] = ["NEW", "PAID", "SHIPPED", "RETURNED"];

struct Order {
    id: String,
    status: usize,
    total_cents: u64,
    placed_at_ms: u64,
    note: Option<&'static str>,
    /// One to three.
    items: Vec<Item>,
}

struct Item {
    sku: String,
    quantity: u64,
    price: f64,
}

impl Order {
    fn new(index: usize, random: &mut Random) -> Self {
        let notes = [
            "leave at the door",
            "gift",
            "call first",
            "second floor, ring twice",
        ];
        Self {
            id: format!("order-{:08x}-{index:06}", random.below(u64::from(u32::MAX))),
            status: random.below(4) as usize,
            total_cents: random.below(2_000_000),
            placed_at_ms: 1_764_500_000_000 + index as u64 * 17,
            note: (random.below(2) == 1).then(|| notes[random.below(4) as usize]),
            items: (0..=random.below(3)).map(|_| Item::new(random)).collect(),
        }
    }
}

impl Item {
    fn new(random: &mut Random) -> Self {
        Self {
            sku: format!("sku-{:05}", random.below(20_000)),
            quantity: 1 + random.below(9),
            price: random.below(50_000) as f64 / 100.0,
        }
    }
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
