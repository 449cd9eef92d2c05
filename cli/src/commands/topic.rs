use frazil_core::Result;

use crate::arguments::TopicCommand;
use crate::failure::Outcome;
use crate::output::Output;
use crate::session::Session;

pub(crate) async fn topic(_session: &Session, _command: TopicCommand, _output: &Output) -> Result<Outcome> {
    Ok(Outcome::Done)
}
