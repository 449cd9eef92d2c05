use frazil_core::{Result, TopicName};
use frazil_table::inspection::{PartitionReconciliation, Reconciliation, reconcile_topic};
use serde::Serialize;

use crate::arguments::Source;
use crate::document::{indented, plain, table};
use crate::failure::Outcome;
use crate::output::{Document, Output};
use crate::session::Session;
use crate::units;

/// How many ranges people see of each kind and partition.
const RANGES_SHOWN: usize = 8;

/// Rows and dead letters against the ledgers, and what that comes to.
#[derive(Debug, Serialize)]
struct Reconciled {
    /// Whether nothing is wrong, by what was asked.
    ok: bool,
    /// Whether gaps were asked to be faults.
    expect_contiguous: bool,
    /// Offsets there twice, or that no ledger knows.
    faults: u64,
    /// Offsets taken that are neither row nor dead letter.
    gaps: u64,
    #[serde(flatten)]
    found: Reconciliation,
}

pub(crate) async fn reconcile(
    session: &Session,
    topic: &str,
    source: &Source,
    expect_contiguous: bool,
    output: &Output,
) -> Result<Outcome> {
    let warehouse = session.existing_warehouse().await?;
    let topic = TopicName::from(topic);
    let source = session.source_of(&warehouse, &topic, source.name()).await?;
    let progress = session.progress();
    progress.say(format!("reading every row of {topic}"));
    let reconciled = Reconciled::new(
        reconcile_topic(&warehouse, &source, &topic).await?,
        expect_contiguous,
    );
    drop(progress);
    output.print(&reconciled)?;
    Ok(if reconciled.ok {
        Outcome::Done
    } else {
        Outcome::Failed
    })
}

impl Reconciled {
    fn new(found: Reconciliation, expect_contiguous: bool) -> Self {
        let (faults, gaps) = (found.faults(), found.gaps());
        Self {
            ok: faults == 0 && (gaps == 0 || !expect_contiguous),
            expect_contiguous,
            faults,
            gaps,
            found,
        }
    }

    fn verdict(&self) -> String {
        let gaps = match (self.gaps, self.expect_contiguous) {
            (0, _) => String::new(),
            (gaps, false) => format!("; {}, which may be Kafka's own", units::counted(gaps, "gap")),
            (gaps, true) => format!("; {}", units::counted(gaps, "gap")),
        };
        match self.faults {
            0 if self.ok => format!("rows and ledger agree{gaps}\n"),
            0 => format!("rows are missing{gaps}\n"),
            faults => format!(
                "rows and ledger disagree at {}{gaps}\n",
                units::counted(faults, "offset")
            ),
        }
    }
}

impl Document for Reconciled {
    fn to_text(&self, _: Option<usize>) -> String {
        let of = &self.found;
        let mut text = format!(
            "{} (source {}, epoch {})\n",
            plain(of.topic.as_str()),
            of.source,
            of.epoch
        );
        for reconciled in &of.tables {
            let snapshot = match reconciled.snapshot_id {
                Some(id) => format!("snapshot {id}"),
                None => "no snapshot yet".to_owned(),
            };
            text.push_str(&format!(
                "\n{}, {snapshot}, commit {}\n",
                reconciled.table, reconciled.commit
            ));
            text.push_str(&indented(&partitions_text(&reconciled.partitions)));
        }
        if !of.together.is_empty() {
            text.push_str("\nall of them together, each with records of its own type\n");
            text.push_str(&indented(&partitions_text(&of.together)));
        }
        text.push_str(&format!("\n{}", self.verdict()));
        text
    }
}

fn partitions_text(partitions: &[PartitionReconciliation]) -> String {
    let rows = partitions.iter().map(|partition| {
        vec![
            partition.epoch.to_string(),
            partition.partition.to_string(),
            units::count(partition.rows),
            units::count(partition.dead_letters),
            partition.taken.map_or_else(|| "–".to_owned(), units::count),
            partition
                .next
                .map_or_else(|| "–".to_owned(), |next| next.to_string()),
            units::count(partition.gaps),
            units::count(partition.doubles),
            units::count(partition.unknown),
        ]
    });
    let headers = [
        "EPOCH",
        "PARTITION",
        "ROWS",
        "DEAD LETTERS",
        "TAKEN",
        "NEXT",
        "GAPS",
        "DOUBLES",
        "UNKNOWN",
    ];
    let findings: String = partitions.iter().map(findings).collect();
    table(&headers, &headers, rows) + &findings
}

/// Which offsets are gaps, doubles and unknown.
fn findings(of: &PartitionReconciliation) -> String {
    let kinds = [
        ("gaps", &of.gap_ranges),
        ("doubles", &of.double_ranges),
        ("unknown", &of.unknown_ranges),
    ];
    let found = kinds
        .iter()
        .filter(|(_, ranges)| !ranges.is_empty())
        .map(|(kind, ranges)| {
            let ranges = units::ranges(ranges, RANGES_SHOWN);
            format!(
                "epoch {}, partition {}, {kind}: {ranges}\n",
                of.epoch, of.partition
            )
        });
    found.collect()
}

#[cfg(test)]
mod tests {
    use frazil_core::{Epoch, Offset, OffsetRange, Partition, TableName};
    use frazil_table::inspection::TableReconciliation;

    use super::*;

    fn partition(gaps: i64, doubles: i64) -> PartitionReconciliation {
        let first = |count: i64| {
            OffsetRange::new(Offset(0), Offset(count - 1))
                .into_iter()
                .collect::<Vec<_>>()
        };
        PartitionReconciliation {
            epoch: Epoch(0),
            partition: Partition(3),
            rows: 1_198,
            dead_letters: 2,
            next: Some(Offset(1_200)),
            taken: Some(1_200),
            gaps: gaps.unsigned_abs(),
            gap_ranges: first(gaps),
            doubles: doubles.unsigned_abs(),
            double_ranges: first(doubles),
            unknown: 0,
            unknown_ranges: Vec::new(),
        }
    }

    fn reconciled(gaps: i64, doubles: i64, expect_contiguous: bool) -> Reconciled {
        let table = TableReconciliation {
            table: TableName::new("kafka", "orders").unwrap(),
            snapshot_id: Some(42),
            commit: 2,
            partitions: vec![partition(gaps, doubles)],
        };
        let found = Reconciliation {
            source: "default".into(),
            topic: "orders".into(),
            epoch: Epoch(0),
            tables: vec![table],
            together: Vec::new(),
        };
        Reconciled::new(found, expect_contiguous)
    }

    #[test]
    fn agreement_is_said_in_words() {
        let reconciled = reconciled(2, 0, false);
        assert_eq!(
            reconciled.to_text(None),
            "orders (source default, epoch 0)

kafka.orders, snapshot 42, commit 2
  EPOCH  PARTITION   ROWS  DEAD LETTERS  TAKEN  NEXT  GAPS  DOUBLES  UNKNOWN
      0          3  1,198             2  1,200  1200     2        0        0
  epoch 0, partition 3, gaps: [0, 1]

rows and ledger agree; 2 gaps, which may be Kafka's own
"
        );
    }

    #[test]
    fn what_is_a_fault_depends_on_what_was_asked() {
        for (gaps, doubles, expect_contiguous, ok, verdict) in [
            (0, 0, false, true, "rows and ledger agree\n"),
            (0, 0, true, true, "rows and ledger agree\n"),
            (2, 0, true, false, "rows are missing; 2 gaps\n"),
            (0, 1, false, false, "rows and ledger disagree at 1 offset\n"),
            (
                1,
                2,
                false,
                false,
                "rows and ledger disagree at 2 offsets; 1 gap, which may be Kafka's own\n",
            ),
        ] {
            let reconciled = reconciled(gaps, doubles, expect_contiguous);
            assert_eq!((reconciled.ok, reconciled.verdict().as_str()), (ok, verdict));
        }
    }
}
