"""Spark with Iceberg's own runtime, opening the same SQLite catalog."""

import datetime
import functools
import glob
import importlib.util
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time

from warehouse import CATALOG, database

INSTALL = "apt-get install -y openjdk-17-jre-headless libxerial-sqlite-jdbc-java"
DRIVER = "/usr/share/java/xerial-sqlite-jdbc.jar"
DRIVER_MEMORY = "2g"  # bounds the whole run: driver and executor are one process
TYPES = {
    "boolean": "boolean", "integer": "int", "long": "long", "float": "float", "double": "double", "string": "string",
    "binary": "binary", "date": "date", "timestamp": "timestamptz", "timestamp_ntz": "timestamp",
}


class Reader:
    def __init__(self, warehouse):
        java, native = find_java(), find_driver()
        # Spark hands out instants in the local zone of this process, without saying so.
        os.environ.update(TZ="UTC", JAVA_HOME=java)
        time.tzset()
        from pyspark.sql import SparkSession
        from pyspark.sql.types import TimestampType

        # Its own way through `fromtimestamp` ends within the first and the last year.
        TimestampType.fromInternal = instant
        package = os.path.dirname(importlib.util.find_spec("snowpark_connect_deps_iceberg").origin)
        runtime = glob.glob(f"{package}/jars/iceberg-spark-runtime-3.5_2.12-*.jar")[0]
        catalog = f"spark.sql.catalog.{CATALOG}"
        settings = {
            "spark.jars": f"{runtime},{DRIVER}",
            "spark.driver.extraClassPath": DRIVER,
            "spark.driver.memory": DRIVER_MEMORY,
            "spark.driver.extraJavaOptions": f"-Dorg.sqlite.lib.path={native}",
            "spark.driver.host": "127.0.0.1",
            "spark.driver.bindAddress": "127.0.0.1",
            "spark.local.dir": tempfile.gettempdir(),
            "spark.ui.enabled": "false",
            "spark.ui.showConsoleProgress": "false",
            "spark.sql.session.timeZone": "UTC",
            "spark.sql.extensions": "org.apache.iceberg.spark.extensions.IcebergSparkSessionExtensions",
            catalog: "org.apache.iceberg.spark.SparkCatalog",
            f"{catalog}.type": "jdbc",
            f"{catalog}.uri": f"jdbc:sqlite:{database(warehouse)}",
            f"{catalog}.warehouse": f"file://{warehouse}",
            f"{catalog}.jdbc.schema-version": "V0",
        }
        builder = SparkSession.builder.master("local[2]")
        for key, value in settings.items():
            builder = builder.config(key, value)
        self.spark = builder.getOrCreate()
        self.spark.sparkContext.setLogLevel("ERROR")

    @functools.lru_cache
    def table(self, table):
        return self.spark.table(named(table))

    def exists(self, table):
        return self.spark.catalog.tableExists(named(table))

    def columns(self, table):
        return {field.name: type_of(field.dataType) for field in self.table(table).schema.fields}

    def rows(self, table):
        columns = self.table(table).schema.fields
        return [
            {field.name: python_value(field.dataType, value) for field, value in zip(columns, row)}
            for row in self.table(table).collect()
        ]

    def partitions(self, table):
        found = self.spark.table(f"{named(table)}.partitions")
        fields = "partition" if "partition" in found.columns else "struct()"
        rows = found.selectExpr(f"{fields} as partition", "record_count").collect()
        return [(row.partition.asDict() if row.partition else {}, row.record_count) for row in rows]

    def count_between(self, table, column, first, end):
        name = "`" + column.replace("`", "``") + "`"
        return self.table(table).where(f"{name} >= timestamp '{first}' and {name} < timestamp '{end}'").count()

    @staticmethod
    def sees(kind):
        return {"uuid": "string"}.get(kind, "binary" if kind.startswith("fixed") else kind)

    @staticmethod
    def sees_value(_kind, value):
        return value


def instant(_kind, micros):
    return None if micros is None else datetime.datetime(1970, 1, 1) + datetime.timedelta(microseconds=micros)


def find_java():
    """The home of a Java 17: Spark 3.5 does not run on the newest ones."""
    homes = [os.environ.get("JAVA_HOME"), *sorted(glob.glob("/usr/lib/jvm/java-17-openjdk-*"))]
    if shutil.which("java"):
        homes.append(os.path.dirname(os.path.dirname(os.path.realpath(shutil.which("java")))))
    for home in filter(None, homes):
        java = os.path.join(home, "bin", "java")
        if os.path.exists(java):
            said = subprocess.run([java, "-version"], capture_output=True, text=True, timeout=60).stderr
            if re.search(r'version "17\.', said):
                return home
    sys.exit(f"the Spark reader needs Java 17, and there is none in JAVA_HOME, /usr/lib/jvm or PATH: {INSTALL}")


def find_driver():
    """The directory of the native half of SQLite's Java driver."""
    native = glob.glob("/usr/lib/*/jni/libsqlitejdbc.so")
    if not os.path.exists(DRIVER) or not native:
        sys.exit(f"the Spark reader needs SQLite's driver for Java, and {DRIVER} is not there: {INSTALL}")
    return os.path.dirname(native[0])


def named(table):
    return ".".join(f"`{part}`" for part in (CATALOG, *table.split(".")))


def type_of(kind):
    name = kind.typeName()
    if name == "struct":
        return ("struct", {field.name: type_of(field.dataType) for field in kind.fields})
    if name == "array":
        return ("list", type_of(kind.elementType))
    if name == "map":
        return ("map", type_of(kind.keyType), type_of(kind.valueType))
    if name == "decimal":
        return f"decimal({kind.precision}, {kind.scale})"
    return TYPES.get(name, name)


def python_value(kind, value):
    """Rows become dictionaries, and instants get the zone that Spark left out."""
    if value is None:
        return None
    name = kind.typeName()
    if name == "struct":
        return {field.name: python_value(field.dataType, item) for field, item in zip(kind.fields, value)}
    if name == "array":
        return [python_value(kind.elementType, item) for item in value]
    if name == "map":
        return [(key, python_value(kind.valueType, item)) for key, item in value.items()]
    return value.replace(tzinfo=datetime.timezone.utc) if name == "timestamp" else value


if __name__ == "__main__":
    # Says what is missing, before anything that takes long.
    find_java(), find_driver()
