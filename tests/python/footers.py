"""Compares what a table's manifests say about its data files with the files themselves.

    python footers.py WAREHOUSE TABLE

For every data file of the current snapshot: size, record count, partition tuple, field ids, and per column value
counts, null counts, NaN counts and bounds, computed anew from the values in the file. Exit 1 when one is wrong.
"""

import argparse
import collections
import datetime
import faulthandler
import pathlib
import sys

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from pyiceberg.conversions import from_bytes
from pyiceberg.manifest import DataFileContent, ManifestContent
from pyiceberg.types import BinaryType, DoubleType, FloatType, StringType, TimestampType, TimestamptzType

from golden import MOST_DIFFERENCES
from pyiceberg_reader import Reader
from warehouse import local_path

TIMEOUT_SECONDS = 15 * 60
# A table may keep instants outside a range in the null partition: before 1970, or a year after the commit.
EARLIEST_DAY = datetime.date(1970, 1, 1)
LATEST_AFTER_COMMIT = datetime.timedelta(days=366)
SHORTEST_TRUNCATED_BOUND = 16  # Iceberg's default; a shorter bound must be the whole value


class Column:
    """A leaf of a Parquet file: its values, and whether it stands alone (`top`) or may come many times a row."""

    def __init__(self, name, field_id, values, top, repeated):
        self.name, self.field_id, self.values, self.top, self.repeated = name, field_id, values, top, repeated


def check(table):
    """Every fault of the current snapshot of a PyIceberg table."""
    snapshot = table.current_snapshot()
    if snapshot is None:
        yield "the table has no snapshot"
        return
    totals = collections.Counter()
    for manifest in snapshot.manifests(table.io):
        if manifest.content != ManifestContent.DATA:
            continue
        name = pathlib.PurePath(manifest.manifest_path).name
        entries = manifest.fetch_manifest_entry(table.io, discard_deleted=True)
        yield from check_manifest(name, manifest, entries)
        for entry in entries:
            file = entry.data_file
            totals.update(records=file.record_count, files=1, bytes=file.file_size_in_bytes)
            for fault in check_file(table, snapshot, file):
                yield f"{pathlib.PurePath(file.file_path).name}: {fault}"
    for key, total in (("total-records", "records"), ("total-data-files", "files"), ("total-files-size", "bytes")):
        said = (snapshot.summary or {})[key]
        if said != str(totals[total]):
            yield f"summary {key}: says {said}, the manifests hold {totals[total]}"


def check_manifest(name, manifest, entries):
    counts = collections.Counter(entry.status.name for entry in entries)
    rows = collections.Counter()
    for entry in entries:
        rows[entry.status.name] += entry.data_file.record_count
    for status, files_said, rows_said in (
        ("ADDED", manifest.added_files_count, manifest.added_rows_count),
        ("EXISTING", manifest.existing_files_count, manifest.existing_rows_count),
    ):
        if (files_said, rows_said) != (counts[status], rows[status]):
            yield (f"{name}: the manifest list says {files_said} files and {rows_said} rows are {status}, "
                   f"the manifest holds {counts[status]} and {rows[status]}")


def check_file(table, snapshot, file):
    if file.content != DataFileContent.DATA:
        return
    path = local_path(file.file_path)
    size = path.stat().st_size
    if file.file_size_in_bytes != size:
        yield f"file_size_in_bytes: says {file.file_size_in_bytes}, the file has {size}"
    parquet = pq.ParquetFile(path)
    content = parquet.read()
    if file.record_count != content.num_rows:
        yield f"record_count: says {file.record_count}, the file has {content.num_rows}"
    starts = [row_group_start(parquet.metadata.row_group(index)) for index in range(parquet.metadata.num_row_groups)]
    if file.split_offsets and list(file.split_offsets) != starts:
        yield f"split_offsets: says {list(file.split_offsets)}, the row groups start at {starts}"

    columns = list(leaves(content))
    yield from check_partition(table, snapshot, file, columns)
    schema = table.schemas()
    types = {}
    for known in schema.values():
        types.update({field_id: field for field_id, field in known._lazy_id_to_field.items()})
    slots = footer_slots(parquet)
    for column in columns:
        if column.field_id not in types:
            yield f"column {column.name}: field id {column.field_id} is in no schema of the table"
            continue
        kind = types[column.field_id].field_type
        for fault in check_column(file, column, kind, slots):
            yield f"column {column.name} (field {column.field_id}): {fault}"
    known = {column.field_id for column in columns}
    for counts in ("value_counts", "null_value_counts", "lower_bounds", "upper_bounds"):
        stray = set(getattr(file, counts) or {}) - known
        if stray:
            yield f"{counts}: names fields {sorted(stray)}, which the file does not have"


def row_group_start(group):
    first = group.column(0)
    return first.dictionary_page_offset or first.data_page_offset


def footer_slots(parquet):
    """Values per leaf as the Parquet footer counts them: empty and absent lists take one each."""
    slots = collections.Counter()
    for index in range(parquet.metadata.num_row_groups):
        group = parquet.metadata.row_group(index)
        for leaf in range(group.num_columns):
            slots[leaf] += group.column(leaf).num_values
    return slots


def leaves(content):
    for index, field in enumerate(content.schema):
        yield from leaves_of(field, content.column(index).combine_chunks(), field.name, False)


def leaves_of(field, values, name, repeated):
    if isinstance(values, pa.ChunkedArray):
        values = pa.concat_arrays(values.chunks) if values.num_chunks else pa.array([], field.type)
    if pa.types.is_struct(field.type):
        # `flatten` carries the nulls of the struct into its fields.
        for inner, part in zip(field.type, values.flatten()):
            yield from leaves_of(inner, part, f"{name}.{inner.name}", repeated)
    elif pa.types.is_list(field.type) or pa.types.is_large_list(field.type):
        yield from leaves_of(field.type.value_field, values.flatten(), f"{name}.element", True)
    elif pa.types.is_map(field.type):
        present = values.filter(values.is_valid())
        yield from leaves_of(field.type.key_field, present.keys, f"{name}.key", True)
        yield from leaves_of(field.type.item_field, present.items, f"{name}.value", True)
    else:
        field_id = int((field.metadata or {}).get(b"PARQUET:field_id", b"-1"))
        yield Column(name, field_id, values, "." not in name, repeated)


def check_column(file, column, kind, slots):
    field_id, values = column.field_id, column.values
    value_count, null_count = ((counts or {}).get(field_id) for counts in (file.value_counts, file.null_value_counts))
    if column.repeated:
        # How many slots empty lists take is the writer's choice (Iceberg's spec does not say): as values, or not.
        if value_count is not None and value_count not in {len(values), *slots.values()}:
            yield f"value_count: says {value_count}, the file has {len(values)}"
        if None not in (value_count, null_count) and value_count - null_count != len(values) - values.null_count:
            yield (f"null_value_count: says {null_count} of {value_count}, "
                   f"the file has {values.null_count} of {len(values)}")
    else:
        if value_count != len(values):
            yield f"value_count: says {value_count}, the file has {len(values)}"
        if null_count != values.null_count:
            yield f"null_value_count: says {null_count}, the file has {values.null_count}"

    present = values.drop_null()
    if isinstance(kind, (FloatType, DoubleType)):
        nans = pc.sum(pc.is_nan(present)).as_py() or 0
        said = (file.nan_value_counts or {}).get(field_id)
        if said is not None and said != nans:
            yield f"nan_value_count: says {said}, the file has {nans}"
        present = present.filter(pc.invert(pc.is_nan(present)))
    lower, upper = ((bounds or {}).get(field_id) for bounds in (file.lower_bounds, file.upper_bounds))
    yield from check_bounds(column, kind, present, lower, upper)


def check_bounds(column, kind, present, lower, upper):
    if len(present) == 0:
        if lower is not None or upper is not None:
            yield f"bounds: says {lower!r} to {upper!r}, the file has no value"
        return
    if isinstance(kind, (StringType, BinaryType)):
        raw = present.cast(pa.large_binary()).to_pylist()
        smallest, largest = min(raw), max(raw)
        if isinstance(kind, StringType) and not all(map(is_text, filter(None, (lower, upper)))):
            yield f"bounds: {lower!r} to {upper!r} are not UTF-8"
            return
        if lower is not None and not is_lower(lower, smallest):
            yield f"lower bound: says {lower!r}, the smallest value is {smallest[:80]!r}"
        if upper is not None and not is_upper(upper, largest, isinstance(kind, StringType)):
            yield f"upper bound: says {upper!r}, the largest value is {largest[:80]!r}"
        # Only a value that cannot be rounded up may go without.
        if column.top and (lower is None or (upper is None and largest[:1] < b"\xf4")):
            yield "bounds: missing"
        return
    smallest, largest = (scalar(kind, pc.min_max(present)[side].as_py()) for side in ("min", "max"))
    for which, bound, value in (("lower", lower, smallest), ("upper", upper, largest)):
        if bound is None:
            if column.top:
                yield f"{which} bound: missing"
            continue
        said = from_bytes(kind, bound)
        if scalar(kind, said) != value:
            yield f"{which} bound: says {said}, the values reach {value}"


def is_lower(bound, smallest):
    """The value itself, or a prefix of it."""
    return bound == smallest or (len(bound) >= SHORTEST_TRUNCATED_BOUND and smallest.startswith(bound))


def is_text(bound):
    try:
        return bound.decode() is not None
    except UnicodeDecodeError:
        return False


def is_upper(bound, largest, in_characters):
    """The value itself, or a prefix whose last character or byte was counted up."""
    if bound == largest:
        return True
    if in_characters:
        bound, largest = bound.decode(), largest.decode()
    prefix = largest[: len(bound)]
    return 0 < len(bound) <= len(largest) and bound[:-1] == prefix[:-1] and bound[-1] > prefix[-1]


def scalar(kind, value):
    """A value in the form in which PyIceberg keeps bounds."""
    if isinstance(value, datetime.datetime):
        zone = value.tzinfo or datetime.timezone.utc
        since = value.replace(tzinfo=zone) - datetime.datetime(1970, 1, 1, tzinfo=datetime.timezone.utc)
        return since // datetime.timedelta(microseconds=1)
    if isinstance(value, datetime.date):
        return (value - datetime.date(1970, 1, 1)).days
    if isinstance(value, datetime.time):
        return ((value.hour * 60 + value.minute) * 60 + value.second) * 1_000_000 + value.microsecond
    return value


def check_partition(table, snapshot, file, columns):
    spec = table.specs()[file.spec_id]
    schema = table.schema()
    by_id = {column.field_id: column for column in columns}
    latest = datetime.datetime.fromtimestamp(snapshot.timestamp_ms / 1000, datetime.timezone.utc) + LATEST_AFTER_COMMIT
    for index, field in enumerate(spec.fields):
        kind = schema.find_type(field.source_id)
        said = scalar(kind, file.partition[index])
        if field.source_id not in by_id:
            expected = {None}
        else:
            transform = field.transform.transform(kind)
            values = by_id[field.source_id].values.unique().to_pylist()
            expected = {transform(scalar(kind, value)) for value in values}
            if said is None and isinstance(kind, (TimestampType, TimestamptzType)):
                first, last = scalar(None, EARLIEST_DAY), scalar(None, latest) // 86_400_000_000
                days = {scalar(kind, value) // 86_400_000_000 for value in values if value is not None}
                if all(day < first or day > last for day in days):
                    expected = {None}
        if expected != {said}:
            shown = sorted(expected, key=str)[:3]
            yield f"partition {field.name}: says {said}, its rows belong to {shown}"


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("warehouse")
    parser.add_argument("table")
    arguments = parser.parse_args()
    faulthandler.dump_traceback_later(TIMEOUT_SECONDS, exit=True)
    table = Reader(pathlib.Path(arguments.warehouse).resolve()).table(arguments.table)
    faults = list(check(table))
    for fault in faults[:MOST_DIFFERENCES]:
        print(f"footers: {arguments.table}: {fault}")
    if len(faults) > MOST_DIFFERENCES:
        print(f"footers: {arguments.table}: and {len(faults) - MOST_DIFFERENCES} more faults")
    if not faults:
        print(f"footers: {arguments.table}: {len(table.inspect.files())} files: all as the manifests say")
    sys.exit(1 if faults else 0)


if __name__ == "__main__":
    main()
