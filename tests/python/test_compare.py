"""Tests of the test: each broken value must be seen by each reader. python -m unittest discover tests/python"""

import copy
import json
import pathlib
import tempfile
import types
import unittest

import footers
import sample
from compare import compare, open_reader
from golden import Golden, from_golden, from_reader, parse_type
from pyiceberg_reader import Reader as PyIceberg

# What is broken in the golden result, and what the checker must say.
BREAKS = [
    (lambda g: g["rows"][0].update(id=9007199254740992), "_kafka_offset=100: id: expected 9007199254740992"),
    (lambda g: g["rows"][0].update(price="-0.11"), 'price: expected "-0.11", found "-0.10"'),
    (lambda g: g["rows"][0].update(note=None), "note: expected null"),
    (lambda g: g["rows"][0].update(raw="/wD/"), 'raw: expected "/wD/", found "/wD+"'),
    (lambda g: g["rows"][0].update(day="1970-01-01"), "day: expected"),
    (lambda g: g["rows"][0].update(local="2026-01-02T03:04:05.000007"), "local: expected"),
    (lambda g: g["rows"][0].update(paid=False), "paid: expected false, found true"),
    (lambda g: g["rows"][0].update(weight=None), 'weight: expected null, found "NaN"'),
    (lambda g: g["rows"][0].update(ratio=0.1001), "ratio: expected"),
    (lambda g: g["rows"][1].update(weight=0.0), 'weight: expected 0.0, found "-0.0"'),
    (lambda g: g["rows"][1].update(ratio="Infinity"), 'ratio: expected "Infinity", found "-Infinity"'),
    (lambda g: g["rows"][1].update(where={"city": None}), "where: expected {"),
    (lambda g: g["rows"][1].update(labels=None), "labels: expected null, found []"),
    (lambda g: g["rows"][1].update(_kafka_timestamp="2026-11-30T23:59:59.000001Z"), "_kafka_timestamp: expected"),
    (lambda g: g["rows"][1].update(_kafka_timestamp=None), "_kafka_timestamp: expected null"),
    (lambda g: g["rows"][0]["where"].update(city="Zurich"), "where.city: expected"),
    (lambda g: g["rows"][0]["items"][0].update(price="1.501"), 'items[0].price: expected "1.501"'),
    (lambda g: g["rows"][0]["items"].reverse(), "items[0]: expected null"),
    (lambda g: g["rows"][0]["tags"][1].__setitem__(1, 3), "tags[1][1]: expected 3, found 2"),
    (lambda g: g["rows"][0]["labels"].__setitem__(1, ""), 'labels[1]: expected "", found null'),
    (lambda g: g["rows"][0]["lists"][1].__setitem__(0, "18446744073709551614"), 'expected "18446744073709551614"'),
    (lambda g: g["rows"][0]["lists"][1][1].__setitem__(1, 0), "[1][1]: expected 0, found null"),
    (lambda g: g["rows"][3].update(_kafka_offset=9), "_kafka_offset=9: expected 1 times, found 0 times"),
    (lambda g: g["rows"][3].update(_kafka_offset=7), "_kafka_offset=7: expected 2 times, found 1 times"),
    (lambda g: g["rows"][3].update(_kafka_epoch=1), "_kafka_epoch=1 _kafka_partition=1 _kafka_offset=8: expected 1"),
    (lambda g: g["columns"][4].update(type="int"), "column id: expected int, found long"),
    (lambda g: g["columns"][5].update(type="decimal(12,3)"), "column price: expected decimal(12, 3)"),
    (lambda g: g["columns"][9].update(type="date") or g["rows"][0].update(local=None), "column local: expected date"),
    (lambda g: g["columns"][13]["type"]["struct"][1].update(type="long"), "column where: expected struct<city"),
    (lambda g: g["columns"].append({"name": "more", "type": "long"}), "column more: missing"),
    (lambda g: (g["columns"].pop(11), [row.pop("weight", 0) for row in g["rows"]]), "column weight: double, which"),
    (lambda g: g["partitions"].__setitem__(0, {"day": "2026-11-28", "rows": 1}), "day=2026-11-28: expected 1 rows"),
    (lambda g: g["partitions"].__setitem__(2, {"day": "2026-12-01", "rows": 1}), "day=None: expected 0 rows, found 1"),
    (lambda g: g.update(partitions=[{"rows": 4}]), "(unpartitioned): expected 4 rows, found 0"),
    (lambda g: g["dead_letters"][0].update(code="other"), "dead letter partition=1 offset=9 code=other: missing"),
    (lambda g: g.update(dead_letters=[], records=4), "code=wrong_record: not expected"),
    (lambda g: g.update(table="kafka.absent"), "kafka.absent: the table is not in the catalog"),
    (lambda g: g["rows"].append(g["rows"].pop(0)), None),  # the order of rows is nobody's promise
    (lambda g: g["columns"].reverse(), None),
    (lambda g: None, None),
]


class ReaderTests(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.home = tempfile.TemporaryDirectory()
        sample.make(f"{cls.home.name}/warehouse")

    @classmethod
    def tearDownClass(cls):
        cls.home.cleanup()

    def check(self, name):
        reader = open_reader(name, f"{self.home.name}/warehouse")
        for index, (change, expected) in enumerate(BREAKS):
            content = copy.deepcopy(sample.GOLDEN)
            change(content)
            found = list(compare(reader, golden_of(self.home.name, content)))
            with self.subTest(reader=name, case=index):
                if expected is None:
                    self.assertEqual(found, [])
                else:
                    self.assertTrue(any(expected in difference for difference in found), (expected, found))

    def test_pyiceberg_sees_each_break(self):
        self.check("pyiceberg")

    def test_duckdb_sees_each_break(self):
        self.check("duckdb")

    def test_a_golden_result_may_not_contradict_itself(self):
        for change, expected in (
            (lambda g: g.update(records=6), "do not add up to 6 records"),
            (lambda g: g["partitions"].pop(), "do not add up to 4"),
            (lambda g: g["rows"][0].update(nme=1), "a row has ['nme']"),
            (lambda g: g["rows"][0].update(id="1"), "id: '1' is no long"),
            (lambda g: g["rows"][0].update(id=True), "id: True is no long"),
            (lambda g: g["rows"][0].update(price="1.234"), "price: '1.234' is no decimal(12, 2)"),
        ):
            content = copy.deepcopy(sample.GOLDEN)
            change(content)
            with self.subTest(expected), self.assertRaises(ValueError) as raised:
                golden_of(self.home.name, content)
            self.assertIn(expected, str(raised.exception))

    def test_a_directory_without_a_catalog_is_named(self):
        for name in ("pyiceberg", "duckdb"):
            with self.assertRaisesRegex(FileNotFoundError, "nowhere is no warehouse: it has no catalog.db"):
                open_reader(name, f"{self.home.name}/nowhere")

    def test_only_pyiceberg_is_excused_for_absent_lists_of_structs(self):
        kind = parse_type({"struct": [{"name": "l", "type": {"list": {"struct": [{"name": "x", "type": "int"}]}}}]})
        self.assertEqual(PyIceberg.sees_value(kind, {"l": None}), {"l": []})
        self.assertEqual(PyIceberg.sees_value(kind, None), None)
        self.assertEqual(PyIceberg.sees_value(("list", "int"), None), None)
        duckdb = open_reader("duckdb", f"{self.home.name}/warehouse")
        self.assertEqual(duckdb.sees_value(kind, {"l": None}), {"l": None})


class ValueTests(unittest.TestCase):
    def test_a_reader_that_returns_another_type_is_caught(self):
        for kind, value in (("long", 1.0), ("boolean", 1), ("string", b"a"), ("double", "1"), ("date", "2026-01-01"),
                            ("timestamptz", "2026-01-01"), ("decimal(4, 1)", 1.5), ("binary", "a"), ("interval", 1)):
            with self.subTest(kind), self.assertRaises(ValueError):
                from_reader(kind, value)

    def test_fractions_of_a_second_are_written_in_full(self):
        self.assertEqual(from_golden("timestamptz", "2026-11-30T12:00:00.5Z"), "2026-11-30T12:00:00.500000Z")
        for wrong in ("2026-11-30T12:00:00", "2026-13-30T12:00:00Z", "2026-11-30T12:00:00.1234567Z"):
            with self.subTest(wrong), self.assertRaises(ValueError):
                from_golden("timestamptz", wrong)


class FooterTests(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.home = tempfile.TemporaryDirectory()
        sample.make(f"{cls.home.name}/warehouse")
        cls.table = PyIceberg(pathlib.Path(cls.home.name, "warehouse")).table("kafka.orders")
        cls.snapshot = cls.table.current_snapshot()
        entries = [
            entry for manifest in cls.snapshot.manifests(cls.table.io)
            for entry in manifest.fetch_manifest_entry(cls.table.io)
        ]
        # The file of the first row: it has a value in every column.
        days = {entry.data_file.partition[0]: entry.data_file for entry in entries}
        cls.file = days[min(day for day in days if day is not None)]
        cls.ids = {field.name: field.field_id for field in cls.table.schema().fields}

    @classmethod
    def tearDownClass(cls):
        cls.home.cleanup()

    def faults(self, **changes):
        names = ("content", "file_path", "file_size_in_bytes", "record_count", "partition", "spec_id", "split_offsets",
                 "value_counts", "null_value_counts", "nan_value_counts", "lower_bounds", "upper_bounds")
        file = types.SimpleNamespace(**{name: copy.copy(getattr(self.file, name)) for name in names})
        file.spec_id = self.file.spec_id
        for name, change in changes.items():
            setattr(file, name, change(getattr(file, name)))
        return list(footers.check_file(self.table, self.snapshot, file))

    def check(self, expected, **changes):
        found = self.faults(**changes)
        self.assertTrue(any(expected in fault for fault in found), (expected, found))

    def with_value(self, column, value):
        return lambda counts: {**counts, self.ids[column]: value}

    def without(self, column):
        return lambda counts: {key: value for key, value in counts.items() if key != self.ids[column]}

    def test_a_right_table_has_no_fault(self):
        self.assertEqual(list(footers.check(self.table)), [])
        self.assertEqual(self.faults(), [])

    def test_each_wrong_statistic_is_seen(self):
        long_note = sample.NOTE.encode()
        for expected, changes in (
            ("file_size_in_bytes: says", {"file_size_in_bytes": lambda size: size + 1}),
            ("record_count: says 2, the file has 1", {"record_count": lambda count: count + 1}),
            ("split_offsets: says [5]", {"split_offsets": lambda _: [5]}),
            ("partition _kafka_timestamp_day: says 0", {"partition": lambda _: [0]}),
            ("partition _kafka_timestamp_day: says None", {"partition": lambda _: [None]}),
            ("value_count: says 2", {"value_counts": self.with_value("id", 2)}),
            ("value_count: says None", {"value_counts": self.without("id")}),
            ("value_count: says 1, the file has 0", {"null_value_counts": self.with_value("id", 1)}),
            ("nan_value_count: says 0", {"nan_value_counts": self.with_value("weight", 0)}),
            ("lower bound: missing", {"lower_bounds": self.without("id")}),
            ("bounds: missing", {"lower_bounds": self.without("note")}),
            ("upper bound: says 5", {"upper_bounds": self.with_value("id", (5).to_bytes(8, "little"))}),
            ("lower bound: says", {"lower_bounds": self.with_value("_kafka_timestamp", (5).to_bytes(8, "little"))}),
            ("lower bound: says 1, the values reach -1", {"lower_bounds": self.with_value("day", (1).to_bytes(4, "little"))}),
            ("lower bound: says False", {"lower_bounds": self.with_value("paid", b"\0")}),
            ("lower bound: says 0.09", {"lower_bounds": self.with_value("price", b"\x09")}),
            ("bounds: says", {"lower_bounds": self.with_value("weight", bytes(8))}),
            ("lower bound: says b'naj", {"lower_bounds": self.with_value("note", b"naj" + b"o" * 20)}),
            ("lower bound: says b'na'", {"lower_bounds": self.with_value("note", b"na")}),
            ("upper bound: says", {"upper_bounds": self.with_value("note", long_note[:17])}),
            ("are not UTF-8", {"upper_bounds": self.with_value("note", long_note[:19])}),
            ("upper bound: says b'z'", {"upper_bounds": self.with_value("raw", b"z")}),
            ("upper_bounds: names fields [99]", {"upper_bounds": lambda bounds: {**bounds, 99: b"\0"}}),
        ):
            with self.subTest(expected):
                self.check(expected, **changes)

    def test_a_truncated_bound_is_right_when_it_is_close(self):
        self.assertEqual(self.faults(upper_bounds=self.with_value("note", sample.NOTE[:7].encode() + b"~")), [])
        self.assertEqual(self.faults(lower_bounds=self.with_value("note", sample.NOTE.encode()[:16])), [])

    def test_totals_and_manifest_counts_are_compared(self):
        manifest = self.snapshot.manifests(self.table.io)[0]
        entries = manifest.fetch_manifest_entry(self.table.io)
        self.assertEqual(list(footers.check_manifest("m", manifest, entries)), [])
        self.assertIn("the manifest holds", "".join(footers.check_manifest("m", manifest, entries[1:])))


def golden_of(home, content):
    path = pathlib.Path(home) / "golden.json"
    path.write_text(json.dumps(content), encoding="utf-8")
    return Golden(path)


if __name__ == "__main__":
    unittest.main()
