"""Every row of Protobuf in docs/types.md, with the ends of its values, encoded by Google's runtime; and what cannot be
read. The schemas are written by hand: schemas/ids/20x.proto."""

import importlib.resources
import math
import tempfile
from pathlib import Path

from event import MISSING, MSK, NOON, Column, Record, alike, base64_of, cases, framed, golden, lambda_event, struct_of, typed
from google.protobuf import descriptor_pb2, descriptor_pool, message_factory
from grpc_tools import protoc

FOLDER = Path(__file__).resolve().parent
# google/type and Confluent's own, which every registry has.
BUILT_IN = FOLDER.parent / "shared/schema/src/protobuf/builtin"

I32, I64, U32, U64 = (-(2**31), 2**31 - 1), (-(2**63), 2**63 - 1), 2**32 - 1, 2**64 - 1
NAN, INFINITY, MINUS_INFINITY = (math.nan, "NaN"), (math.inf, "Infinity"), (-math.inf, "-Infinity")
NINES = "9" * 38
FIRST_SECOND, LAST_SECOND = -62_135_596_800, 253_402_300_799  # of year 1 and of year 9999


def compiled(schema_id, imports=None):
    """protoc's descriptors of a schema, in a pool of their own. `imports` are other schemas, by the names of their files."""
    pool = descriptor_pool.DescriptorPool()
    with importlib.resources.as_file(importlib.resources.files("grpc_tools") / "_proto") as google, tempfile.TemporaryDirectory() as home:
        out = Path(home, "descriptors")
        for name, other in (imports or {}).items():
            Path(home, name).write_bytes((FOLDER / f"schemas/ids/{other}.proto").read_bytes())
        folders = [f"-I{folder}" for folder in (FOLDER / "schemas/ids", BUILT_IN, google, home)]
        failed = protoc.main(["protoc", *folders, f"--descriptor_set_out={out}", "--include_imports", f"{schema_id}.proto"])
        assert not failed, f"protoc refuses {schema_id}.proto"
        for file in descriptor_pb2.FileDescriptorSet.FromString(out.read_bytes()).file:
            pool.Add(file)
    return pool


def message(pool, name):
    return message_factory.GetMessageClass(pool.FindMessageTypeByName(name))


def payload(made):
    return made.SerializePartialToString(deterministic=True)


def with_index(schema_id, body):
    """Confluent's prefix and message indexes: the first message of the file is a single 00."""
    return framed(schema_id, b"\x00" + body)


# ---- proto3 --------------------------------------------------------------------------------------------------

ABSENT = (MISSING, None)
INNER = struct_of(i="long", s={"list": "string"})


def zero(default, *cases):
    """Cases of a field without presence: absent it is its default."""
    return [(MISSING, default), *cases]


def floats(*more):
    return zero(0.0, *alike(-0.0, 0.1, *more), NAN, INFINITY, MINUS_INFINITY)


def binaries(*values):
    return [(data, base64_of(data)) for data in values]


def map_column(name, kind, *keys):
    """A map whose keys are of this type."""
    given = {key: f"v{at}" for at, key in enumerate(keys)}
    seen = [[str(key) if kind.startswith("decimal") else key, value] for key, value in given.items()]
    return Column(name, None, {"map": [kind, "string"]}, zero([], (given, seen)))


def decimal_of(unscaled, precision, scale):
    size = (unscaled.bit_length() + 8) // 8
    return {"value": unscaled.to_bytes(size, "big", signed=True), "precision": precision, "scale": scale}


def seconds(seconds, nanos=0):
    return {"seconds": seconds, "nanos": nanos}


def node_row(**fields):
    return {"number_of_node": 0, "next": None, "raw": "", "ratio": None, "children": [], "status": "UNKNOWN", "at": None, "numbers": []} | fields


PROTO3 = [
    Column("double", None, "double", floats(1.7976931348623157e308, 5e-324)),
    Column("float", None, "float", floats(3.4028234663852886e38, 1.401298464324817e-45)),
    Column("bool", None, "boolean", zero(False, *alike(True))),
    Column("string", None, "string", zero("", *alike("Grüße 🎁", "\x00\n\"\\"))),
    Column("bytes", None, "binary", zero("", *binaries(b"\x00", bytes(range(256))))),
    *(Column(name, None, "int", zero(0, *alike(*I32, -1))) for name in ("int32", "sint32", "sfixed32")),
    *(Column(name, None, "long", zero(0, *alike(U32, 1))) for name in ("uint32", "fixed32")),
    *(Column(name, None, "long", zero(0, *alike(*I64, -1))) for name in ("int64", "sint64", "sfixed64")),
    *(Column(name, None, "decimal(20, 0)", zero("0", (U64, str(U64)), (2**63, str(2**63)))) for name in ("uint64", "fixed64")),
    Column("status", None, "string", zero("UNKNOWN", (1, "NEW"), (-1, "NEGATIVE"), (-(2**31), "LOWEST"), (99, "99"), (-7, "-7"))),
    Column("optional_int32", None, "int", [ABSENT, *alike(0, -1)]),
    Column("optional_string", None, "string", [ABSENT, *alike("", "x")]),
    Column("optional_status", None, "string", [ABSENT, (0, "UNKNOWN"), (2**31 - 1, str(2**31 - 1))]),
    Column("inner", None, INNER, [ABSENT, ({}, {"i": 0, "s": []}), ({"i": I64[0], "s": ["", "x"]}, {"i": I64[0], "s": ["", "x"]})]),
    Column("empty", None, "boolean", [ABSENT, ({}, True)]),
    # The members of one oneof: at most one has a value in a row.
    Column("text", None, "string", [ABSENT, ("", ""), ABSENT, ABSENT, ABSENT]),
    Column("number", None, "decimal(20, 0)", [ABSENT, ABSENT, (0, "0"), ABSENT, ABSENT]),
    Column("message", None, INNER, [ABSENT, ABSENT, ABSENT, ({"i": -1}, {"i": -1, "s": []}), ABSENT]),
    Column("nothing", None, "boolean", [ABSENT, ABSENT, ABSENT, ABSENT, ({}, True)]),
    Column("packed", None, {"list": "long"}, zero([], *alike([*I64, 0], [0]))),
    Column("unpacked", None, {"list": "long"}, zero([], *alike([*I64, 0], [0]))),
    Column("strings", None, {"list": "string"}, zero([], *alike(["", "ü"]))),
    Column("inners", None, {"list": INNER}, zero([], ([{}, {"i": 1, "s": ["a"]}], [{"i": 0, "s": []}, {"i": 1, "s": ["a"]}]))),
    Column("statuses", None, {"list": "string"}, zero([], ([0, -1, 1, 99], ["UNKNOWN", "NEGATIVE", "NEW", "99"]))),
    Column("doubles", None, {"list": "double"}, zero([], ([math.nan, -0.0, -math.inf], ["NaN", -0.0, "-Infinity"]))),
    *(map_column(f"by_{kind}", "int", *I32) for kind in ("int32", "sint32", "sfixed32")),
    *(map_column(f"by_{kind}", "long", *I64) for kind in ("int64", "sint64", "sfixed64")),
    *(map_column(f"by_{kind}", "long", 0, U32) for kind in ("uint32", "fixed32")),
    *(map_column(f"by_{kind}", "decimal(20, 0)", 0, U64) for kind in ("uint64", "fixed64")),
    map_column("by_bool", "boolean", False, True),
    Column("by_string", None, {"map": ["string", INNER]}, zero([], ({"": {}, "ü": {"i": 1}}, [["", {"i": 0, "s": []}], ["ü", {"i": 1, "s": []}]]))),
    Column("statuses_by_name", None, {"map": ["string", "string"]}, zero([], ({"a": -1, "b": 5}, [["a", "NEGATIVE"], ["b", "5"]]))),
    Column("at", None, "timestamptz", [
        ABSENT,
        ({}, "1970-01-01T00:00:00Z"),
        (seconds(FIRST_SECOND), "0001-01-01T00:00:00Z"),
        (seconds(LAST_SECOND, 999_999_999), "9999-12-31T23:59:59.999999Z"),
        (seconds(-1, 999_999_999), "1969-12-31T23:59:59.999999Z"),
        (seconds(-1, 999), "1969-12-31T23:59:59Z"),
    ]),
    Column("span", None, "long", [
        ABSENT, ({}, 0), (seconds(0, -1), -1), (seconds(0, 1_999), 1), (seconds(-315_576_000_000, -999_999_999), -315_576_000_001_000_000),
        (seconds(315_576_000_000, 999_999_999), 315_576_000_000_999_999),
    ]),
    Column("string_value", None, "string", [ABSENT, ({}, ""), ({"value": "x"}, "x")]),
    Column("bytes_value", None, "binary", [ABSENT, ({}, ""), ({"value": b"\xff"}, "/w==")]),
    Column("bool_value", None, "boolean", [ABSENT, ({}, False), ({"value": True}, True)]),
    Column("double_value", None, "double", [ABSENT, ({}, 0.0), ({"value": -0.0}, -0.0), ({"value": math.nan}, "NaN")]),
    Column("float_value", None, "float", [ABSENT, ({}, 0.0), ({"value": -math.inf}, "-Infinity")]),
    Column("int32_value", None, "int", [ABSENT, ({}, 0), ({"value": I32[0]}, I32[0])]),
    Column("int64_value", None, "long", [ABSENT, ({}, 0), ({"value": I64[0]}, I64[0])]),
    Column("uint32_value", None, "long", [ABSENT, ({}, 0), ({"value": U32}, U32)]),
    Column("uint64_value", None, "decimal(20, 0)", [ABSENT, ({}, "0"), ({"value": U64}, str(U64))]),
    Column("struct", None, "string", [
        ABSENT,
        ({}, "{}"),
        ({"a": None, "b": [1.5, True, 'ü"']},
         '{"a":null,"b":[1.5,true,"ü\\""]}'),
    ]),
    Column("value", None, "string", [
        ABSENT,
        ({"null_value": 0}, "null"),
        ({"string_value": ""}, '""'),
        ({"bool_value": False}, "false"),
        ({"number_value": 1e300}, "1e+300"),
        ({"list_value": {}}, "[]"),
        ({"struct_value": {}}, "{}"),
    ]),
    Column("list", None, "string", [ABSENT, ({}, "[]"), ({"values": [{"null_value": 0}, {"number_value": -3}]}, "[null,-3.0]")]),
    Column("any", None, "string", [
        ABSENT,
        ({"type_url": "type.googleapis.com/com.example.types.Inner", "value": b"\x08\x05\x12\x01a"},
         '{"@type":"type.googleapis.com/com.example.types.Inner","i":"5","s":["a"]}'),
        ({"type_url": "type.googleapis.com/google.protobuf.Duration", "value": b"\x08\x01\x10\x80\xca\xb5\xee\x01"},
         '{"@type":"type.googleapis.com/google.protobuf.Duration","value":"1.500s"}'),
        ({"type_url": "type.googleapis.com/com.example.Missing", "value": b"\x00\xff"},
         '{"@type":"type.googleapis.com/com.example.Missing","value":"AP8="}'),
    ]),
    Column("mask", None, "string", [ABSENT, ({}, '""'), ({"paths": ["user.display_name", "photo"]}, '"user.displayName,photo"')]),
    Column("instants", None, {"list": "timestamptz"}, zero([], ([{}, seconds(-1)], ["1970-01-01T00:00:00Z", "1969-12-31T23:59:59Z"]))),
    Column("date", None, "date", [
        ABSENT,
        ({}, None),
        ({"year": 1, "month": 1, "day": 1}, "0001-01-01"),
        ({"year": 9999, "month": 12, "day": 31}, "9999-12-31"),
        ({"year": 2000, "month": 2, "day": 29}, "2000-02-29"),
    ]),
    Column("time", None, "string", [
        ABSENT, ({}, "00:00:00.000000"), ({"hours": 23, "minutes": 59, "seconds": 59, "nanos": 999_999_999}, "23:59:59.999999"),
    ]),
    Column("decimal", None, "string", [ABSENT, ({}, ""), ({"value": "-1.50e3"}, "-1.50e3")]),
    Column("decimal_38_38", None, "decimal(38, 38)", [
        ABSENT,
        (decimal_of(int(NINES), 38, 38), "0." + NINES),
        (decimal_of(-int(NINES), 38, 38), "-0." + NINES),
        (decimal_of(-1, 1, 1), "-0.1"),
        (decimal_of(0, 1, 0), "0"),
    ]),
    Column("decimal_38_2", None, "decimal(38, 2)", [
        ABSENT, (decimal_of(int(NINES), 38, 2), "9" * 36 + ".99"), (decimal_of(12, 2, 0), "12.00"), (decimal_of(-128, 3, 1), "-12.80"),
    ]),
    Column("scaleless", None, "string", [ABSENT, (decimal_of(-150, 3, 2), "-1.50"), (decimal_of(int(NINES), 38, 0), NINES)]),
    Column("node", None, struct_of(
        number_of_node="long", next="string", raw="binary", ratio="double", children={"map": ["string", "string"]},
        status="string", at="timestamptz", numbers={"list": "decimal(20, 0)"},
    ), [
        ABSENT,
        ({}, node_row()),
        ({"number_of_node": 1, "next": {}, "children": {"": {"number_of_node": 2}}, "numbers": [0, U64]},
         node_row(number_of_node=1, next="{}", children=[["", '{"numberOfNode":"2"}']], numbers=["0", str(U64)])),
        ({"next": {"number_of_node": I64[0], "next": {"raw": b"\x00\xff", "ratio": math.nan}, "ratio": 0.0, "children": {"k": {"status": -1}},
                   "status": 99, "at": seconds(-1, 999_999_999), "numbers": [U64]}},
         node_row(next='{"numberOfNode":"-9223372036854775808","next":{"raw":"AP8=","ratio":"NaN"},"ratio":0.0,"children":{"k":{"status":"NEGATIVE"}},'
                       '"status":99,"at":"1969-12-31T23:59:59.999999999Z","numbers":["18446744073709551615"]}')),
    ]),
]  # fmt: skip


def types():
    row = message(compiled(200), "com.example.types.Row")
    records = [
        Record(0, at, NOON + at, None, with_index(200, payload(row(**given))), row=seen)
        for at, (given, seen) in enumerate(cases(PROTO3))
    ]
    return records, typed(PROTO3)


# ---- proto2 and editions: what is different there ------------------------------------------------------------


def varint_field(number, value):
    """A field by hand: what the runtime does not write, such as a number that a closed enum does not have."""

    def varint(value):
        value %= 2**64
        out = bytearray()
        while value > 127:
            out.append(value & 127 | 128)
            value >>= 7
        return bytes([*out, value])

    return varint(number << 3) + varint(value)


PROTO2_COLUMNS = [
    ("required", "int"),
    ("optional", "int"),
    ("text", "string"),
    ("closed", "string"),
    ("closed_list", {"list": "string"}),
    ("packed", {"list": "int"}),
    ("unpacked", {"list": "int"}),
    ("single", struct_of(a="int", deeper=struct_of(b="string"))),
    ("many", {"list": struct_of(c="decimal(20, 0)")}),
    ("picked", struct_of(d="boolean")),
    ("data", "binary"),
    ("ratios", {"map": ["string", "double"]}),
]
PROTO2_EMPTY = {"closed_list": [], "packed": [], "unpacked": [], "many": [], "ratios": []}
# What the runtime is given, bytes behind it, and what readers see.
PROTO2 = [
    ({}, b"", {}),
    ({"required": 0, "optional": 0, "text": ""}, b"", {"required": 0, "optional": 0, "text": ""}),
    (
        {"required": I32[0], "closed": -1, "closed_list": [1, 2], "packed": [*I32], "unpacked": [*I32]},
        b"",
        {"required": I32[0], "closed": "MINUS", "closed_list": ["ONE", "TWO"], "packed": [*I32], "unpacked": [*I32]},
    ),
    ({"closed_list": [1]}, varint_field(4, 3) + varint_field(5, -2), {"closed": "3", "closed_list": ["ONE", "-2"]}),
    # A packed field may come one by one, and the other way round; a field twice; and a field that nobody knows.
    (
        {"packed": [1]},
        varint_field(6, 2) + b"\x3a\x02\x03\x04" + varint_field(1, 5) + varint_field(1, 6) + varint_field(999, 1),
        {"required": 6, "packed": [1, 2], "unpacked": [3, 4]},
    ),
    (
        {"single": {"a": 1, "deeper": {"b": ""}}, "many": [{}, {"c": U64}], "picked": {}},
        b"",
        {"single": {"a": 1, "deeper": {"b": ""}}, "many": [{"c": None}, {"c": str(U64)}], "picked": {"d": None}},
    ),
    ({"single": {}, "data": b"", "ratios": {"": -0.0}}, b"", {"single": {"a": None, "deeper": None}, "data": "", "ratios": [["", -0.0]]}),
    # Two parts of one group are one; of two members of a oneof the last counts.
    (
        {"single": {"a": 1}, "picked": {"d": True}},
        b"\x43\x13\x0a\x01x\x14\x44" + b"\x5a\x01\xff",
        {"single": {"a": 1, "deeper": {"b": "x"}}, "data": "/w=="},
    ),
]
EDITION_COLUMNS = [
    ("explicit", "int"),
    ("implicit", "int"),
    ("required", "int"),
    ("open", "string"),
    ("closed", "string"),
    ("delimited", struct_of(s="string")),
    ("prefixed", struct_of(s="string")),
    ("packed", {"list": "int"}),
    ("expanded", {"list": "int"}),
    ("text", "string"),
    ("word", "string"),
    ("thing", struct_of(s="string")),
    ("choice_case", "string"),
    ("by_name", {"map": ["string", struct_of(s="string")]}),
]
EDITION_EMPTY = {"implicit": 0, "packed": [], "expanded": [], "by_name": []}
EDITION = [
    ({}, b"", {}),
    ({"explicit": 0, "implicit": 0, "required": 0, "open": 0}, b"", {"explicit": 0, "required": 0, "open": "ZERO"}),
    ({"explicit": I32[0], "implicit": I32[1], "open": -5, "closed": 1}, b"", {"explicit": I32[0], "implicit": I32[1], "open": "LOW", "closed": "FIRST"}),
    ({"open": 7}, varint_field(5, 9), {"open": "7", "closed": "9"}),
    (
        {"delimited": {"s": "a"}, "prefixed": {}, "packed": [1, -1], "expanded": [1, -1]},
        b"",
        {"delimited": {"s": "a"}, "prefixed": {"s": None}, "packed": [1, -1], "expanded": [1, -1]},
    ),
    ({"text": "ü", "word": ""}, b"", {"text": "ü", "word": "", "choice_case": "word"}),
    ({"thing": {}, "by_name": {"k": {}}}, b"", {"thing": {"s": None}, "choice_case": "thing", "by_name": [["k", {"s": None}]]}),
]


def by_hand(schema_id, rows, empty):
    row = message(compiled(schema_id), "com.example.types.Row")
    return [
        Record(0, at, NOON + at, None, with_index(schema_id, payload(row(**given)) + more), row=empty | seen)
        for at, (given, more, seen) in enumerate(rows)
    ]


# ---- What cannot be read -------------------------------------------------------------------------------------

POISON_COLUMNS = [
    ("n", "int"),
    ("text", "string"),
    ("at", "timestamptz"),
    ("span", "long"),
    ("day", "date"),
    ("time", "string"),
    ("price", "decimal(38, 2)"),
    ("node", struct_of(next="string")),
]
GOOD = {"n": 1, "text": "whole"}
GOOD_ROW = {"n": 1, "text": "whole"}


def poison():
    row = message(compiled(203), "com.example.types.Row")

    def with_(**more):
        return with_index(203, payload(row(**GOOD | more)))

    def nodes(depth):
        body = b""
        for _ in range(depth):
            size = len(body)
            body = b"\x0a" + (bytes([size]) if size < 128 else bytes([size & 127 | 128, size >> 7])) + body
        size = len(body)
        return with_index(203, payload(row(**GOOD)) + b"\x42" + bytes([size & 127 | 128, size >> 7]) + body)

    whole = with_()
    values = [
        (whole, None),
        (whole[:-1], "protobuf.truncated"),
        (with_index(203, b"\x08"), "protobuf.truncated"),
        (with_index(203, b"\x12\x05abc"), "protobuf.truncated"),
        (whole.replace(b"whole", b"wh\xffle"), "protobuf.invalid_utf8"),
        (with_index(203, b"\x08" + b"\xff" * 10 + b"\x01"), "protobuf.invalid"),  # a number of eleven bytes
        (with_index(203, b"\x0f\x00"), "protobuf.invalid"),  # a wire type that does not exist
        (with_index(203, b"\x00\x00"), "protobuf.invalid"),  # field 0
        (with_index(203, b"\x0c"), "protobuf.invalid"),  # the end of a group that never began
        (framed(203, b"\x02\x0e" + whole[6:]), "protobuf.schema_invalid"),  # the eighth message of two
        (framed(203, b""), "wire.bad_message_index"),
        (with_(at=seconds(LAST_SECOND + 1)), "value.timestamp_out_of_range"),
        (with_(span=seconds(2**63 - 1)), "value.duration_out_of_range"),
        (with_(day={"year": 2025, "month": 2, "day": 29}), "value.date_out_of_range"),
        (with_(day={"year": 2025, "month": 2}), "value.date_out_of_range"),
        (with_(time={"hours": 24}), "value.time_out_of_range"),
        (with_(price=decimal_of(10**38, 39, 2)), "protobuf.decimal_overflow"),
        (with_(price=decimal_of(10**36, 37, 0)), "value.decimal_overflow"),
        (with_(price=decimal_of(1, 3, 3)), "value.decimal_inexact"),
        (nodes(101), "protobuf.too_deep"),
        (framed(999, b"\x00"), "registry.unknown_schema"),
        (with_index(203, b""), None),
    ]
    records = [
        Record(0, at, NOON + at, None, value, row=None if code else dict(GOOD_ROW), dead=code)
        for at, (value, code) in enumerate(values)
    ]
    records[-1].row = {"n": 0, "text": ""}
    return records, POISON_COLUMNS


def files():
    """Path below this folder → text."""
    made = {}
    for name, (records, columns) in {
        "types-protobuf": types(),
        "types-proto2": (by_hand(201, PROTO2, PROTO2_EMPTY), PROTO2_COLUMNS),
        "types-editions": (by_hand(202, EDITION, EDITION_EMPTY), EDITION_COLUMNS),
        "poison-protobuf": poison(),
    }.items():
        made[f"{name}.json"] = lambda_event(MSK, name, records)
        made[f"golden/{name}.json"] = golden(name, columns, records)
    return made
