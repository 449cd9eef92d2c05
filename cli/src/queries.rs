use std::path::Path;

use frazil_core::TableName;
use frazil_local::CATALOG_NAME;
use serde::Serialize;

use crate::document::indented;

/// The newest Iceberg runtime that was tested, for the line that starts Spark.
const SPARK_PACKAGES: &str =
    "org.apache.iceberg:iceberg-spark-runtime-3.5_2.12:1.10.2,org.xerial:sqlite-jdbc:3.50.3.0";

/// Lines to copy that query a table with other engines.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub(crate) struct Queries {
    duckdb: String,
    pyiceberg: String,
    spark: String,
}

impl Queries {
    /// `database` is the SQLite file of the catalog, `warehouse` its location; both absolute.
    pub(crate) fn new(table: &TableName, metadata_location: &str, database: &Path, warehouse: &str) -> Self {
        let database = database.display().to_string();
        let metadata = metadata_location
            .strip_prefix("file://")
            .unwrap_or(metadata_location);
        let conf = |key: &str, value: &str| {
            format!(
                "  --conf {} \\\n",
                shell(&format!("spark.sql.catalog.{CATALOG_NAME}{key}={value}"))
            )
        };
        let select = format!("SELECT * FROM {CATALOG_NAME}.{table} LIMIT 10");
        Self {
            duckdb: format!(
                "INSTALL iceberg; LOAD iceberg;\n\
                 SELECT * FROM iceberg_scan('{}') LIMIT 10;\n",
                metadata.replace('\'', "''")
            ),
            pyiceberg: format!(
                "# pip install \"pyiceberg[pyarrow,sql-sqlite]\"\n\
                 from pyiceberg.catalog.sql import SqlCatalog\n\
                 catalog = SqlCatalog({}, uri={}, warehouse={})\n\
                 catalog.load_table({}).scan(limit=10).to_arrow()\n",
                python(CATALOG_NAME),
                python(&format!("sqlite:///{database}")),
                python(warehouse),
                python(&table.to_string()),
            ),
            spark: [
                format!("spark-sql --packages {SPARK_PACKAGES} \\\n"),
                conf("", "org.apache.iceberg.spark.SparkCatalog"),
                conf(".type", "jdbc"),
                conf(".uri", &format!("jdbc:sqlite:{database}")),
                conf(".jdbc.schema-version", "V0"),
                conf(".warehouse", warehouse),
                format!("  -e {}\n", shell(&select)),
            ]
            .concat(),
        }
    }

    pub(crate) fn to_text(&self) -> String {
        format!(
            "DuckDB\n{}\nPyIceberg\n{}\nSpark\n{}",
            indented(&self.duckdb),
            indented(&self.pyiceberg),
            indented(&self.spark)
        )
    }
}

/// A Python string.
fn python(text: &str) -> String {
    format!("\"{}\"", text.replace('\\', "\\\\").replace('"', "\\\""))
}

/// A word for a POSIX shell, quoted where it needs to be.
fn shell(word: &str) -> String {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "_-./:=,@%+".contains(c);
    if word.chars().all(is_plain) {
        word.to_owned()
    } else {
        format!("'{}'", word.replace('\'', r"'\''"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_can_be_copied() {
        let table = TableName::new("kafka", "orders").unwrap();
        let metadata = "file:///data/w/kafka/orders-01/metadata/00001-a.metadata.json";
        let queries = Queries::new(
            &table,
            metadata,
            Path::new("/data/w/catalog.db"),
            "file:///data/w",
        );
        assert_eq!(
            queries.to_text(),
            r#"DuckDB
  INSTALL iceberg; LOAD iceberg;
  SELECT * FROM iceberg_scan('/data/w/kafka/orders-01/metadata/00001-a.metadata.json') LIMIT 10;

PyIceberg
  # pip install "pyiceberg[pyarrow,sql-sqlite]"
  from pyiceberg.catalog.sql import SqlCatalog
  catalog = SqlCatalog("frazil", uri="sqlite:////data/w/catalog.db", warehouse="file:///data/w")
  catalog.load_table("kafka.orders").scan(limit=10).to_arrow()

Spark
  spark-sql --packages org.apache.iceberg:iceberg-spark-runtime-3.5_2.12:1.10.2,org.xerial:sqlite-jdbc:3.50.3.0 \
    --conf spark.sql.catalog.frazil=org.apache.iceberg.spark.SparkCatalog \
    --conf spark.sql.catalog.frazil.type=jdbc \
    --conf spark.sql.catalog.frazil.uri=jdbc:sqlite:/data/w/catalog.db \
    --conf spark.sql.catalog.frazil.jdbc.schema-version=V0 \
    --conf spark.sql.catalog.frazil.warehouse=file:///data/w \
    -e 'SELECT * FROM frazil.kafka.orders LIMIT 10'
"#
        );
    }

    #[test]
    fn quotes_in_paths_survive() {
        assert_eq!(shell("a b"), "'a b'");
        assert_eq!(shell("it's"), r"'it'\''s'");
        assert_eq!(python(r#"a"b\"#), r#""a\"b\\""#);
        let table = TableName::new("kafka", "orders").unwrap();
        let queries = Queries::new(
            &table,
            "file:///it's/m.json",
            Path::new("/it's/catalog.db"),
            "file:///it's",
        );
        assert!(queries.duckdb.contains("iceberg_scan('/it''s/m.json')"));
    }
}
