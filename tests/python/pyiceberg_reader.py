"""PyIceberg, through its own SQLite catalog, or its own Glue catalog."""

import functools

from pyiceberg.catalog import load_catalog
from pyiceberg.catalog.sql import SqlCatalog
from pyiceberg.expressions import And, GreaterThanOrEqual, LessThan
from pyiceberg.types import ListType, MapType, StructType, TimestamptzType

from warehouse import CATALOG, database, is_on_s3, s3_settings


class Reader:
    def __init__(self, warehouse):
        if is_on_s3(warehouse):
            settings = {f"s3.{name}": value for name, value in s3_settings().items()}
            self.catalog = load_catalog(CATALOG, type="glue", **settings)
            return
        self.catalog = SqlCatalog(
            CATALOG, uri=f"sqlite:///{database(warehouse)}", warehouse=f"file://{warehouse}",
            init_catalog_tables="false",
        )

    @functools.lru_cache
    def table(self, table):
        return self.catalog.load_table(table)

    def exists(self, table):
        return self.catalog.table_exists(table)

    def columns(self, table):
        return {field.name: type_of(field.field_type) for field in self.table(table).schema().fields}

    def rows(self, table):
        return self.table(table).scan().to_arrow().to_pylist()

    def partitions(self, table):
        if self.table(table).current_snapshot() is None:
            return []
        partitions = self.table(table).inspect.partitions().to_pylist()
        return [(partition.get("partition") or {}, partition["record_count"]) for partition in partitions]

    def count_between(self, table, column, first, end):
        kind = self.table(table).schema().find_type(column)
        zone = "+00:00" if isinstance(kind, TimestamptzType) else ""
        first, end = f"{first}T00:00:00{zone}", f"{end}T00:00:00{zone}"
        rows = And(GreaterThanOrEqual(column, first), LessThan(column, end))
        return self.table(table).scan(row_filter=rows, selected_fields=(column,)).to_arrow().num_rows

    @staticmethod
    def sees(kind):
        return kind

    @classmethod
    def sees_value(cls, kind, value):
        """PyIceberg 0.12 makes an absent list or map of structs an empty one (`ArrowProjectionVisitor.list`)."""
        if isinstance(kind, str):
            return value
        if kind[0] == "struct":
            return value and {name: cls.sees_value(inner, value[name]) for name, inner in kind[1].items()}
        if value is None:
            return [] if kind[-1][0] == "struct" else None
        if kind[0] == "list":
            return [cls.sees_value(kind[1], item) for item in value]
        return [[key, cls.sees_value(kind[2], item)] for key, item in value]


def type_of(kind):
    if isinstance(kind, StructType):
        return ("struct", {field.name: type_of(field.field_type) for field in kind.fields})
    if isinstance(kind, ListType):
        return ("list", type_of(kind.element_type))
    if isinstance(kind, MapType):
        return ("map", type_of(kind.key_type), type_of(kind.value_type))
    return str(kind)
