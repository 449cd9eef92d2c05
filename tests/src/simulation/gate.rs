use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll};

use super::Dice;

/// How operations of a memory back end take turns.
#[derive(Debug, Clone, Default)]
pub struct Pace {
    dice: Option<Dice>,
}

impl Pace {
    /// Every operation gives way to others exactly once.
    pub fn steady() -> Self {
        Self { dice: None }
    }

    /// Some operations take longer than others, so that those that an actor runs at once finish in any order.
    pub fn shuffled(dice: Dice) -> Self {
        Self { dice: Some(dice) }
    }

    /// Waits for this operation's turn.
    pub async fn turn(&self) {
        let polls = match &self.dice {
            Some(dice) if dice.chance(0.25) => dice.between(2, 4),
            _ => 1,
        };
        Gate { polls }.await;
    }
}

/// Pending for a number of polls, and always runnable.
struct Gate {
    polls: u64,
}

impl Future for Gate {
    type Output = ();

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<()> {
        if self.polls == 0 {
            return Poll::Ready(());
        }
        self.polls -= 1;
        context.waker().wake_by_ref();
        Poll::Pending
    }
}
