"""Strings of a megabyte in each language. Too large to be kept: the tests make them when they need them."""

from event import MSK, NOON, Record, compact, framed, golden, lambda_event_of
from framings import AVRO, ROW_COLUMNS
from types_avro import encode
from types_protobuf import compiled, message, payload

NAME = "large"
LONG = "a" * 1_000_000


def files():
    """Path below a folder → text."""
    row = {"id": 1, "name": LONG}
    inner = message(compiled(401), "com.example.framing.Outer.Inner")
    values = {
        "large-avro": framed(400, encode(AVRO[400], row)),
        "large-protobuf": framed(401, b"\x04\x02\x00" + payload(inner(**row))),
        "large-json-schema": framed(402, compact(row).encode()),
        "large-json": compact(row).encode(),
    }
    topics = {topic: [Record(0, 0, NOON, None, value, row=row)] for topic, value in values.items()}
    made = {f"{NAME}.json": lambda_event_of(MSK, topics)}
    for topic, records in topics.items():
        made[f"golden/{NAME}/{topic}.json"] = golden(topic, ROW_COLUMNS, records)
    return made
