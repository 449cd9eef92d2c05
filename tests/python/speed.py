"""What people use today to make Parquet of Kafka's values: fastavro, protobuf or json, then pyarrow.

    speed.py avro|protobuf|json SCHEMA VALUES

reads VALUES (each its length as 4 bytes, little-endian, and the value as Confluent's serializers frame it) once. Then,
for each line of standard input, it decodes them, makes a pyarrow table and writes it as Parquet with zstd to memory, and
prints how many seconds each of the three took. `cargo bench -p frazil-tests --bench speed` gives it turns.
"""

import gc
import io
import json
import sys
import time
from datetime import datetime
from decimal import Decimal

import fastavro
import pyarrow as pa
import pyarrow.parquet as pq
from google.protobuf import descriptor_pb2, descriptor_pool, message_factory

PREFIX_BYTES = 5  # 00 and an id; in Protobuf also the message index

ITEM = [("sku", pa.string()), ("quantity", pa.int32()), ("price", pa.float64())]
ORDER = [
    ("id", pa.string()),
    ("status", pa.string()),
    ("total", pa.decimal128(12, 2)),
    ("placed_at", pa.timestamp("us", tz="UTC")),
    ("note", pa.string()),
]
NESTED = pa.schema([*ORDER, ("items", pa.list_(pa.struct(ITEM)))])
FLAT = pa.schema([*ORDER, *ITEM])


def avro_reader(schema):
    parsed = fastavro.parse_schema(json.loads(schema))

    def read(value):
        row = fastavro.schemaless_reader(io.BytesIO(value[PREFIX_BYTES:]), parsed)
        row["placed_at"] = row.pop("placedAt")
        return row

    return read


def protobuf_reader(schema):
    pool = descriptor_pool.DescriptorPool()
    for file in descriptor_pb2.FileDescriptorSet.FromString(schema).file:
        pool.Add(file)
    descriptor = pool.FindMessageTypeByName("shop.Order")
    order = message_factory.GetMessageClass(descriptor)
    statuses = {value.number: value.name for value in descriptor.enum_types_by_name["Status"].values}
    nested = "items" in descriptor.fields_by_name

    def item(message):
        return {"sku": message.sku, "quantity": message.quantity, "price": message.price}

    def read(value):
        message = order.FromString(value[PREFIX_BYTES + 1 :])
        unscaled = int.from_bytes(message.total.value, "big", signed=True)
        row = {
            "id": message.id,
            "status": statuses[message.status],
            "total": Decimal(unscaled).scaleb(-message.total.scale),
            "placed_at": message.placed_at.seconds * 1_000_000 + message.placed_at.nanos // 1_000,
            "note": message.note if message.HasField("note") else None,
        }
        if nested:
            row["items"] = [item(one) for one in message.items]
        else:
            row.update(item(message))
        return row

    return read


def json_reader(_schema):
    def read(value):
        row = json.loads(value[PREFIX_BYTES:])
        row["total"] = Decimal(str(row["total"]))
        row["placed_at"] = datetime.fromisoformat(row.pop("placedAt")[:-1] + "+00:00")
        return row

    return read


READERS = {"avro": avro_reader, "protobuf": protobuf_reader, "json": json_reader}


def read_values(path):
    with open(path, "rb") as file:
        data = file.read()
    values, at = [], 0
    while at < len(data):
        end = at + 4 + int.from_bytes(data[at : at + 4], "little")
        values.append(data[at + 4 : end])
        at = end
    return values


def turn(read, values):
    gc.collect()
    started = time.perf_counter()
    rows = [read(value) for value in values]
    decoded = time.perf_counter()
    table = pa.Table.from_pylist(rows, schema=NESTED if "items" in rows[0] else FLAT)
    built = time.perf_counter()
    # zstd at the level that Frazil chooses: higher ones take longer.
    pq.write_table(table, pa.BufferOutputStream(), compression="zstd", compression_level=1)
    written = time.perf_counter()
    assert table.num_rows == len(values)
    return decoded - started, built - decoded, written - built


def main():
    language, schema, values = sys.argv[1:]
    pa.set_cpu_count(1)
    with open(schema, "rb") as file:
        read = READERS[language](file.read())
    values = read_values(values)
    for _ in sys.stdin:
        print(*turn(read, values), flush=True)


if __name__ == "__main__":
    main()
