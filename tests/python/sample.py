"""A warehouse made by PyIceberg alone, with every type, and its golden result: the checkers are tested on it.

    python sample.py WAREHOUSE GOLDEN.json
"""

import datetime
import decimal
import json
import pathlib
import sys

import pyarrow as pa
from pyiceberg.catalog.sql import SqlCatalog
from pyiceberg.partitioning import PartitionField, PartitionSpec
from pyiceberg.schema import Schema
from pyiceberg.transforms import DayTransform
from pyiceberg.types import (
    BinaryType, BooleanType, DateType, DecimalType, DoubleType, FloatType, IntegerType, ListType, LongType, MapType,
    NestedField, StringType, StructType, TimestampType, TimestamptzType,
)

from warehouse import CATALOG

UTC = datetime.timezone.utc
# A long text, so that its bounds are truncated, and characters outside ASCII.
NOTE = "naïve – " * 12

SCHEMA = Schema(
    NestedField(1, "_kafka_partition", IntegerType()),
    NestedField(2, "_kafka_offset", LongType()),
    NestedField(3, "_kafka_timestamp", TimestamptzType()),
    NestedField(4, "_kafka_epoch", IntegerType()),
    NestedField(5, "id", LongType()),
    NestedField(6, "price", DecimalType(12, 2)),
    NestedField(7, "note", StringType()),
    NestedField(8, "raw", BinaryType()),
    NestedField(9, "day", DateType()),
    NestedField(10, "local", TimestampType()),
    NestedField(11, "paid", BooleanType()),
    NestedField(12, "weight", DoubleType()),
    NestedField(13, "ratio", FloatType()),
    NestedField(14, "where", StructType(
        NestedField(15, "city", StringType()), NestedField(16, "floor", IntegerType()))),
    NestedField(17, "items", ListType(18, StructType(
        NestedField(19, "sku", StringType()), NestedField(20, "price", DecimalType(9, 3))), False)),
    NestedField(21, "tags", MapType(22, StringType(), 23, LongType(), False)),
    NestedField(24, "labels", ListType(25, StringType(), False)),
    NestedField(27, "lists", MapType(28, DecimalType(20, 0), 29, ListType(30, LongType(), False), False)),
)
DEAD_LETTERS = Schema(
    NestedField(1, "topic", StringType()),
    NestedField(2, "partition", IntegerType()),
    NestedField(3, "offset", LongType()),
    NestedField(4, "value", BinaryType()),
    NestedField(5, "code", StringType()),
)
COLUMNS = [
    {"name": "_kafka_partition", "type": "int"},
    {"name": "_kafka_offset", "type": "long"},
    {"name": "_kafka_timestamp", "type": "timestamptz"},
    {"name": "_kafka_epoch", "type": "int"},
    {"name": "id", "type": "long"},
    {"name": "price", "type": "decimal(12,2)"},
    {"name": "note", "type": "string"},
    {"name": "raw", "type": "binary"},
    {"name": "day", "type": "date"},
    {"name": "local", "type": "timestamp"},
    {"name": "paid", "type": "boolean"},
    {"name": "weight", "type": "double"},
    {"name": "ratio", "type": "float"},
    {"name": "where", "type": {"struct": [{"name": "city", "type": "string"}, {"name": "floor", "type": "int"}]}},
    {"name": "items", "type": {"list": {"struct": [
        {"name": "sku", "type": "string"}, {"name": "price", "type": "decimal(9, 3)"}]}}},
    {"name": "tags", "type": {"map": ["string", "long"]}},
    {"name": "labels", "type": {"list": "string"}},
    {"name": "lists", "type": {"map": ["decimal(20, 0)", {"list": "long"}]}},
]


def instant(day, microsecond=0):
    return datetime.datetime(2026, 11, day, 23, 59, 59, microsecond, tzinfo=UTC)


def offset(partition, number, timestamp):
    return {"_kafka_partition": partition, "_kafka_offset": number, "_kafka_timestamp": timestamp, "_kafka_epoch": 0}


# `items` is never null: PyIceberg writes an absent list of structs as an empty one.
ROWS = [
    {
        **offset(0, 100, instant(29, 999_999)), "id": 2**53 + 1, "price": decimal.Decimal("-0.10"), "note": NOTE,
        "raw": b"\xff\x00\xfe", "day": datetime.date(1969, 12, 31), "local": datetime.datetime(2026, 1, 2, 3, 4, 5, 6),
        "paid": True, "weight": float("nan"), "ratio": 0.1, "where": {"city": "Zürich", "floor": None},
        "items": [{"sku": "a", "price": decimal.Decimal("1.500")}, None], "tags": [("b", 2), ("a", None)],
        "labels": ["x", None],
        "lists": [(decimal.Decimal(2**64 - 1), [1, None]), (decimal.Decimal(9), [])],
    },
    {
        **offset(0, 101, instant(30)), "id": -1, "price": decimal.Decimal("9999999999.99"), "note": "",
        "raw": b"", "day": datetime.date(2026, 11, 30), "local": None, "paid": False, "weight": -0.0,
        "ratio": float("-inf"), "where": None, "items": [], "tags": [],
        "labels": [], "lists": [],
    },
    {**offset(1, 7, instant(30, 123_456)), "id": 3, "weight": 1e300, "items": [], "where": {"floor": -4}},
    {**offset(1, 8, None), "items": []},
]
GOLDEN_ROWS = [
    {
        "_kafka_partition": 0, "_kafka_offset": 100, "_kafka_timestamp": "2026-11-29T23:59:59.999999Z",
        "_kafka_epoch": 0, "id": 9007199254740993, "price": "-0.10", "note": NOTE, "raw": "/wD+", "day": "1969-12-31",
        "local": "2026-01-02T03:04:05.000006", "paid": True, "weight": "NaN", "ratio": 0.1,
        "where": {"city": "Zürich", "floor": None}, "items": [{"sku": "a", "price": "1.500"}, None],
        "tags": [["a", None], ["b", 2]], "labels": ["x", None],
        "lists": [["9", []], ["18446744073709551615", [1, None]]],
    },
    {
        "_kafka_partition": 0, "_kafka_offset": 101, "_kafka_timestamp": "2026-11-30T23:59:59Z", "_kafka_epoch": 0,
        "id": -1, "price": "9999999999.99", "note": "", "raw": "", "day": "2026-11-30", "paid": False,
        "weight": "-0.0", "ratio": "-Infinity", "items": [], "tags": [], "labels": [],
        "lists": [],
    },
    {
        "_kafka_partition": 1, "_kafka_offset": 7, "_kafka_timestamp": "2026-11-30T23:59:59.123456Z",
        "_kafka_epoch": 0, "id": 3, "weight": 1e300, "where": {"floor": -4}, "items": [],
    },
    {"_kafka_partition": 1, "_kafka_offset": 8, "_kafka_epoch": 0, "items": []},
]
GOLDEN = {
    "topic": "orders",
    "table": "kafka.orders",
    "records": 5,
    "dead_letters": [{"partition": 1, "offset": 9, "code": "wrong_record"}],
    "columns": COLUMNS,
    "partitions": [{"day": "2026-11-29", "rows": 1}, {"day": "2026-11-30", "rows": 2}, {"day": None, "rows": 1}],
    "rows": GOLDEN_ROWS,
}


def make(warehouse):
    """Makes the tables in the directory `warehouse`, which need not be there."""
    warehouse = pathlib.Path(warehouse).resolve()
    warehouse.mkdir(parents=True, exist_ok=True)
    catalog = SqlCatalog(CATALOG, uri=f"sqlite:///{warehouse}/catalog.db", warehouse=f"file://{warehouse}")
    catalog.create_namespace("kafka")
    # Creating a table gives new ids to its fields, so the source of a partition is found by name.
    orders = catalog.create_table("kafka.orders", SCHEMA, partition_spec=PartitionSpec(
        PartitionField(3, 1000, DayTransform(), "_kafka_timestamp_day")))
    append(orders, ROWS[:2])
    append(orders, ROWS[2:])
    letters = catalog.create_table("kafka.orders_dead_letters", DEAD_LETTERS)
    append(letters, [{"topic": "orders", "partition": 1, "offset": 9, "value": b"?", "code": "wrong_record"}])


def append(table, rows):
    table.append(pa.Table.from_pylist(rows, schema=table.schema().as_arrow()))


if __name__ == "__main__":
    make(sys.argv[1])
    pathlib.Path(sys.argv[2]).write_text(json.dumps(GOLDEN), encoding="utf-8")
