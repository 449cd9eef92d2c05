"""Every way in which a record may say which schema wrote it; keys as columns; a table for each type; raw values.

Framings are written by hand, from the serializers' public descriptions."""

import json
import struct
import uuid
import zlib
from pathlib import Path

from event import MSK, NOON, Record, compact, framed, golden, lambda_event_of, struct_of
from types_avro import encode
from types_protobuf import compiled, message, payload

FOLDER = Path(__file__).resolve().parent
GUID, AVRO_VERSION, PROTOBUF_GUID, PROTOBUF_VERSION = (uuid.UUID(int=0x8C1E2F5A7D3B4B0E9A553F0F6F1D2C00 + at) for at in range(4))
UNKNOWN_VERSION = uuid.UUID(int=7)


def record(name, *fields):
    return {"type": "record", "name": name, "fields": [{"name": field, "type": kind} for field, kind in fields]}


def optional(kind):
    return ["null", kind]


ROW = record("com.example.framing.Row", ("id", "long"), ("name", "string"))
AVRO = {
    400: ROW,
    410: record("com.example.keys.Key", ("id", "long"), ("region", optional("string"))),
    412: record("com.example.keys.Row", ("id", "string"), ("n", "int")),
    413: "long",
    420: record("com.example.shop.Placed", ("order", "long"), ("total", "double")),
    421: record("com.example.shop.Paid", ("order", "long"), ("card", "string")),
}
ROW_COLUMNS = [("id", "long"), ("name", "string")]


def rows(*values):
    """Records of one partition: (value, seen) or (value, seen, more), where `seen` is a row or a dead letter's code."""
    made = []
    for at, (value, seen, *more) in enumerate(values):
        fields = {"key": None} | (more[0] if more else {})
        row, dead = (None, seen) if isinstance(seen, str) else (seen, None)
        made.append(Record(0, at, NOON + at, value=value, row=row, dead=dead, **fields))
    return made


# ---- Framings ------------------------------------------------------------------------------------------------


def lambda_metadata(data_format, schema_id):
    return {"form": {"valueSchemaMetadata": {"dataFormat": data_format, "schemaId": schema_id}}}


def framings():
    def avro(number, name="x"):
        return encode(ROW, {"id": number, "name": name})

    def row(number, name="x"):
        return {"id": number, "name": name}

    def headers(*pairs):
        return {"headers": list(pairs)}

    def glue(version, compression, body):
        return bytes([3, compression]) + version.bytes + body

    inner = message(compiled(401), "com.example.framing.Outer.Inner")

    def protobuf(number):
        return payload(inner(id=number, name="x"))

    limits = (-(2**63), 2**63 - 1)
    path = b"\x04\x02\x00"  # two indexes: the second message of the file, in it the first
    reference = b"\x21\x0a\x1fcom.example.framing.Outer.Inner"
    return {
        "framing-confluent": (ROW_COLUMNS, rows(
            (framed(400, avro(limits[0])), row(limits[0])),
            (avro(1), row(1), headers(("__value_schema_id", b"\x01" + GUID.bytes))),
            (avro(2), row(2), headers(("__value_schema_id", b"\x00" + struct.pack(">I", 400)))),
            # Of several headers the last counts.
            (avro(3), row(3), headers(("__value_schema_id", b"\x01" + UNKNOWN_VERSION.bytes), ("__value_schema_id", b"\x01" + GUID.bytes))),
            (avro(4), "registry.unknown_schema", headers(("__value_schema_id", b"\x01" + UNKNOWN_VERSION.bytes))),
            (avro(5), "wire.bad_schema_header", headers(("__value_schema_id", b"\x01\x02"))),
            (b"\x00\x00\x01", "wire.too_short"),
            (b"\x02" + avro(6), "wire.not_confluent"),
        )),
        "framing-confluent-protobuf": (ROW_COLUMNS, rows(
            (framed(401, path + protobuf(limits[0])), row(limits[0])),
            (protobuf(limits[1]), row(limits[1]), headers(("__value_schema_id", b"\x01" + PROTOBUF_GUID.bytes + path))),
        )),
        "framing-glue": (ROW_COLUMNS, rows(
            (glue(AVRO_VERSION, 0, avro(1)), row(1)),
            (glue(AVRO_VERSION, 5, zlib.compress(avro(2, "y" * 1000))), row(2, "y" * 1000)),
            (glue(AVRO_VERSION, 5, zlib.compress(avro(3), 0)), row(3)),
            (glue(UNKNOWN_VERSION, 0, avro(4)), "registry.unknown_schema"),
            (glue(AVRO_VERSION, 5, zlib.compress(avro(5))[:-1]), "wire.zlib_invalid"),
            (glue(AVRO_VERSION, 7, avro(6)), "wire.unknown_compression"),
            (b"\x03\x00\x01", "wire.too_short"),
            (framed(400, avro(7)), "wire.not_glue"),
            (glue(AVRO_VERSION, 5, zlib.compress(bytes(16 * 1024 * 1024 + 1))), "wire.too_large"),
        )),
        # All messages by full name: Another, Outer, Outer.EntriesEntry, Outer.Inner, Row.
        "framing-glue-protobuf": (ROW_COLUMNS, rows(
            (glue(PROTOBUF_VERSION, 0, b"\x03" + protobuf(1)), row(1)),
            (glue(PROTOBUF_VERSION, 5, zlib.compress(b"\x03" + protobuf(2))), row(2)),
        )),
        "framing-apicurio": (ROW_COLUMNS, rows(
            (b"\x00" + struct.pack(">q", 400) + avro(1), row(1)),
            (avro(2), row(2), headers(("apicurio.value.globalId", struct.pack(">q", 400)))),
            (avro(3), row(3), headers(("apicurio.value.contentId", struct.pack(">q", 400)))),
        )),
        "framing-apicurio-protobuf": (ROW_COLUMNS, rows(
            (b"\x00" + struct.pack(">q", 401) + reference + protobuf(1), row(1)),
            (protobuf(2), row(2), headers(("apicurio.value.globalId", struct.pack(">q", 401)), ("apicurio.value.protobuf.type", b"com.example.framing.Outer.Inner"))),
        )),
        "framing-lambda-source": (ROW_COLUMNS, rows(
            (avro(limits[0]), row(limits[0]), lambda_metadata("AVRO", "400")),
            (avro(1), row(1), lambda_metadata("AVRO", str(AVRO_VERSION))),
        )),
        "framing-lambda-protobuf": (ROW_COLUMNS, rows(
            (path + protobuf(1), row(1), lambda_metadata("PROTOBUF", "401")),
            (b"\x03" + protobuf(2), row(2), lambda_metadata("PROTOBUF", str(PROTOBUF_VERSION))),
        )),
        "framing-lambda-json": (ROW_COLUMNS, rows(
            (b'{"id":-9223372036854775808,"name":"x"}', row(limits[0]), lambda_metadata("AVRO", "400")),
            (b'{"id":1,"name":"y"}', row(1, "y"), lambda_metadata("PROTOBUF", "401")),
        )),
        "framing-lambda-wrong": (ROW_COLUMNS, rows(
            (avro(1), row(1), lambda_metadata("AVRO", "400")),
            (avro(2), "wire.no_schema_metadata"),
            (avro(3), "wire.bad_schema_metadata", lambda_metadata("AVRO", "four hundred")),
        )),
        "framing-file": (ROW_COLUMNS, rows((avro(1), row(1)))),
        "framing-subject": (ROW_COLUMNS, rows((avro(1), row(1)))),
        "framing-message": (ROW_COLUMNS, rows((protobuf(1), row(1)))),
    }  # fmt: skip


# ---- Keys ----------------------------------------------------------------------------------------------------


def keys():
    def value(number):
        return framed(412, encode(AVRO[412], {"id": f"v{number}", "n": number}))

    def row(number, **more):
        return {"id": f"v{number}", "n": number} | more

    def avro(number, region):
        return {"key": framed(410, encode(AVRO[410], {"id": number, "region": region}))}

    key = message(compiled(411), "com.example.keys.Key")

    def protobuf(**fields):
        return {"key": framed(411, b"\x00" + payload(key(**fields)))}

    row_columns = [("id", "string"), ("n", "int")]
    return {
        # `id` is the value's: the key's has `key_` before it.
        "keys-avro": ([*row_columns, ("key_id", "long"), ("region", "string")], rows(
            (value(1), row(1, key_id=-(2**63), region=None), avro(-(2**63), None)),
            (value(2), row(2, key_id=1, region=""), avro(1, "")),
            (value(3), row(3)),
            (None, {"key_id": 4, "region": "tombstone"}, avro(4, "tombstone")),
            (value(5), "registry.unknown_schema", {"key": framed(999, b"\x02\x00")}),
            (value(6), "avro.truncated", {"key": framed(410, b"\x02")}),
        )),
        "keys-protobuf": ([*row_columns, ("key_id", "decimal(20, 0)"), ("region", "string")], rows(
            (value(1), row(1, key_id=str(2**64 - 1), region="ü"), protobuf(id=2**64 - 1, region="ü")),
            (value(2), row(2, key_id="0"), protobuf()),
            (value(3), "protobuf.truncated", {"key": framed(411, b"\x00\x08")}),
        )),
        "keys-single": ([*row_columns, ("key", "long")], rows(
            (value(1), row(1, key=2**63 - 1), {"key": framed(413, encode("long", 2**63 - 1))}),
            (value(2), row(2)),
        )),
        "keys-text": ([*row_columns, ("key", "string")], rows(
            (value(1), row(1, key="Schlüssel 🔑"), {"key": "Schlüssel 🔑".encode()}),
            (value(2), row(2)),
            (value(3), "raw.invalid_utf8", {"key": b"\xff"}),
        )),
        "keys-bytes": ([*row_columns, ("key", "binary")], rows(
            (value(1), row(1, key="/wA="), {"key": b"\xff\x00"}),
            (value(2), row(2)),
        )),
    }  # fmt: skip


# ---- References ----------------------------------------------------------------------------------------------


def references():
    """Schemas that need others: by id, by subject and version, by file."""
    place = {"type": "record", "name": "Place", "namespace": "com.example.references", "fields": [{"name": "city", "type": "string"}]}
    row = record("com.example.references.Row", ("id", "long"), ("place", place), ("other", "com.example.references.Place"))
    written = record("com.example.references.Row", *((field, "com.example.references.Place") if field != "id" else (field, "long") for field in ("id", "place", "other")))
    pool = compiled(405, {"money.proto": 406})
    money = message(pool, "com.example.references.Row")
    value = {"id": 1, "place": {"city": "Köln"}, "other": {"city": ""}}
    city = struct_of(city="string")
    topics = {
        "references-avro": ([("id", "long"), ("place", city), ("other", city)], rows((framed(403, encode(row, value)), value))),
        "references-protobuf": (
            [("id", "long"), ("price", struct_of(currency="string", cents="long"))],
            rows(
                (framed(405, b"\x00" + payload(money(id=1, price={"currency": "EUR", "cents": -5}))), {"id": 1, "price": {"currency": "EUR", "cents": -5}}),
                (framed(405, b"\x00" + payload(money())), {"id": 0, "price": None}),
            ),
        ),
        "references-json": (
            [("id", "long"), ("price", struct_of(currency="string"))],
            rows((framed(407, b'{"id":1,"price":{"currency":"EUR"}}'), {"id": 1, "price": {"currency": "EUR"}})),
        ),
    }
    price = {"$id": "http://example.com/price.json", "type": "object", "properties": {"currency": {"type": "string"}}}
    schemas = {
        "ids/403.avsc": written,
        "ids/403.references.json": [{"name": "com.example.references.Place", "id": 404}],
        "ids/404.avsc": place,
        "ids/405.references.json": [{"name": "money.proto", "subject": "money", "version": 2}],
        "subjects/money.json": {"versions": [{"version": 1, "id": 401}, {"version": 2, "id": 406}]},
        "ids/407.json": {"type": "object", "properties": {"id": {"type": "integer"}, "price": {"$ref": "http://example.com/price.json"}}},
        "ids/407.references.json": [{"name": "price", "file": "407-price.json"}],
        "ids/407-price.json": price,
    }
    return topics, {f"schemas/{path}": json.dumps(schema) + "\n" for path, schema in schemas.items()}


# ---- Tables by type ------------------------------------------------------------------------------------------


def routed():
    """One topic, and what goes into each of its tables."""

    def placed(order):
        return framed(420, encode(AVRO[420], {"order": order, "total": order / 8})), {"order": order, "total": order / 8}

    def paid(order):
        return framed(421, encode(AVRO[421], {"order": order, "card": f"c{order}"})), {"order": order, "card": f"c{order}"}

    records = rows(
        placed(1),
        placed(2),
        paid(1),
        (None, None),
        paid(2),
        (framed(420, b""), "avro.truncated"),
        placed(3),
        (framed(421, b"\x02"), "avro.truncated"),
    )
    tables = {
        "routed": ([], [3, 5, 7]),
        "routed_com_example_shop_placed": ([("order", "long"), ("total", "double")], [0, 1, 6]),
        "routed_com_example_shop_paid": ([("order", "long"), ("card", "string")], [2, 4]),
    }
    return records, {table: (columns, [records[at] for at in places]) for table, (columns, places) in tables.items()}


# ---- Without a schema ----------------------------------------------------------------------------------------


def raw():
    return {
        "types-binary": ([("value", "binary")], rows(
            (b"\x00\x00\x00\x01\x90\xff", {"value": "AAAAAZD/"}),
            (b"{}", {"value": "e30="}),
            (None, {"value": None}),
        )),
        "types-text": ([("value", "string")], rows(
            ("Grüße 🎁".encode(), {"value": "Grüße 🎁"}),
            (b'{"a": 1.50}', {"value": '{"a": 1.50}'}),
            (b"\x00", {"value": "\x00"}),
            (b"te\xfft", "raw.invalid_utf8"),
            (None, {"value": None}),
        )),
    }  # fmt: skip


def several(name, topics):
    """An event of several topics: its text, and a golden file for each table."""
    made = {f"{name}.json": lambda_event_of(MSK, {topic: records for topic, (_, records) in topics.items()})}
    for topic, (columns, records) in topics.items():
        made[f"golden/{name}/{topic}.json"] = golden(topic, columns, records)
    return made


def files():
    """Path below this folder → text."""
    made = {f"schemas/ids/{schema_id}.avsc": json.dumps(schema) + "\n" for schema_id, schema in AVRO.items()}
    properties = {"id": {"type": "integer"}, "name": {"type": "string"}}
    made["schemas/ids/402.json"] = json.dumps({"type": "object", "properties": properties}) + "\n"
    row = made["schemas/ids/400.avsc"]
    made |= {f"schemas/guids/{GUID}.avsc": row, f"schemas/versions/{AVRO_VERSION}.avsc": row}
    proto = (FOLDER / "schemas/ids/401.proto").read_text(encoding="utf-8")
    made |= {f"schemas/guids/{PROTOBUF_GUID}.proto": proto, f"schemas/versions/{PROTOBUF_VERSION}.proto": proto}
    made["schemas/subjects/framing-value.json"] = compact({"versions": [{"version": 1, "id": 400}, {"version": 2, "id": 420}]}) + "\n"
    refer, schemas = references()
    made |= schemas
    for name, topics in {"framings": framings(), "references": refer, "types-keys": keys(), "types-raw": raw()}.items():
        made |= several(name, topics)
    records, tables = routed()
    made["types-routed.json"] = lambda_event_of(MSK, {"routed": records})
    for table, (columns, of_table) in tables.items():
        made[f"golden/types-routed/{table}.json"] = golden("routed", columns, of_table, table=table)
    return made
