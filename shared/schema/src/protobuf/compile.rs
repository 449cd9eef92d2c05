use std::cell::RefCell;
use std::collections::HashMap;
use std::rc::Rc;
use std::sync::Arc;

use frazil_core::{Error, Result};
use protox::Compiler;
use protox::file::{ChainFileResolver, File, FileResolver, GoogleFileResolver};
use protox::prost_reflect::prost_types::{
    DescriptorProto, EnumDescriptorProto, FieldDescriptorProto, FileDescriptorProto, UninterpretedOption,
};
use protox::prost_reflect::{DescriptorPool, EnumDescriptor, FieldDescriptor, Kind, MessageDescriptor};

use super::options::{Features, FieldMeta};
use super::source::prepare;
use super::{
    MAX_PROTOBUF_BYTES, MAX_PROTOBUF_FILES, MAX_SCHEMA_BYTES, ProtobufCardinality, ProtobufEnum,
    ProtobufField, ProtobufFile, ProtobufKind, ProtobufMessage, ProtobufTypes, WellKnown, builtin, invalid,
};

/// The file itself has no name in a registry. This one is for messages only.
const MAIN: &str = "schema.proto";

pub(super) fn compile(text: &str, references: &[(String, String)]) -> Result<ProtobufFile> {
    check_sizes(text, references)?;
    let mut files: HashMap<String, String> = references.iter().cloned().collect();
    let main = (0..)
        .map(|index| {
            if index == 0 {
                MAIN.to_owned()
            } else {
                format!("schema{index}.proto")
            }
        })
        .find(|name| !files.contains_key(name))
        .unwrap_or_default();
    files.insert(main.clone(), text.to_owned());

    let facts = Rc::new(RefCell::new(HashMap::new()));
    let missing = Rc::new(RefCell::new(Vec::new()));
    let mut resolver = ChainFileResolver::new();
    resolver.add(GoogleFileResolver::new());
    resolver.add(Texts {
        files,
        facts: Rc::clone(&facts),
        missing: Rc::clone(&missing),
    });
    let mut compiler = Compiler::with_file_resolver(resolver);
    compiler
        .open_file(&main)
        .map_err(|error| refused(&error, &missing.borrow()))?;
    let pool = compiler.descriptor_pool();
    let types = Types::of(&pool, &facts.borrow());
    let messages = pool.get_file_by_name(&main).map_or_else(Vec::new, |file| {
        let names = file.messages().map(|message| types.by_name[message.full_name()]);
        names.collect()
    });
    Ok(ProtobufFile {
        types: Arc::new(types),
        messages,
    })
}

fn check_sizes(text: &str, references: &[(String, String)]) -> Result<()> {
    if references.len() > MAX_PROTOBUF_FILES {
        return Err(invalid(format!(
            "it comes with {} other files; the limit is {MAX_PROTOBUF_FILES}",
            references.len()
        )));
    }
    let texts = || references.iter().map(|(_, text)| text.len()).chain([text.len()]);
    if let Some(len) = texts().find(|len| *len > MAX_SCHEMA_BYTES) {
        return Err(invalid(format!(
            "a file is {len} bytes long; the limit is {MAX_SCHEMA_BYTES}"
        )));
    }
    let total: usize = texts().sum();
    if total > MAX_PROTOBUF_BYTES {
        return Err(invalid(format!(
            "the files are {total} bytes long together; the limit is {MAX_PROTOBUF_BYTES}"
        )));
    }
    Ok(())
}

fn refused(error: &protox::Error, missing: &[String]) -> Error {
    // Of what the parser says, `Debug` is the form with file, line and column.
    let shown = if error.is_parse() {
        format!("{error:?}")
    } else {
        error.to_string()
    };
    let shown = shown.lines().next().unwrap_or_default();
    if missing.is_empty() {
        return invalid(shown);
    }
    let names = missing.join("`, `");
    invalid(format!(
        "{shown}, and there is no file `{names}`, which is imported"
    ))
    .with_hint("register the imported file, and name it among the schema's references")
}

/// What the compiler does not hand on about a field, by the field's full name.
#[derive(Debug, Default)]
struct Facts {
    implicit: bool,
    delimited: bool,
    meta: FieldMeta,
    comment: Option<String>,
}

/// The files of a schema, and the built-in ones.
struct Texts {
    files: HashMap<String, String>,
    facts: Rc<RefCell<HashMap<String, Facts>>>,
    /// Imports that nobody has. Many files import others for their options alone, which are ignored: only where a
    /// type is missing, too, is that a fault.
    missing: Rc<RefCell<Vec<String>>>,
}

impl FileResolver for Texts {
    fn open_file(&self, name: &str) -> Result<File, protox::Error> {
        let known = builtin::text(name).or_else(|| self.files.get(name).map(String::as_str));
        let text = known.unwrap_or_else(|| {
            self.missing.borrow_mut().push(name.to_owned());
            ""
        });
        let (text, edition) = prepare(name, text).map_err(|error| protox::Error::new(error.message()))?;
        let mut file = File::from_source(name, &text)?.file_descriptor_proto().clone();
        let mut reader = FactReader {
            edition,
            facts: &mut self.facts.borrow_mut(),
            comments: comments(&mut file),
            place: Vec::new(),
        };
        reader
            .file(&mut file)
            .map_err(|message| protox::Error::new(format!("{name}: {message}")))?;
        Ok(File::from_file_descriptor_proto(file))
    }
}

/// The comments before the things of a file, by place.
fn comments(file: &mut FileDescriptorProto) -> HashMap<Vec<i32>, String> {
    let locations = file.source_code_info.take().unwrap_or_default().location;
    locations
        .into_iter()
        .filter_map(|location| {
            let comment = location.leading_comments.or(location.trailing_comments)?;
            let lines = comment
                .lines()
                .map(|line| line.trim().trim_start_matches('*').trim());
            let text = lines
                .filter(|line| !line.is_empty())
                .collect::<Vec<_>>()
                .join(" ");
            (!text.is_empty()).then_some((location.path, text))
        })
        .collect()
}

/// Takes what is needed out of a file's options, and all that the compiler could trip over.
struct FactReader<'a> {
    edition: bool,
    facts: &'a mut HashMap<String, Facts>,
    comments: HashMap<Vec<i32>, String>,
    place: Vec<i32>,
}

/// Numbers of fields in Protobuf's own `FileDescriptorProto` and `DescriptorProto`.
const FILE_MESSAGE: i32 = 4;
const MESSAGE_FIELD: i32 = 2;
const MESSAGE_NESTED: i32 = 3;

impl FactReader<'_> {
    fn file(&mut self, file: &mut FileDescriptorProto) -> Result<(), String> {
        let scope = file.package.clone().unwrap_or_default();
        let options = file.options.take().unwrap_or_default();
        let features = Features::default().with(&options.uninterpreted_option);
        if self.edition {
            file.syntax = None; // as in proto2, every field may tell whether it is set
        }
        file.service.clear();
        file.extension.clear();
        file.enum_type.iter_mut().for_each(strip_enum);
        for (index, message) in file.message_type.iter_mut().enumerate() {
            self.inside(FILE_MESSAGE, index, |reader| {
                reader.message(message, &scope, features)
            })?;
        }
        Ok(())
    }

    fn inside<T>(&mut self, field: i32, index: usize, read: impl FnOnce(&mut Self) -> T) -> T {
        self.place
            .extend([field, i32::try_from(index).unwrap_or(i32::MAX)]);
        let result = read(self);
        self.place.truncate(self.place.len() - 2);
        result
    }

    fn message(
        &mut self,
        message: &mut DescriptorProto,
        scope: &str,
        features: Features,
    ) -> Result<(), String> {
        let name = within(scope, message.name());
        let mut options = message.options.take().unwrap_or_default();
        let features = features.with(&options.uninterpreted_option);
        let map_entry = options.map_entry();
        options
            .uninterpreted_option
            .retain(|option| is_named(option, "message_set_wire_format"));
        message.options = Some(options);
        message.extension.clear();
        message.enum_type.iter_mut().for_each(strip_enum);
        for oneof in &mut message.oneof_decl {
            oneof.options = None;
        }
        for range in &mut message.extension_range {
            range.options = None;
        }
        if !map_entry {
            for (index, field) in message.field.iter_mut().enumerate() {
                self.inside(MESSAGE_FIELD, index, |reader| {
                    reader.field(field, &name, features)
                })?;
            }
        }
        for (index, nested) in message.nested_type.iter_mut().enumerate() {
            self.inside(MESSAGE_NESTED, index, |reader| {
                reader.message(nested, &name, features)
            })?;
        }
        Ok(())
    }

    fn field(
        &mut self,
        field: &mut FieldDescriptorProto,
        message: &str,
        features: Features,
    ) -> Result<(), String> {
        if self.edition && field.proto3_optional() {
            return Err(format!(
                "field `{}` of `{message}`: editions have no label `optional`",
                field.name()
            ));
        }
        let options = field.options.take().unwrap_or_default().uninterpreted_option;
        let features = features.with(&options);
        let facts = Facts {
            implicit: self.edition && features.implicit,
            delimited: self.edition && features.delimited,
            meta: FieldMeta::of(&options),
            comment: self.comments.remove(&self.place),
        };
        self.facts.insert(within(message, field.name()), facts);
        Ok(())
    }
}

fn within(scope: &str, name: &str) -> String {
    if scope.is_empty() {
        name.to_owned()
    } else {
        format!("{scope}.{name}")
    }
}

fn is_named(option: &UninterpretedOption, name: &str) -> bool {
    matches!(&option.name[..], [only] if only.name_part == name && !only.is_extension)
}

fn strip_enum(declared: &mut EnumDescriptorProto) {
    if let Some(options) = &mut declared.options {
        options
            .uninterpreted_option
            .retain(|option| is_named(option, "allow_alias"));
    }
    for value in &mut declared.value {
        value.options = None;
    }
}

/// The compiler's types as our own.
struct Types<'a> {
    facts: &'a HashMap<String, Facts>,
    messages: HashMap<String, usize>,
    enums: HashMap<String, usize>,
}

impl<'a> Types<'a> {
    fn of(pool: &DescriptorPool, facts: &'a HashMap<String, Facts>) -> ProtobufTypes {
        let indexed = |names: Vec<String>| names.into_iter().zip(0..).collect();
        let types = Self {
            facts,
            messages: indexed(pool.all_messages().map(|m| m.full_name().to_owned()).collect()),
            enums: indexed(pool.all_enums().map(|e| e.full_name().to_owned()).collect()),
        };
        let mut messages: Vec<ProtobufMessage> = pool
            .all_messages()
            .map(|message| types.message(&message))
            .collect();
        for field in pool.all_messages().flat_map(|m| m.fields().collect::<Vec<_>>()) {
            if let Kind::Message(group) = field.kind()
                && field.is_group()
            {
                messages[types.messages[group.full_name()]].synthetic = true;
            }
        }
        ProtobufTypes {
            messages,
            enums: pool.all_enums().map(|declared| enumeration(&declared)).collect(),
            by_name: types.messages,
        }
    }

    fn message(&self, message: &MessageDescriptor) -> ProtobufMessage {
        let declared = message.descriptor_proto();
        let fields: Vec<ProtobufField> = declared
            .field
            .iter()
            .filter_map(|field| message.get_field_by_name(field.name()))
            .map(|field| self.field(&field))
            .collect();
        let made_up = |oneof: usize| {
            declared.field.iter().any(|field| {
                field.proto3_optional()
                    && field.oneof_index.and_then(|i| usize::try_from(i).ok()) == Some(oneof)
            })
        };
        ProtobufMessage {
            name: message.full_name().to_owned(),
            oneofs: message
                .oneofs()
                .enumerate()
                .filter(|(index, _)| !made_up(*index))
                .map(|(_, oneof)| oneof.name().to_owned())
                .collect(),
            well_known: WellKnown::of(message.full_name(), &fields),
            fields,
            nested: message
                .child_messages()
                .map(|nested| self.messages[nested.full_name()])
                .collect(),
            synthetic: message.is_map_entry(),
        }
    }

    fn field(&self, field: &FieldDescriptor) -> ProtobufField {
        let none = Facts::default();
        let facts = self.facts.get(field.full_name()).unwrap_or(&none);
        let declared = field.field_descriptor_proto();
        let oneof = declared
            .oneof_index
            .and_then(|index| usize::try_from(index).ok())
            .filter(|_| !declared.proto3_optional());
        let cardinality = if field.is_map() {
            ProtobufCardinality::Map
        } else if field.is_list() {
            ProtobufCardinality::Repeated
        } else if field.supports_presence() && !(facts.implicit && may_be_implicit(field)) {
            ProtobufCardinality::Explicit
        } else {
            ProtobufCardinality::Implicit
        };
        let delimited = field.is_group() || (facts.delimited && !field.is_map());
        ProtobufField {
            name: field.name().to_owned(),
            json_name: field.json_name().to_owned(),
            number: field.number(),
            kind: self.kind(&field.kind(), delimited),
            cardinality,
            oneof,
            doc: facts.meta.doc.clone().or_else(|| facts.comment.clone()),
            decimal: facts.meta.decimal(),
        }
    }

    fn kind(&self, kind: &Kind, delimited: bool) -> ProtobufKind {
        use ProtobufKind as K;
        match kind {
            Kind::Double => K::Double,
            Kind::Float => K::Float,
            Kind::Int32 => K::Int32,
            Kind::Int64 => K::Int64,
            Kind::Uint32 => K::Uint32,
            Kind::Uint64 => K::Uint64,
            Kind::Sint32 => K::Sint32,
            Kind::Sint64 => K::Sint64,
            Kind::Fixed32 => K::Fixed32,
            Kind::Fixed64 => K::Fixed64,
            Kind::Sfixed32 => K::Sfixed32,
            Kind::Sfixed64 => K::Sfixed64,
            Kind::Bool => K::Bool,
            Kind::String => K::String,
            Kind::Bytes => K::Bytes,
            Kind::Enum(declared) => K::Enum(self.enums[declared.full_name()]),
            Kind::Message(message) if delimited => K::Group(self.messages[message.full_name()]),
            Kind::Message(message) => K::Message(self.messages[message.full_name()]),
        }
    }
}

/// Messages and members of a oneof always tell whether they are set.
fn may_be_implicit(field: &FieldDescriptor) -> bool {
    field.containing_oneof().is_none() && field.kind().as_message().is_none()
}

fn enumeration(declared: &EnumDescriptor) -> ProtobufEnum {
    let values = &declared.enum_descriptor_proto().value;
    let mut values: Vec<(i32, String)> = values
        .iter()
        .map(|value| (value.number(), value.name().to_owned()))
        .collect();
    let default = values.first().map_or(0, |(number, _)| *number);
    values.sort_by_key(|(number, _)| *number); // stable: the first of aliases stays the first
    values.dedup_by_key(|(number, _)| *number);
    ProtobufEnum {
        name: declared.full_name().to_owned(),
        values,
        default,
    }
}
