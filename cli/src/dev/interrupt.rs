//! Ctrl-C, and SIGTERM from whoever supervises: once to stop in order, twice to stop at once.

use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use frazil_core::{Error, ErrorKind, Result};
use signal_hook::consts::{SIGINT, SIGTERM};
use signal_hook::flag;
use signal_hook::iterator::Signals;
use tokio::sync::watch;

/// What a shell says of a program that was interrupted.
const INTERRUPTED: i32 = 130;

/// Becomes `true` at the first signal. The second ends the process: nothing is lost by that, some of it comes again.
pub(crate) fn listen() -> Result<watch::Receiver<bool>> {
    let failed = |error: std::io::Error| {
        Error::new(ErrorKind::Internal, "listen for Ctrl-C", error.to_string()).with_source(error)
    };
    let again = Arc::new(AtomicBool::new(false));
    for signal in [SIGINT, SIGTERM] {
        flag::register_conditional_shutdown(signal, INTERRUPTED, again.clone()).map_err(failed)?;
        flag::register(signal, again.clone()).map_err(failed)?;
    }
    let mut signals = Signals::new([SIGINT, SIGTERM]).map_err(failed)?;
    let (sender, receiver) = watch::channel(false);
    // It lives as long as the process.
    std::thread::spawn(move || {
        for _ in signals.forever() {
            if sender.send(true).is_err() {
                return;
            }
        }
    });
    Ok(receiver)
}
