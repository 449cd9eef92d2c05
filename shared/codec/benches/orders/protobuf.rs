//! The same orders in Protobuf.

use divan::Bencher;
use divan::counter::{BytesCount, ItemsCount};
use frazil_codec::{DecodeOptions, Payload, prepare};
use frazil_schema::{Mapping, MessageSelector, ProtobufFile, SourceSchema};
use prost_reflect::{DynamicMessage, MessageDescriptor};
use protox::file::{ChainFileResolver, File, FileResolver, GoogleFileResolver};

use super::{bench, generate, records};

fn schema() -> SourceSchema {
    let file = ProtobufFile::compile(generate::PROTO, &[]).expect("a file");
    SourceSchema::Protobuf(
        file.message(&MessageSelector::First, &Mapping::default())
            .expect("a message"),
    )
}

/// Values to the table's batch, Kafka's own columns included.
#[divan::bench]
fn protobuf_to_table(bencher: Bencher<'_, '_>) {
    let (orders, schema) = (generate::protobuf_orders(generate::ORDERS), schema());
    let records = records(orders.iter().map(|body| Payload::Encoded {
        schema: &schema,
        body,
    }));
    bench(bencher, &records, orders.iter().map(Vec::len).sum());
}

/// The first of the two steps alone.
#[divan::bench]
fn protobuf_prepare(bencher: Bencher<'_, '_>) {
    let (orders, schema) = (generate::protobuf_orders(generate::ORDERS), schema());
    let records = records(orders.iter().map(|body| Payload::Encoded {
        schema: &schema,
        body,
    }));
    bencher
        .counter(BytesCount::new(orders.iter().map(Vec::len).sum::<usize>()))
        .counter(ItemsCount::new(orders.len()))
        .bench_local(|| prepare(&records, DecodeOptions::default()).expect("prepared"));
}

/// The usual way, for comparison: prost-reflect's tree of values per record, and that is only half of it.
#[divan::bench]
fn prost_reflect_trees_alone(bencher: Bencher<'_, '_>) {
    let (orders, descriptor) = (generate::protobuf_orders(generate::ORDERS), descriptor());
    bencher
        .counter(BytesCount::new(orders.iter().map(Vec::len).sum::<usize>()))
        .counter(ItemsCount::new(orders.len()))
        .bench_local(|| {
            for order in &orders {
                let tree = DynamicMessage::decode(descriptor.clone(), order.as_slice());
                divan::black_box(tree.expect("an order"));
            }
        });
}

/// The floor: every tag, number and length is read, and nothing is kept.
#[divan::bench]
fn wire_alone(bencher: Bencher<'_, '_>) {
    let orders = generate::protobuf_orders(generate::ORDERS);
    bencher
        .counter(BytesCount::new(orders.iter().map(Vec::len).sum::<usize>()))
        .counter(ItemsCount::new(orders.len()))
        .bench_local(|| {
            for order in &orders {
                divan::black_box(walk(order));
            }
        });
}

/// How many fields a message has, one level down included: of what the orders have.
fn walk(mut rest: &[u8]) -> usize {
    let mut fields = 0;
    while let [tag, inside @ ..] = rest {
        fields += 1;
        rest = match tag & 7 {
            0 => &inside[1 + inside.iter().take_while(|byte| **byte >= 0x80).count()..],
            1 => &inside[8..],
            _ => {
                let len = usize::from(inside[0]);
                let (value, rest) = inside[1..].split_at(len);
                fields += if matches!(tag >> 3, 3 | 4 | 6) && value.first().is_some_and(|tag| *tag < 32) {
                    walk(value)
                } else {
                    0
                };
                rest
            }
        };
    }
    fields
}

struct Builtin;

impl FileResolver for Builtin {
    fn open_file(&self, name: &str) -> Result<File, protox::Error> {
        let text = match name {
            "order.proto" => generate::PROTO,
            "confluent/meta.proto" => {
                include_str!("../../../schema/src/protobuf/builtin/confluent/meta.proto")
            }
            "confluent/type/decimal.proto" => {
                include_str!("../../../schema/src/protobuf/builtin/confluent/type/decimal.proto")
            }
            _ => return Err(protox::Error::file_not_found(name)),
        };
        File::from_source(name, text)
    }
}

fn descriptor() -> MessageDescriptor {
    let mut resolver = ChainFileResolver::new();
    resolver.add(GoogleFileResolver::new());
    resolver.add(Builtin);
    let mut compiler = protox::Compiler::with_file_resolver(resolver);
    compiler.open_file("order.proto").expect("a file");
    let pool = compiler.descriptor_pool();
    pool.get_message_by_name("shop.Order").expect("a message")
}
