use std::time::Duration;

use aws_config::retry::RetryConfig;
use aws_config::sts::AssumeRoleProvider;
use aws_config::timeout::TimeoutConfig;
use aws_config::{BehaviorVersion, Region, SdkConfig};
use aws_sdk_s3::config::{Credentials, SharedCredentialsProvider};
use aws_smithy_http_client::Builder;
use aws_smithy_http_client::tls::Provider;
use aws_smithy_http_client::tls::rustls_provider::CryptoMode;
use frazil_core::Secret;

/// How long one request may take: the SDK has no bound of its own, and a function that hangs is billed. The largest
/// piece that is sent or read at once has 8 MB.
const ATTEMPT_TIMEOUT: Duration = Duration::from_secs(30);

/// How long no connection may come about.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(5);

/// What the SDK tries by itself, with backoff and jitter, where trying again is harmless.
const MAX_ATTEMPTS: u32 = 5;

/// Whose account is used, beside what the process has.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct AccountSettings {
    /// Goes before the region of the environment and the profile.
    pub region: Option<String>,
    /// The role to assume, with the process's own credentials.
    pub role: Option<AssumedRole>,
    /// Another server than AWS, for all services: goes before `AWS_ENDPOINT_URL`.
    pub endpoint: Option<String>,
    /// Keys instead of the process's own credentials, for such a server.
    pub keys: Option<AccessKeys>,
}

/// Keys that do not end.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AccessKeys {
    /// The public part.
    pub id: String,
    /// The other one.
    pub secret: Secret,
}

/// A role of somebody else's account.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AssumedRole {
    /// Its ARN.
    pub arn: String,
    /// What its trust policy asks for.
    pub external_id: Option<String>,
}

/// Credentials, region and HTTP client: what the clients of all services share. Partition, FIPS and dual-stack
/// endpoints follow from the region and the SDK's own settings (`AWS_USE_FIPS_ENDPOINT`, `AWS_ENDPOINT_URL` …).
#[derive(Debug, Clone)]
pub struct Account(SdkConfig);

impl Account {
    /// What the process has: a function's role, the environment, a profile. Nothing is asked of AWS before the first
    /// request.
    pub async fn open(settings: &AccountSettings) -> Self {
        let https = Builder::new()
            .tls_provider(Provider::Rustls(CryptoMode::Ring))
            .build_https();
        let mut loader = aws_config::defaults(BehaviorVersion::latest())
            .http_client(https)
            .retry_config(RetryConfig::standard().with_max_attempts(MAX_ATTEMPTS))
            .timeout_config(
                TimeoutConfig::builder()
                    .connect_timeout(CONNECT_TIMEOUT)
                    .operation_attempt_timeout(ATTEMPT_TIMEOUT)
                    .build(),
            );
        if let Some(region) = &settings.region {
            loader = loader.region(Region::new(region.clone()));
        }
        if let Some(endpoint) = &settings.endpoint {
            loader = loader.endpoint_url(endpoint);
        }
        if let Some(AccessKeys { id, secret }) = &settings.keys {
            loader =
                loader.credentials_provider(Credentials::new(id, secret.expose(), None, None, "settings"));
        }
        let own = loader.load().await;
        let Some(role) = &settings.role else {
            return Self(own);
        };
        let mut provider = AssumeRoleProvider::builder(&role.arn)
            .session_name("frazil")
            .configure(&own);
        if let Some(external_id) = &role.external_id {
            provider = provider.external_id(external_id);
        }
        let provider = provider.build().await;
        let assumed = SharedCredentialsProvider::new(provider);
        Self(own.into_builder().credentials_provider(assumed).build())
    }

    pub(crate) fn sdk(&self) -> &SdkConfig {
        &self.0
    }
}
