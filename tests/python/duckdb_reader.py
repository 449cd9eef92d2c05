"""DuckDB, from metadata.json; partition values come from the manifests, which it reads as plain Avro."""

import glob
import importlib.util
import os
import re

import duckdb

from warehouse import database, is_on_s3, local_path, metadata, metadata_location, s3_settings

TYPES = {
    "BOOLEAN": "boolean", "INTEGER": "int", "BIGINT": "long", "FLOAT": "float", "DOUBLE": "double",
    "VARCHAR": "string", "UUID": "uuid", "BLOB": "binary", "DATE": "date", "TIME": "time", "TIMESTAMP": "timestamp",
    "TIMESTAMP WITH TIME ZONE": "timestamptz",
}


class Reader:
    def __init__(self, warehouse):
        self.warehouse = warehouse if is_on_s3(warehouse) else database(warehouse).parent
        self.connection = duckdb.connect(":memory:")
        self.connection.execute("set timezone = 'UTC'; set memory_limit = '2GB'; set threads = 2")
        for extension in ("avro", "iceberg"):
            self.connection.execute(f"load '{extension_path(extension)}'")
        if is_on_s3(warehouse):
            self.connection.execute(f"load '{extension_path('httpfs')}'")
            settings = s3_settings()
            scheme, host = settings["endpoint"].split("://")
            self.connection.execute(
                f"create secret (type s3, key_id '{settings['access-key-id']}', region '{settings['region']}',"
                f" secret '{settings['secret-access-key']}', endpoint '{host}', url_style 'path',"
                f" use_ssl {scheme == 'https'})"
            )

    def exists(self, table):
        return metadata_location(self.warehouse, table) is not None

    def scan(self, table):
        return f"iceberg_scan({quoted(metadata_location(self.warehouse, table))})"

    def columns(self, table):
        relation = self.connection.sql(f"select * from {self.scan(table)} limit 0")
        return {name: type_of(kind) for name, kind in zip(relation.columns, relation.types)}

    def rows(self, table):
        return self.connection.sql(f"select * from {self.scan(table)}").to_arrow_table().to_pylist()

    def partitions(self, table):
        content = metadata(self.warehouse, table)
        snapshots = {snapshot["snapshot-id"]: snapshot for snapshot in content.get("snapshots", [])}
        current = snapshots.get(content.get("current-snapshot-id"))
        if current is None:
            return []
        found = []
        for manifest in self.avro("manifest_path, content", current["manifest-list"]):
            if manifest[1] == 0:
                for status, partition, rows in self.avro(
                    "status, data_file.partition, data_file.record_count", manifest[0]
                ):
                    if status != 2:  # 2 is DELETED (Iceberg spec, Manifests)
                        found.append((partition or {}, rows))
        return found

    def avro(self, columns, location):
        file = quoted(location if is_on_s3(location) else str(local_path(location)))
        return self.connection.sql(f"select {columns} from read_avro({file})").fetchall()

    def count_between(self, table, column, first, end):
        name = '"' + column.replace('"', '""') + '"'
        query = f"select count(*) from {self.scan(table)} where {name} >= '{first}' and {name} < '{end}'"
        return self.connection.sql(query).fetchone()[0]

    @staticmethod
    def sees(kind):
        return "binary" if kind.startswith("fixed") else kind

    @staticmethod
    def sees_value(_kind, value):
        return value


def extension_path(name):
    package = f"duckdb_extension_{name}"
    home = os.path.dirname(importlib.util.find_spec(package).origin)
    return glob.glob(f"{home}/extensions/v{duckdb.__version__}/{name}.duckdb_extension")[0]


def quoted(text):
    return "'" + text.replace("'", "''") + "'"


def type_of(kind):
    if kind.id == "struct":
        return ("struct", {name: type_of(inner) for name, inner in kind.children})
    if kind.id == "list":
        return ("list", type_of(kind.children[0][1]))
    if kind.id == "map":
        return ("map", type_of(kind.children[0][1]), type_of(kind.children[1][1]))
    if kind.id == "decimal":
        precision, scale = re.fullmatch(r"DECIMAL\((\d+),\s*(\d+)\)", str(kind)).groups()
        return f"decimal({precision}, {scale})"
    return TYPES.get(str(kind), str(kind))
