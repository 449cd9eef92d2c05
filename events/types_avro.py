"""Every row of Avro in docs/types.md, with the ends of its values, encoded by fastavro; and what cannot be read."""

import io
import json
import math
import struct
from decimal import Decimal

import fastavro
from event import MSK, NOON, Column, Record, alike, base64_of, cases, framed, golden, lambda_event, struct_of, typed

EVENT, POISON, ONLY_POISON = "types-avro", "poison-avro", "poison-only"
SCHEMA_ID = 100

I32, I64 = (-(2**31), 2**31 - 1), (-(2**63), 2**63 - 1)
NAN, INFINITY = (math.nan, "NaN"), (math.inf, "Infinity")
MINUS_INFINITY = (-math.inf, "-Infinity")
NINES = "9" * 38


def logical(base, name, **more):
    return {"type": base, "logicalType": name, **more}


def decimal_on_bytes(precision, scale):
    return logical("bytes", "decimal", precision=precision, scale=scale)


def fixed(name, size, **more):
    return {"type": "fixed", "name": name, "size": size, **more}


def record(name, *fields, **more):
    return {"type": "record", "name": name, "fields": [{"name": field, "type": kind} for field, kind in fields], **more}


def list_of(items):
    return {"type": "array", "items": items}


def map_of(values):
    return {"type": "map", "values": values}


def entry(name, key, value, **more):
    return list_of(record(name, ("key", key), ("value", value), **more))


def decimals(*texts):
    return [(Decimal(text), text) for text in texts]


def entries(*pairs):
    return [{"key": key, "value": value} for key, value in pairs]


UNION = [
    "null",
    "int",
    "string",
    "bytes",
    record("Pair", ("left", "long"), ("right", ["null", "string"])),
    {"type": "enum", "name": "Coin", "symbols": ["HEADS", "TAILS"]},
    fixed("Two", 2),
    list_of("double"),
    map_of("boolean"),
]
UNION_TYPE = struct_of(
    int="int",
    string="string",
    bytes="binary",
    pair=struct_of(left="long", right="string"),
    coin="string",
    two="binary",
    array={"list": "double"},
    map={"map": ["string", "boolean"]},
)
CLASH = [record("Money", ("cents", "int"), namespace="a"), record("Money", ("cents", "long"), namespace="b")]
CLASH_TYPE = struct_of(a_money=struct_of(cents="int"), b_money=struct_of(cents="long"))


def branch(names, **chosen):
    return dict.fromkeys(names) | chosen


def only(**chosen):
    return branch(["int", "string", "bytes", "pair", "coin", "two", "array", "map"], **chosen)


# What a record inside itself may hold, and the JSON of it.
NODE = record(
    "Node",
    ("n", "long"),
    ("next", ["null", "com.example.types.Node"]),
    ("price", decimal_on_bytes(38, 38)),
    ("raw", "bytes"),
    ("day", logical("int", "date")),
    ("at", logical("long", "timestamp-micros")),
    ("local", logical("long", "local-timestamp-millis")),
    ("time", logical("int", "time-millis")),
    ("ratio", "double"),
    ("choice", ["null", "string", "int"]),
)
NODE_TYPE = struct_of(
    n="long",
    next="string",
    price="decimal(38, 38)",
    raw="binary",
    day="date",
    at="timestamptz",
    local="timestamp",
    time="string",
    ratio="double",
    choice=struct_of(string="string", int="int"),
)


def node(n, following=None, ratio=0.5, choice=None):
    return {
        "n": n,
        "next": following,
        "price": Decimal("-0." + NINES),
        "raw": b"\x00\xff",
        "day": -719_162,
        "at": -1,
        "local": 253_402_300_799_999,
        "time": 1,
        "ratio": ratio,
        "choice": choice,
    }


def node_row(n, following=None):
    return {
        "n": n,
        "next": following,
        "price": "-0." + NINES,
        "raw": "AP8=",
        "day": "0001-01-01",
        "at": "1969-12-31T23:59:59.999999Z",
        "local": "9999-12-31T23:59:59.999",
        "time": "00:00:00.001000",
        "ratio": 0.5,
        "choice": None,
    }


def node_text(n, following, ratio, choice):
    return (
        f'{{"n":{n},"next":{following},"price":-0.{NINES},"raw":"AP8=","day":"0001-01-01",'
        '"at":"1969-12-31T23:59:59.999999+00:00","local":"9999-12-31T23:59:59.999000","time":"00:00:00.001000",'
        f'"ratio":{ratio},"choice":{choice}}}'
    )


COLUMNS = [
    Column("boolean", "boolean", "boolean", alike(True, False)),
    Column("int", "int", "int", alike(*I32, 0, -1)),
    Column("long", "long", "long", alike(*I64, 0, -1, 2**53 + 1)),
    Column(
        "float", "float", "float",
        [*alike(-0.0, 0.0, 3.4028234663852886e38, -3.4028234663852886e38, 1.401298464324817e-45), NAN, INFINITY, MINUS_INFINITY],
    ),
    Column(
        "double", "double", "double",
        [*alike(-0.0, 0.0, 1.7976931348623157e308, -1.7976931348623157e308, 5e-324, 0.1), NAN, INFINITY, MINUS_INFINITY],
    ),
    Column("string", "string", "string", alike("", "a", "Grüße 🎁", "\x00\n\"\\", "\ud7ff\ue000\U0010ffff")),
    Column("bytes", "bytes", "binary", [(data, base64_of(data)) for data in (b"", b"\x00", bytes(range(256)))]),
    Column("fixed", fixed("Four", 4), "binary", [(b"\x00\x00\x00\x00", "AAAAAA=="), (b"\xff\xfe\x00a", "//4AYQ==")]),
    Column("fixed_0", fixed("None", 0), "binary", [(b"", "")]),
    Column("enum", {"type": "enum", "name": "Size", "symbols": ["S", "M", "XL"]}, "string", alike("S", "XL", "M")),
    Column("decimal_1", decimal_on_bytes(1, 0), "decimal(1, 0)", decimals("9", "-9", "0")),
    Column("decimal_38_0", decimal_on_bytes(38, 0), "decimal(38, 0)", decimals(NINES, "-" + NINES, "0", "-1", "127", "128", "-128", "-129")),
    Column("decimal_38_38", decimal_on_bytes(38, 38), "decimal(38, 38)",
           decimals("0." + NINES, "-0." + NINES, "0." + "0" * 37 + "1", "-0." + "0" * 37 + "1", "0." + "0" * 38)),
    Column("decimal_18_4", decimal_on_bytes(18, 4), "decimal(18, 4)", decimals("99999999999999.9999", "-99999999999999.9999", "0.0001")),
    Column("decimal_fixed", fixed("Sixteen", 16, logicalType="decimal", precision=38, scale=10), "decimal(38, 10)",
           decimals("9999999999999999999999999999.9999999999", "-9999999999999999999999999999.9999999999", "-0.0000000001", "0.0000000000")),
    Column("decimal_wide_fixed", fixed("Twenty", 20, logicalType="decimal", precision=9, scale=2), "decimal(9, 2)",
           decimals("9999999.99", "-9999999.99", "-0.01")),
    Column("date", logical("int", "date"), "date",
           [(-719_162, "0001-01-01"), (2_932_896, "9999-12-31"), (-1, "1969-12-31"), (0, "1970-01-01"), (11_016, "2000-02-29")]),
    Column("time_millis", logical("int", "time-millis"), "string",
           [(0, "00:00:00.000000"), (86_399_999, "23:59:59.999000"), (3_723_004, "01:02:03.004000")]),
    Column("time_micros", logical("long", "time-micros"), "string",
           [(0, "00:00:00.000000"), (86_399_999_999, "23:59:59.999999"), (3_723_000_004, "01:02:03.000004")]),
    Column("timestamp_millis", logical("long", "timestamp-millis"), "timestamptz",
           [(-62_135_596_800_000, "0001-01-01T00:00:00Z"), (253_402_300_799_999, "9999-12-31T23:59:59.999Z"), (-1, "1969-12-31T23:59:59.999Z"), (0, "1970-01-01T00:00:00Z")]),
    Column("timestamp_micros", logical("long", "timestamp-micros"), "timestamptz",
           [(-62_135_596_800_000_000, "0001-01-01T00:00:00Z"), (253_402_300_799_999_999, "9999-12-31T23:59:59.999999Z"), (-1, "1969-12-31T23:59:59.999999Z")]),
    Column("timestamp_nanos", logical("long", "timestamp-nanos"), "timestamptz",
           [(I64[0], "1677-09-21T00:12:43.145224Z"), (I64[1], "2262-04-11T23:47:16.854775Z"), (-1, "1969-12-31T23:59:59.999999Z"), (1_999, "1970-01-01T00:00:00.000001Z")]),
    Column("local_millis", logical("long", "local-timestamp-millis"), "timestamp",
           [(-62_135_596_800_000, "0001-01-01T00:00:00"), (253_402_300_799_999, "9999-12-31T23:59:59.999"), (-1, "1969-12-31T23:59:59.999")]),
    Column("local_micros", logical("long", "local-timestamp-micros"), "timestamp",
           [(-62_135_596_800_000_000, "0001-01-01T00:00:00"), (253_402_300_799_999_999, "9999-12-31T23:59:59.999999"), (-1, "1969-12-31T23:59:59.999999")]),
    Column("local_nanos", logical("long", "local-timestamp-nanos"), "timestamp",
           [(I64[0], "1677-09-21T00:12:43.145224"), (I64[1], "2262-04-11T23:47:16.854775"), (-1, "1969-12-31T23:59:59.999999")]),
    Column("uuid", logical("string", "uuid"), "string",
           [("00000000-0000-0000-0000-000000000000", "00000000-0000-0000-0000-000000000000"),
            ("8C1E2F5A-7D3B-4B0E-9A55-3F0F6F1D2C4B", "8c1e2f5a-7d3b-4b0e-9a55-3f0f6f1d2c4b")]),
    Column("uuid_fixed", fixed("Uuid", 16, logicalType="uuid"), "string",
           [(b"\xff" * 16, "ffffffff-ffff-ffff-ffff-ffffffffffff"), (bytes(range(16)), "00010203-0405-0607-0809-0a0b0c0d0e0f")]),
    Column("duration", fixed("Span", 12, logicalType="duration"), "binary",
           [(struct.pack("<3I", 1, 2, 2**32 - 1), "AQAAAAIAAAD/////"), (bytes(12), "AAAAAAAAAAAAAAAA")]),
    Column("record", record("Inner", ("a", "int"), ("deeper", record("Deeper", ("b", ["null", "string"])))),
           struct_of(a="int", deeper=struct_of(b="string")), alike({"a": 1, "deeper": {"b": None}}, {"a": -1, "deeper": {"b": ""}})),
    Column("optional_record", ["null", record("Perhaps", ("a", ["null", "int"]))], struct_of(a="int"), alike(None, {"a": None}, {"a": 7})),
    Column("empty_record", record("Empty"), "boolean", [({}, True)]),
    Column("optional_empty_record", ["null", record("EmptyToo")], "boolean", [(None, None), ({}, True)]),
    Column("array", list_of("long"), {"list": "long"}, alike([], [I64[0], I64[1]], [0])),
    Column("array_of_null", list_of(["null", "string"]), {"list": "string"}, alike([None], ["", None, "x"], [])),
    Column("array_of_records", ["null", list_of(record("Item", ("sku", "string")))], {"list": struct_of(sku="string")},
           alike([], [{"sku": ""}], [{"sku": "a"}, {"sku": "b"}])),
    Column("array_of_arrays", list_of(list_of("int")), {"list": {"list": "int"}}, alike([], [[]], [[1], [], [2, 3]])),
    Column("optional_array", ["null", list_of("int")], {"list": "int"}, alike(None, [], [1])),
    Column("map", map_of("long"), {"map": ["string", "long"]}, [({}, []), ({"": I64[0], "ü": I64[1]}, [["", I64[0]], ["ü", I64[1]]])]),
    Column("optional_map", ["null", map_of(["null", "int"])], {"map": ["string", "int"]}, [(None, None), ({"a": None}, [["a", None]]), ({}, [])]),
    Column("map_of_lists", map_of(list_of("string")), {"map": ["string", {"list": "string"}]}, [({"a": []}, [["a", []]]), ({"b": ["x"]}, [["b", ["x"]]])]),
    Column("connect_map", entry("MapEntry", "int", ["null", "string"], namespace="io.confluent.connect.avro"), {"map": ["int", "string"]},
           [([], []), (entries((I32[1], None), (I32[0], "low")), [[I32[0], "low"], [I32[1], None]])]),
    Column("connect_map_by_property", entry("Pairs", ["null", "string"], "double", **{"connect.internal.type": "MapEntry"}), {"map": ["string", "double"]},
           [(entries(("", -0.0)), [["", -0.0]]), (entries(("a", math.inf)), [["a", "Infinity"]])]),
    Column("plain_pairs", entry("Plain", "int", "int"), {"list": struct_of(key="int", value="int")}, alike([{"key": 1, "value": 2}], [])),
    Column("null_first", ["null", "long"], "long", alike(None, I64[0])),
    Column("null_last", ["long", "null"], "long", alike(I64[1], None)),
    Column("alone", ["string"], "string", alike("", "one branch")),
    Column("union", UNION, UNION_TYPE, [
        (None, None),
        (("int", -7), only(int=-7)),
        (("string", ""), only(string="")),
        (("bytes", b""), only(bytes="")),
        (("com.example.types.Pair", {"left": 1, "right": None}), only(pair={"left": 1, "right": None})),
        (("com.example.types.Coin", "TAILS"), only(coin="TAILS")),
        (("com.example.types.Two", b"\x01\x02"), only(two="AQI=")),
        (("array", [-0.0]), only(array=[-0.0])),
        (("map", {"t": True}), only(map=[["t", True]])),
    ]),
    Column("union_clash", CLASH, CLASH_TYPE, [
        (("a.Money", {"cents": 1}), {"a_money": {"cents": 1}, "b_money": None}),
        (("b.Money", {"cents": 2**40}), {"a_money": None, "b_money": {"cents": 2**40}}),
    ]),
    Column("unions", list_of(["null", "int", "string"]), {"list": struct_of(int="int", string="string")}, [
        ([], []),
        ([None, ("int", 1), ("string", "s")], [None, {"int": 1, "string": None}, {"int": None, "string": "s"}]),
    ]),
    Column("itself", NODE, NODE_TYPE, [
        (node(1), node_row(1)),
        (node(I64[0], node(2, ratio=math.nan, choice="ü\n")), node_row(I64[0], node_text(2, "null", '"NaN"', '"ü\\n"'))),
        (node(1, node(2, node(I64[1], ratio=math.inf, choice=7), ratio=-math.inf)),
         node_row(1, node_text(2, node_text(I64[1], "null", '"Infinity"', "7"), '"-Infinity"', "null"))),
    ]),
    Column("nothing", "null", None, [(None, None)]),
    Column("list_of_nothing", list_of("null"), None, [([None, None], None), ([], None)]),
    Column("map_of_nothing", map_of("null"), None, [({"a": None}, None)]),
    Column("unknown_logical_type", logical("long", "timestamp-centuries"), "long", alike(I64[0])),
    Column("ill_fitting_logical_type", logical("string", "date"), "string", alike("today")),
    Column("camelcase", "int", "int", alike(1), source="camelCase"),
    Column("camelcase_2", "int", "int", alike(2), source="camelcase"),
]  # fmt: skip


def schema_of(columns, name="Row"):
    fields = [{"name": column.source or column.name, "type": column.schema} for column in columns]
    return {"type": "record", "name": name, "namespace": "com.example.types", "fields": fields}


def encode(schema, value):
    out = io.BytesIO()
    fastavro.schemaless_writer(out, fastavro.parse_schema(schema), value)
    return out.getvalue()


def types():
    schema = schema_of(COLUMNS)
    records = [
        Record(0, at, NOON + at, None, framed(SCHEMA_ID, encode(schema, given)), row=seen)
        for at, (given, seen) in enumerate(cases(COLUMNS))
    ]
    return lambda_event(MSK, EVENT, records), golden(EVENT, typed(COLUMNS), records)


# ---- What cannot be read -------------------------------------------------------------------------------------

READABLE = [
    Column("n", "int", "int", alike(1)),
    Column("price", decimal_on_bytes(4, 2), "decimal(4, 2)", decimals("99.99")),
    Column("day", logical("int", "date"), "date", [(0, "1970-01-01")]),
    Column("time", logical("int", "time-millis"), "string", [(0, "00:00:00.000000")]),
    Column("at", logical("long", "timestamp-millis"), "timestamptz", [(0, "1970-01-01T00:00:00Z")]),
    Column("flag", "boolean", "boolean", alike(True)),
    Column("id", logical("string", "uuid"), "string", alike("8c1e2f5a-7d3b-4b0e-9a55-3f0f6f1d2c4b")),
    Column("pairs", entry("Pairs", ["null", "string"], "int", **{"connect.internal.type": "MapEntry"}), {"map": ["string", "int"]}, [(entries(("a", 1)), [["a", 1]])]),
    Column("choice", ["null", "int", "string"], struct_of(int="int", string="string"), [(None, None)]),
    Column("inside", record("Knot", ("knot", ["null", "com.example.types.Knot"])), struct_of(knot="string"), alike({"knot": None})),
    Column("text", "string", "string", alike("text")),
]  # fmt: skip
POISON_IDS = {101: schema_of(READABLE), 102: schema_of([Column("n", decimal_on_bytes(39, 2), None, [])]), 103: schema_of([Column("n", "Missing", None, [])])}


def knots(depth):
    knot = None
    for _ in range(depth):
        knot = {"knot": knot}
    return {"knot": knot}


def poison():
    ((good, seen),) = cases(READABLE)
    whole = encode(POISON_IDS[101], good)

    def with_(**changes):
        return framed(101, encode(POISON_IDS[101], good | changes))

    def replaced(before, after):
        assert whole.count(before) == 1
        return framed(101, whole.replace(before, after))

    values = [
        (framed(101, whole), None),
        (framed(101, whole[:-1]), "avro.truncated"),
        (framed(101, b""), "avro.truncated"),
        (framed(101, whole + b"\x00"), "avro.invalid"),
        (replaced(b"text", b"te\xfft"), "avro.invalid"),
        (replaced(b"\x01\x488c1e", b"\x02\x488c1e"), "avro.invalid"),  # a boolean of 2
        (framed(101, b"\xff" * 10 + whole), "avro.invalid"),  # a number of eleven bytes
        (with_(id="not a uuid"), "avro.invalid"),
        (replaced(b"\x04\x27\x0f", b"\x04\x27\x10"), "avro.decimal_overflow"),  # 10000 of four digits
        (with_(day=2_932_897), "value.date_out_of_range"),
        (with_(time=86_400_000), "value.time_out_of_range"),
        (with_(at=253_402_300_800_000), "value.timestamp_out_of_range"),
        (with_(at=2**63 - 1), "value.timestamp_out_of_range"),
        (with_(pairs=entries((None, 1))), "avro.null_key"),
        (with_(inside=knots(200)), "avro.too_deep"),
        (framed(102, b"\x02\x01"), "avro.schema_invalid"),
        (framed(103, b"\x02"), "avro.schema_invalid"),
        (framed(999, whole), "registry.unknown_schema"),
        (with_(inside=knots(100), at=-62_135_596_800_000), None),
    ]  # fmt: skip
    records = [
        Record(0, at, NOON + at, None, value, row=None if code else dict(seen), dead=code)
        for at, (value, code) in enumerate(values)
    ]
    knot = "null"
    for _ in range(100):
        knot = f'{{"knot":{knot}}}'
    records[-1].row |= {"inside": {"knot": knot}, "at": "0001-01-01T00:00:00Z"}
    return lambda_event(MSK, POISON, records), golden(POISON, typed(READABLE), records)


def only_poison():
    """A table that has a schema and nothing else."""
    records = [Record(0, at, NOON + at, None, framed(101, b"\x02" * at), dead="avro.truncated") for at in range(3)]
    return lambda_event(MSK, ONLY_POISON, records), golden(ONLY_POISON, typed(READABLE), records)


def files():
    """Path below this folder → text."""
    made = {}
    for schema_id, schema in {SCHEMA_ID: schema_of(COLUMNS), **POISON_IDS}.items():
        made[f"schemas/ids/{schema_id}.avsc"] = json.dumps(schema) + "\n"
    for name, make in {EVENT: types, POISON: poison, ONLY_POISON: only_poison}.items():
        made[f"{name}.json"], made[f"golden/{name}.json"] = make()
    return made
