use iceberg::spec::{Operation, TableMetadata};

use crate::ledger::Ledger;

/// Whether the commit that the ledger names is still in the table's history.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum History {
    /// It is, or nothing says that it is not.
    Fine {
        /// Whether another writer deleted rows since.
        rows_were_deleted: bool,
    },
    /// It is not; the message says what was found and what to do.
    Moved(String),
}

/// Walks back from `main` to the ledger's snapshot. A parent that is missing through expiry ends the walk in peace.
pub(super) fn check(metadata: &TableMetadata, ledger: &Ledger, high_water: Option<u64>) -> History {
    let moved = |found: String| {
        History::Moved(format!(
            "the table's history has moved: {found}; the data is still there: roll `main` forward to the snapshot \
             that the ledger names, or keep what is there now and start over with everything uncertain"
        ))
    };
    if ledger.table_uuid != metadata.uuid() {
        let (ledger, table) = (ledger.table_uuid, metadata.uuid());
        return moved(format!(
            "its ledger is that of the table with uuid {ledger}, and its own uuid is {table}"
        ));
    }
    if let Some(mark) = high_water.filter(|mark| *mark > ledger.commit) {
        return moved(format!(
            "commit {mark} was seen, and the pointer is back at commit {}",
            ledger.commit
        ));
    }
    let Some(wanted) = ledger.snapshot_id else {
        return History::Fine {
            rows_were_deleted: false,
        };
    };
    let mut rows_were_deleted = false;
    let mut next = metadata.current_snapshot().cloned();
    if next.is_none() {
        return moved(format!(
            "`main` has no snapshot, and the ledger was written with snapshot {wanted}"
        ));
    }
    while let Some(snapshot) = next {
        if snapshot.snapshot_id() == wanted {
            return History::Fine { rows_were_deleted };
        }
        if snapshot.sequence_number() <= ledger.sequence_number {
            let found = snapshot.snapshot_id();
            return moved(format!(
                "`main` goes back to snapshot {found}, without snapshot {wanted} of the last commit"
            ));
        }
        rows_were_deleted |= matches!(
            snapshot.summary().operation,
            Operation::Delete | Operation::Overwrite
        );
        next = match snapshot.parent_snapshot_id() {
            None => {
                return moved(format!(
                    "`main` starts anew without snapshot {wanted} of the last commit"
                ));
            }
            Some(parent) => metadata.snapshot_by_id(parent).cloned(),
        };
    }
    History::Fine { rows_were_deleted }
}
