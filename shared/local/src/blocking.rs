use frazil_core::{Error, ErrorKind, Result};

/// Runs blocking work where it delays nobody. Once started it runs to its end, also when the caller stops waiting.
pub(crate) async fn blocking<T, F>(operation: &'static str, work: F) -> Result<T>
where
    T: Send + 'static,
    F: FnOnce() -> Result<T> + Send + 'static,
{
    match tokio::task::spawn_blocking(work).await {
        Ok(result) => result,
        // The runtime shuts down, or the work has a defect and panicked.
        Err(error) => Err(Error::new(ErrorKind::Internal, operation, error.to_string()).with_source(error)),
    }
}
