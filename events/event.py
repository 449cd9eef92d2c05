"""Kafka records, the event in which Lambda delivers them, and the table that it must become."""

import base64
import json
import struct
from dataclasses import dataclass, field
from datetime import datetime, timedelta, timezone

EPOCH = datetime(1970, 1, 1, tzinfo=timezone.utc)
NOON = 1_796_040_000_000  # 2026-11-30T12:00:00Z
HOUR = 3_600_000
LAMBDA_LIMIT = 6 * 1024 * 1024

MSK = {
    "eventSource": "aws:kafka",
    "eventSourceArn": "arn:aws:kafka:eu-central-1:123456789012:cluster/shop/8c1e2f5a-7d3b-4b0e-9a55-3f0f6f1d2c4b-3",
    "bootstrapServers": "b-1.shop.abc123.c3.kafka.eu-central-1.amazonaws.com:9098,"
    "b-2.shop.abc123.c3.kafka.eu-central-1.amazonaws.com:9098",
}
SELF_MANAGED = {"eventSource": "SelfManagedKafka", "bootstrapServers": "kafka-1.example.com:9092,kafka-2.example.com:9092"}

MISSING = object()  # a field that the event does not have


@dataclass
class Record:
    """A Kafka record. `form` overrides fields of its JSON: how Lambda writes a tombstone is not documented."""

    partition: int
    offset: int
    timestamp: int
    key: bytes | None
    value: bytes | None
    headers: list = field(default_factory=list)
    timestamp_type: str = "CREATE_TIME"
    form: dict = field(default_factory=dict)
    row: dict | None = None  # the value's columns; None for a tombstone or a dead letter
    dead: str | None = None  # the dead letter's code


# ---- Lambda's event ------------------------------------------------------------------------------------------


def lambda_record(topic, record):
    def encoded(data):
        return None if data is None else base64.b64encode(data).decode()

    def signed(data):
        return None if data is None else [byte - 256 if byte > 127 else byte for byte in data]

    fields = {
        "topic": topic,
        "partition": record.partition,
        "offset": record.offset,
        "timestamp": record.timestamp,
        "timestampType": record.timestamp_type,
        "key": encoded(record.key),
        "value": encoded(record.value),
        "headers": [{name: signed(value)} for name, value in record.headers],
    } | record.form
    return {name: value for name, value in fields.items() if value is not MISSING}


def lambda_event(origin, topic, records):
    """The event as text, a record per line. `records` are in the order of the arrays."""
    return lambda_event_of(origin, {topic: records})


def lambda_event_of(origin, topics):
    """The same of several topics: their records by name."""
    lists = []
    for topic, records in topics.items():
        arrays = {}
        for record in records:
            arrays.setdefault(record.partition, []).append(compact(lambda_record(topic, record)))
        lists += [f"{compact(f'{topic}-{partition}')}:[\n" + ",\n".join(lines) + "\n]" for partition, lines in arrays.items()]
    text = compact(origin)[:-1] + ',"records":{' + ",\n".join(lists) + "}}\n"
    assert len(text.encode()) < LAMBDA_LIMIT, "Lambda would not send this"
    return text


def compact(value):
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))


# ---- The golden table ----------------------------------------------------------------------------------------

KAFKA_COLUMNS = [
    ("_kafka_partition", "int"),
    ("_kafka_offset", "long"),
    ("_kafka_timestamp", "timestamptz"),
    ("_kafka_epoch", "int"),
    ("_kafka_key", "string"),
    ("_kafka_headers", {"list": {"struct": [{"name": "name", "type": "string"}, {"name": "value", "type": "binary"}]}}),
    ("_kafka_tombstone", "boolean"),
]


def instant(micros):
    at = EPOCH + timedelta(microseconds=micros)
    return at.replace(tzinfo=None).isoformat(timespec="microseconds") + "Z"


def key_text(key):
    if not key:
        return None
    try:
        return key.decode()
    except UnicodeDecodeError:
        return "base64:" + base64.b64encode(key).decode()


def kafka_values(record):
    return {
        "_kafka_partition": record.partition,
        "_kafka_offset": record.offset,
        "_kafka_timestamp": None if record.timestamp == -1 else instant(record.timestamp * 1000),
        "_kafka_epoch": 0,
        "_kafka_key": key_text(record.key),
        "_kafka_headers": [
            {"name": name, "value": None if value is None else base64.b64encode(value).decode()}
            for name, value in record.headers
        ],
        "_kafka_tombstone": not record.value,
        "_kafka_timestamp_type": None if record.timestamp_type == "NO_TIMESTAMP_TYPE" else record.timestamp_type,
    }


def golden(topic, value_columns, records, table=None, naive=False, kafka_columns=KAFKA_COLUMNS):
    """The golden file as text, a row per line. `table` is the table's name when it is not the topic's; with `naive`,
    instants are timestamps without a zone."""
    distinct = {(record.partition, record.offset): record for record in records}
    ordered = [distinct[at] for at in sorted(distinct)]
    rows, days = [], {}
    for record in ordered:
        if record.dead:
            continue
        kafka = {"_kafka_topic": topic} | kafka_values(record)
        kafka = {name: kafka[name] for name, _ in kafka_columns}
        if naive and kafka["_kafka_timestamp"]:
            kafka["_kafka_timestamp"] = kafka["_kafka_timestamp"].removesuffix("Z")
        rows.append({name: (record.row or {}).get(name) for name, _ in value_columns} | kafka)
        day = kafka["_kafka_timestamp"] and kafka["_kafka_timestamp"][:10]
        days[day] = days.get(day, 0) + 1
    kafka_columns = [(name, "timestamp" if naive and kind == "timestamptz" else kind) for name, kind in kafka_columns]
    head = {
        "topic": topic,
        "table": "kafka." + (table or "".join(c if c.isascii() and c.isalnum() else "_" for c in topic.lower())),
        "records": len(ordered),
        "dead_letters": [
            {"partition": record.partition, "offset": record.offset, "code": record.dead}
            for record in ordered
            if record.dead
        ],
        "columns": [{"name": name, "type": kind} for name, kind in [*value_columns, *kafka_columns]],
        "partitions": [{"day": day, "rows": days[day]} for day in sorted(days, key=lambda day: (day is None, day or ""))],
    }
    parts = [f"{compact(name)}:{compact(value)}" for name, value in head.items()]
    parts.append('"rows":[\n' + ",\n".join(compact(row) for row in rows) + "\n]")
    return "{" + ",\n".join(parts) + "}\n"


# ---- Columns and their cases ---------------------------------------------------------------------------------


@dataclass
class Column:
    """A column of a table that is written down value by value: what the encoder is given, and what readers must see."""

    name: str
    schema: object  # the field's type, in the language of the schema
    type: object  # the column's, as the golden file has it; None: there is no column
    cases: list  # (given, seen)
    source: str | None = None  # the field's name, if it is not the column's


def alike(*values):
    """Cases that readers see as they were given."""
    return [(value, value) for value in values]


def cases(columns):
    """For each row what the encoder is given and what readers see. A column with fewer cases begins again."""
    for at in range(max(len(column.cases) for column in columns)):
        chosen = [(column, *column.cases[at % len(column.cases)]) for column in columns]
        yield (
            {column.source or column.name: given for column, given, _ in chosen if given is not MISSING},
            {column.name: seen for column, _, seen in chosen if column.type is not None},
        )


def typed(columns):
    return [(column.name, column.type) for column in columns if column.type is not None]


def struct_of(**fields):
    return {"struct": [{"name": name, "type": kind} for name, kind in fields.items()]}


def framed(schema_id, payload):
    """Confluent's prefix: 00, the schema id, the payload."""
    return struct.pack(">bI", 0, schema_id) + payload


def base64_of(data):
    return base64.b64encode(data).decode()
