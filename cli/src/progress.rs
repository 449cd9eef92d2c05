use std::io::{IsTerminal, Write, stderr};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use frazil_core::Environment;
use tokio::task::JoinHandle;

/// Work that is done sooner says nothing.
const PATIENCE: Duration = Duration::from_secs(2);
/// How often the line is drawn.
const REFRESH: Duration = Duration::from_millis(250);

/// One line on standard error that says what is being done, on a terminal and only when it takes longer. Gone when
/// it is dropped.
#[derive(Debug)]
pub(crate) struct Progress {
    line: Arc<Mutex<Line>>,
    painter: Option<JoinHandle<()>>,
}

#[derive(Debug, Default)]
struct Line {
    text: String,
    is_shown: bool,
}

impl Progress {
    /// Starts the clock. Must be called inside the runtime.
    pub(crate) fn start(environment: &Environment) -> Self {
        let line = Arc::new(Mutex::new(Line::default()));
        let painter = stderr().is_terminal().then(|| {
            let (line, environment) = (line.clone(), environment.clone());
            tokio::spawn(async move {
                let started = environment.now();
                environment.sleep(PATIENCE).await;
                loop {
                    let seconds = environment.now().since(started).as_secs();
                    {
                        let mut line = line.lock().unwrap_or_else(PoisonError::into_inner);
                        line.is_shown = true;
                        // \x1b[K clears to the end of the line.
                        let _ = write!(stderr(), "\r{} … {seconds} s\x1b[K", line.text);
                        let _ = stderr().flush();
                    }
                    environment.sleep(REFRESH).await;
                }
            })
        });
        Self { line, painter }
    }

    /// One that shows nothing, for work that tells of itself.
    #[cfg(feature = "kafka")]
    pub(crate) fn silent() -> Self {
        Self {
            line: Arc::default(),
            painter: None,
        }
    }

    /// Says what is being done now.
    pub(crate) fn say(&self, text: impl Into<String>) {
        self.line.lock().unwrap_or_else(PoisonError::into_inner).text = text.into();
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        if let Some(painter) = &self.painter {
            painter.abort();
        }
        if self.line.lock().unwrap_or_else(PoisonError::into_inner).is_shown {
            let _ = write!(stderr(), "\r\x1b[K");
            let _ = stderr().flush();
        }
    }
}
