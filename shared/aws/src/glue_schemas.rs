use std::sync::Arc;

use async_trait::async_trait;
use aws_sdk_glue::Client;
use aws_sdk_glue::error::{DisplayErrorContext, ProvideErrorMetadata, SdkError};
use aws_sdk_glue::operation::get_schema_version::{GetSchemaVersionError, GetSchemaVersionOutput};
use aws_sdk_glue::types::{SchemaId, SchemaVersionNumber, SchemaVersionStatus};
use frazil_core::{Error, ErrorKind, Result};
use frazil_registry::{SchemaKind, SchemaRef, SchemaRegistry, StoredSchema, SubjectVersion, fault};

use tokio::sync::OnceCell;

use crate::account::{Account, AccountSettings};
use crate::failure::Refusal;

const OPERATION: &str = "look up the schema";

/// Glue's schema registry: schemas by version id, or by name within one registry. Its schemas have no references.
///
/// The SDK itself repeats what Glue throttles, with backoff and jitter.
#[derive(Debug, Clone)]
pub struct GlueSchemas {
    client: OnceCell<Client>,
    region: Option<String>,
    registry: String,
}

impl GlueSchemas {
    /// The schemas of the process's account, in its own region unless one is named. `registry` is where names are
    /// looked up; version ids need none. Credentials are looked for when the first schema is.
    pub fn new(region: Option<String>, registry: impl Into<String>) -> Self {
        Self {
            client: OnceCell::new(),
            region,
            registry: registry.into(),
        }
    }

    async fn client(&self) -> &Client {
        let open = || async {
            let region = self.region.clone();
            let settings = AccountSettings {
                region,
                ..AccountSettings::default()
            };
            Client::new(Account::open(&settings).await.sdk())
        };
        self.client.get_or_init(open).await
    }

    fn name(&self) -> String {
        format!("Glue's schema registry `{}`", self.registry)
    }

    fn error(&self, reference: &SchemaRef, error: SdkError<GetSchemaVersionError>) -> Error {
        let refusal = Refusal::of(&error);
        let name = self.name();
        let ours = match refusal.code.as_str() {
            "EntityNotFoundException" => fault::unknown(reference, &name)
                .with_hint("check that the producer uses the schema registry of this account and region"),
            _ if refusal.is_denial() => fault::unauthorized(
                &name,
                &refusal.code,
                "give the function's role glue:GetSchemaVersion on the registry and its schemas",
            ),
            "InvalidInputException" => Error::new(
                ErrorKind::Invalid,
                OPERATION,
                format!(
                    "{name} cannot look up {reference}: {}",
                    error.message().unwrap_or("it does not say why")
                ),
            )
            .with_code("registry.wrong_kind"),
            _ => fault::unavailable(&name, &DisplayErrorContext(&error).to_string())
                .with_hint("check region and credentials, and that the function's network reaches Glue"),
        };
        ours.with_source(error)
    }
}

#[async_trait]
impl SchemaRegistry for GlueSchemas {
    async fn stored(&self, reference: &SchemaRef) -> Result<Arc<StoredSchema>> {
        let request = self.client().await.get_schema_version();
        let request = match reference {
            SchemaRef::GlueVersion(version) => request.schema_version_id(version.to_string()),
            SchemaRef::Subject { subject, version } => {
                let schema = SchemaId::builder()
                    .registry_name(&self.registry)
                    .schema_name(subject)
                    .build();
                let which = SchemaVersionNumber::builder();
                let which = match version {
                    SubjectVersion::Latest => which.latest_version(true),
                    SubjectVersion::Number(number) => which.version_number(i64::from(*number)),
                };
                request.schema_id(schema).schema_version_number(which.build())
            }
            SchemaRef::Id(_) | SchemaRef::Guid(_) | SchemaRef::Apicurio(_) | SchemaRef::File(_) => {
                return Err(fault::wrong_kind(reference, "Glue's"));
            }
        };
        let answer = request
            .send()
            .await
            .map_err(|error| self.error(reference, error))?;
        stored(reference, answer).map(Arc::new)
    }
}

fn stored(reference: &SchemaRef, answer: GetSchemaVersionOutput) -> Result<StoredSchema> {
    let unusable = |reason: String, code| {
        Error::new(ErrorKind::Invalid, OPERATION, reason)
            .with_context("schema", reference)
            .with_code(code)
    };
    // Of the other states, pending ones may become available and deleted ones have written records.
    if answer.status == Some(SchemaVersionStatus::Failure) {
        let reason = "Glue refused this version: it was not compatible".to_owned();
        return Err(unusable(reason, "registry.unsupported_schema")
            .with_hint("no serializer should have used it: check the producer"));
    }
    let format = answer.data_format.as_ref().map_or("", |format| format.as_str());
    let Some(kind) = SchemaKind::from_name(format) else {
        let reason = format!("its data format is {format:?}, and AVRO, JSON and PROTOBUF are known");
        return Err(unusable(reason, "registry.unsupported_format"));
    };
    let Some(text) = answer.schema_definition else {
        let reason = "Glue answered without its definition".to_owned();
        return Err(unusable(reason, "registry.unsupported_schema"));
    };
    Ok(StoredSchema {
        kind,
        text,
        references: Vec::new(),
    })
}

#[cfg(test)]
mod tests {
    use aws_sdk_glue::types::DataFormat;

    use super::*;

    fn answer(status: SchemaVersionStatus, format: DataFormat, text: Option<&str>) -> GetSchemaVersionOutput {
        GetSchemaVersionOutput::builder()
            .status(status)
            .data_format(format)
            .set_schema_definition(text.map(str::to_owned))
            .build()
    }

    #[test]
    fn answers_become_schemas_or_reasons() {
        let reference = SchemaRef::version("orders", 1);
        let (deleting, failed) = (SchemaVersionStatus::Deleting, SchemaVersionStatus::Failure);
        for (answer, expected) in [
            (
                answer(deleting.clone(), DataFormat::Protobuf, Some("message M {}")),
                Ok((SchemaKind::Protobuf, "message M {}")),
            ),
            (
                answer(deleting.clone(), DataFormat::Json, Some("{}")),
                Ok((SchemaKind::Json, "{}")),
            ),
            (
                answer(failed, DataFormat::Avro, Some("\"int\"")),
                Err("registry.unsupported_schema"),
            ),
            (
                answer(deleting.clone(), DataFormat::Avro, None),
                Err("registry.unsupported_schema"),
            ),
            (
                answer(deleting, DataFormat::from("THRIFT"), Some("")),
                Err("registry.unsupported_format"),
            ),
        ] {
            let found = stored(&reference, answer);
            match expected {
                Ok((kind, text)) => {
                    let found = found.unwrap();
                    assert_eq!((found.kind, found.text.as_str()), (kind, text));
                }
                Err(code) => assert_eq!(found.unwrap_err().code(), Some(code)),
            }
        }
    }
}
