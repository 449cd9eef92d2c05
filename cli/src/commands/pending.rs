use std::collections::BTreeMap;

use frazil_core::{Result, TopicName};
use frazil_table::inspection::{Kept, KeptClaim, Place, find_kept, list_kept};
use frazil_table::{Judgement, quarantine_descriptor, release_descriptor};
use serde::Serialize;
use uuid::Uuid;

use crate::arguments::{Pending, PendingAction, Place as PlaceArgument};
use crate::document::{indented, pairs, plain, table};
use crate::failure::Outcome;
use crate::output::{Document, Output};
use crate::session::Session;
use crate::units;

/// How many claims people see of each descriptor in a list.
const CLAIMS_SHOWN: usize = 3;

/// What is kept outside of tables.
#[derive(Debug, Serialize)]
struct Listed {
    /// How many there are in each place, listed or not.
    counts: BTreeMap<Place, u64>,
    kept: Vec<Kept>,
}

/// One descriptor or parked event.
#[derive(Debug, Serialize)]
struct Shown {
    kept: Kept,
}

pub(crate) async fn pending(session: &Session, pending: Pending, output: &Output) -> Result<Outcome> {
    let warehouse = session.existing_warehouse().await?;
    match pending.action {
        Some(PendingAction::Show { id }) => {
            output.print(&Shown {
                kept: find_kept(&warehouse, id).await?,
            })?;
        }
        Some(PendingAction::Quarantine { id }) => {
            quarantine_descriptor(&warehouse, id).await?;
            output.print(&Moved {
                id,
                place: Place::Quarantine,
            })?;
        }
        Some(PendingAction::Release { id }) => {
            release_descriptor(&warehouse, id).await?;
            output.print(&Moved {
                id,
                place: Place::Pending,
            })?;
        }
        None => {
            let topic = match pending.topic {
                None => None,
                Some(topic) => {
                    let topic = TopicName::new(topic);
                    Some((
                        session
                            .source_of(&warehouse, &topic, pending.source.name())
                            .await?,
                        topic,
                    ))
                }
            };
            let places = match pending.place.as_slice() {
                [] => Place::ALL.to_vec(),
                places => places.iter().copied().map(place).collect(),
            };
            let limit = usize::try_from(pending.limit).unwrap_or(usize::MAX);
            let progress = session.progress();
            progress.say("listing");
            let topic = topic.as_ref().map(|(source, topic)| (source, topic));
            let (kept, counts) = list_kept(&warehouse, topic, &places, limit).await?;
            drop(progress);
            output.print(&Listed { counts, kept })?;
        }
    }
    Ok(Outcome::Done)
}

/// A descriptor that was moved to another place.
#[derive(Debug, Serialize)]
struct Moved {
    id: Uuid,
    place: Place,
}

impl Document for Moved {
    fn to_text(&self, _: Option<usize>) -> String {
        let (place, then) = match self.place {
            Place::Quarantine => ("in quarantine", "no commit takes it, and its files are kept"),
            Place::Pending | Place::Parked | Place::Dropped => {
                (self.place.as_str(), "the next commit judges it")
            }
        };
        format!("{} is {}: {then}\n", self.id, place)
    }
}

fn place(of: PlaceArgument) -> Place {
    match of {
        PlaceArgument::Pending => Place::Pending,
        PlaceArgument::Parked => Place::Parked,
        PlaceArgument::Dropped => Place::Dropped,
        PlaceArgument::Quarantine => Place::Quarantine,
    }
}

impl Document for Listed {
    fn to_text(&self, _: Option<usize>) -> String {
        if self.kept.is_empty() {
            return "nothing is pending, parked, dropped or in quarantine\n"
                .replace("pending, parked, dropped or in quarantine", &self.places());
        }
        let rows = self.kept.iter().map(|kept| {
            vec![
                kept.id.to_string(),
                kept.place.as_str().to_owned(),
                plain(kept.topic.as_str()),
                kept.epoch.to_string(),
                claims(kept.claims.as_deref()),
                kept.rows.map_or_else(|| "–".to_owned(), units::count),
                units::time(kept.stored_at_ms),
                plain(&remark(kept)),
            ]
        });
        let headers = ["ID", "PLACE", "TOPIC", "EPOCH", "OFFSETS", "ROWS", "SINCE", ""];
        let mut text = table(&headers, &["EPOCH", "ROWS"], rows);
        for (place, count) in &self.counts {
            let listed = self.kept.iter().filter(|kept| kept.place == *place).count() as u64;
            if listed < *count {
                let (place, rest) = (place.as_str(), units::count(count - listed));
                text.push_str(&format!("… {rest} more {place}; --limit shows them\n"));
            }
        }
        text
    }
}

impl Listed {
    fn places(&self) -> String {
        let names: Vec<&str> = self.counts.keys().map(|place| place.as_str()).collect();
        names.join(", ")
    }
}

/// `0:[100, 199] 7:[40, 61]`.
fn claims(claims: Option<&[KeptClaim]>) -> String {
    let Some(claims) = claims else {
        return "any".to_owned();
    };
    let mut text: Vec<String> = claims
        .iter()
        .take(CLAIMS_SHOWN)
        .map(|claim| format!("{}:{}", claim.partition, claim.range))
        .collect();
    if claims.len() > CLAIMS_SHOWN {
        text.push(format!("… {} more", claims.len() - CLAIMS_SHOWN));
    }
    text.join(" ")
}

fn remark(kept: &Kept) -> String {
    match (&kept.problem, kept.judgement, kept.backfill) {
        (Some(problem), _, _) => problem.clone(),
        (None, Some(Judgement::Proved), _) => "redelivery, proved".to_owned(),
        (None, Some(Judgement::Announced), _) => "redelivery, as announced".to_owned(),
        (None, None, true) => "backfill".to_owned(),
        (None, None, false) => String::new(),
    }
}

impl Document for Shown {
    fn to_text(&self, _: Option<usize>) -> String {
        let kept = &self.kept;
        let mut text = format!("{}\n", kept.id);
        text.push_str(&indented(&pairs([
            ("place", kept.place.as_str().to_owned()),
            (
                "topic",
                format!(
                    "{} (source {}, epoch {})",
                    plain(kept.topic.as_str()),
                    kept.source,
                    kept.epoch
                ),
            ),
            (
                "table",
                kept.table.as_ref().map(ToString::to_string).unwrap_or_default(),
            ),
            (
                "table uuid",
                kept.table_uuid.map(|uuid| uuid.to_string()).unwrap_or_default(),
            ),
            ("since", units::time(kept.stored_at_ms)),
            ("rows", kept.rows.map(units::count).unwrap_or_default()),
            ("files", kept.files.map(units::count).unwrap_or_default()),
            ("remark", plain(&remark(kept))),
            (
                "object",
                format!("{} ({})", kept.location, units::bytes(kept.bytes)),
            ),
        ])));
        text.push_str("\nClaims\n");
        let Some(claims) = &kept.claims else {
            text.push_str("  it does not say: it may be any offsets of its topic\n");
            return text;
        };
        let number = |number: Option<u64>| number.map_or_else(|| "–".to_owned(), units::count);
        let rows = claims.iter().map(|claim| {
            vec![
                claim.partition.to_string(),
                claim.range.to_string(),
                number(claim.records),
                number(claim.dead_letters),
                number(claim.skipped),
                claim.oldest_ms.map_or_else(|| "–".to_owned(), units::time),
            ]
        });
        let headers = [
            "PARTITION",
            "OFFSETS",
            "RECORDS",
            "DEAD LETTERS",
            "SKIPPED",
            "OLDEST",
        ];
        text.push_str(&indented(&table(
            &headers,
            &["PARTITION", "RECORDS", "DEAD LETTERS", "SKIPPED"],
            rows,
        )));
        text
    }
}

#[cfg(test)]
mod tests {
    use frazil_core::{Epoch, Offset, OffsetRange, Partition, TimestampMs};

    use super::*;

    fn kept(place: Place) -> Kept {
        let claim = |partition, first, last| KeptClaim {
            partition: Partition(partition),
            range: OffsetRange::new(Offset(first), Offset(last)).unwrap(),
            records: Some(100),
            dead_letters: Some(0),
            skipped: Some(0),
            oldest_ms: Some(TimestampMs(1_796_063_000_000)),
        };
        Kept {
            id: Uuid::from_u128(9),
            place,
            source: "default".into(),
            topic: "orders".into(),
            epoch: Epoch(0),
            table: None,
            table_uuid: Some(Uuid::from_u128(7)),
            claims: Some(vec![claim(0, 100, 199), claim(7, 40, 61)]),
            rows: Some(122),
            files: Some(1),
            backfill: false,
            judgement: None,
            problem: None,
            stored_at_ms: TimestampMs(1_796_063_000_000),
            bytes: 900,
            location: "file:///w/_frazil/x.json".to_owned(),
        }
    }

    #[test]
    fn lists_what_there_is_and_says_what_is_left_out() {
        let mut dropped = kept(Place::Dropped);
        dropped.judgement = Some(Judgement::Proved);
        let listed = Listed {
            counts: BTreeMap::from([(Place::Pending, 3), (Place::Dropped, 1)]),
            kept: vec![kept(Place::Pending), dropped],
        };
        assert_eq!(
            listed.to_text(None),
            "ID                                    PLACE    TOPIC   EPOCH  OFFSETS                  ROWS  SINCE
00000000-0000-0000-0000-000000000009  pending  orders      0  0:[100, 199] 7:[40, 61]   122  2026-11-30T18:23:20Z
00000000-0000-0000-0000-000000000009  dropped  orders      0  0:[100, 199] 7:[40, 61]   122  2026-11-30T18:23:20Z  redelivery, proved
… 2 more pending; --limit shows them
"
        );
        let counts = BTreeMap::from([(Place::Pending, 0), (Place::Parked, 0)]);
        assert_eq!(
            Listed {
                counts,
                kept: Vec::new()
            }
            .to_text(None),
            "nothing is pending, parked\n"
        );
    }

    #[test]
    fn shows_one_with_its_claims() {
        assert_eq!(
            Shown {
                kept: kept(Place::Pending)
            }
            .to_text(None),
            "00000000-0000-0000-0000-000000000009
  place       pending
  topic       orders (source default, epoch 0)
  table uuid  00000000-0000-0000-0000-000000000007
  since       2026-11-30T18:23:20Z
  rows        122
  files       1
  object      file:///w/_frazil/x.json (900 B)

Claims
  PARTITION  OFFSETS     RECORDS  DEAD LETTERS  SKIPPED  OLDEST
          0  [100, 199]      100             0        0  2026-11-30T18:23:20Z
          7  [40, 61]        100             0        0  2026-11-30T18:23:20Z
"
        );
        let mut unreadable = kept(Place::Quarantine);
        (unreadable.claims, unreadable.problem) = (None, Some("cannot read\u{7}".to_owned()));
        let text = Shown { kept: unreadable }.to_text(None);
        assert!(text.contains("remark      cannot read\\u{7}\n"), "{text}");
        assert!(
            text.ends_with("Claims\n  it does not say: it may be any offsets of its topic\n"),
            "{text}"
        );
    }
}
