use frazil_core::{NamespaceName, SourceName};

use crate::fault::Problem;

/// Longest name of a source: it is a part of every object's key.
const MAX_SOURCE_NAME_LEN: usize = 64;

/// A Kafka cluster that the configuration names, and how its events are recognised.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Source {
    pub(crate) name: SourceName,
    pub(crate) arn: Option<String>,
    /// Lowercase, `host:port`.
    pub(crate) bootstrap_servers: Vec<String>,
    pub(crate) namespace: Option<NamespaceName>,
}

impl Source {
    /// The name.
    pub fn name(&self) -> &SourceName {
        &self.name
    }

    pub(crate) fn matches_every_event(&self) -> bool {
        self.arn.is_none() && self.bootstrap_servers.is_empty()
    }

    /// Any overlap of brokers is a match: their order and members change.
    pub(crate) fn matches(&self, arn: Option<&str>, servers: &[String]) -> bool {
        self.matches_every_event()
            || (self.arn.is_some() && self.arn.as_deref() == arn)
            || self.bootstrap_servers.iter().any(|known| servers.contains(known))
    }
}

pub(crate) fn source_name(text: &str) -> Result<SourceName, Problem> {
    let legal = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '-';
    if text.is_empty() || text.len() > MAX_SOURCE_NAME_LEN || !text.chars().all(legal) {
        return Err(Problem::new("not the name of a source").hint(format!(
            "use 1 to {MAX_SOURCE_NAME_LEN} of a-z, A-Z, 0-9, `_` and `-`"
        )));
    }
    Ok(SourceName::new(text))
}

pub(crate) fn cluster_arn(text: &str) -> Result<String, Problem> {
    let parts: Vec<&str> = text.splitn(6, ':').collect();
    match parts.as_slice() {
        ["arn", _, "kafka", _, _, resource] if resource.starts_with("cluster/") => Ok(text.to_owned()),
        _ => Err(Problem::new("not the ARN of an MSK cluster")
            .hint("write arn:aws:kafka:REGION:ACCOUNT:cluster/NAME/UUID, or use bootstrap_servers")),
    }
}

/// A broker's address in the form in which addresses are compared.
pub(crate) fn broker_address(text: &str) -> Result<String, Problem> {
    let address = text.trim().to_ascii_lowercase();
    let port = address
        .rsplit_once(':')
        .filter(|(host, _)| !host.is_empty())
        .map(|(_, port)| port);
    match port.map(str::parse::<u16>) {
        Some(Ok(1..)) if !address.contains([',', '/', ' ']) => Ok(address),
        _ => {
            Err(Problem::new(format!("{text:?} is not the address of a broker"))
                .hint("write it as host:port"))
        }
    }
}
