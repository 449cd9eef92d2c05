use frazil_core::Result;

use crate::arguments::Dev;
use crate::failure::Outcome;
use crate::output::Output;
use crate::session::Session;

#[cfg(feature = "kafka")]
pub(crate) async fn dev(session: &Session, dev: &Dev, output: &Output) -> Result<Outcome> {
    crate::dev::run(session, dev, output).await
}

#[cfg(not(feature = "kafka"))]
pub(crate) async fn dev(_: &Session, dev: &Dev, _: &Output) -> Result<Outcome> {
    use frazil_core::{Error, ErrorKind};

    Err(Error::new(
        ErrorKind::Invalid,
        "read topics of a broker",
        "this build has no Kafka client",
    )
    .with_context("brokers", &dev.brokers)
    .with_hint("build frazil with its default features, or with --features kafka"))
}
