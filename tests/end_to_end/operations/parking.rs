use std::sync::Mutex;

use async_trait::async_trait;
use bytes::Bytes;
use frazil_core::{Error, ErrorKind, Result};
use frazil_table::{EventSink, ParkedEvent, Resume, drain_parked, park, resume_topic, suspend_topic};
use frazil_tests::simulation::block_on;

use super::world::{World, log, rows, source, topic};

/// An ingest for events of the form `log partition first last`.
pub(super) struct Stager<'a> {
    pub(super) world: &'a World,
    pub(super) fails_at: Option<&'static str>,
    pub(super) seen: Mutex<Vec<String>>,
}

#[async_trait]
impl EventSink for Stager<'_> {
    async fn deliver(&self, parked: &ParkedEvent, event: Bytes) -> Result<()> {
        let state = self.world.state().await;
        if !state.takes_parked(parked.log.epoch) {
            return Err(Error::new(
                ErrorKind::Suspended,
                "take a parked event",
                "the topic is suspended",
            ));
        }
        let text = String::from_utf8(event.to_vec()).unwrap();
        if self.fails_at == Some(text.as_str()) {
            return Err(Error::new(
                ErrorKind::Unavailable,
                "take a parked event",
                "storage is away",
            ));
        }
        let words: Vec<&str> = text.split(' ').collect();
        let number = |at: usize| words[at].parse::<i64>().unwrap();
        let part = (words[0], number(1) as i32, number(2)..=number(3));
        self.world
            .stage_many(parked.log.epoch.0, &[part], false, Some(parked.id))
            .await;
        self.seen.lock().unwrap().push(text);
        Ok(())
    }
}

#[test]
fn parked_events_are_drained_in_order_and_stop_at_a_failure() {
    block_on(async {
        let world = World::clean().await;
        suspend_topic(&world.plain, &source(), &topic(), "wait")
            .await
            .unwrap();
        for event in ["a 0 0 4", "a 0 5 9", "a 0 10 14"] {
            world.pass(1);
            park(&world.plain, &log(0), Bytes::from(event), None)
                .await
                .unwrap();
        }
        let sink = |fails_at| Stager {
            world: &world,
            fails_at,
            seen: Mutex::default(),
        };
        let suspended = sink(None);
        let report = drain_parked(&world.plain, &suspended, 100).await.unwrap();
        assert_eq!(
            (report.delivered, report.stopped.len(), world.parked().len()),
            (0, 0, 3)
        );

        resume_topic(&world.plain, &source(), &topic(), Resume::default())
            .await
            .unwrap();
        let failing = sink(Some("a 0 5 9"));
        let report = drain_parked(&world.plain, &failing, 100).await.unwrap();
        assert_eq!((report.delivered, world.parked().len()), (1, 2));
        assert_eq!(report.stopped[0].2.kind(), ErrorKind::Unavailable);

        let bounded = sink(None);
        assert_eq!(
            drain_parked(&world.plain, &bounded, 1).await.unwrap().delivered,
            1
        );
        assert_eq!(*bounded.seen.lock().unwrap(), ["a 0 5 9"]);
        let rest = sink(None);
        assert_eq!(drain_parked(&world.plain, &rest, 100).await.unwrap().delivered, 1);
        world.commit().await;
        world.check([rows(0, "a", 0, 0..=14)]);
        assert_eq!(world.parked(), Vec::<String>::new());
    });
}
