//! S3 and Glue, as AWS's stand-in speaks them: the same promises as on a directory and SQLite.

use std::cell::Cell;
use std::process::{Command, Stdio};
use std::sync::Arc;

use anyhow::{Context, Result, ensure};
use frazil_aws::{AssumedRole, open_warehouse};
use frazil_core::{ErrorKind, NamespaceName};
use frazil_table::{CommitSettings, Warehouse, commit_table, conformance, system_environment};
use frazil_tests::simulation::{FaultPlan, Matrix, Trace};
use frazil_tests::{AwsServer, Reader, Scene, compare_on_s3, frazil, json_record, repository};
use serde_json::{Value, json};

use crate::faults::{World, check, ingest_and_commit};
use crate::processes::{INGESTS, cut};

async fn warehouse(server: &AwsServer, prefix: &str) -> Result<Warehouse> {
    let location = server.warehouse(prefix);
    Ok(open_warehouse(&location, &server.settings(), &system_environment()).await?)
}

#[tokio::test(flavor = "multi_thread")]
async fn s3_is_a_storage() -> Result<()> {
    let server = AwsServer::start()?;
    let warehouse = warehouse(&server, "w").await?;
    conformance::storage(warehouse.storage.clone(), &server.warehouse("w/objects")).await;
    // In parts.
    let large = vec![7_u8; 17 * 1024 * 1024 + 1];
    let location = server.warehouse("w/large");
    warehouse
        .storage
        .put(&location, large.clone().into(), Some("p0"))
        .await?;
    let found = warehouse.storage.get(&location, 1 << 30).await?;
    ensure!(found.as_deref() == Some(large.as_slice()));
    let head = warehouse.storage.head(&location).await?;
    ensure!(head.is_some_and(|head| head.attributes.as_deref() == Some("p0")));
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn s3_is_a_state_store() -> Result<()> {
    let server = AwsServer::start()?;
    conformance::state(warehouse(&server, "w").await?.states).await;
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn glue_is_a_catalog() -> Result<()> {
    let server = AwsServer::start()?;
    conformance::catalog(warehouse(&server, "w").await?.catalog, &server.warehouse("w")).await;
    Ok(())
}

/// Another account's catalog, by a role of it: what is made there is not in our own.
#[tokio::test(flavor = "multi_thread")]
async fn a_role_of_another_account_is_assumed() -> Result<()> {
    let server = AwsServer::start()?;
    let mut settings = server.settings();
    settings.account.role = Some(AssumedRole {
        arn: "arn:aws:iam::222222222222:role/frazil".to_owned(),
        external_id: Some("frazil-7f3a".to_owned()),
    });
    let theirs = open_warehouse(&server.warehouse("w"), &settings, &system_environment()).await?;
    let ours = warehouse(&server, "w").await?;
    let (their_name, our_name) = (NamespaceName::new("theirs"), NamespaceName::new("ours"));
    theirs.catalog.create_namespace(&their_name).await?;
    ours.catalog.create_namespace(&our_name).await?;
    ensure!(theirs.catalog.namespaces().await? == [their_name]);
    ensure!(ours.catalog.namespaces().await? == [our_name]);
    let asked = server.counts()?;
    ensure!(asked["CreateDatabase"] == 2, "{asked}");
    Ok(())
}

/// The same suites while S3 and Glue have no time for one request in five, or answer that they failed.
#[tokio::test(flavor = "multi_thread")]
async fn requests_that_are_not_carried_out_are_made_again() -> Result<()> {
    let server = AwsServer::start()?;
    let of = |operation, kind| json!({"operation": operation, "every": 5, "kind": kind});
    server.faults(&json!([
        of("UpdateTable", "throttled"),
        of("CreateTable", "throttled"),
        of("GetTable", "throttled"),
        of("GetTables", "refused"),
        of("GET", "throttled"),
        of("LIST", "refused"),
        of("HEAD", "refused"),
        of("DELETE", "refused"),
    ]))?;
    let warehouse = warehouse(&server, "w").await?;
    conformance::catalog(warehouse.catalog.clone(), &server.warehouse("w")).await;
    conformance::state(warehouse.states).await;
    Ok(())
}

/// I5: what may have happened is asked once, never again by the SDK: the second answer would be a conflict.
#[tokio::test(flavor = "multi_thread")]
async fn a_change_whose_answer_is_lost_is_not_repeated() -> Result<()> {
    let server = Arc::new(AwsServer::start()?);
    let scene = Scene::on_aws(&server, "w", FaultPlan::clean(Trace::default())).await?;
    scene.ingest(&[(0, vec![json_record(0, &[("id", "1")])])]).await?;
    let warehouse = &scene.warehouse;
    let table = warehouse.load_existing(&scene.table()).await?;
    let lost = |operation| json!([{"operation": operation, "every": 1, "kind": "lost"}]);

    server.faults(&lost("UpdateTable"))?;
    server.counts()?;
    let next = format!("{}/metadata/next.metadata.json", table.metadata.location());
    let swap = warehouse
        .catalog
        .swap(&table.name, &table.pointer, &next, &table.metadata);
    let error = swap.await.expect_err("its answer was lost");
    ensure!(error.kind() == ErrorKind::CommitUnknown, "{error:?}");
    let counts = server.counts()?;
    ensure!(counts["UpdateTable"] == 1, "{counts}");
    let pointer = warehouse
        .catalog
        .load(&table.name)
        .await?
        .context("the table is gone")?;
    ensure!(pointer.metadata_location == next, "{pointer:?}");

    server.faults(&lost("PUT"))?;
    server.counts()?;
    let error = warehouse.states.store("topic/s/t", "{}".into(), None).await;
    let error = error.expect_err("its answer was lost");
    ensure!(error.kind() == ErrorKind::Unavailable, "{error:?}");
    let counts = server.counts()?;
    ensure!(counts["PUT"] == 1, "{counts}");
    Ok(())
}

#[tokio::test]
async fn on_aws_a_sample_of_calls_goes_wrong_in_every_way() -> Result<()> {
    let server = Arc::new(AwsServer::start()?);
    let counter = Cell::new(0);
    let build = async |plan| {
        counter.set(counter.get() + 1);
        server.reset().unwrap();
        World::new(
            Scene::on_aws(&server, &counter.get().to_string(), plan)
                .await
                .unwrap(),
        )
    };
    // A prime, so that the sample does not always meet the same step.
    let matrix = Matrix::new("ingest and commit, on S3 and Glue").every(23);
    let coverage = matrix.run(build, ingest_and_commit, check).await;
    let coverage = coverage.unwrap_or_else(|message| panic!("{message}"));
    println!("{coverage}");
    ensure!(coverage.points > 4, "{coverage}");
    Ok(())
}

/// So many descriptors wait at once; each commit takes one.
const WAVE: i64 = 8;
const COMMITTERS: usize = 8;

/// `commits` commits by eight committers at once: nothing is lost, nothing is there twice.
async fn contention(commits: i64, faults: &Value) -> Result<()> {
    let server = Arc::new(AwsServer::start()?);
    let mut scene = Scene::on_aws(&server, "w", FaultPlan::clean(Trace::default())).await?;
    // Waiting is real: committers that lose step back.
    scene.warehouse.environment = system_environment();
    scene.truth.environment = system_environment();
    scene.ingest(&[(0, vec![json_record(0, &[("id", "0")])])]).await?;
    server.counts()?;
    server.faults(faults)?;
    let settings = CommitSettings {
        max_taken: 1,
        ..CommitSettings::default()
    };
    let (mut made, mut conflicts, mut ms) = (0, 0, Vec::new());
    let mut staged = 1;
    while made < commits {
        for _ in 0..WAVE {
            scene
                .ingest(&[(0, vec![json_record(staged, &[("id", "1")])])])
                .await?;
            staged += 1;
        }
        let committers = (0..COMMITTERS).map(|_| {
            let scene = scene.clone();
            tokio::spawn(async move {
                let started = scene.warehouse.environment.now();
                let report = commit_table(&scene.warehouse, &scene.table(), &settings).await?;
                let took = scene.warehouse.environment.now().since(started).as_millis();
                Ok::<_, frazil_core::Error>((report, took))
            })
        });
        for committer in committers.collect::<Vec<_>>() {
            // One that others were ahead of sixteen times leaves the rest to the next run.
            if let Ok((report, took)) = committer.await? {
                made += report.commits.len() as i64;
                conflicts += report.conflicts;
                ms.push(took / (report.commits.len() as u128).max(1));
            }
        }
    }
    let counts = server.counts()?;
    server.faults(&json!([]))?;
    scene.commit().await?;
    let offsets: Vec<i64> = scene
        .rows()
        .await
        .map_err(anyhow::Error::msg)?
        .iter()
        .map(|row| row.offset)
        .collect();
    ensure!(offsets == (0..staged).collect::<Vec<_>>(), "{offsets:?}");
    ms.sort_unstable();
    println!(
        "{made} commits by {COMMITTERS} committers, {conflicts} conflicts, median {} ms per commit and committer; requests: {counts}",
        ms[ms.len() / 2]
    );
    ensure!(conflicts > 0, "they were never in each other's way");
    Ok(())
}

fn lost_and_late() -> Value {
    json!([
        {"operation": "UpdateTable", "every": 5, "kind": "lost"},
        {"operation": "UpdateTable", "every": 7, "kind": "late", "delay_ms": 300},
        {"operation": "UpdateTable", "every": 11, "kind": "throttled"},
        {"operation": "UpdateTable", "every": 13, "kind": "refused"},
        {"operation": "PUT", "every": 17, "kind": "lost"},
    ])
}

#[tokio::test(flavor = "multi_thread")]
async fn committers_in_each_others_way() -> Result<()> {
    contention(32, &json!([])).await
}

#[tokio::test(flavor = "multi_thread")]
async fn committers_whose_answers_are_lost_and_late() -> Result<()> {
    contention(32, &lost_and_late()).await
}

/// `FRAZIL_TEST_COMMITS=500` makes as many; each takes the server, which is written in Python, most of a second.
#[tokio::test(flavor = "multi_thread")]
#[ignore = "slow: hundreds of commits through a server written in Python"]
async fn many_more_commits_in_each_others_way() -> Result<()> {
    let commits = std::env::var("FRAZIL_TEST_COMMITS").map_or(Ok(120), |commits| commits.parse())?;
    contention(commits, &json!([])).await
}

/// What Glue shows of a table is what Iceberg's own catalog would show, and what others add to it stays.
#[tokio::test(flavor = "multi_thread")]
async fn glue_shows_icebergs_table() -> Result<()> {
    let server = Arc::new(AwsServer::start()?);
    let scene = Scene::on_aws(&server, "w", FaultPlan::clean(Trace::default())).await?;
    let ingest =
        async |offset, fields: &[(&str, &str)]| scene.ingest(&[(0, vec![json_record(offset, fields)])]).await;
    ingest(0, &[("id", "1")]).await?;
    scene.commit().await?;
    let name = json!({"DatabaseName": "kafka", "Name": "events"});
    let table = || Ok::<_, anyhow::Error>(server.glue("GetTable", &name)?["Table"].clone());
    let first = table()?;
    ensure!(first["TableType"] == "EXTERNAL_TABLE", "{first}");
    ensure!(first["Parameters"]["table_type"] == "ICEBERG", "{first}");
    ensure!(first["PartitionKeys"] == json!([]), "{first}");
    let of = |table: &Value, column: &str| {
        let columns = table["StorageDescriptor"]["Columns"]
            .as_array()
            .cloned()
            .unwrap_or_default();
        columns
            .into_iter()
            .find(|of| of["Name"] == column)
            .unwrap_or_default()
    };
    ensure!(of(&first, "_kafka_offset")["Type"] == "bigint", "{first}");
    ensure!(of(&first, "_kafka_timestamp")["Type"] == "timestamp", "{first}");
    ensure!(
        of(&first, "_kafka_headers")["Type"] == "array<struct<name:string,value:binary>>",
        "{first}"
    );
    ensure!(
        of(&first, "_kafka_offset")["Parameters"]["iceberg.field.current"] == "true",
        "{first}"
    );

    // Somebody adds a parameter and a description.
    let mut input = json!({"Name": "events"});
    for key in ["StorageDescriptor", "PartitionKeys", "TableType", "Parameters"] {
        input[key] = first[key].clone();
    }
    input["Parameters"]["team"] = "orders".into();
    input["Description"] = "what happened".into();
    server.glue(
        "UpdateTable",
        &json!({"DatabaseName": "kafka", "TableInput": input}),
    )?;
    ingest(1, &[("id", "2"), ("note", "new")]).await?;
    scene.commit().await?;
    let second = table()?;
    ensure!(second["Parameters"]["team"] == "orders", "{second}");
    ensure!(second["Description"] == "what happened", "{second}");
    ensure!(of(&second, "note")["Type"] == "string", "{second}");
    let location = second["Parameters"]["metadata_location"]
        .as_str()
        .context("no location")?;
    let metadata: Value = serde_json::from_slice(&server.object(location).context("no metadata")?)?;
    let log = metadata["metadata-log"].as_array().context("no log")?;
    ensure!(
        log.last().map(|entry| &entry["metadata-file"])
            == Some(&second["Parameters"]["previous_metadata_location"]),
        "{second}"
    );
    // Glue holds 100,000 versions of a table: none is archived.
    let versions = server.glue(
        "GetTableVersions",
        &json!({"DatabaseName": "kafka", "TableName": "events"}),
    )?;
    ensure!(
        versions["TableVersions"].as_array().map(Vec::len) <= Some(2),
        "{versions}"
    );

    // Glue refuses what is larger than so many bytes: it is shown less, and the commit lands.
    let refusal = |above_bytes: u32| json!([{"operation": "UpdateTable", "every": 1, "kind": "too_large", "above_bytes": above_bytes}]);
    server.faults(&refusal(1_200))?;
    ingest(2, &[("id", "3")]).await?;
    scene.commit().await?;
    let third = table()?;
    ensure!(
        third["StorageDescriptor"]["Columns"]
            .as_array()
            .is_none_or(Vec::is_empty),
        "{third}"
    );
    ensure!(third["Parameters"]["team"] == "orders", "{third}");
    server.faults(&json!([]))?;
    ensure!(scene.rows().await.map_err(anyhow::Error::msg)?.len() == 3);
    Ok(())
}

/// The command on a warehouse of the server, with the schemas of the events.
fn command(server: &AwsServer, warehouse: &str, arguments: &[&str]) -> Result<Command> {
    let mut command = frazil()?;
    command
        .args(arguments)
        .args(["--warehouse", warehouse])
        .arg("--schemas")
        .arg(repository().join("events/schemas"))
        .envs(server.environment())
        .stdin(Stdio::null());
    Ok(command)
}

/// How a command ended, and what it said.
fn said(mut command: Command) -> Result<(Option<i32>, String)> {
    let done = command.output()?;
    let said = String::from_utf8_lossy(&[done.stdout, done.stderr].concat()).into_owned();
    Ok((done.status.code(), said))
}

/// A configuration that was pushed brings the files that it names, wherever it is used.
#[test]
fn a_configuration_brings_its_files() -> Result<()> {
    let server = AwsServer::start()?;
    let (warehouse, config) = (server.warehouse("lake"), server.warehouse("conf/frazil.toml"));
    let home = tempfile::tempdir()?;
    std::fs::create_dir(home.path().join("schemas"))?;
    let schema = r#"{"type":"record","name":"T","fields":[{"name":"id","type":"long"}]}"#;
    std::fs::write(home.path().join("schemas/t.avsc"), schema)?;
    let toml = "[topics.t]\nformat = \"avro\"\nframing = \"none\"\nschema = \"file:schemas/t.avsc\"\n";
    let local = home.path().join("frazil.toml");
    std::fs::write(&local, toml)?;
    let event = json!({"eventSource": "aws:kafka", "bootstrapServers": "b:9092", "records": {"t-0": [
        {"topic": "t", "partition": 0, "offset": 0, "timestamp": 1_796_040_000_000_i64, "value": "Ag=="}
    ]}});
    std::fs::write(home.path().join("event.json"), event.to_string())?;

    let run = |arguments: &[&str]| -> Result<String> {
        let mut command = command(&server, &warehouse, arguments)?;
        command.current_dir(home.path());
        let (code, said) = said(command)?;
        ensure!(code == Some(0), "{arguments:?}: {code:?} {said}");
        Ok(said)
    };
    let pushed = run(&["config", "push", "frazil.toml", &config])?;
    ensure!(pushed.contains("conf/schemas/t.avsc"), "{pushed}");
    std::fs::remove_file(local)?;
    let shown = run(&["run", "event.json", "--config", &config])?;
    ensure!(shown.contains("rows written  1"), "{shown}");
    Ok(())
}

/// I1, I2, with the command: eight ingests and four commits at once, and what two other engines read from S3 and Glue.
#[test]
fn many_processes_on_s3_and_glue() -> Result<()> {
    let server = AwsServer::start()?;
    let warehouse = server.warehouse("lake");
    let home = tempfile::tempdir()?;
    let golden = repository().join("events/golden/orders-avro.json");
    let parts = cut(
        &repository().join("events/orders-avro.json"),
        INGESTS,
        home.path(),
    )?;
    let start = |arguments: &[&str]| -> Result<_> {
        let log = std::fs::File::create(home.path().join(arguments.join("-").replace('/', "_")))?;
        let mut command = command(&server, &warehouse, arguments)?;
        command
            .current_dir(home.path())
            .stderr(log.try_clone()?)
            .stdout(log);
        Ok((command.spawn()?, arguments.join(" ")))
    };
    let mut processes = Vec::new();
    for (number, part) in parts.iter().enumerate() {
        processes.push(start(&["ingest", &part.display().to_string()])?);
        if number % 2 == 1 {
            processes.push(start(&["commit"])?);
        }
    }
    for (mut process, what) in processes {
        let status = process.wait()?;
        ensure!(status.success(), "{what}: {status}");
    }
    for arguments in [
        ["commit"].as_slice(),
        &["reconcile", "orders"],
        &["tables"],
        &["status"],
        &["show", "orders"],
    ] {
        let (mut process, what) = start(arguments)?;
        let status = process.wait()?;
        ensure!(status.success(), "{what}: {status}");
    }
    for reader in [Reader::PyIceberg, Reader::DuckDb] {
        compare_on_s3(reader, &warehouse, &[&golden], &server.environment())?;
    }
    Ok(())
}

/// What Lambda gave up on is in its on-failure bucket, with the event as text; ten minutes later somebody replays it, twice.
#[test]
fn what_lambda_gave_up_on_is_replayed() -> Result<()> {
    let server = AwsServer::start()?;
    let warehouse = server.warehouse("lake");
    let golden = repository().join("events/golden/orders-avro.json");
    let event = std::fs::read_to_string(repository().join("events/orders-avro.json"))?;
    let failed = json!({
        "version": "1.0", "timestamp": "2026-11-30T10:00:00.000Z",
        "requestContext": {"requestId": "c9f1", "condition": "RetriesExhausted", "approximateInvokeCount": 11},
        "responseContext": {"statusCode": 200, "functionError": "Unhandled"},
        "payload": event,
    });
    server.put_object(&server.warehouse("failed/2026/11/30/a.json"), &failed.to_string())?;
    let run = |arguments: &[&str]| said(command(&server, &warehouse, arguments)?);
    let prefix = server.warehouse("failed");
    for _ in 0..2 {
        let (code, said) = run(&["replay", &prefix])?;
        ensure!(
            code == Some(0) && said.contains("2,000 records"),
            "{code:?} {said}"
        );
    }
    let (code, said) = run(&["commit"])?;
    ensure!(code == Some(0), "{said}");
    compare_on_s3(Reader::PyIceberg, &warehouse, &[&golden], &server.environment())?;

    // What is no failed invocation stops it, and says which it is.
    server.put_object(&server.warehouse("failed/2026/11/30/b.json"), r#"{"Records":[]}"#)?;
    let (code, said) = run(&["replay", &prefix])?;
    ensure!(
        code == Some(2) && said.contains("failed/2026/11/30/b.json"),
        "{code:?} {said}"
    );
    ensure!(said.contains("missing field `payload`"), "{said}");
    let (code, said) = run(&["replay", &server.warehouse("nothing/")])?;
    ensure!(
        code == Some(2) && said.contains("there is nothing"),
        "{code:?} {said}"
    );
    Ok(())
}
