//! What every implementation of this crate's traits must do, as suites to run from its tests.
//!
//! Each promise has a name; a broken one panics with it. The suites need no particular executor.

mod catalog;
mod state;
mod storage;

pub use catalog::catalog;
pub use state::state;
pub use storage::storage;

use std::fmt::Debug;
use std::future::Future;

use frazil_core::{Error, ErrorKind};

/// What was seen instead of what was promised.
struct Broken(String);

impl From<Error> for Broken {
    fn from(error: Error) -> Self {
        Self(format!("unexpected error: {error:?}"))
    }
}

type Kept = Result<(), Broken>;

/// Runs the check of one promise.
async fn promise(name: &str, check: impl Future<Output = Kept>) {
    if let Err(Broken(seen)) = check.await {
        panic!("broken promise: {name}: {seen}");
    }
}

fn same<T: PartialEq + Debug>(what: &str, seen: T, expected: T) -> Kept {
    match seen == expected {
        true => Ok(()),
        false => Err(Broken(format!("{what} is {seen:?}, not {expected:?}"))),
    }
}

fn refused<T: Debug>(what: &str, seen: Result<T, Error>, expected: ErrorKind) -> Kept {
    match seen {
        Err(error) if error.kind() == expected => Ok(()),
        Err(error) => Err(Broken(format!("{what} failed with {error:?}, not as {expected}"))),
        Ok(value) => Err(Broken(format!("{what} answered {value:?}, not {expected}"))),
    }
}
