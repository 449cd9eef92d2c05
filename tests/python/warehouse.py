"""The local warehouse, as far as a reader needs it: where a table's current metadata.json is. No library but SQLite's."""

import json
import pathlib
import sqlite3
import urllib.parse

CATALOG = "frazil"


def database(warehouse):
    """The catalog's SQLite file. FileNotFoundError when `warehouse` has none."""
    file = pathlib.Path(warehouse).resolve() / "catalog.db"
    if not file.is_file():
        raise FileNotFoundError(f"{warehouse} is no warehouse: it has no catalog.db")
    return file


def metadata_location(warehouse, table):
    """The location that the catalog holds for `table`, or None."""
    namespace, name = table.rsplit(".", 1)
    connection = sqlite3.connect(f"{database(warehouse).as_uri()}?mode=ro", uri=True)
    try:
        found = connection.execute(
            "select metadata_location from iceberg_tables"
            " where catalog_name = ? and table_namespace = ? and table_name = ?",
            (CATALOG, namespace, name),
        ).fetchone()
    finally:
        connection.close()
    return found and found[0]


def local_path(location):
    """The file behind a location of the form file:///…"""
    parts = urllib.parse.urlsplit(location)
    if parts.scheme not in ("", "file"):
        raise ValueError(f"{location} is not on this machine")
    return pathlib.Path(urllib.parse.unquote(parts.path))


def metadata(warehouse, table):
    return json.loads(local_path(metadata_location(warehouse, table)).read_text(encoding="utf-8"))
