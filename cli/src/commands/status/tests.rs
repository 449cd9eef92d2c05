use frazil_core::{Epoch, Offset, OffsetRange, Partition, TableName, TimestampMs};
use frazil_table::inspection::{DeadLetterStatus, PartitionStatus, SuspensionStatus};
use uuid::Uuid;

use super::*;

fn range(first: i64, last: i64) -> OffsetRange {
    OffsetRange::new(Offset(first), Offset(last)).unwrap()
}

fn heap_of(objects: u64, bytes: u64) -> Heap {
    Heap {
        objects,
        bytes,
        oldest_ms: (objects > 0).then_some(TimestampMs(1_796_063_000_000)),
    }
}

fn orders() -> TopicStatus {
    let table = TableName::new("kafka", "orders").unwrap();
    TopicStatus {
        source: "default".into(),
        topic: "orders".into(),
        epoch: Epoch(1),
        suspended: Some(SuspensionStatus {
            cause: "operator",
            message: "maintenance".to_owned(),
            since_ms: TimestampMs(1_796_063_000_000),
        }),
        replay_until_ms: None,
        freshness_ms: 192_000,
        parked: heap_of(2, 2_048),
        dropped: heap_of(0, 0),
        quarantine: heap_of(0, 0),
        tables: vec![TableStatus {
            dead_letters: DeadLetterStatus {
                table: table.dead_letters().unwrap(),
                rows: 13,
                undelivered: 2,
            },
            table,
            uuid: Uuid::from_u128(7),
            problem: None,
            commit: 4,
            committed_at_ms: Some(TimestampMs(1_796_063_000_000)),
            snapshot_id: Some(42),
            rows: 1_187,
            pending: heap_of(1, 900),
            unreadable: 0,
            partitions: vec![
                PartitionStatus {
                    partition: Partition(0),
                    next: Offset(600),
                    holes: vec![range(10, 11)],
                    uncertain: Vec::new(),
                    pending: vec![range(600, 699)],
                },
                PartitionStatus {
                    partition: Partition(12),
                    next: Offset(1_000_600),
                    holes: Vec::new(),
                    uncertain: vec![range(0, 99)],
                    pending: Vec::new(),
                },
            ],
        }],
    }
}

#[test]
fn a_line_per_topic_and_why_it_is_suspended() {
    let status = Status {
        topics: vec![orders()],
        in_detail: false,
    };
    assert_eq!(
        status.to_text(None),
        "TOPIC   SOURCE   STATE                 EPOCH   ROWS  FRESHNESS  PENDING  PARKED  DROPPED  QUARANTINE  DEAD LETTERS\n\
         orders  default  suspended (operator)      1  1,187   3 m 12 s        1       2        0           0            15\n\
         \n\
         orders: maintenance\n"
    );
    let empty = Status {
        topics: Vec::new(),
        in_detail: false,
    };
    assert_eq!(
        empty.to_text(None),
        "no topics yet; `frazil run EVENT.json` brings the first\n"
    );
}

#[test]
fn one_topic_in_detail() {
    let status = Status {
        topics: vec![orders()],
        in_detail: true,
    };
    assert_eq!(
        status.to_text(None),
        "orders (source default)
  state       suspended (operator)
  since       2026-11-30T18:23:20Z
  reason      maintenance
  epoch       1
  freshness   3 m 12 s
  parked      2 events, 2.0 kB, oldest 2026-11-30T18:23:20Z
  dropped     none
  quarantine  none

kafka.orders
  rows          1,187
  dead letters  13, 2 on the way
  last commit   4, 2026-11-30T18:23:20Z
  pending       1 descriptor, 900 B, oldest 2026-11-30T18:23:20Z

  PARTITION     NEXT  HOLES     UNCERTAIN  PENDING
          0      600  [10, 11]  –          [600, 699]
         12  1000600  –         [0, 99]    –
"
    );
}

#[test]
fn the_json_is_what_the_documentation_says() {
    let status = Status {
        topics: vec![orders()],
        in_detail: true,
    };
    let expected = serde_json::json!({"topics": [{
        "source": "default",
        "topic": "orders",
        "epoch": 1,
        "suspended": {"cause": "operator", "message": "maintenance", "since_ms": 1_796_063_000_000i64},
        "replay_until_ms": null,
        "freshness_ms": 192_000,
        "parked": {"objects": 2, "bytes": 2_048, "oldest_ms": 1_796_063_000_000i64},
        "dropped": {"objects": 0, "bytes": 0, "oldest_ms": null},
        "quarantine": {"objects": 0, "bytes": 0, "oldest_ms": null},
        "tables": [{
            "table": "kafka.orders",
            "uuid": "00000000-0000-0000-0000-000000000007",
            "problem": null,
            "commit": 4,
            "committed_at_ms": 1_796_063_000_000i64,
            "snapshot_id": 42,
            "rows": 1_187,
            "dead_letters": {"table": "kafka.orders_dead_letters", "rows": 13, "undelivered": 2},
            "pending": {"objects": 1, "bytes": 900, "oldest_ms": 1_796_063_000_000i64},
            "unreadable": 0,
            "partitions": [
                {"partition": 0, "next": 600, "holes": [[10, 11]], "uncertain": [], "pending": [[600, 699]]},
                {"partition": 12, "next": 1_000_600, "holes": [], "uncertain": [[0, 99]], "pending": []},
            ],
        }],
    }]});
    assert_eq!(serde_json::to_value(&status).unwrap(), expected);
}
