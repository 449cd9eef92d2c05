//! Rules of the house that a compiler does not check.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, ensure};
use frazil_tests::repository;
use serde_json::Value;

/// Who may use whom, as the table “Folders” of ARCHITECTURE.md says. What is not here may use nothing of ours.
const ARROWS: [(&str, &[&str]); 15] = [
    ("frazil-core", &[]),
    ("frazil-config", &["frazil-core"]),
    ("frazil-telemetry", &["frazil-core"]),
    ("frazil-kafka", &["frazil-core"]),
    ("frazil-schema", &["frazil-core"]),
    ("frazil-registry", &["frazil-core", "frazil-kafka"]),
    ("frazil-codec", &["frazil-core", "frazil-schema"]),
    ("frazil-table", &["frazil-core", "frazil-schema"]),
    ("frazil-aws", &["frazil-core", "frazil-table", "frazil-registry"]),
    ("frazil-local", &["frazil-core", "frazil-table"]),
    (
        "frazil-deployment",
        &[
            "frazil-core",
            "frazil-config",
            "frazil-table",
            "frazil-telemetry",
            "frazil-aws",
            "frazil-local",
        ],
    ),
    ("frazil-ingest", SHARED),
    ("frazil-catalog", SHARED),
    ("frazil-compaction", SHARED),
    ("frazil-rest", SHARED),
];
const SHARED: &[&str] = &[
    "frazil-core",
    "frazil-config",
    "frazil-telemetry",
    "frazil-kafka",
    "frazil-schema",
    "frazil-registry",
    "frazil-codec",
    "frazil-table",
    "frazil-aws",
    "frazil-local",
    "frazil-deployment",
];
/// The command and the tests may use everything.
const ABOVE_ALL: [&str; 2] = ["frazil", "frazil-tests"];

/// Crates of others that only some of ours may see: a prefix of their names, and who may.
const FOREIGN: [(&str, &[&str]); 2] = [
    (
        "lambda_runtime",
        &[
            "frazil-ingest",
            "frazil-catalog",
            "frazil-compaction",
            "frazil-rest",
        ],
    ),
    ("aws-sdk-", &["frazil-aws"]),
];
/// These neither do I/O nor run anything: no tokio, no AWS.
const PURE: [&str; 4] = ["frazil-core", "frazil-schema", "frazil-codec", "frazil-kafka"];

/// Tests start the binaries. Were these built with other features than the tests, Cargo would build the world twice.
#[test]
fn tests_and_binaries_are_built_with_the_same_features() -> Result<()> {
    let of = |edges: &str| -> Result<BTreeMap<String, String>> {
        let mut cargo = Command::new(env!("CARGO"));
        cargo.args([
            "tree",
            "--workspace",
            "--locked",
            "--prefix",
            "none",
            "--format",
            "{p}|{f}",
            "-e",
            edges,
        ]);
        let done = cargo.current_dir(repository()).output()?;
        ensure!(done.status.success(), "{}", String::from_utf8_lossy(&done.stderr));
        let lines = String::from_utf8(done.stdout)?;
        let packages = lines
            .lines()
            .filter_map(|line| line.trim_end_matches(" (*)").split_once('|'));
        Ok(packages
            .map(|(package, features)| (package.to_owned(), features.to_owned()))
            .collect())
    };
    let tests = of("normal,build,dev")?;
    for (package, features) in of("normal,build")? {
        assert_eq!(
            tests.get(&package),
            Some(&features),
            "{package} has other features in tests: name those in the workspace or in tests/Cargo.toml"
        );
    }
    Ok(())
}

#[test]
fn packages_depend_only_along_the_arrows() -> Result<()> {
    let wrong = wrong_arrows(&dependencies(&workspace_metadata()?)?);
    ensure!(wrong.is_empty(), "{}", wrong.join("\n"));
    Ok(())
}

#[test]
fn an_arrow_against_the_table_is_seen() {
    for (package, dependency, expected) in [
        (
            "frazil-core",
            "frazil-kafka",
            Some("frazil-core may not use frazil-kafka"),
        ),
        (
            "frazil-ingest",
            "frazil-catalog",
            Some("frazil-ingest may not use frazil-catalog"),
        ),
        (
            "frazil-table",
            "frazil-local",
            Some("frazil-table may not use frazil-local"),
        ),
        (
            "frazil-new",
            "frazil-core",
            Some("frazil-new is not in the table of folders"),
        ),
        (
            "frazil-local",
            "aws-sdk-s3",
            Some("frazil-local may not use aws-sdk-s3"),
        ),
        (
            "frazil",
            "lambda_runtime",
            Some("frazil may not use lambda_runtime"),
        ),
        ("frazil-codec", "tokio", Some("frazil-codec may not use tokio")),
        (
            "frazil-kafka",
            "aws_lambda_events",
            Some("frazil-kafka may not use aws_lambda_events"),
        ),
        ("frazil-table", "tokio", None),
        ("frazil-tests", "frazil-ingest", None),
        ("frazil-ingest", "lambda_runtime", None),
    ] {
        let packages = BTreeMap::from([(package.to_owned(), BTreeSet::from([dependency.to_owned()]))]);
        assert_eq!(
            wrong_arrows(&packages),
            Vec::from_iter(expected.map(str::to_owned))
        );
    }
}

fn wrong_arrows(packages: &BTreeMap<String, BTreeSet<String>>) -> Vec<String> {
    let mut wrong = Vec::new();
    for (package, dependencies) in packages {
        let name = package.as_str();
        let arrows = ARROWS.iter().find(|(from, _)| *from == name).map(|(_, to)| *to);
        if arrows.is_none() && !ABOVE_ALL.contains(&name) {
            wrong.push(format!("{name} is not in the table of folders"));
            continue;
        }
        for dependency in dependencies.iter().map(String::as_str) {
            let allowed = if dependency.starts_with("frazil") {
                arrows.is_none_or(|arrows| arrows.contains(&dependency))
            } else if let Some((_, users)) = FOREIGN.iter().find(|(prefix, _)| dependency.starts_with(prefix))
            {
                users.contains(&name)
            } else {
                !(PURE.contains(&name) && (dependency == "tokio" || dependency.starts_with("aws")))
            };
            if !allowed {
                wrong.push(format!("{name} may not use {dependency}"));
            }
        }
    }
    wrong
}

/// The packages of the workspace with what they use when they run (tests may use more).
fn dependencies(metadata: &Value) -> Result<BTreeMap<String, BTreeSet<String>>> {
    let packages = metadata["packages"]
        .as_array()
        .context("cargo metadata has no packages")?;
    let mut found = BTreeMap::new();
    for package in packages {
        let name = package["name"].as_str().context("a package has no name")?;
        let used = package["dependencies"]
            .as_array()
            .context("a package has no dependencies")?;
        let used = used
            .iter()
            .filter(|used| used["kind"] != "dev")
            .filter_map(|used| used["name"].as_str());
        found.insert(name.to_owned(), used.map(str::to_owned).collect());
    }
    ensure!(
        found.len() > ABOVE_ALL.len(),
        "cargo metadata lists only {:?}",
        found.keys()
    );
    Ok(found)
}

fn workspace_metadata() -> Result<Value> {
    let mut cargo = Command::new(env!("CARGO"));
    cargo
        .args(["metadata", "--no-deps", "--format-version", "1", "--offline"])
        .current_dir(repository());
    let output = cargo.output()?;
    ensure!(
        output.status.success(),
        "cargo metadata: {}",
        String::from_utf8_lossy(&output.stderr)
    );
    Ok(serde_json::from_slice(&output.stdout)?)
}

#[test]
fn only_slow_tests_are_left_out_of_the_fast_suite() -> Result<()> {
    for source in all_sources()? {
        for (number, line) in fs::read_to_string(&source)?.lines().enumerate() {
            let line = line.trim_start();
            let ignores =
                line.starts_with("#[ignore") || line.starts_with("#[cfg_attr") && line.contains("ignore");
            ensure!(
                !ignores || line.starts_with("#[ignore = \"slow: "),
                "{}:{}: {line}: a test is left out only as #[ignore = \"slow: why\"], which the slow suite runs",
                source.display(),
                number + 1,
            );
        }
    }
    Ok(())
}

/// Every code that an error may carry to a dead letter is in the one list of them.
#[test]
fn every_code_is_documented() -> Result<()> {
    let mut sources = Vec::new();
    for folder in ["shared", "functions"] {
        rust_sources(&repository().join(folder), &mut sources)?;
    }
    let listed = fs::read_to_string(repository().join("docs/dead-letter-codes.md"))?;
    let languages = [
        "avro", "json", "protobuf", "raw", "record", "registry", "schema", "value", "wire",
    ];
    let mut missing = BTreeSet::new();
    for source in sources {
        let text = fs::read_to_string(source)?;
        for code in text.split('"').skip(1).step_by(2) {
            let is_code = code
                .split_once('.')
                .is_some_and(|(language, what)| languages.contains(&language) && is_code_word(what));
            if is_code && !listed.contains(&format!("`{code}`")) {
                missing.insert(code.to_owned());
            }
        }
    }
    ensure!(
        missing.is_empty(),
        "docs/dead-letter-codes.md does not list {missing:?}"
    );
    Ok(())
}

/// `unknown_schema`: not the extension of a file, nor a table's name.
fn is_code_word(word: &str) -> bool {
    word.len() > 5 && word.bytes().all(|byte| byte.is_ascii_lowercase() || byte == b'_')
}

fn all_sources() -> Result<Vec<PathBuf>> {
    let mut sources = Vec::new();
    for folder in ["shared", "functions", "cli", "tests"] {
        rust_sources(&repository().join(folder), &mut sources)?;
    }
    ensure!(sources.len() > 10, "only {sources:?} were found");
    Ok(sources)
}

fn rust_sources(folder: &Path, found: &mut Vec<PathBuf>) -> Result<()> {
    for entry in fs::read_dir(folder)? {
        let path = entry?.path();
        if path.is_dir() {
            rust_sources(&path, found)?;
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            found.push(path);
        }
    }
    Ok(())
}

/// What `docs/testing.md` lists as readers of bytes from outside.
fn fuzzed_files() -> Result<Vec<PathBuf>> {
    let text = fs::read_to_string(repository().join("docs/testing.md"))?;
    let (_, table) = text.split_once("| reads | tests |").context("no table")?;
    let (table, _) = table.split_once("\n\n").context("no end of the table")?;
    let mut files: Vec<PathBuf> = Vec::new();
    for named in table
        .split('`')
        .skip(1)
        .step_by(2)
        .filter(|named| named.ends_with(".rs"))
    {
        // Without a folder, it is that of the file before.
        let folder = files
            .last()
            .and_then(|last| last.parent())
            .unwrap_or(Path::new(""));
        files.push(if named.contains('/') {
            named.into()
        } else {
            folder.join(named)
        });
    }
    Ok(files)
}

#[test]
fn whatever_reads_from_outside_gets_arbitrary_and_mutated_bytes() -> Result<()> {
    let files = fuzzed_files()?;
    ensure!(files.len() >= 14, "only {} files in the table", files.len());
    for file in files {
        let text =
            fs::read_to_string(repository().join(&file)).with_context(|| file.display().to_string())?;
        let tests: Vec<&str> = text
            .split("proptest! {")
            .skip(1)
            .flat_map(|tests| tests.split("fn ").skip(1))
            .filter_map(|test| test.split('(').next())
            .collect();
        let kinds = ["mutated", "arbitrary"].map(|kind| tests.iter().any(|test| test.contains(kind)));
        ensure!(kinds == [true, true], "{}: {tests:?}", file.display());
    }
    Ok(())
}

#[test]
fn no_property_test_sets_its_number_of_cases() -> Result<()> {
    for source in all_sources()? {
        // In two parts, not to find this line.
        let configured = concat!("Proptest", "Config");
        ensure!(
            !fs::read_to_string(&source)?.contains(configured),
            "{}: PROPTEST_CASES must reach every property test, and it does not reach those with a {configured}",
            source.display()
        );
    }
    Ok(())
}
