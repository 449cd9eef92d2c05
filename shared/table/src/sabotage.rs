//! Breaks the protocol on purpose, so that the tests can show that they would see it. Without the feature `sabotage`
//! every question is answered with `false` at compile time.

/// A rule of the protocol that is left out.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[cfg_attr(not(feature = "sabotage"), allow(dead_code))]
pub enum Break {
    /// The new metadata goes on naming the ledger of the metadata that it replaces; the new one is named in a swap of
    /// its own.
    LedgerOutsideSwap,
    /// After a conflict the decision made before it is committed on top of what is there now.
    DecisionReused,
    /// Descriptors go before the swap.
    DeletedBeforeSwap,
    /// A gap is taken for a hole without listing again.
    HoleWithoutRelisting,
    /// A swap that did not answer success is taken to have failed, and its files are staged anew.
    LostAnswerIsFailure,
    /// What is pending is found by the table's name instead of its uuid.
    PendingByName,
    /// Dead letters go to their table by themselves, before the swap.
    LettersByThemselves,
    /// Offsets of which the ledger forgot what was taken count as taken.
    ForgottenIsTaken,
    /// What is covered is dropped without proof.
    DropWithoutProof,
    /// A hole is opened over what waits.
    HoleOverPending,
    /// A descriptor goes once a part of it is taken.
    PartlyTakenDeleted,
    /// A live delivery fills a hole of any age.
    OldHoleOpenToAll,
}

#[cfg(feature = "sabotage")]
mod switch {
    use std::cell::Cell;

    use super::Break;

    thread_local! {
        static BROKEN: Cell<Option<Break>> = const { Cell::new(None) };
    }

    /// Runs with a rule left out, on this thread.
    pub fn with<T>(broken: Break, run: impl FnOnce() -> T) -> T {
        struct Restore(Option<Break>);
        impl Drop for Restore {
            fn drop(&mut self) {
                BROKEN.set(self.0);
            }
        }
        let _restore = Restore(BROKEN.replace(Some(broken)));
        run()
    }

    pub(crate) fn is(broken: Break) -> bool {
        BROKEN.get() == Some(broken)
    }
}

#[cfg(feature = "sabotage")]
pub(crate) use switch::is;
#[cfg(feature = "sabotage")]
pub use switch::with;

#[cfg(not(feature = "sabotage"))]
pub(crate) const fn is(_: Break) -> bool {
    false
}
