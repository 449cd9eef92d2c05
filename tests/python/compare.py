"""Reads tables with somebody else's reader and compares everything with golden results.

    python compare.py --reader pyiceberg WAREHOUSE GOLDEN.json… [--table kafka.orders]

Exit 0: all equal. Exit 1: the first differences are printed. The warehouse is a directory with a SQLite catalog, or s3://… with Glue,
`catalog.db` of the name `frazil`. `--table` reads another table than the golden file names.
"""

import argparse
import collections
import datetime
import faulthandler
import importlib
import pathlib
import sys

from golden import MOST_DIFFERENCES, POSITION, Golden, differences, from_reader, map_type, name_of, position, show_type
from warehouse import is_on_s3

READERS = ("pyiceberg", "duckdb", "spark")
TIMEOUT_SECONDS = 15 * 60


def open_reader(name, warehouse):
    """Each reader is a module with a class `Reader`. Its `sees` and `sees_value` say what it cannot tell apart."""
    return importlib.import_module(f"{name}_reader").Reader(
        warehouse if is_on_s3(warehouse) else pathlib.Path(warehouse).resolve()
    )


def compare(reader, golden, table=None):
    """Every way in which the table that `reader` sees is not the golden one."""
    table = table or golden.table
    if not reader.exists(table):
        yield f"{table}: the table is not in the catalog"
        return
    yield from compare_columns(reader, golden, table)
    yield from compare_rows(reader, golden, table)
    yield from compare_partitions(reader, golden, table)
    yield from compare_dead_letters(reader, golden, table)


def compare_columns(reader, golden, table):
    found = reader.columns(table)
    for name, kind in golden.columns.items():
        if name not in found:
            yield f"column {name}: missing"
            continue
        expected = map_type(kind, reader.sees)
        if found[name] != expected:
            yield f"column {name}: expected {show_type(expected)}, found {show_type(found[name])}"
    for name in found:
        if name not in golden.columns:
            yield f"column {name}: {show_type(found[name])}, which the golden result does not have"


def compare_rows(reader, golden, table):
    names = [name for name in golden.columns if name in reader.columns(table)]
    found = []
    for row in reader.rows(table):
        try:
            row = {name: from_reader(golden.columns[name], row[name], name) for name in names}
            found.append({name: reader.sees_value(golden.columns[name], row[name]) for name in names})
        except ValueError as fault:
            yield f"row {name_of(row)}: {fault}"
    if len(found) != len(golden.rows):
        yield f"rows: expected {len(golden.rows)}, found {len(found)}"

    # By position, with all rows of one: a row that is there twice is a difference, not a match.
    expected_at, found_at = collections.defaultdict(list), collections.defaultdict(list)
    for row in golden.rows:
        seen = {name: reader.sees_value(golden.columns[name], row[name]) for name in names}
        expected_at[position(row)].append(seen)
    for row in found:
        found_at[position(row)].append(row)
    for key in sorted(set(expected_at) | set(found_at)):
        expected_rows, found_rows = expected_at[key], found_at[key]
        if len(expected_rows) != len(found_rows):
            row = (expected_rows or found_rows)[0]
            yield f"row {name_of(row)}: expected {len(expected_rows)} times, found {len(found_rows)} times"
            continue
        for expected_row, found_row in zip(expected_rows, found_rows):
            for difference in differences(expected_row, found_row, ""):
                yield f"row {name_of(expected_row)}: {difference}"


def compare_partitions(reader, golden, table):
    """The partition values in the manifests, and that a filter on them finds the rows: readers prune by them."""
    expected = collections.Counter()
    for partition in golden.partitions:
        values = {key: value for key, value in partition.items() if key != "rows"}
        expected[tuple(sorted(values.items()))] += partition["rows"]

    keys = sorted({key for values in expected for key, _ in values})
    found, sources = collections.Counter(), {}
    for values, rows in reader.partitions(table):
        named = {}
        for field, value in values.items():
            key = next((key for key in keys if field == key or field.endswith(f"_{key}")), field)
            sources[key] = field.removesuffix(f"_{key}")
            named[key] = value.isoformat() if isinstance(value, datetime.date) else value
        found[tuple(sorted(named.items()))] += rows
    for values in sorted(set(expected) | set(found), key=str):
        if expected[values] != found[values]:
            shown = ", ".join(f"{key}={value}" for key, value in values) or "(unpartitioned)"
            yield f"partition {shown}: expected {expected[values]} rows, found {found[values]}"

    for values in expected:
        day = dict(values).get("day")
        if day is None or "day" not in sources:
            continue
        column = sources["day"]
        if column not in golden.columns:
            yield f"partition field {column}_day: there is no column {column}"
            continue
        after = (datetime.date.fromisoformat(day) + datetime.timedelta(days=1)).isoformat()
        rows = sum(1 for row in golden.rows if (row[column] or "").startswith(day))
        seen = reader.count_between(table, column, day, after)
        if seen != rows:
            yield f"filter on {column} = {day}: expected {rows} rows, found {seen}"


def compare_dead_letters(reader, golden, table):
    letters, found = f"{table}_dead_letters", []
    if reader.exists(letters):
        found = sorted((row["partition"], row["offset"], row["code"]) for row in reader.rows(letters))
    if found != golden.dead_letters:
        expected = collections.Counter(golden.dead_letters)
        expected.subtract(collections.Counter(found))
        for (partition, offset, code), count in sorted(expected.items()):
            if count:
                which = "missing" if count > 0 else "not expected"
                yield f"dead letter partition={partition} offset={offset} code={code}: {which}"


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("warehouse")
    parser.add_argument("golden", nargs="+")
    parser.add_argument("--reader", choices=READERS, required=True)
    parser.add_argument("--table")
    arguments = parser.parse_args()
    if arguments.table and len(arguments.golden) > 1:
        parser.error("--table goes with one golden file")
    faulthandler.dump_traceback_later(TIMEOUT_SECONDS, exit=True)

    reader, faults = open_reader(arguments.reader, arguments.warehouse), 0
    for path in arguments.golden:
        golden = Golden(path)
        table, count = arguments.table or golden.table, 0
        for difference in compare(reader, golden, table):
            count += 1
            if count <= MOST_DIFFERENCES:
                print(f"{arguments.reader}: {table}: {difference}")
        if count > MOST_DIFFERENCES:
            print(f"{arguments.reader}: {table}: and {count - MOST_DIFFERENCES} more differences")
        if not count:
            print(f"{arguments.reader}: {table}: {len(golden.rows)} rows, {len(golden.columns)} columns, "
                  f"{len(golden.dead_letters)} dead letters: all equal")
        faults += count
    sys.exit(1 if faults else 0)


if __name__ == "__main__":
    main()
