"""Every row of JSON Schema in docs/types.md, Kafka Connect's dialect too, and what cannot be read. Values are written by
Python's json, or as text where the text itself matters."""

import json
from base64 import b64encode

from event import MISSING, MSK, NOON, Column, Record, alike, cases, compact, framed, golden, lambda_event, struct_of, typed

I64 = (-(2**63), 2**63 - 1)
NINES = "9" * 38
UUID = "8c1e2f5a-7d3b-4b0e-9a55-3f0f6f1d2c4b"


class Text(str):
    """JSON text that is written as it is."""


def written(value):
    if isinstance(value, Text):
        return value
    if isinstance(value, dict):
        return "{" + ",".join(f"{json.dumps(name)}:{written(item)}" for name, item in value.items()) + "}"
    if isinstance(value, list):
        return "[" + ",".join(map(written, value)) + "]"
    return compact(value)


def texts(*pairs):
    return [(Text(text), seen) for text, seen in pairs]


def verbatim(*given):
    """Cases of a column that holds the JSON text."""
    return [ABSENT, NULL, *((Text(text), text) for text in given)]


ABSENT, NULL = (MISSING, None), (None, None)
STRING, INTEGER, NUMBER = {"type": "string"}, {"type": "integer"}, {"type": "number"}


def string(format):
    return {"type": "string", "format": format}


def object_of(**properties):
    return {"type": "object", "properties": properties}


def list_of(items):
    return {"type": "array", "items": items}


COLUMNS = [
    Column("integer", INTEGER, "long", [
        ABSENT, NULL, *alike(*I64, 0, -1),
        *texts(("1.0", 1), ("1e3", 1000), ("-0", 0), ("9.223372036854775807e18", I64[1]), ("1200e-2", 12), ("9223372036854775807.000", I64[1])),
    ]),
    Column("number", NUMBER, "double", [
        ABSENT, NULL, *alike(0.1, 1.7976931348623157e308, 5e-324, -0.0),
        *texts(("1", 1.0), ("9007199254740993", 9007199254740992.0), ("-1E+2", -100.0), ("18446744073709551616", 18446744073709551616.0), ("1e-400", 0.0)),
    ]),
    Column("boolean", {"type": "boolean"}, "boolean", [ABSENT, NULL, *alike(True, False)]),
    Column("string", STRING, "string", [
        ABSENT, NULL, *alike("", "Grüße 🎁", "\x00\n\"\\"), *texts(('"\\ud83c\\udf81\\u0000\\/\\u00FC"', "🎁\x00/ü")),
    ]),
    Column("date_time", string("date-time"), "timestamptz", [
        ABSENT, NULL,
        ("0001-01-01T00:00:00Z", "0001-01-01T00:00:00Z"),
        ("9999-12-31T23:59:59.999999999Z", "9999-12-31T23:59:59.999999Z"),
        ("1969-12-31t23:59:59.9999999z", "1969-12-31T23:59:59.999999Z"),
        ("2000-01-01 12:00:00", "2000-01-01T12:00:00Z"),
        ("2016-12-31T23:59:60Z", "2017-01-01T00:00:00Z"),
        ("2000-01-01T00:00:00.5+14:00", "1999-12-31T10:00:00.5Z"),
        ("2000-02-29T00:00:00-23:59", "2000-02-29T23:59:00Z"),
    ]),
    Column("date", string("date"), "date", [ABSENT, NULL, *alike("0001-01-01", "9999-12-31", "1969-12-31", "2000-02-29")]),
    Column("time", string("time"), "string", [ABSENT, NULL, *alike("23:59:59.123456789+02:00", "00:00:00Z", "no time at all")]),
    Column("uuid", string("uuid"), "string", [ABSENT, NULL, (UUID.upper(), UUID), (UUID, UUID)]),
    Column("other_format", string("email"), "string", [ABSENT, NULL, *alike("nobody looks at it")]),
    Column("object", object_of(z=INTEGER, a=object_of(deep=STRING)), struct_of(z="long", a=struct_of(deep="string")), [
        ABSENT, NULL, ({}, {"z": None, "a": None}), ({"a": {"deep": ""}, "z": 1, "more": [1]}, {"z": 1, "a": {"deep": ""}}), ({"a": {}}, {"z": None, "a": {"deep": None}}),
    ]),
    Column("map", {"type": "object", "additionalProperties": INTEGER}, {"map": ["string", "long"]}, [
        ABSENT, NULL, ({}, []), ({"": I64[0], "ü": None}, [["", I64[0]], ["ü", None]]), *texts(('{"a":1,"b":2,"a":3}', [["a", 3], ["b", 2]])),
    ]),
    Column("pattern_map", {"type": "object", "patternProperties": {"^x-": {"type": "boolean"}}, "additionalProperties": False},
           {"map": ["string", "boolean"]}, [ABSENT, ({"x-a": True}, [["x-a", True]])]),
    Column("map_of_objects", {"type": "object", "additionalProperties": object_of(n=INTEGER)}, {"map": ["string", struct_of(n="long")]},
           [ABSENT, ({}, []), ({"k": {"n": 1}, "l": {}}, [["k", {"n": 1}], ["l", {"n": None}]])]),
    Column("any_object", {"type": "object"}, "string", verbatim("{}", '{ "a" : 1.50, "b":[ ] }')),
    Column("any_array", {"type": "array"}, "string", verbatim("[]", "[ 1, 2.0 ]")),
    Column("tuple", {"type": "array", "prefixItems": [INTEGER, STRING]}, "string", verbatim('[1,"a"]')),
    Column("anything", {}, "string", verbatim("1.50", '"quoted"', "true", "{}", "123456789012345678901234567890")),
    Column("truth", True, "string", verbatim("0.10", '"\\u00fc"')),
    Column("items_of_any_kind", {"type": "array", "items": {}}, "string", verbatim('[1,"a",null]')),
    Column("values_of_any_kind", {"type": "object", "additionalProperties": True}, "string", verbatim('{"a":[]}')),
    Column("array", list_of(INTEGER), {"list": "long"}, [ABSENT, NULL, *alike([], [*I64], [None, 1])]),
    Column("array_of_objects", list_of(object_of(s=STRING)), {"list": struct_of(s="string")}, [ABSENT, ([], []), ([{}, None, {"s": "x"}], [{"s": None}, None, {"s": "x"}])]),
    Column("array_of_arrays", list_of(list_of(NUMBER)), {"list": {"list": "double"}}, [ABSENT, *alike([], [[]], [[0.5], [-0.0]])]),
    Column("enum", {"enum": ["A", "B"]}, "string", [ABSENT, NULL, *alike("A", "another one")]),
    Column("enum_of_integers", {"enum": [1, 2]}, "long", [ABSENT, *alike(2, 77)]),
    Column("enum_of_kinds", {"enum": [1, "a", None]}, "string", verbatim("1", '"a"')),
    Column("const", {"const": "only"}, "string", [ABSENT, *alike("only", "not the only one")]),
    Column("nullable", {"type": ["null", "integer"]}, "long", [ABSENT, NULL, *alike(1)]),
    Column("one_of_null", {"oneOf": [{"type": "null"}, string("date")]}, "date", [ABSENT, NULL, *alike("0001-01-01")]),
    Column("one_of_objects", {"oneOf": [object_of(a=INTEGER), object_of(b=STRING)]}, struct_of(a="long", b="string"),
           [ABSENT, NULL, ({"a": 1}, {"a": 1, "b": None}), ({"b": "x"}, {"a": None, "b": "x"}), ({}, {"a": None, "b": None})]),
    Column("integer_or_number", {"anyOf": [INTEGER, NUMBER]}, "double", [ABSENT, *alike(1.5), (1, 1.0)]),
    Column("formats", {"anyOf": [string("date"), string("uuid")]}, "string", [ABSENT, *alike("0001-01-01", UUID.upper())]),
    Column("arrays", {"oneOf": [list_of(INTEGER), list_of(NUMBER)]}, {"list": "double"}, [ABSENT, ([], []), ([1, 0.5], [1.0, 0.5])]),
    Column("string_or_integer", {"type": ["string", "integer"]}, "string", verbatim("1", '"1"')),
    Column("all_of", {"allOf": [object_of(a=INTEGER), {"properties": {"b": string("date")}}]}, struct_of(a="long", b="date"),
           [ABSENT, ({"a": 1, "b": "9999-12-31"}, {"a": 1, "b": "9999-12-31"})]),
    Column("conditional", {"type": "object", "properties": {"a": INTEGER}, "if": {"required": ["a"]}, "then": {"properties": {"b": STRING}},
                           "else": {"properties": {"c": STRING}}, "dependentSchemas": {"a": {"properties": {"d": NUMBER}}}},
           struct_of(a="long", b="string", c="string", d="double"),
           [ABSENT, ({"a": 1, "b": "x", "d": 0.5}, {"a": 1, "b": "x", "c": None, "d": 0.5}), ({"c": "y"}, {"a": None, "b": None, "c": "y", "d": None})]),
    Column("ref", {"$ref": "#/$defs/money"}, struct_of(cents="long"), [ABSENT, ({"cents": 1}, {"cents": 1})]),
    Column("ref_by_pointer", {"$ref": "#/properties/date"}, "date", [ABSENT, *alike("1969-12-31")]),
    Column("ref_by_anchor", {"$ref": "#place"}, struct_of(city="string"), [ABSENT, ({"city": ""}, {"city": ""})]),
    Column("dynamic_ref", {"$dynamicRef": "#place"}, struct_of(city="string"), [ABSENT, ({"city": "ü"}, {"city": "ü"})]),
    Column("ref_to_another", {"$ref": "size.json"}, struct_of(width="long", height="long"), [ABSENT, ({"width": 1}, {"width": 1, "height": None})]),
    Column("ref_into_another", {"$ref": "size.json#/$defs/length"}, "long", [ABSENT, *alike(5)]),
    Column("tree", {"$ref": "#/$defs/tree"}, struct_of(n="long", left="string", trees="string"), [
        ABSENT, NULL, ({"n": 1}, {"n": 1, "left": None, "trees": None}),
        *texts(('{"n":1,"left":{ "n": 2.50, "left":null },"trees":[{"n":3},null]}',
                {"n": 1, "left": '{ "n": 2.50, "left":null }', "trees": '[{"n":3},null]'})),
    ]),
    Column("never", False, None, [ABSENT, NULL]),
    Column("only_null", {"type": "null"}, None, [ABSENT, NULL]),
    Column("empty_struct", object_of(nothing={"type": "null"}), "boolean", [ABSENT, NULL, ({}, True), ({"nothing": None}, True)]),
    Column("without_type", {"properties": {"a": INTEGER}}, struct_of(a="long"), [ABSENT, ({"a": 1}, {"a": 1})]),
    Column("nothing_asserted", {"type": "string", "minLength": 5, "pattern": "^x$"}, "string", [ABSENT, *alike("")]),
    # Of equal keys the last one counts, also if it is null.
    Column("equal_keys", INTEGER, "long", [ABSENT, (Text('1,"equal_keys":2'), 2), (Text('1,"equal_keys":null'), None)]),
    Column("camelcase", STRING, "string", [ABSENT, *alike("camel")], source="camelCase"),
    Column("with_space_", STRING, "string", [ABSENT, *alike("space")], source="with space!"),
]  # fmt: skip
DEFINITIONS = {
    "money": object_of(cents=INTEGER),
    "place": {"$anchor": "place", "$dynamicAnchor": "place", **object_of(city=STRING)},
    "tree": object_of(n=INTEGER, left={"$ref": "#/$defs/tree"}, trees=list_of({"$ref": "#/$defs/tree"})),
}
SIZE = {"$defs": {"length": INTEGER}, **object_of(width={"$ref": "#/$defs/length"}, height={"$ref": "#/$defs/length"})}


def connect(kind, base, **more):
    return {"type": base, "connect.type": kind, **more}


def connect_logical(name, base, **more):
    return {"type": base, "title": f"org.apache.kafka.connect.data.{name}", "connect.version": 1, **more}


def connect_decimal(scale, precision=None):
    parameters = {"scale": str(scale)} | ({"connect.decimal.precision": str(precision)} if precision else {})
    return connect_logical("Decimal", "number", **{"connect.type": "bytes", "connect.parameters": parameters})


def unscaled(number):
    """Connect's default: the big-endian bytes of the unscaled value, in base64."""
    return b64encode(number.to_bytes((number.bit_length() + 8) // 8, "big", signed=True)).decode()


CONNECT = [
    Column("int8", connect("int8", "integer"), "int", [NULL, *alike(-128, 127)]),
    Column("int16", connect("int16", "integer"), "int", [NULL, *alike(-32768, 32767)]),
    Column("int32", connect("int32", "integer"), "int", [NULL, *alike(-(2**31), 2**31 - 1)]),
    Column("int64", connect("int64", "integer"), "long", [NULL, *alike(*I64)]),
    Column("float32", connect("float32", "number"), "float", [NULL, *alike(-0.0, 3.4028234663852886e38, 1.5), *texts(("0.1", 0.10000000149011612))]),
    Column("float64", connect("float64", "number"), "double", [NULL, *alike(-0.0, 1.7976931348623157e308)]),
    Column("bytes", connect("bytes", "string"), "binary", [NULL, *alike("", "AP8=", "AAEC")]),
    Column("decimal", connect_decimal(2), "decimal(38, 2)", [
        NULL, (unscaled(int(NINES)), NINES[:36] + ".99"), (unscaled(-int(NINES)), "-" + NINES[:36] + ".99"), (unscaled(-1), "-0.01"), (unscaled(128), "1.28"),
        *texts(("1.5", "1.50"), (NINES[:36] + ".99", NINES[:36] + ".99"), ("-1e-2", "-0.01"), ("1.500", "1.50")),
    ]),
    Column("decimal_38_38", connect_decimal(38, 38), "decimal(38, 38)", [NULL, (unscaled(int(NINES)), "0." + NINES), *texts(("-0." + NINES, "-0." + NINES))]),
    Column("decimal_9_0", connect_decimal(0, 9), "decimal(9, 0)", [NULL, (unscaled(-999_999_999), "-999999999"), *texts(("999999999", "999999999"))]),
    Column("date", connect_logical("Date", "integer", **{"connect.type": "int32"}), "date", [NULL, (-719_162, "0001-01-01"), (2_932_896, "9999-12-31"), (-1, "1969-12-31")]),
    Column("time", connect_logical("Time", "integer", **{"connect.type": "int32"}), "string", [NULL, (0, "00:00:00.000000"), (86_399_999, "23:59:59.999000")]),
    Column("timestamp", connect_logical("Timestamp", "integer", **{"connect.type": "int64"}), "timestamptz",
           [NULL, (-62_135_596_800_000, "0001-01-01T00:00:00Z"), (253_402_300_799_999, "9999-12-31T23:59:59.999Z"), (-1, "1969-12-31T23:59:59.999Z")]),
    Column("map_by_number", {"type": "array", "connect.type": "map", "items": object_of(key=connect("int32", "integer"), value=STRING)},
           {"list": struct_of(key="int", value="string")}, [NULL, ([], []), ([{"key": -1, "value": None}], [{"key": -1, "value": None}])]),
    Column("optional", {"oneOf": [{"type": "null"}, connect("int32", "integer")]}, "int", [NULL, *alike(1)]),
    Column("narrow_or_wide", {"oneOf": [connect("int32", "integer", title="a"), connect("int64", "integer", title="b")]}, "long", [NULL, *alike(I64[0])]),
]  # fmt: skip


def schema_of(columns, **more):
    properties = {column.source or column.name: column.schema for column in columns}
    return {"$schema": "https://json-schema.org/draft/2020-12/schema", "type": "object", "properties": properties, **more}


def connect_schema():
    """As the converter writes it, in an order of its own: `connect.index` has the columns'."""
    properties = {
        column.name: {**column.schema, "connect.index": at} for at, column in reversed(list(enumerate(CONNECT)))
    }
    return {"type": "object", "title": "Row", "properties": properties}


DRAFT4 = {
    "$schema": "http://json-schema.org/draft-04/schema#",
    "id": "http://example.com/row.json",
    "type": "object",
    "properties": {
        "tuple": {"type": "array", "items": [INTEGER, STRING]},
        "beside": {"$ref": "#/definitions/day", "type": "integer"},
        "by_id": {"$ref": "#day"},
        "dependent": {"type": "object", "dependencies": {"a": {"properties": {"b": STRING}}}},
    },
    "definitions": {"day": {"id": "#day", **string("date")}},
}


def rows_of(schema_id, columns):
    return [
        Record(0, at, NOON + at, None, framed(schema_id, written(given).encode()), row=seen)
        for at, (given, seen) in enumerate(cases(columns))
    ]


def roots():
    """A schema that is no object with properties: one column."""
    values = [("[]", []), ("[-9223372036854775808, 1.0]", [I64[0], 1]), (" null ", None), ("[null]", [None])]
    return [
        Record(0, at, NOON + at, None, framed(302, text.encode()), row={"value": seen})
        for at, (text, seen) in enumerate(values)
    ]


# ---- What cannot be read -------------------------------------------------------------------------------------

READABLE = [
    Column("n", INTEGER, "long", alike(1)),
    Column("ratio", NUMBER, "double", alike(0.5)),
    Column("s", STRING, "string", alike("text")),
    Column("flag", {"type": "boolean"}, "boolean", alike(True)),
    Column("at", string("date-time"), "timestamptz", [("2026-11-30T12:00:00Z", "2026-11-30T12:00:00Z")]),
    Column("day", string("date"), "date", alike("2026-11-30")),
    Column("id", string("uuid"), "string", alike(UUID)),
    Column("list", list_of(INTEGER), {"list": "long"}, alike([1])),
    Column("inner", object_of(n=INTEGER), struct_of(n="long"), alike({"n": 1})),
    Column("small", connect("int32", "integer"), "int", alike(1)),
    Column("bytes", connect("bytes", "string"), "binary", alike("AA==")),
    Column("price", connect_decimal(2, 5), "decimal(5, 2)", [(Text("1.25"), "1.25")]),
    Column("any", {}, "string", [(Text("0"), "0")]),
]  # fmt: skip


def poison():
    ((good, seen),) = cases(READABLE)

    def with_(**changes):
        return written(good | {name: Text(text) for name, text in changes.items()})

    whole = with_()
    values = [
        (whole, None),
        (whole[:-1], "json.invalid"),
        ("", "json.invalid"),
        ("\ufeff" + whole, "json.invalid"),
        (whole + " x", "json.invalid"),
        (with_(ratio="NaN"), "json.invalid"),
        (with_(ratio="-Infinity"), "json.invalid"),
        (with_(n="01"), "json.invalid"),
        (with_(s='"\\ud800"'), "json.invalid"),
        (with_(unknown='"\\udc00"'), "json.invalid"),
        (with_(s="'single'"), "json.invalid"),
        (with_(s='"a\nb"'), "json.invalid"),
        (written(good).encode().replace(b"text", b"te\xfft"), "json.invalid"),
        ("[1]", "json.not_an_object"),
        ('"text"', "json.not_an_object"),
        (with_(n='"1"'), "json.type_mismatch"),
        (with_(n="1.5"), "json.type_mismatch"),
        (with_(s="1"), "json.type_mismatch"),
        (with_(flag="0"), "json.type_mismatch"),
        (with_(list="{}"), "json.type_mismatch"),
        (with_(list="[[1]]"), "json.type_mismatch"),
        (with_(inner='{"n":true}'), "json.type_mismatch"),
        (with_(n="9223372036854775808"), "json.number_out_of_range"),
        (with_(small="2147483648"), "json.number_out_of_range"),
        (with_(ratio="1e400"), "json.number_out_of_range"),
        (with_(at='"yesterday"'), "json.invalid_format"),
        (with_(id='"8c1e2f5a"'), "json.invalid_format"),
        (with_(bytes='"AA"'), "json.invalid_format"),
        (with_(day='"2025-02-29"'), "json.invalid_format"),
        (with_(at='"0000-12-31T23:59:59Z"'), "value.timestamp_out_of_range"),
        (with_(price="1.255"), "value.decimal_inexact"),
        (with_(price="1000.00"), "value.decimal_overflow"),
        (with_(any="[" * 128 + "]" * 128), "json.too_deep"),
        (with_(any="[" * 127 + "]" * 127), None),
    ]
    records = [
        Record(0, at, NOON + at, None, framed(304, value if isinstance(value, bytes) else value.encode()), row=None if code else dict(seen), dead=code)
        for at, (value, code) in enumerate(values)
    ]
    records[-1].row["any"] = "[" * 127 + "]" * 127
    at = len(records)
    records.append(Record(0, at, NOON + at, None, framed(305, b"{}"), dead="json.schema_invalid"))
    return records


def files():
    """Path below this folder → text."""
    draft4 = [
        ({"tuple": Text('[1, "a"]'), "beside": "0001-01-01", "by_id": "9999-12-31", "dependent": {"b": ""}},
         {"tuple": '[1, "a"]', "beside": "0001-01-01", "by_id": "9999-12-31", "dependent": {"b": ""}}),
    ]  # fmt: skip
    made = {
        "schemas/ids/300.json": schema_of(COLUMNS, **{"$defs": DEFINITIONS}),
        "schemas/ids/300.references.json": [{"name": "size.json", "id": 301}],
        "schemas/ids/301.json": SIZE,
        "schemas/ids/302.json": list_of(INTEGER),
        "schemas/ids/303.json": connect_schema(),
        "schemas/ids/304.json": schema_of(READABLE),
        "schemas/ids/305.json": object_of(a={"$ref": "#/$defs/missing"}),
        "schemas/ids/306.json": DRAFT4,
    }
    made = {path: json.dumps(schema) + "\n" for path, schema in made.items()}
    for name, (records, columns) in {
        "types-json-schema": (rows_of(300, COLUMNS), COLUMNS),
        "types-json-root": (roots(), [Column("value", None, {"list": "long"}, [])]),
        "types-connect-json": (rows_of(303, CONNECT), CONNECT),
        "types-json-draft4": (
            [Record(0, at, NOON + at, None, framed(306, written(given).encode()), row=seen) for at, (given, seen) in enumerate(draft4)],
            [Column("tuple", None, "string", []), Column("beside", None, "date", []), Column("by_id", None, "date", []), Column("dependent", None, struct_of(b="string"), [])],
        ),
        "poison-json-schema": (poison(), READABLE),
    }.items():  # fmt: skip
        made[f"{name}.json"] = lambda_event(MSK, name, records)
        made[f"golden/{name}.json"] = golden(name, typed(columns), records)
    return made
