use std::rc::Rc;
use std::time::Duration;

use super::Stage;
use super::actors::commit;
use super::operator::answer;

/// After so many runs without a fault everything must be where it belongs.
const LONGEST: u32 = 60;

/// Every late call lands, every question is answered, and commits run until nothing is left to do.
pub(super) async fn settle(stage: Rc<Stage>) {
    let environment = stage.backend.warehouse().environment;
    stage.backend.plan.settle().await;
    for _ in 0..LONGEST {
        if answer(&stage).await {
            environment.sleep(Duration::from_secs(1)).await;
            continue;
        }
        commit(Rc::clone(&stage)).await;
        let left = stage.watch.borrow().left(&stage.backend);
        if left.is_none() && !is_suspended(&stage).await {
            return;
        }
        environment.sleep(Duration::from_secs(60)).await;
    }
    let left = stage.watch.borrow().left(&stage.backend);
    stage.violate(format!(
        "it does not come to rest: {}",
        left.as_deref()
            .unwrap_or("the topic is suspended again and again")
    ));
}

async fn is_suspended(stage: &Stage) -> bool {
    let (warehouse, source, topic) = (stage.backend.warehouse(), stage.source(), stage.topic());
    let state = warehouse.topic_state(&source, &topic).await;
    state.is_ok_and(|state| state.suspended.is_some())
}
