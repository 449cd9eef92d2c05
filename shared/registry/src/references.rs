use std::collections::HashMap;
use std::sync::Arc;

use frazil_core::{Error, ErrorKind, Result};
use frazil_kafka::wire::SchemaRef;

use crate::{Reference, RegisteredSchema, SchemaRegistry, StoredSchema};

/// The most schemas that one may need. Each is a request when the function starts; published schemas have a few dozen.
pub const MAX_REFERENCES: usize = 500;

/// The longest chain of references, one schema needing another.
pub const MAX_REFERENCE_DEPTH: usize = 32;

/// The most bytes of text of a schema with all that it needs: a multiple of what a registry takes for one.
pub const MAX_RESOLVED_BYTES: usize = 8 << 20;

const OPERATION: &str = "look up the schema";

/// Fetches a schema and what it refers to, depth first, so that each text comes after those that it needs.
pub(crate) async fn resolve<R: SchemaRegistry + ?Sized>(
    registry: &R,
    reference: &SchemaRef,
) -> Result<RegisteredSchema> {
    let root = registry.stored(reference).await?;
    let mut bytes = root.text.len();
    let mut seen: HashMap<SchemaRef, State> = HashMap::from([(reference.clone(), State::Open)]);
    let mut references: Vec<(String, String)> = Vec::new();
    let mut by_name: HashMap<String, usize> = HashMap::new();
    let mut path = vec![Level::new(String::new(), reference.clone(), root.clone())];
    while let Some(level) = path.last_mut() {
        let Some(next) = level.schema.references.get(level.next).cloned() else {
            // Everything that it needs is there: now itself, unless it is the root.
            seen.insert(level.target.clone(), State::Done(level.schema.clone()));
            let done = path.pop();
            if let Some(Level { name, schema, .. }) = done.filter(|_| !path.is_empty()) {
                add(&mut references, &mut by_name, name, &schema.text, reference)?;
            }
            continue;
        };
        level.next += 1;
        match seen.get(&next.target) {
            Some(State::Open) => return Err(circle(reference, &next)),
            // The text is there; it may have another name here.
            Some(State::Done(schema)) => {
                add(&mut references, &mut by_name, next.name, &schema.text, reference)?;
                continue;
            }
            None => {}
        }
        if path.len() > MAX_REFERENCE_DEPTH {
            let reason = format!("its references are more than {MAX_REFERENCE_DEPTH} levels deep");
            return Err(beyond(reference, reason));
        }
        if seen.len() > MAX_REFERENCES {
            return Err(beyond(
                reference,
                format!("it needs more than {MAX_REFERENCES} others"),
            ));
        }
        let schema = registry
            .stored(&next.target)
            .await
            .map_err(|error| of_reference(reference, &next, error))?;
        if schema.kind != root.kind {
            let (found, wanted) = (schema.kind.as_str(), root.kind.as_str());
            let reason = format!(
                "it is {wanted}, and `{}`, which it refers to, is {found}",
                next.name
            );
            return Err(unusable(reference, reason, "registry.bad_reference"));
        }
        bytes += schema.text.len();
        if bytes > MAX_RESOLVED_BYTES {
            let reason = format!("with all that it refers to it is longer than {MAX_RESOLVED_BYTES} bytes");
            return Err(beyond(reference, reason));
        }
        seen.insert(next.target.clone(), State::Open);
        path.push(Level::new(next.name, next.target, schema));
    }
    Ok(RegisteredSchema {
        kind: root.kind,
        text: root.text.clone(),
        references,
    })
}

enum State {
    /// On the path to where we are: to meet it again is a circle.
    Open,
    Done(Arc<StoredSchema>),
}

/// A schema on the path, and the next of its references.
struct Level {
    name: String,
    target: SchemaRef,
    schema: Arc<StoredSchema>,
    next: usize,
}

impl Level {
    fn new(name: String, target: SchemaRef, schema: Arc<StoredSchema>) -> Self {
        Self {
            name,
            target,
            schema,
            next: 0,
        }
    }
}

/// Adds a text under its name. A name may come again for the same text, not for another one: the schema's text could
/// mean either.
fn add(
    references: &mut Vec<(String, String)>,
    by_name: &mut HashMap<String, usize>,
    name: String,
    text: &str,
    root: &SchemaRef,
) -> Result<()> {
    match by_name.get(&name) {
        Some(&index) if references[index].1 == text => Ok(()),
        Some(_) => Err(unusable(
            root,
            format!("two different schemas that it needs are called `{name}`"),
            "registry.bad_reference",
        )),
        None => {
            if references.len() >= MAX_REFERENCES {
                return Err(beyond(
                    root,
                    format!("it needs more than {MAX_REFERENCES} others"),
                ));
            }
            by_name.insert(name.clone(), references.len());
            references.push((name, text.to_owned()));
            Ok(())
        }
    }
}

fn unusable(root: &SchemaRef, reason: String, code: &'static str) -> Error {
    Error::new(ErrorKind::Invalid, OPERATION, reason)
        .with_context("schema", root)
        .with_code(code)
}

fn beyond(root: &SchemaRef, reason: String) -> Error {
    unusable(root, reason, "registry.too_large").with_hint("register a schema that needs fewer others")
}

fn circle(root: &SchemaRef, reference: &Reference) -> Error {
    let reason = format!(
        "its references go in a circle, through `{}` ({})",
        reference.name, reference.target
    );
    unusable(root, reason, "registry.bad_reference")
}

/// A reference that leads nowhere is a fault of the schema, not of the record: the id exists.
fn of_reference(root: &SchemaRef, reference: &Reference, error: Error) -> Error {
    if error.kind() != ErrorKind::Poison {
        return error;
    }
    let reason = format!(
        "it refers to `{}`, and the registry has no {}",
        reference.name, reference.target
    );
    unusable(root, reason, "registry.bad_reference")
        .with_hint("register what is missing")
        .with_source(error)
}

#[cfg(test)]
mod tests;
