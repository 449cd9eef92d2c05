"""Golden results: what an event must look like as a table, computed by the generator of the events, not by Frazil.

    {"table": "kafka.orders", "records": 3, "dead_letters": [{"partition": 0, "offset": 7, "code": "…"}],
     "columns": [{"name": "id", "type": "long"}], "partitions": [{"day": "2026-11-30", "rows": 2}],
     "rows": [{"id": 1, …}, …]}

A type is Iceberg's name of it ("long", "decimal(12, 2)", "timestamptz"), {"list": T}, {"map": [K, V]} or
{"struct": [{"name": …, "type": T}]}. A field that a row does not name is null. Values:

    boolean, int, long, float, double, string   as in JSON; "NaN", "Infinity", "-Infinity", "-0.0"
    decimal                                     "12.30", with all digits of its scale
    timestamptz, timestamp                      "2026-11-30T12:00:00.123456Z", the same without the Z
    date, time                                  "2026-11-30", "12:00:00.123456"
    binary, fixed                               base64
    list, struct, map                           array, object, array of [key, value]

Both sides, golden and read, are brought into this form before they are compared, driven by the golden type.
"""

import base64
import datetime
import decimal
import json
import math
import re
import struct

POSITION = ("_kafka_topic", "_kafka_epoch", "_kafka_partition", "_kafka_offset")
MOST_DIFFERENCES = 10


class Golden:
    """One golden file, its types and values in canonical form."""

    def __init__(self, path):
        with open(path, encoding="utf-8") as file:
            content = json.load(file)
        self.path = path
        self.table = content["table"]
        self.records = content["records"]
        self.dead_letters = sorted((d["partition"], d["offset"], d["code"]) for d in content["dead_letters"])
        self.columns = {column["name"]: parse_type(column["type"]) for column in content["columns"]}
        self.partitions = content["partitions"]
        self.rows = [self.row(row) for row in content["rows"]]
        # A golden file that contradicts itself would agree with something wrong.
        if len(self.rows) + len(self.dead_letters) != self.records:
            raise ValueError(f"{path}: rows and dead letters do not add up to {self.records} records")
        if sum(partition["rows"] for partition in self.partitions) != len(self.rows):
            raise ValueError(f"{path}: the rows of its partitions do not add up to {len(self.rows)}")

    def row(self, row):
        unknown = set(row) - set(self.columns)
        if unknown:
            raise ValueError(f"{self.path}: a row has {sorted(unknown)}, which are not among its columns")
        return {name: from_golden(kind, row.get(name), name) for name, kind in self.columns.items()}


def parse_type(value):
    """Structs become ("struct", {name: type}), lists ("list", T), maps ("map", K, V), others stay text."""
    if isinstance(value, str):
        return re.sub(r"\s*,\s*", ", ", value)
    if "list" in value:
        return ("list", parse_type(value["list"]))
    if "map" in value:
        return ("map", *map(parse_type, value["map"]))
    return ("struct", {field["name"]: parse_type(field["type"]) for field in value["struct"]})


def show_type(kind):
    if isinstance(kind, str):
        return kind
    if kind[0] == "struct":
        return "struct<" + ", ".join(f"{name}: {show_type(inner)}" for name, inner in sorted(kind[1].items())) + ">"
    return f"{kind[0]}<{', '.join(map(show_type, kind[1:]))}>"


def map_type(kind, change):
    """`kind` with each of its primitive types changed: for readers that cannot tell two of them apart."""
    if isinstance(kind, str):
        return change(kind)
    if kind[0] == "struct":
        return ("struct", {name: map_type(inner, change) for name, inner in kind[1].items()})
    return (kind[0], *(map_type(inner, change) for inner in kind[1:]))


def from_golden(kind, value, path="value"):
    """A JSON value of a golden file in canonical form. ValueError, with the path, when it is not of its type."""
    return walk(kind, value, path, json_primitive)


def from_reader(kind, value, path="value"):
    """What a reader returned as Python values, in canonical form."""
    return walk(kind, value, path, python_primitive)


def walk(kind, value, path, primitive):
    if value is None:
        return None
    if isinstance(kind, str):
        try:
            return primitive(kind, value)
        except (TypeError, ValueError, ArithmeticError, AttributeError) as fault:
            raise ValueError(f"{path}: {value!r} is no {kind} ({fault})") from None
    if kind[0] == "list":
        return [walk(kind[1], item, f"{path}[{index}]", primitive) for index, item in enumerate(value)]
    if kind[0] == "map":
        pairs = value.items() if isinstance(value, dict) else value
        entries = [
            [walk(kind[1], key, f"{path} key", primitive), walk(kind[2], item, f"{path}[{key!r}]", primitive)]
            for key, item in pairs
        ]
        return sorted(entries, key=lambda entry: entry[0])
    unknown = set(value) - set(kind[1])
    if unknown:
        raise ValueError(f"{path}: fields {sorted(unknown)} are not in its type")
    return {name: walk(inner, value.get(name), f"{path}.{name}", primitive) for name, inner in kind[1].items()}


def json_primitive(kind, value):
    if kind in ("float", "double") and isinstance(value, str):
        return floating(kind, {"NaN": math.nan, "Infinity": math.inf, "-Infinity": -math.inf, "-0.0": -0.0}[value])
    if kind.startswith("decimal"):
        return fixed_point(kind, decimal.Decimal(value))
    if kind in ("binary", "fixed") or kind.startswith("fixed["):
        return base64.b64encode(base64.b64decode(value, validate=True)).decode()
    if kind in ("timestamptz", "timestamp"):
        return timestamp(kind, value)
    if kind == "date":
        return datetime.date.fromisoformat(value).isoformat()
    if kind == "time":
        return datetime.time.fromisoformat(value).isoformat("microseconds")
    return python_primitive(kind, value)


def python_primitive(kind, value):
    if kind == "boolean":
        return expect(value, bool)
    if kind in ("int", "long"):
        return expect(value, int)
    if kind in ("float", "double"):
        return floating(kind, value)
    if kind in ("string", "uuid"):
        return str(value) if kind == "uuid" else expect(value, str)
    if kind in ("binary", "fixed") or kind.startswith("fixed["):
        return base64.b64encode(bytes(expect(value, (bytes, bytearray, memoryview)))).decode()
    if kind.startswith("decimal"):
        return fixed_point(kind, expect(value, decimal.Decimal))
    if kind == "timestamptz":
        if expect(value, datetime.datetime).tzinfo is None:
            raise ValueError("it has no time zone")
        moment = value.astimezone(datetime.timezone.utc).replace(tzinfo=None)
        return moment.isoformat(timespec="microseconds") + "Z"
    if kind == "timestamp":
        if expect(value, datetime.datetime).tzinfo is not None:
            raise ValueError("it has a time zone")
        return value.isoformat(timespec="microseconds")
    if kind == "date":
        if isinstance(value, datetime.datetime):
            raise ValueError("it has a time of day")
        return expect(value, datetime.date).isoformat()
    if kind == "time":
        return expect(value, datetime.time).isoformat("microseconds")
    raise ValueError("the checker does not know this type")


def expect(value, types):
    # A bool is an int to Python, and not to Iceberg.
    if not isinstance(value, types) or (isinstance(value, bool) and types is not bool):
        raise TypeError(f"it came as {type(value).__name__}")
    return value


def floating(kind, value):
    number = float(expect(value, (int, float)))
    if kind == "float" and math.isfinite(number):
        number = struct.unpack("f", struct.pack("f", number))[0]
    if math.isnan(number):
        return "NaN"
    if math.isinf(number):
        return "Infinity" if number > 0 else "-Infinity"
    return "-0.0" if number == 0 and math.copysign(1, number) < 0 else number


def fixed_point(kind, number):
    scale = int(kind.rstrip(")").split(",")[1])
    with decimal.localcontext(decimal.Context(prec=80, traps=[decimal.InvalidOperation])):
        exact = number.quantize(decimal.Decimal(1).scaleb(-scale))
    if exact != number:
        raise ValueError(f"it has more than {scale} digits after the point")
    return format(exact, "f")


def timestamp(kind, text):
    pattern = r"(\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d)(?:\.(\d{1,6}))?" + ("Z" if kind == "timestamptz" else "")
    found = re.fullmatch(pattern, text)
    if not found:
        raise ValueError("expected 2026-11-30T12:00:00.123456" + ("Z" if kind == "timestamptz" else ""))
    datetime.datetime.fromisoformat(found[1])
    return f"{found[1]}.{(found[2] or '').ljust(6, '0')}" + ("Z" if kind == "timestamptz" else "")


def position(row):
    return tuple(row[name] for name in POSITION if name in row)


def name_of(row):
    return " ".join(f"{name}={row[name]}" for name in POSITION if name in row)


def differences(expected, found, path):
    """Where two canonical values differ, deepest paths first found."""
    if isinstance(expected, dict) and isinstance(found, dict):
        for name in expected:
            yield from differences(expected[name], found[name], f"{path}.{name}" if path else name)
    elif isinstance(expected, list) and isinstance(found, list) and len(expected) == len(found):
        for index, (left, right) in enumerate(zip(expected, found)):
            yield from differences(left, right, f"{path}[{index}]")
    elif expected != found:
        yield f"{path}: expected {json.dumps(expected)}, found {json.dumps(found)}"
