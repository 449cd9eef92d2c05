#!/usr/bin/env python3
"""Makes the Lambda events of this folder and, without Frazil, the tables that they must become.

    python3.11 -m venv events/.venv && events/.venv/bin/pip install -r events/requirements.txt
    events/.venv/bin/python events/generate.py            # write everything
    events/.venv/bin/python events/generate.py --check    # write nothing; fail if a file differs
    events/.venv/bin/python events/generate.py --large T  # write the event that is too large to be kept to folder T

The seeds are fixed: the same versions give the same bytes. README.md describes the files.
"""

import argparse
import io
import json
import random
import struct
import sys
import uuid
from datetime import date, timedelta
from decimal import Decimal
from pathlib import Path

import fastavro
import framings
import large
import types_avro
import types_json
import types_protobuf
import types_settings
from event import HOUR, MSK, NOON, MISSING, SELF_MANAGED, Record, framed, golden, instant, lambda_event

FOLDER = Path(__file__).resolve().parent


# ---- Avro ----------------------------------------------------------------------------------------------------


def avro_decimal(precision):
    return {"type": "bytes", "logicalType": "decimal", "precision": precision, "scale": 2}


def avro_record(name, *fields):
    return {"type": "record", "name": name, "fields": [dict(field) for field in fields]}


def required(name, kind):
    return {"name": name, "type": kind}


def optional(name, kind):
    return {"name": name, "type": ["null", kind], "default": None}


def order_schema(*more):
    address = avro_record(
        "Address",
        required("street", "string"),
        required("city", "string"),
        optional("postalCode", "string"),
        required("country", "string"),
    )
    customer = avro_record(
        "Customer",
        required("id", "long"),
        required("name", "string"),
        optional("email", "string"),
        required("address", address),
    )
    item = avro_record(
        "Item",
        required("sku", "string"),
        required("quantity", "int"),
        required("price", avro_decimal(10)),
    )
    gift = avro_record("Gift", optional("message", "string"), required("wrapped", "boolean"))
    status = {"type": "enum", "name": "Status", "symbols": ["NEW", "PAID", "SHIPPED", "DELIVERED", "CANCELLED"]}
    schema = avro_record(
        "Order",
        required("id", {"type": "string", "logicalType": "uuid"}),
        required("number", "long"),
        required("status", status),
        required("total", avro_decimal(12)),
        required("placedAt", {"type": "long", "logicalType": "timestamp-millis"}),
        required("updated_at", {"type": "long", "logicalType": "timestamp-micros"}),
        required("ship_by", {"type": "int", "logicalType": "date"}),
        optional("note", "string"),
        required("customer", customer),
        required("items", {"type": "array", "items": item}),
        required("attributes", {"type": "map", "values": "string"}),
        optional("discount", "double"),
        optional("gift", gift),
        required("express", "boolean"),
        required("weight_kg", "float"),
        *more,
    )
    return {"type": "record", "name": "Order", "namespace": "com.example.shop", "fields": schema["fields"]}


ORDER_SCHEMAS = {7: order_schema(), 8: order_schema(optional("channel", "string"))}
PARSED = {schema_id: fastavro.parse_schema(schema) for schema_id, schema in ORDER_SCHEMAS.items()}
SUBJECTS = {
    "orders-value": {"versions": [{"version": 1, "id": 7}, {"version": 2, "id": 8}]},
    "orders-poison-value": {"versions": [{"version": 1, "id": 7}, {"version": 2, "id": 8}]},
}


def avro_columns(schema):
    return [(field["name"].lower(), avro_type(field["type"])) for field in schema["fields"]]


def avro_type(schema):
    """The Iceberg type, as the type mapping promises it."""
    if isinstance(schema, str):
        return schema
    if isinstance(schema, list):
        (branch,) = [branch for branch in schema if branch != "null"]
        return avro_type(branch)
    match schema.get("logicalType"):
        case "decimal":
            return f"decimal({schema['precision']}, {schema['scale']})"
        case "timestamp-millis" | "timestamp-micros":
            return "timestamptz"
        case "date":
            return "date"
        case "uuid":
            return "string"
    match schema["type"]:
        case "enum":
            return "string"
        case "record":
            return {"struct": [{"name": name, "type": kind} for name, kind in avro_columns(schema)]}
        case "array":
            return {"list": avro_type(schema["items"])}
        case "map":
            return {"map": ["string", avro_type(schema["values"])]}
    raise ValueError(schema)


def avro_value(schema, value):
    """The golden value of what was given to the encoder."""
    if value is None or isinstance(schema, str):
        return value
    if isinstance(schema, list):
        (branch,) = [branch for branch in schema if branch != "null"]
        return avro_value(branch, value)
    match schema.get("logicalType"):
        case "decimal":
            return f"{value:.2f}"
        case "timestamp-millis":
            return instant(value * 1000)
        case "timestamp-micros":
            return instant(value)
        case "date":
            return str(date(1970, 1, 1) + timedelta(days=value))
        case "uuid":
            return str(value)
    match schema["type"]:
        case "enum":
            return value
        case "record":
            return {field["name"].lower(): avro_value(field["type"], value.get(field["name"])) for field in schema["fields"]}
        case "array":
            return [avro_value(schema["items"], item) for item in value]
        case "map":
            return [[name, avro_value(schema["values"], value[name])] for name in sorted(value)]
    raise ValueError(schema)


def avro_payload(schema_id, value):
    out = io.BytesIO()
    fastavro.schemaless_writer(out, PARSED[schema_id], value, strict=True)
    return out.getvalue()


def make_order(rng, schema_id, number, placed):
    def money(cents):
        return Decimal(cents) / 100

    cities = [("Köln", "50667", "DE"), ("Łódź", "90-001", "PL"), ("東京", None, "JP"), ("Dublin", None, "IE"), ("Lyon", "69001", "FR")]
    names = ["Zoë Müller", "Ana García", "李小龍", "O'Brien", "Søren Æ.", 'Max "Q" Mustermann']
    city, postal_code, country = rng.choice(cities)
    customer = rng.randrange(1, 900)
    items = [
        {"sku": f"SKU-{rng.randrange(10_000):05}", "quantity": rng.randrange(1, 6), "price": money(rng.randrange(99, 50_000))}
        for _ in range(rng.choice([0, 1, 1, 1, 2, 2, 3, 5]))
    ]
    value = {
        "id": uuid.UUID(int=rng.getrandbits(128), version=4),
        "number": number,
        "status": rng.choice(ORDER_SCHEMAS[7]["fields"][2]["type"]["symbols"]),
        "total": sum((item["price"] * item["quantity"] for item in items), Decimal("0.00")),
        "placedAt": placed,
        "updated_at": placed * 1000 + rng.randrange(1_000_000),
        "ship_by": placed // 86_400_000 + rng.randrange(1, 10),
        "note": rng.choice([None, None, "", "leave at the door", "Grüße 🎁"]),
        "customer": {
            "id": customer,
            "name": names[customer % len(names)],
            "email": rng.choice([None, f"customer{customer}@example.com"]),
            "address": {
                "street": f"{rng.randrange(1, 200)} Main Street",
                "city": city,
                "postalCode": postal_code,
                "country": country,
            },
        },
        "items": items,
        "attributes": {
            name: rng.choice(["", "a", "b", "ü"]) for name in rng.sample(["campaign", "device", "lang", "Region"], rng.randrange(4))
        },
        "discount": rng.choice([None, None, 0.05, 0.1, 1 / 3]),
        "gift": rng.choice([None, None, None, {"message": None, "wrapped": True}, {"message": "Joy!", "wrapped": False}]),
        "express": rng.random() < 0.2,
        "weight_kg": rng.randrange(1, 160) / 8,  # exact in 32 bits
    }
    if schema_id == 8:
        value["channel"] = rng.choice([None, "web", "store", "app"])
    return value


EXTREMES = [
    {"total": Decimal("-9999999999.99"), "number": -(2**63), "discount": -0.0},
    {"total": Decimal("9999999999.99"), "number": 2**63 - 1, "discount": 1.7976931348623157e308},
    {"placedAt": -1, "updated_at": -1, "ship_by": -1, "discount": float("nan")},
    # 0002-01-01 and 9998-12-31: a year off the ends, where Python's own dates stop.
    {"placedAt": -62_104_060_800_000, "updated_at": -62_104_060_800_000_000, "ship_by": -718_797},
    {"placedAt": 253_370_764_799_999, "updated_at": 253_370_764_799_999_999, "ship_by": 2_932_531},
    {"total": Decimal("0.01"), "discount": float("inf")},
    {"total": Decimal("-0.01"), "discount": float("-inf")},
    {"total": Decimal("1.27")},  # 127 and 128 cents: the second takes two bytes
    {"total": Decimal("1.28")},
]


def jsonable(value):
    """NaN and infinities as text: JSON has none."""
    if isinstance(value, float) and (value != value or value in (float("inf"), float("-inf"))):
        return {"nan": "NaN", "inf": "Infinity", "-inf": "-Infinity"}[str(value)]
    return value


def order_record(rng, partition, offset, timestamp, schema_id, **changes):
    value = make_order(rng, schema_id, partition * 1_000_000 + offset, timestamp - rng.randrange(5_000)) | changes
    payload = avro_payload(schema_id, value)
    row = {name: jsonable(column) for name, column in avro_value(ORDER_SCHEMAS[schema_id], value).items()}
    key = rng.choices(
        [f"customer-{value['customer']['id']:05}".encode(), None, b"\xff\x00" + struct.pack(">I", value["customer"]["id"])],
        weights=[90, 5, 5],
    )[0]
    headers = [("trace-id", rng.randbytes(16))]
    if rng.random() < 0.3:
        headers += [("source", b"web"), ("source", b"retry")]
    return Record(partition, offset, timestamp, key, framed(schema_id, payload), headers, row=row)


def orders():
    """2,000 orders over four partitions and three days, two schema versions interleaved, some tombstones."""
    rng = random.Random("orders")
    extremes = iter(EXTREMES)
    records = []
    for partition, first in enumerate([0, 1_000, 41_317, 2**40]):
        timestamp = NOON - 15 * HOUR
        for at in range(500):
            timestamp += rng.randrange(2 * 30 * HOUR // 500)
            schema_id = 8 if rng.random() < 0.4 else 7
            changes = next(extremes, {}) if at % 50 == 10 else {}
            record = order_record(rng, partition, first + at, timestamp, schema_id, **changes)
            if at % 100 == 77:
                record.value = record.row = None
            records.append(record)
    return lambda_event(MSK, "orders", records), golden("orders", avro_columns(ORDER_SCHEMAS[8]), records)


def orders_poison():
    """Good orders with thirteen records among them that can never be read."""
    rng = random.Random("orders-poison")

    def payload(record):
        return record.value[5:]

    def truncated(keep):
        return lambda record: (record.value[:5] + payload(record)[: int(len(payload(record)) * keep)], "avro.truncated")

    def bad_enum(record):
        # The enum's index is the one byte behind the uuid (37 bytes) and the number (a zigzag varint).
        at = 37
        while payload(record)[at] & 0x80:
            at += 1
        return record.value[:5] + payload(record)[: at + 1] + b"\x62" + payload(record)[at + 2 :], "avro.invalid"

    def bad_utf8(record):
        return record.value.replace(b" Main Street", b" Main\xffStreet"), "avro.invalid"

    spoil = {
        (0, 3): truncated(0.9),
        (0, 17): lambda record: (framed(999, payload(record)), "registry.unknown_schema"),
        (0, 40): lambda record: (b"\x01" + record.value[1:], "wire.not_confluent"),
        (0, 41): bad_enum,
        (0, 42): truncated(0.5),
        (0, 90): lambda record: (b'{"id": "not framed"}', "wire.not_confluent"),
        (0, 119): lambda record: (record.value[:-1], "avro.truncated"),
        (1, 0): lambda record: (framed(2**32 - 1, payload(record)), "registry.unknown_schema"),
        (1, 8): bad_utf8,
        (1, 9): lambda record: (record.value[:5], "avro.truncated"),
        (1, 60): lambda record: (b"\x03\x00" + rng.randbytes(16) + payload(record), "wire.not_confluent"),
        (1, 61): lambda record: (b"\x00\x00\x00", "wire.too_short"),
        (1, 100): lambda record: (framed(0, payload(record)), "registry.unknown_schema"),
    }
    records = []
    for partition in range(2):
        for at in range(150):
            record = order_record(rng, partition, 500 + at, NOON + at * 7_919, 8 if at % 3 == 0 else 7)
            if change := spoil.get((partition, at)):
                record.value, record.dead = change(record)
                assert_unreadable(record)
            records.append(record)
    return lambda_event(MSK, "orders-poison", records), golden("orders-poison", avro_columns(ORDER_SCHEMAS[8]), records)


def assert_unreadable(record):
    """fastavro agrees that the payload is damaged."""
    if not record.dead.startswith("avro."):
        return
    schema_id = struct.unpack(">I", record.value[1:5])[0]
    try:
        fastavro.schemaless_reader(io.BytesIO(record.value[5:]), PARSED[schema_id], None)
    except (EOFError, IndexError, UnicodeDecodeError, ValueError):
        return
    raise AssertionError(f"{record.dead} at {record.partition}:{record.offset} can be read")


# ---- JSON without a schema -----------------------------------------------------------------------------------


def safe(name):
    return "".join(c if c.isascii() and (c.isalnum() or c == "_") else "_" for c in name).lower() or "_"


def infer(values):
    """The type of all values of one field, over the whole event; None when there is only null.

    Struct fields come in the order in which their names first appear.
    """
    kinds = {type(value) for value in values if value is not None}
    match kinds:
        case _ if not kinds:
            return None
        case _ if kinds == {dict}:
            fields = {}
            for value in values:
                for name, inner in (value or {}).items():
                    fields.setdefault(name, []).append(inner)
            typed = [(safe(name), infer(inner)) for name, inner in fields.items()]
            return {"struct": [{"name": name, "type": kind} for name, kind in typed if kind is not None]}
        case _ if kinds == {list}:
            return {"list": infer([item for value in values for item in value or []])}
        case _ if kinds == {int}:
            return "long"
        case _ if kinds <= {int, float}:
            return "double"
        case _ if kinds == {bool}:
            return "boolean"
        case _ if kinds <= {int, float, str}:
            return "string"
    raise ValueError(f"no rule for {kinds}")


def json_value(kind, value):
    if value is None:
        return None
    match kind:
        case "double":
            return float(value)
        case "string":
            return value if isinstance(value, str) else json.dumps(value)
        case {"struct": fields}:
            found = {safe(name): inner for name, inner in value.items()}
            return {field["name"]: json_value(field["type"], found.get(field["name"])) for field in fields}
        case {"list": item}:
            return [json_value(item, inner) for inner in value]
    return value


def infer_rows(documents, records):
    """Gives each record its row; returns the columns. `documents` go with `records`, None where there is none."""
    ordered = sorted(zip(records, documents, strict=True), key=lambda pair: (pair[0].partition, pair[0].offset))
    table = infer([document for _, document in ordered if document is not None])
    for record, document in ordered:
        record.row = json_value(table, document)
    return [(field["name"], field["type"]) for field in table["struct"]]


def make_click(rng, at):
    """Ragged on purpose. No field is null before it has had a value, unless it never has one."""
    click = {"event": rng.choice(["click", "view", "scroll"]), "ts": NOON + at * 997, "experiment": None}
    if rng.random() < 0.8:
        click["userId"] = rng.randrange(1, 5_000)
    click["page"] = {"url": f"https://shop.example/p/{rng.randrange(400)}?q=ü&r=%20", "referrer": None}
    if rng.random() < 0.4:
        click["page"]["title"] = rng.choice(["Schuhe & Stiefel", 'A "quoted" title', "靴\n新着", "\u2028", "tab\there"])
    if rng.random() < 0.3:
        click["page"]["utm-source"] = rng.choice(["mail", "search"])
    if rng.random() < 0.5:
        click["position"] = [rng.randrange(1_920), rng.choice([rng.randrange(1_080), rng.randrange(8_640) / 8])]
    if rng.random() < 0.2:
        click["samples"] = [rng.randrange(-5, 5) for _ in range(rng.randrange(4))]
    if rng.random() < 0.5:
        click["scroll"] = rng.choice([0, 1, 0.25, 0.625, 1e-7, 1e21])
    if rng.random() < 0.4:
        click["value"] = rng.choice([7, -3, 2.5, "seven", "8", ""])
    if rng.random() < 0.3:
        click["tags"] = rng.sample(["new", "sale", "Größe L", "a,b"], rng.randrange(4))
    if rng.random() < 0.6:
        click["session"] = {"id": f"{rng.getrandbits(64):016x}", "visits": rng.randrange(1, 2**53 + 2)}
        if rng.random() < 0.3:
            click["session"]["consent"] = {"ads": rng.random() < 0.5, "stats": True} if rng.random() < 0.8 else {}
    if rng.random() < 0.1:
        click["cart"] = [{"sku": "A-1", "qty": 2}, {"sku": "B-2", "price": 9.5}, {"qty": 1, "note": "x"}][: rng.randrange(4)]
    if rng.random() < 0.05:
        click["bot"] = rng.random() < 0.5
    if at % 211 == 100:
        click |= {"total_ms": 2**53 + 1, "delta": -(2**63)}
    if at % 97 == 50:
        click["userId"] = None
        click["tags"] = None
    return click


def clicks():
    """1,200 ragged clicks; one is cut off in the middle and one value was never JSON."""
    rng = random.Random("clicks")
    records, documents = [], []
    for partition in range(3):
        timestamp = NOON - 13 * HOUR
        for at in range(400):
            timestamp += rng.randrange(HOUR // 10)
            document = make_click(rng, at)
            text = json.dumps(document, ensure_ascii=rng.random() < 0.5, separators=rng.choice([(",", ":"), (", ", ": ")]))
            key = rng.choice([None, f"session-{rng.randrange(300)}".encode()])
            record = Record(partition, 70_000 * partition + at, timestamp, key, text.encode())
            match (partition, at):
                case (1, 42):
                    record.value, record.dead, document = record.value[:37], "json.invalid", None
                case (2, 7):
                    record.value, record.dead, document = b"\x00\x01 not JSON", "json.invalid", None
                case (0 | 2, 333):
                    record.value, document = None, None
            records.append(record)
            documents.append(document)
    columns = infer_rows(documents, records)
    return lambda_event(MSK, "web.clicks-v1", records), golden("web.clicks-v1", columns, records)


def nasty():
    """Everything odd that an event may hold and a reader must take, in few records."""

    def record(partition, offset, document, timestamp=NOON, key=None, **more):
        value = None if document is None else json.dumps(document).encode()
        documents.append(document)
        records.append(Record(partition, offset, timestamp, key, value, **more))
        return records[-1]

    records, documents = [], []
    # Out of order, with the gaps that compaction and transaction markers leave.
    record(7, 905, {"n": 5, "s": "fifth"}, NOON + 5)
    record(7, 12, {"n": 1, "s": "first"}, NOON + 1)
    record(7, 300, {"n": 3, "s": "third"}, NOON + 3, timestamp_type="LOG_APPEND_TIME")
    record(7, 13, {"n": 2, "s": "second"}, NOON + 2)
    record(7, 904, {"n": 4, "s": "fourth"}, NOON + 4)
    # The same record twice is one record.
    record(7, 13, {"n": 2, "s": "second"}, NOON + 2)
    # Tombstones in three forms; null keys in three forms.
    record(0, 0, {"n": 10, "s": "ten"}, key=b"k1", form={"headers": None})
    record(0, 1, None, key=b"k1", form={"value": None, "headers": MISSING})
    record(0, 2, None, key=b"k2", form={"value": MISSING})
    record(0, 3, None, key=b"k3", form={"value": ""})
    record(0, 4, {"n": 11, "s": None}, form={"key": None})
    record(0, 5, {"n": 12}, form={"key": MISSING})
    record(0, 6, {"n": 13}, form={"key": ""})
    record(0, 7, None, form={"key": MISSING, "value": MISSING, "headers": MISSING})
    record(0, 8, {"n": 14, "s": "binary key"}, key=b"\xfe\xff\x00")
    record(0, 9, {"n": 15, "s": "UTF-8 key"}, key="Schlüssel 🔑".encode())
    # Timestamps: none, the beginning, both sides of midnight.
    record(1, 20, {"n": 20, "s": "no timestamp"}, -1)
    record(1, 21, {"n": 21, "s": "no timestamp"}, -1, timestamp_type="NO_TIMESTAMP_TYPE")
    record(1, 22, {"n": 22, "s": "epoch"}, 0)
    record(1, 23, {"n": 23, "s": "last ms of the day"}, NOON + 12 * HOUR - 1)
    record(1, 24, {"n": 24, "s": "first ms of the day"}, NOON + 12 * HOUR)
    record(1, 25, {"n": 25, "s": "a millisecond that floats lose"}, 1_545_084_650_987)
    # Headers: signed bytes, unsigned bytes, null, empty, repeated, an odd name.
    record(1, 30, {"n": 30}, headers=[("signed", bytes([255, 128, 127, 0]))])
    record(1, 31, {"n": 31}, headers=[("unsigned", bytes([255, 128]))], form={"headers": [{"unsigned": [255, 128]}]})
    record(1, 32, {"n": 32}, headers=[("null", None), ("empty", b"")])
    record(1, 33, {"n": 33}, headers=[("a", b"1"), ("b", b"2"), ("a", b"3"), ("a", b"1")])
    record(1, 34, {"n": 34}, headers=[("", b"no name"), ('quote"and ü', b"\n")])
    record(1, 35, {"n": 35}, headers=[], form={"somethingNew": {"deep": [1, {"x": None}]}})
    columns = infer_rows(documents, records)
    return lambda_event(SELF_MANAGED, "Nasty-Topic.1", records), golden("Nasty-Topic.1", columns, records)


# ---- Files ---------------------------------------------------------------------------------------------------


def files():
    """Every generated file: path below this folder → text."""
    made = {}
    for schema_id, schema in ORDER_SCHEMAS.items():
        made[f"schemas/ids/{schema_id}.avsc"] = json.dumps(schema, indent=2) + "\n"
    for subject, versions in SUBJECTS.items():
        made[f"schemas/subjects/{subject}.json"] = json.dumps(versions) + "\n"
    for module in (framings, types_avro, types_json, types_protobuf, types_settings):
        made |= module.files()
    for name, make in {
        "orders-avro": orders,
        "orders-poison-avro": orders_poison,
        "clicks-json": clicks,
        "nasty": nasty,
    }.items():
        made[f"{name}.json"], made[f"golden/{name}.json"] = make()
    return made


def write(folder, made):
    for name, text in made.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8", newline="\n")


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--check", action="store_true", help="compare with the files on disk instead of writing them")
    parser.add_argument("--large", metavar="FOLDER", type=Path, help="write the event that is too large to be kept, there")
    arguments = parser.parse_args()
    if arguments.large:
        write(arguments.large, large.files())
    elif not arguments.check:
        write(FOLDER, files())
    else:
        made = files().items()
        differ = [name for name, text in made if not (FOLDER / name).exists() or (FOLDER / name).read_bytes() != text.encode()]
        if differ:
            sys.exit("these files are not what generate.py makes: " + ", ".join(differ))


if __name__ == "__main__":
    main()
