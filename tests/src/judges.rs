use std::ffi::OsStr;
use std::path::{Path, PathBuf};

use anyhow::Result;

use crate::python::run_python_with;
use crate::run_python;

/// Somebody else's reader of Iceberg tables.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reader {
    /// Through its own SQLite catalog.
    PyIceberg,
    /// From metadata.json; it reads the manifests as plain Avro.
    DuckDb,
    /// With Iceberg's Java library, through the same SQLite catalog. Needs Java 17 and takes half a minute to
    /// start: give it all golden results of a warehouse at once, in a slow test.
    Spark,
}

impl Reader {
    fn name(self) -> &'static str {
        match self {
            Self::PyIceberg => "pyiceberg",
            Self::DuckDb => "duckdb",
            Self::Spark => "spark",
        }
    }

    fn environment(self) -> &'static str {
        match self {
            Self::PyIceberg | Self::DuckDb => "readers",
            Self::Spark => "spark",
        }
    }
}

/// Compares the tables that golden files name with those files: types, all values, partitions, dead letters.
///
/// The error lists the first ten differences of each table.
pub fn compare(reader: Reader, warehouse: &Path, goldens: &[impl AsRef<Path>]) -> Result<String> {
    let mut arguments = vec![
        OsStr::new("--reader"),
        OsStr::new(reader.name()),
        warehouse.as_os_str(),
    ];
    arguments.extend(goldens.iter().map(|golden| golden.as_ref().as_os_str()));
    run_python(reader.environment(), "compare.py", &arguments)
}

/// As [`compare`], for a warehouse on S3, with what the process needs to reach it.
pub fn compare_on_s3(
    reader: Reader,
    warehouse: &str,
    goldens: &[impl AsRef<Path>],
    variables: &[(&str, &str)],
) -> Result<String> {
    let mut arguments = vec![
        OsStr::new("--reader"),
        OsStr::new(reader.name()),
        OsStr::new(warehouse),
    ];
    arguments.extend(goldens.iter().map(|golden| golden.as_ref().as_os_str()));
    run_python_with(reader.environment(), "compare.py", &arguments, variables)
}

/// As [`compare`], for a table that has another name than the golden file says.
pub fn compare_table(reader: Reader, warehouse: &Path, table: &str, golden: &Path) -> Result<String> {
    let (option, name) = (OsStr::new("--reader"), OsStr::new(reader.name()));
    let arguments = [
        option,
        name,
        OsStr::new("--table"),
        OsStr::new(table),
        warehouse.as_os_str(),
        golden.as_os_str(),
    ];
    run_python(reader.environment(), "compare.py", &arguments)
}

/// Compares what a table's manifests say about its data files (sizes, counts, bounds, partitions) with the files.
pub fn footers(warehouse: &Path, table: &str) -> Result<String> {
    run_python(
        "readers",
        "footers.py",
        &[warehouse.as_os_str(), OsStr::new(table)],
    )
}

/// Makes a warehouse with PyIceberg alone, for tests of the checkers, and returns its golden file.
pub fn sample_warehouse(warehouse: &Path) -> Result<PathBuf> {
    let golden = warehouse.join("golden.json");
    run_python("readers", "sample.py", &[warehouse, &golden])?;
    Ok(golden)
}
