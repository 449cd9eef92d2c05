use std::collections::BTreeMap;
use std::sync::Mutex;

use async_trait::async_trait;

use super::*;
use crate::SchemaKind;

/// Schemas by subject: the kind, and the subjects that each needs, under `subject.proto`.
#[derive(Debug, Default)]
struct Shelf {
    schemas: BTreeMap<String, (SchemaKind, String, Vec<Reference>)>,
    asked: Mutex<Vec<String>>,
}

impl Shelf {
    fn with(mut self, subject: &str, needs: &[&str]) -> Self {
        let reference = |needed: &&str| Reference {
            name: format!("{needed}.proto"),
            target: SchemaRef::version(*needed, 1),
        };
        let schema = (
            SchemaKind::Protobuf,
            format!("text of {subject}"),
            needs.iter().map(reference).collect(),
        );
        self.schemas.insert(subject.to_owned(), schema);
        self
    }
}

#[async_trait]
impl SchemaRegistry for Shelf {
    async fn stored(&self, reference: &SchemaRef) -> Result<Arc<StoredSchema>> {
        let SchemaRef::Subject { subject, .. } = reference else {
            panic!("{reference}");
        };
        self.asked.lock().unwrap().push(subject.clone());
        if subject == "away" {
            return Err(Error::new(ErrorKind::Unavailable, OPERATION, "503"));
        }
        let Some((kind, text, references)) = self.schemas.get(subject) else {
            return Err(Error::new(ErrorKind::Poison, OPERATION, "404"));
        };
        Ok(Arc::new(StoredSchema {
            kind: *kind,
            text: text.clone(),
            references: references.clone(),
        }))
    }
}

fn found(shelf: &Shelf) -> Result<Vec<String>> {
    let root = SchemaRef::version("root", 1);
    let schema = block_on(resolve(shelf, &root))?;
    assert_eq!(schema.text, "text of root");
    Ok(schema
        .references
        .into_iter()
        .map(|(name, text)| {
            assert_eq!(format!("{text}.proto"), format!("text of {name}"));
            name
        })
        .collect())
}

fn block_on<T>(future: impl Future<Output = T>) -> T {
    tokio::runtime::Builder::new_current_thread()
        .build()
        .unwrap()
        .block_on(future)
}

#[track_caller]
fn check_refused(shelf: &Shelf, kind: ErrorKind, code: Option<&str>, reason: &str) {
    let error = found(shelf).unwrap_err();
    assert_eq!((error.kind(), error.code()), (kind, code), "{error}");
    assert!(error.to_string().contains(reason), "{error}");
}

#[test]
fn each_comes_after_those_that_it_needs() {
    let shelf = Shelf::default()
        .with("root", &["a", "b"])
        .with("a", &["c"])
        .with("b", &["c", "d"])
        .with("c", &[])
        .with("d", &[]);
    assert_eq!(
        found(&shelf).unwrap(),
        ["c.proto", "a.proto", "d.proto", "b.proto"]
    );
}

#[test]
fn a_circle_is_refused() {
    let shelf = Shelf::default()
        .with("root", &["a"])
        .with("a", &["b"])
        .with("b", &["a"]);
    check_refused(
        &shelf,
        ErrorKind::Invalid,
        Some("registry.bad_reference"),
        "its references go in a circle, through `a.proto` (subject a, version 1)",
    );
    let shelf = Shelf::default().with("root", &["root"]);
    check_refused(
        &shelf,
        ErrorKind::Invalid,
        Some("registry.bad_reference"),
        "in a circle",
    );
}

#[test]
fn what_is_missing_is_the_schemas_fault_and_what_is_away_is_not() {
    let shelf = Shelf::default().with("root", &["a"]);
    check_refused(
        &shelf,
        ErrorKind::Invalid,
        Some("registry.bad_reference"),
        "it refers to `a.proto`, and the registry has no subject a, version 1 (schema=subject root, version 1)",
    );
    let shelf = Shelf::default().with("root", &["away"]);
    check_refused(&shelf, ErrorKind::Unavailable, None, "503");
}

#[test]
fn one_name_means_one_text() {
    let mut shelf = Shelf::default()
        .with("root", &["a", "b"])
        .with("a", &[])
        .with("b", &[]);
    let (_, _, references) = shelf.schemas.get_mut("root").unwrap();
    references[1].name = "a.proto".to_owned();
    check_refused(
        &shelf,
        ErrorKind::Invalid,
        Some("registry.bad_reference"),
        "two different schemas that it needs are called `a.proto`",
    );
}

#[test]
fn languages_do_not_mix() {
    let mut shelf = Shelf::default().with("root", &["a"]).with("a", &[]);
    shelf.schemas.get_mut("a").unwrap().0 = SchemaKind::Json;
    check_refused(
        &shelf,
        ErrorKind::Invalid,
        Some("registry.bad_reference"),
        "it is PROTOBUF, and `a.proto`, which it refers to, is JSON",
    );
}

#[test]
fn depth_count_and_size_are_bounded() {
    let names: Vec<String> = (0..=MAX_REFERENCES).map(|n| format!("n{n}")).collect();
    let chain = |depth: usize| {
        let mut shelf = Shelf::default().with("root", &["n0"]);
        for pair in names[..depth].windows(2) {
            shelf = shelf.with(&pair[0], &[pair[1].as_str()]);
        }
        shelf.with(&names[depth - 1], &[])
    };
    assert_eq!(
        found(&chain(MAX_REFERENCE_DEPTH)).unwrap().len(),
        MAX_REFERENCE_DEPTH
    );
    check_refused(
        &chain(MAX_REFERENCE_DEPTH + 1),
        ErrorKind::Invalid,
        Some("registry.too_large"),
        "more than 32 levels deep",
    );

    let wide = |count: usize| {
        let needs: Vec<&str> = names[..count].iter().map(String::as_str).collect();
        let shelf = Shelf::default().with("root", &needs);
        needs.iter().fold(shelf, |shelf, name| shelf.with(name, &[]))
    };
    assert_eq!(found(&wide(MAX_REFERENCES)).unwrap().len(), MAX_REFERENCES);
    check_refused(
        &wide(MAX_REFERENCES + 1),
        ErrorKind::Invalid,
        Some("registry.too_large"),
        "it needs more than 500 others",
    );

    let mut shelf = wide(1);
    shelf.schemas.get_mut("n0").unwrap().1 = " ".repeat(MAX_RESOLVED_BYTES);
    check_refused(
        &shelf,
        ErrorKind::Invalid,
        Some("registry.too_large"),
        "longer than 8388608 bytes",
    );
}

/// Layers in which every schema needs all of the next layer: 3^20 paths, 61 schemas.
#[test]
fn what_many_need_is_walked_once() {
    const LAYERS: usize = 20;
    let name = |layer: usize, place: usize| format!("l{layer}x{place}");
    let mut shelf = Shelf::default().with("root", &["l0x0", "l0x1", "l0x2"]);
    for layer in 0..LAYERS {
        let next: Vec<String> = (0..3).map(|place| name(layer + 1, place)).collect();
        let needs: Vec<&str> = next.iter().map(String::as_str).collect();
        for place in 0..3 {
            let needs: &[&str] = if layer + 1 < LAYERS { &needs } else { &[] };
            shelf = shelf.with(&name(layer, place), needs);
        }
    }
    assert_eq!(found(&shelf).unwrap().len(), 3 * LAYERS);
    assert_eq!(shelf.asked.lock().unwrap().len(), 1 + 3 * LAYERS);
}
