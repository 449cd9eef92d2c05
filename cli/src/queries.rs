use std::path::PathBuf;

use frazil_core::TableName;
use frazil_local::CATALOG_NAME;
use serde::Serialize;

use crate::document::indented;

/// The newest Iceberg runtime that was tested, for the line that starts Spark.
const ICEBERG_VERSION: &str = "1.10.2";
const SQLITE_DRIVER: &str = "org.xerial:sqlite-jdbc:3.50.3.0";

/// How other engines reach the catalog.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Reached {
    /// By its file, an absolute path.
    Sqlite { database: PathBuf },
    /// With credentials of AWS.
    Glue {
        region: Option<String>,
        catalog_id: Option<String>,
    },
}

/// Lines to copy that query a table with other engines.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub(crate) struct Queries {
    #[serde(skip_serializing_if = "Option::is_none")]
    athena: Option<String>,
    duckdb: String,
    pyiceberg: String,
    spark: String,
}

impl Queries {
    /// `warehouse` is its location, absolute.
    pub(crate) fn new(
        table: &TableName,
        metadata_location: &str,
        reached: &Reached,
        warehouse: &str,
    ) -> Self {
        match reached {
            Reached::Sqlite { database } => Self::of_sqlite(
                table,
                metadata_location,
                &database.display().to_string(),
                warehouse,
            ),
            Reached::Glue { region, catalog_id } => Self::of_glue(
                table,
                metadata_location,
                region.as_deref(),
                catalog_id.as_deref(),
                warehouse,
            ),
        }
    }

    fn of_sqlite(table: &TableName, metadata_location: &str, database: &str, warehouse: &str) -> Self {
        let metadata = metadata_location
            .strip_prefix("file://")
            .unwrap_or(metadata_location);
        Self {
            athena: None,
            duckdb: format!("INSTALL iceberg; LOAD iceberg;\n{}", iceberg_scan(metadata)),
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
            spark: spark(
                table,
                &[SQLITE_DRIVER],
                &[
                    (".type", "jdbc"),
                    (".uri", &format!("jdbc:sqlite:{database}")),
                    (".jdbc.schema-version", "V0"),
                    (".warehouse", warehouse),
                ],
            ),
        }
    }

    fn of_glue(
        table: &TableName,
        metadata_location: &str,
        region: Option<&str>,
        catalog_id: Option<&str>,
        warehouse: &str,
    ) -> Self {
        let mut properties = String::new();
        let mut settings = vec![
            (".type", "glue"),
            (".warehouse", warehouse),
            (".io-impl", "org.apache.iceberg.aws.s3.S3FileIO"),
        ];
        for (name, spark_name, value) in [
            ("client.region", ".client.region", region),
            ("glue.id", ".glue.id", catalog_id),
        ] {
            if let Some(value) = value {
                properties.push_str(&format!(", {}: {}", python(name), python(value)));
                settings.push((spark_name, value));
            }
        }
        Self {
            athena: Some(format!(
                "SELECT * FROM \"{}\".\"{}\" LIMIT 10;\n",
                table.namespace(),
                table.table()
            )),
            duckdb: format!(
                "INSTALL iceberg; LOAD iceberg; INSTALL aws; LOAD aws;\n\
                 CREATE SECRET (TYPE s3, PROVIDER credential_chain);\n{}",
                iceberg_scan(metadata_location)
            ),
            pyiceberg: format!(
                "# pip install \"pyiceberg[pyarrow,glue]\"\n\
                 from pyiceberg.catalog import load_catalog\n\
                 catalog = load_catalog({}, **{{\"type\": \"glue\"{properties}}})\n\
                 catalog.load_table({}).scan(limit=10).to_arrow()\n",
                python(CATALOG_NAME),
                python(&table.to_string()),
            ),
            spark: spark(
                table,
                &[&format!(
                    "org.apache.iceberg:iceberg-aws-bundle:{ICEBERG_VERSION}"
                )],
                &settings,
            ),
        }
    }

    pub(crate) fn to_text(&self) -> String {
        let athena = self.athena.as_deref().map(indented);
        let athena = athena.map_or(String::new(), |query| format!("Athena\n{query}\n"));
        format!(
            "{athena}DuckDB\n{}\nPyIceberg\n{}\nSpark\n{}",
            indented(&self.duckdb),
            indented(&self.pyiceberg),
            indented(&self.spark)
        )
    }
}

fn iceberg_scan(metadata: &str) -> String {
    format!(
        "SELECT * FROM iceberg_scan('{}') LIMIT 10;\n",
        metadata.replace('\'', "''")
    )
}

fn spark(table: &TableName, packages: &[&str], settings: &[(&str, &str)]) -> String {
    let runtime = format!("org.apache.iceberg:iceberg-spark-runtime-3.5_2.12:{ICEBERG_VERSION}");
    let packages = [&[runtime.as_str()], packages].concat().join(",");
    let mut line = format!("spark-sql --packages {packages} \\\n");
    for (key, value) in [("", "org.apache.iceberg.spark.SparkCatalog")]
        .iter()
        .chain(settings)
    {
        let setting = shell(&format!("spark.sql.catalog.{CATALOG_NAME}{key}={value}"));
        line.push_str(&format!("  --conf {setting} \\\n"));
    }
    let select = format!("SELECT * FROM {CATALOG_NAME}.{table} LIMIT 10");
    line.push_str(&format!("  -e {}\n", shell(&select)));
    line
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
            &Reached::Sqlite {
                database: "/data/w/catalog.db".into(),
            },
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
    fn lines_for_glue_name_region_and_catalog() {
        let table = TableName::new("kafka", "orders").unwrap();
        let reached = Reached::Glue {
            region: Some("eu-central-1".to_owned()),
            catalog_id: Some("111122223333".to_owned()),
        };
        let queries = Queries::new(&table, "s3://lake/w/m.json", &reached, "s3://lake/w");
        assert_eq!(
            queries.to_text(),
            r#"Athena
  SELECT * FROM "kafka"."orders" LIMIT 10;

DuckDB
  INSTALL iceberg; LOAD iceberg; INSTALL aws; LOAD aws;
  CREATE SECRET (TYPE s3, PROVIDER credential_chain);
  SELECT * FROM iceberg_scan('s3://lake/w/m.json') LIMIT 10;

PyIceberg
  # pip install "pyiceberg[pyarrow,glue]"
  from pyiceberg.catalog import load_catalog
  catalog = load_catalog("frazil", **{"type": "glue", "client.region": "eu-central-1", "glue.id": "111122223333"})
  catalog.load_table("kafka.orders").scan(limit=10).to_arrow()

Spark
  spark-sql --packages org.apache.iceberg:iceberg-spark-runtime-3.5_2.12:1.10.2,org.apache.iceberg:iceberg-aws-bundle:1.10.2 \
    --conf spark.sql.catalog.frazil=org.apache.iceberg.spark.SparkCatalog \
    --conf spark.sql.catalog.frazil.type=glue \
    --conf spark.sql.catalog.frazil.warehouse=s3://lake/w \
    --conf spark.sql.catalog.frazil.io-impl=org.apache.iceberg.aws.s3.S3FileIO \
    --conf spark.sql.catalog.frazil.client.region=eu-central-1 \
    --conf spark.sql.catalog.frazil.glue.id=111122223333 \
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
            &Reached::Sqlite {
                database: "/it's/catalog.db".into(),
            },
            "file:///it's",
        );
        assert!(queries.duckdb.contains("iceberg_scan('/it''s/m.json')"));
    }
}
