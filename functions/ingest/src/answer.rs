use frazil_core::{Error, ErrorKind, Result};
use serde::Serialize;

use crate::report::IngestReport;

/// Lambda's answer for a mapping with `ReportBatchItemFailures`. An empty list is success.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct BatchItemFailures {
    /// Where each partition is to be delivered again from.
    pub batch_item_failures: Vec<BatchItemFailure>,
}

/// One partition's failure.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct BatchItemFailure {
    /// Which record.
    pub item_identifier: ItemIdentifier,
}

/// A record, in Lambda's words.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct ItemIdentifier {
    /// `topic-partition`.
    pub partition: String,
    /// The offset.
    pub offset: i64,
}

/// The answer to Lambda. Without `ReportBatchItemFailures` a failure of one record is the failure of the batch: what
/// was staged of it is recognised when it comes again.
pub fn answer(report: &IngestReport, reports_item_failures: bool) -> Result<BatchItemFailures> {
    let failures: Vec<BatchItemFailure> = report
        .failures()
        .map(|failure| BatchItemFailure {
            item_identifier: ItemIdentifier {
                partition: failure.topic_partition.to_string(),
                offset: failure.offset.0,
            },
        })
        .collect();
    match report.failures().next() {
        Some(first) if !reports_item_failures => Err(Error::new(
            ErrorKind::Suspended,
            "take every record of the event",
            first.reason.clone(),
        )
        .with_context("partition", &first.topic_partition)
        .with_context("offset", first.offset)
        .with_hint("the topic is suspended; what is delivered again is parked")),
        _ => Ok(BatchItemFailures {
            batch_item_failures: failures,
        }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lambda_reads_partition_and_offset() {
        let answer = BatchItemFailures {
            batch_item_failures: vec![BatchItemFailure {
                item_identifier: ItemIdentifier {
                    partition: "orders-3".to_owned(),
                    offset: 100,
                },
            }],
        };
        assert_eq!(
            serde_json::to_string(&answer).unwrap(),
            r#"{"batchItemFailures":[{"itemIdentifier":{"partition":"orders-3","offset":100}}]}"#
        );
        assert_eq!(
            serde_json::to_string(&super::answer(&IngestReport::default(), false).unwrap()).unwrap(),
            r#"{"batchItemFailures":[]}"#
        );
    }
}
