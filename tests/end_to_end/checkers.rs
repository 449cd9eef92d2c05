//! Tests of the tests: the checkers that judge our tables, on a warehouse that we did not make.

use std::fs;

use anyhow::Result;
use frazil_tests::{Reader, compare, compare_table, footers, run_python, sample_warehouse};

#[test]
fn each_broken_value_and_statistic_is_seen() -> Result<()> {
    run_python("readers", "test_compare.py", &["-q"])?;
    Ok(())
}

#[test]
fn environments_are_made_once_and_say_what_is_missing() -> Result<()> {
    run_python("readers", "test_environment.py", &["-q"])?;
    Ok(())
}

#[test]
fn the_checkers_accept_what_another_writer_made() -> Result<()> {
    let home = tempfile::tempdir()?;
    let golden = sample_warehouse(home.path())?;
    for reader in [Reader::PyIceberg, Reader::DuckDb] {
        assert!(
            compare(reader, home.path(), &[&golden])?
                .contains("4 rows, 18 columns, 1 dead letters: all equal")
        );
    }
    assert!(footers(home.path(), "kafka.orders")?.contains("4 files: all as the manifests say"));
    Ok(())
}

#[test]
fn a_difference_is_an_error_that_shows_it() -> Result<()> {
    let home = tempfile::tempdir()?;
    let golden = sample_warehouse(home.path())?;
    let fault = compare_table(Reader::DuckDb, home.path(), "kafka.orders_dead_letters", &golden).unwrap_err();
    assert!(fault.to_string().contains("column price: missing"), "{fault}");
    assert!(fault.to_string().contains("more differences"), "{fault}");
    Ok(())
}

#[test]
#[ignore = "slow: Spark starts twice"]
fn spark_sees_a_broken_value_and_accepts_right_ones() -> Result<()> {
    let home = tempfile::tempdir()?;
    let golden = sample_warehouse(home.path())?;
    compare(Reader::Spark, home.path(), &[&golden])?;

    let broken = home.path().join("broken.json");
    fs::write(
        &broken,
        fs::read_to_string(&golden)?
            .replace("Z\\u00fcrich", "Zurich")
            .replace("-0.10", "-0.11"),
    )?;
    let fault = compare(Reader::Spark, home.path(), &[&golden, &broken])
        .unwrap_err()
        .to_string();
    assert!(
        fault.contains("spark: kafka.orders: 4 rows, 18 columns, 1 dead letters: all equal"),
        "{fault}"
    );
    assert!(
        fault.contains(r#"price: expected "-0.11", found "-0.10""#),
        "{fault}"
    );
    assert!(fault.contains("where.city: expected"), "{fault}");
    Ok(())
}
