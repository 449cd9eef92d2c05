use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use async_trait::async_trait;
use frazil_core::Result;
use frazil_kafka::wire::SchemaRef;
use tokio::sync::OnceCell;

use crate::{SchemaRegistry, StoredSchema};

/// Answers are kept for at most this many; the ids of wrong bytes are asked for too, but have no answer.
const MAX_CACHED: usize = 10_000;

/// Keeps every answer for the life of the process, also those about references. Questions for one schema that come at
/// the same time are asked once. Errors are not kept.
#[derive(Debug)]
pub struct CachedRegistry<R> {
    inner: R,
    schemas: Mutex<HashMap<SchemaRef, Answer>>,
}

type Answer = Arc<OnceCell<Arc<StoredSchema>>>;

impl<R> CachedRegistry<R> {
    /// Puts a cache before `inner`.
    pub fn new(inner: R) -> Self {
        Self {
            inner,
            schemas: Mutex::default(),
        }
    }

    fn answer(&self, reference: &SchemaRef) -> Answer {
        let mut schemas = self.schemas.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(answer) = schemas.get(reference) {
            return answer.clone();
        }
        if schemas.len() >= MAX_CACHED {
            schemas.clear();
        }
        schemas.entry(reference.clone()).or_default().clone()
    }

    fn forget(&self, reference: &SchemaRef, answer: &Answer) {
        let mut schemas = self.schemas.lock().unwrap_or_else(PoisonError::into_inner);
        // The map's and ours: nobody else is asking.
        if !answer.initialized() && Arc::strong_count(answer) == 2 {
            schemas.remove(reference);
        }
    }
}

#[async_trait]
impl<R: SchemaRegistry> SchemaRegistry for CachedRegistry<R> {
    async fn stored(&self, reference: &SchemaRef) -> Result<Arc<StoredSchema>> {
        let answer = self.answer(reference);
        match answer.get_or_try_init(|| self.inner.stored(reference)).await {
            Ok(schema) => Ok(schema.clone()),
            Err(error) => {
                self.forget(reference, &answer);
                Err(error)
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicU32, Ordering};

    use frazil_core::{Error, ErrorKind, SchemaId};
    use uuid::Uuid;

    use super::*;
    use crate::{Reference, SchemaKind};

    /// Fails the first `failures` times, and gives others a turn before it answers. Every schema but subjects needs
    /// one subject.
    #[derive(Debug, Default)]
    struct Counting {
        asked: AtomicU32,
        failures: u32,
    }

    #[async_trait]
    impl SchemaRegistry for Counting {
        async fn stored(&self, reference: &SchemaRef) -> Result<Arc<StoredSchema>> {
            let asked = self.asked.fetch_add(1, Ordering::SeqCst);
            tokio::task::yield_now().await;
            if asked < self.failures {
                return Err(Error::new(
                    ErrorKind::Unavailable,
                    "look up the schema",
                    "it answered 503",
                ));
            }
            let common = Reference {
                name: "common".to_owned(),
                target: SchemaRef::version("common", 1),
            };
            let needs = !matches!(reference, SchemaRef::Subject { .. });
            Ok(Arc::new(StoredSchema {
                kind: SchemaKind::Avro,
                text: reference.to_string(),
                references: if needs { vec![common] } else { Vec::new() },
            }))
        }
    }

    #[tokio::test]
    async fn concurrent_questions_are_asked_once() {
        let registry = CachedRegistry::new(Arc::new(Counting::default()));
        let (one, two) = (SchemaRef::Id(SchemaId(1)), SchemaRef::Guid(Uuid::from_u128(2)));
        let (a, b, c) = tokio::join!(
            registry.schema(&one),
            registry.schema(&one),
            registry.schema(&two)
        );
        let common = vec![("common".to_owned(), "subject common, version 1".to_owned())];
        for (found, text) in [
            (a, "id 1"),
            (b, "id 1"),
            (c, "guid 00000000-0000-0000-0000-000000000002"),
        ] {
            let found = found.unwrap();
            assert_eq!((found.text.as_str(), &found.references), (text, &common));
        }
        registry.schema(&one).await.unwrap();
        // Two schemas, and the one that both need.
        assert_eq!(registry.inner.asked.load(Ordering::SeqCst), 3);
    }

    #[tokio::test]
    async fn an_error_is_not_kept() {
        let registry = CachedRegistry::new(Counting {
            failures: 1,
            ..Counting::default()
        });
        let one = SchemaRef::Id(SchemaId(1));
        assert_eq!(
            registry.schema(&one).await.unwrap_err().kind(),
            ErrorKind::Unavailable
        );
        assert!(registry.schemas.lock().unwrap().is_empty());
        assert_eq!(registry.schema(&one).await.unwrap().text, "id 1");
    }
}
