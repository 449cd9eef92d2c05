use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use async_trait::async_trait;
use frazil_core::{Result, SchemaId};
use tokio::sync::OnceCell;

use crate::{RegisteredSchema, SchemaRegistry};

/// Answers are kept for at most this many ids; the ids of wrong bytes are asked for too, but have no answer.
const MAX_CACHED: usize = 10_000;

/// Keeps every answer for the life of the process. Questions for one id that come at the same time are asked once.
/// Errors are not kept.
#[derive(Debug)]
pub struct CachedRegistry<R> {
    inner: R,
    schemas: Mutex<HashMap<SchemaId, Answer>>,
}

type Answer = Arc<OnceCell<Arc<RegisteredSchema>>>;

impl<R> CachedRegistry<R> {
    /// Puts a cache before `inner`.
    pub fn new(inner: R) -> Self {
        Self {
            inner,
            schemas: Mutex::default(),
        }
    }

    fn answer(&self, id: SchemaId) -> Answer {
        let mut schemas = self.schemas.lock().unwrap_or_else(PoisonError::into_inner);
        if schemas.len() >= MAX_CACHED && !schemas.contains_key(&id) {
            schemas.clear();
        }
        schemas.entry(id).or_default().clone()
    }

    fn forget(&self, id: SchemaId, answer: &Answer) {
        let mut schemas = self.schemas.lock().unwrap_or_else(PoisonError::into_inner);
        // The map's and ours: nobody else is asking.
        if !answer.initialized() && Arc::strong_count(answer) == 2 {
            schemas.remove(&id);
        }
    }
}

#[async_trait]
impl<R: SchemaRegistry> SchemaRegistry for CachedRegistry<R> {
    async fn schema(&self, id: SchemaId) -> Result<Arc<RegisteredSchema>> {
        let answer = self.answer(id);
        match answer.get_or_try_init(|| self.inner.schema(id)).await {
            Ok(schema) => Ok(schema.clone()),
            Err(error) => {
                self.forget(id, &answer);
                Err(error)
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicU32, Ordering};

    use frazil_core::{Error, ErrorKind};

    use super::*;
    use crate::SchemaKind;

    /// Fails the first `failures` times, and gives others a turn before it answers.
    #[derive(Debug, Default)]
    struct Counting {
        asked: AtomicU32,
        failures: u32,
    }

    #[async_trait]
    impl SchemaRegistry for Counting {
        async fn schema(&self, id: SchemaId) -> Result<Arc<RegisteredSchema>> {
            let asked = self.asked.fetch_add(1, Ordering::SeqCst);
            tokio::task::yield_now().await;
            if asked < self.failures {
                return Err(Error::new(
                    ErrorKind::Unavailable,
                    "look up the schema",
                    "it answered 503",
                ));
            }
            Ok(Arc::new(RegisteredSchema {
                id,
                kind: SchemaKind::Avro,
                text: id.to_string(),
            }))
        }
    }

    #[tokio::test]
    async fn concurrent_questions_are_asked_once() {
        let registry = CachedRegistry::new(Arc::new(Counting::default()));
        let (a, b, c) = tokio::join!(
            registry.schema(SchemaId(1)),
            registry.schema(SchemaId(1)),
            registry.schema(SchemaId(2))
        );
        assert_eq!(
            (
                a.unwrap().text.as_str(),
                b.unwrap().text.as_str(),
                c.unwrap().text.as_str()
            ),
            ("1", "1", "2")
        );
        registry.schema(SchemaId(1)).await.unwrap();
        assert_eq!(registry.inner.asked.load(Ordering::SeqCst), 2);
    }

    #[tokio::test]
    async fn an_error_is_not_kept() {
        let registry = CachedRegistry::new(Counting {
            failures: 1,
            ..Counting::default()
        });
        assert_eq!(
            registry.schema(SchemaId(1)).await.unwrap_err().kind(),
            ErrorKind::Unavailable
        );
        assert!(registry.schemas.lock().unwrap().is_empty());
        assert_eq!(registry.schema(SchemaId(1)).await.unwrap().text, "1");
    }
}
