"""The warehouse, as far as a reader needs it: where a table's current metadata.json is, and what is in it. A directory
with SQLite, or `s3://…` with Glue, at the endpoint and with the keys of the environment, as AWS's own tools have them."""

import functools
import json
import os
import pathlib
import sqlite3
import urllib.parse

CATALOG = "frazil"


def is_on_s3(warehouse):
    return str(warehouse).startswith("s3://")


@functools.lru_cache
def aws(service):
    import boto3  # local warehouses need none

    return boto3.client(service)


def s3_settings():
    """Endpoint and keys, for readers that do not look into the environment."""
    return {
        "endpoint": os.environ["AWS_ENDPOINT_URL"],
        "access-key-id": os.environ["AWS_ACCESS_KEY_ID"],
        "secret-access-key": os.environ["AWS_SECRET_ACCESS_KEY"],
        "region": os.environ["AWS_REGION"],
    }


def database(warehouse):
    """The catalog's SQLite file. FileNotFoundError when `warehouse` has none."""
    file = pathlib.Path(warehouse).resolve() / "catalog.db"
    if not file.is_file():
        raise FileNotFoundError(f"{warehouse} is no warehouse: it has no catalog.db")
    return file


def metadata_location(warehouse, table):
    """The location that the catalog holds for `table`, or None."""
    namespace, name = table.rsplit(".", 1)
    if is_on_s3(warehouse):
        try:
            found = aws("glue").get_table(DatabaseName=namespace, Name=name)["Table"]
        except aws("glue").exceptions.EntityNotFoundException:
            return None
        return found["Parameters"]["metadata_location"]
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
    location = metadata_location(warehouse, table)
    if is_on_s3(location):
        bucket, key = location.removeprefix("s3://").split("/", 1)
        return json.loads(aws("s3").get_object(Bucket=bucket, Key=key)["Body"].read())
    return json.loads(local_path(location).read_text(encoding="utf-8"))
