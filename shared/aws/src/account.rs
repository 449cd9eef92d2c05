use std::time::Duration;

use aws_config::timeout::TimeoutConfig;
use aws_config::{BehaviorVersion, Region, SdkConfig};
use aws_smithy_http_client::Builder;
use aws_smithy_http_client::tls::Provider;
use aws_smithy_http_client::tls::rustls_provider::CryptoMode;

/// How long one request may take: the SDK has no bound of its own, and a function that hangs is billed.
const ATTEMPT_TIMEOUT: Duration = Duration::from_secs(10);

/// Credentials, region and HTTP client: what the clients of all services share.
#[derive(Debug)]
pub(crate) struct Account(SdkConfig);

impl Account {
    /// What the process has: a function's role, the environment, a profile. `region` goes before what these say.
    pub(crate) async fn from_process(region: Option<String>) -> Self {
        let https = Builder::new()
            .tls_provider(Provider::Rustls(CryptoMode::Ring))
            .build_https();
        let mut loader = aws_config::defaults(BehaviorVersion::latest())
            .http_client(https)
            .timeout_config(
                TimeoutConfig::builder()
                    .operation_attempt_timeout(ATTEMPT_TIMEOUT)
                    .build(),
            );
        if let Some(region) = region {
            loader = loader.region(Region::new(region));
        }
        Self(loader.load().await)
    }

    pub(crate) fn sdk(&self) -> &SdkConfig {
        &self.0
    }
}
