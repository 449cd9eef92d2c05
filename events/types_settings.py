"""What settings make of types: of single fields (`type`, `exclude`, `hash`) and of whole topics, as frazil.toml has them."""

import hashlib
import hmac
import json
import math
from decimal import Decimal

from event import KAFKA_COLUMNS, MSK, NOON, Column, Record, alike, cases, framed, golden, lambda_event_of, struct_of, typed
from types_avro import decimal_on_bytes, encode, list_of, logical, record, schema_of
from types_json import Text, string, written
from types_protobuf import compiled, decimal_of, message, payload, seconds

EVENT = "types-settings"
SECRET = b"sixteen bytes or more"  # what the tests set FRAZIL_SECRET_EVENTS to
I64 = (-(2**63), 2**63 - 1)


def hashed(text):
    return hmac.new(SECRET, text if isinstance(text, bytes) else text.encode(), hashlib.sha256).hexdigest()


def person(email, phones, born, at, number, wage):
    return {"email": email, "phones": phones, "born": born, "at": at, "number": number, "wage": wage}


PERSON = record(
    "Person",
    ("email", ["null", "string"]),
    ("phones", list_of("string")),
    ("born", logical("int", "date")),
    ("at", logical("long", "timestamp-micros")),
    ("number", "long"),
    ("wage", decimal_on_bytes(9, 2)),
)
PERSON_TYPE = struct_of(email="string", phones={"list": "string"}, born="string", at="string", number="string", wage="string")
NESTED = record("Nested", ("secret", "string"), ("open", "string"))
COLUMNS = [
    Column("an_int", "int", "long", alike(-(2**31), 2**31 - 1), source="anInt"),
    Column("a_float", "float", "double", alike(1.5, -0.0, 3.4028234663852886e38), source="aFloat"),
    Column("another_float", "float", "decimal(9, 3)", [(0.1, "0.100"), (-999.125, "-999.125"), (-0.0, "0.000")], source="anotherFloat"),
    Column("a_long", "long", "decimal(38, 19)", [(value, f"{value}.{'0' * 19}") for value in I64], source="aLong"),
    Column("a_double", "double", "decimal(18, 4)", [(0.1, "0.1000"), (-99999999.0625, "-99999999.0625")], source="aDouble"),
    Column("a_decimal", decimal_on_bytes(18, 2), "decimal(20, 4)", [(Decimal("9" * 16 + ".99"), "9" * 16 + ".9900")], source="aDecimal"),
    Column("a_whole", decimal_on_bytes(20, 0), "long", [(Decimal(value), value) for value in I64], source="aWhole"),
    Column("an_instant", logical("long", "timestamp-nanos"), "long", alike(*I64), source="anInstant"),
    Column("a_text", "string", "binary", [("", ""), ("ü", "w7w=")], source="aText"),
    Column("secret", "string", None, [("never seen", None)]),
    Column("nested", NESTED, struct_of(open="string"), [({"secret": "never seen", "open": "seen"}, {"open": "seen"})]),
    Column("person", PERSON, PERSON_TYPE, [
        (person("a@example.com", ["1", ""], 17_486, 1_510_871_468_123_456, -7, Decimal("14.20")), {
            "email": hashed("a@example.com"),
            "phones": [hashed("1"), hashed("")],
            "born": hashed("2017-11-16"),
            "at": hashed("2017-11-16T22:31:08.123456"),
            "number": hashed("-7"),
            "wage": hashed("14.20"),
        }),
        (person(None, [], -1, -1, I64[0], Decimal("0.00")), {
            "email": None,
            "phones": [],
            "born": hashed("1969-12-31"),
            "at": hashed("1969-12-31T23:59:59.999999"),
            "number": hashed(str(I64[0])),
            "wage": hashed("0.00"),
        }),
    ]),
    Column("placed_at", logical("long", "timestamp-millis"), "timestamp", [(-1, "1969-12-31T23:59:59.999")], source="placedAt"),
    Column("http_server2", "string", "string", alike("x"), source="HTTPServer2"),
    Column("already_snake", "string", "string", alike("y")),
]  # fmt: skip
SCHEMA = schema_of(COLUMNS)


def rows_of(columns, encoded):
    return [Record(0, at, NOON + at, None, encoded(given), row=seen) for at, (given, seen) in enumerate(cases(columns))]


def with_poison(records, *values):
    at = len(records)
    return records + [Record(0, at + index, NOON + at, None, value, dead=code) for index, (value, code) in enumerate(values)]


def avro_settings():
    def encoded(value):
        return framed(430, encode(SCHEMA, value))

    good, _ = next(cases(COLUMNS))
    return with_poison(
        rows_of(COLUMNS, encoded),
        (encoded(good | {"aDouble": 0.00001}), "value.decimal_inexact"),
        (encoded(good | {"aDouble": 1e15}), "value.decimal_overflow"),
        (encoded(good | {"aDouble": math.nan}), "value.not_a_number"),
        (encoded(good | {"anotherFloat": math.inf}), "value.not_a_number"),
        (encoded(good | {"aWhole": Decimal(2**63)}), "value.long_overflow"),
    )


PROTOBUF = [
    Column("text", None, "binary", [("", ""), ("ü", "w7w=")]),
    Column("big", None, "long", [(0, 0), (I64[1], I64[1])]),
    Column("at", None, "long", [(seconds(-1, 999_999_999), -1), (seconds(1, 1), 1_000_000_001)]),
    Column("decimal", None, "decimal(10, 2)", [({"value": "-1.5"}, "-1.50"), ({"value": "99999999.99"}, "99999999.99")]),
    Column("scaleless", None, "decimal(10, 2)", [(decimal_of(-150, 3, 2), "-1.50"), (decimal_of(7, 1, 0), "7.00")]),
]


def protobuf_settings():
    pool = compiled(431)
    row = message(pool, "com.example.settings.Row")

    def encoded(value, more=b""):
        return framed(431, b"\x00" + payload(row(**value)) + more)

    records = with_poison(rows_of(PROTOBUF, encoded), (encoded({"big": 2**63}), "value.long_overflow"))
    records.append(Record(0, len(records), NOON, None, encoded({}, b"\x0a\x01\xff"), row={"text": "/w==", "big": 0}))
    return records


JSON = [
    Column("price", {"type": "number"}, "decimal(18, 4)", [(Text("99999999999999.9999"), "99999999999999.9999"), (Text("-1e-4"), "-0.0001"), (Text("1.50000"), "1.5000")]),
    Column("count", {"type": "integer"}, "decimal(19, 0)", [(Text("9223372036854775808"), "9223372036854775808"), (Text("-1.0"), "-1")]),
    Column("at", string("date-time"), "long", [("1970-01-01T00:00:00.000000001Z", 1), ("1969-12-31T23:59:59.999999999Z", -1)]),
    Column("text", {"type": "string"}, "binary", [("ü", "w7w="), ("", "")]),
]  # fmt: skip
JSON_SCHEMA = {"type": "object", "properties": {column.name: column.schema for column in JSON}}


def json_settings():
    def encoded(value):
        return framed(432, written(value).encode())

    return with_poison(
        rows_of(JSON, encoded),
        (encoded({"price": Text("0.00001")}), "value.decimal_inexact"),
        (encoded({"price": Text("1e14")}), "value.decimal_overflow"),
    )


# ---- Times of day as Iceberg's `time` ------------------------------------------------------------------------

TIMES = [
    Column("millis", logical("int", "time-millis"), "time", [(0, "00:00:00"), (86_399_999, "23:59:59.999")]),
    Column("micros", logical("long", "time-micros"), "time", [(86_399_999_999, "23:59:59.999999"), (1, "00:00:00.000001")]),
    Column("optional", ["null", logical("long", "time-micros")], "time", [(None, None), (1, "00:00:00.000001")]),
]
TIMES_SCHEMA = schema_of(TIMES, "Times")
JSON_TIMES = [
    Column("time", string("time"), "time", [("23:59:59.9999999Z", "23:59:59.999999"), ("01:00:00+02:00", "23:00:00"), ("12:00:00", "12:00:00")]),
    Column(
        "connect",
        {"type": "integer", "title": "org.apache.kafka.connect.data.Time", "connect.type": "int32"},
        "time",
        [(86_399_999, "23:59:59.999")],
    ),
]
PROTOBUF_TIMES = [
    Column("time", None, "time", [({}, "00:00:00"), ({"hours": 23, "minutes": 59, "seconds": 59, "nanos": 999_999_999}, "23:59:59.999999")]),
]


def times():
    message_of = message(compiled(431), "com.example.settings.Times")
    schema = {"type": "object", "properties": {column.name: column.schema for column in JSON_TIMES}}
    return {
        "times-avro": (typed(TIMES), rows_of(TIMES, lambda value: framed(433, encode(TIMES_SCHEMA, value)))),
        "times-protobuf": (
            typed(PROTOBUF_TIMES),
            rows_of(PROTOBUF_TIMES, lambda value: framed(431, b"\x02\x02" + payload(message_of(**value)))),
        ),
        "times-json": (typed(JSON_TIMES), rows_of(JSON_TIMES, lambda value: framed(434, written(value).encode()))),
    }, {433: ("avsc", TIMES_SCHEMA), 434: ("json", schema)}


# ---- Fields that the schema does not have --------------------------------------------------------------------

KNOWN = {"type": "object", "properties": {"n": {"type": "integer"}, "inner": {"type": "object", "properties": {"a": {"type": "integer"}}}}}
KNOWN_COLUMNS = [("n", "long"), ("inner", struct_of(a="long"))]


def unknown():
    def encoded(text):
        return framed(435, text.encode())

    def row(n, inner=None, unknown=None):
        return {"n": n, "inner": inner, "_kafka_unknown_fields": unknown}

    collected = [
        ('{"n":1}', row(1)),
        ('{"n":2,"more":[ 1.50 ],"other":"ü"}', row(2, None, '{"more":[ 1.50 ],"other":"ü"}')),
        ('{"n":3,"inner":{"a":1,"b":2}}', row(3, {"a": 1}, '{"inner":{"a":1,"b":2}}')),
    ]
    row_of = message(compiled(431), "com.example.settings.Times")
    return {
        "unknown-collected": (
            [*KNOWN_COLUMNS, ("_kafka_unknown_fields", "string")],
            [Record(0, at, NOON + at, None, encoded(text), row=seen) for at, (text, seen) in enumerate(collected)],
        ),
        "unknown-refused-json": (
            KNOWN_COLUMNS,
            with_poison([Record(0, 0, NOON, None, encoded('{"n":1}'), row={"n": 1})], (encoded('{"n":1,"m":1}'), "json.unknown_field")),
        ),
        "unknown-refused-protobuf": (
            [("time", "string")],
            with_poison(
                [Record(0, 0, NOON, None, framed(431, b"\x02\x02" + payload(row_of())), row={})],
                (framed(431, b"\x02\x02\x10\x01"), "protobuf.unknown_field"),
            ),
        ),
    }  # fmt: skip


# ---- Kafka's own columns, all others than by default ---------------------------------------------------------

OWN_COLUMNS = [*KAFKA_COLUMNS[:4], ("_kafka_topic", "string"), ("_kafka_timestamp_type", "string")]


def own_columns():
    topic, types = "settings-kafka", ("CREATE_TIME", "LOG_APPEND_TIME")
    records = [Record(0, at, NOON, b"k", b"{}", [("h", b"")], timestamp_type=name, row={"value": "e30="}) for at, name in enumerate(types)]
    records.append(Record(0, 2, -1, None, None, row={}, timestamp_type="NO_TIMESTAMP_TYPE"))
    return lambda_event_of(MSK, {topic: records}), golden(topic, [("value", "binary")], records, kafka_columns=OWN_COLUMNS)


def files():
    """Path below this folder → text."""
    of_times, schemas = times()
    schemas |= {430: ("avsc", SCHEMA), 432: ("json", JSON_SCHEMA), 435: ("json", KNOWN)}
    made = {f"schemas/ids/{schema_id}.{kind}": json.dumps(schema) + "\n" for schema_id, (kind, schema) in schemas.items()}
    settings = {
        "settings": (typed(COLUMNS), avro_settings()),
        "settings-protobuf": (typed(PROTOBUF), protobuf_settings()),
        "settings-json": (typed(JSON), json_settings()),
    }
    for name, topics in {EVENT: settings, "types-times": of_times, "types-unknown": unknown()}.items():
        made[f"{name}.json"] = lambda_event_of(MSK, {topic: records for topic, (_, records) in topics.items()})
        for topic, (columns, records) in topics.items():
            made[f"golden/{name}/{topic}.json"] = golden(topic, columns, records, naive=topic == "settings")
    made["types-kafka.json"], made["golden/types-kafka.json"] = own_columns()
    return made
