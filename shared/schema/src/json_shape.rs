use std::collections::HashMap;

use iceberg::spec::{PrimitiveType, Schema, StructType, Type};

use crate::{Column, ColumnType, FieldMap, FieldMapping, FieldPath, Mapping, RecordPart};

/// A table takes this many value columns from inferred JSON by default: objects with ids for keys would
/// otherwise give it thousands, and every query pays for them.
pub const MAX_COLUMNS: usize = 500;
/// Objects and lists nested deeper than this are kept as JSON text: no reader asks for the column below.
pub const MAX_COLUMN_DEPTH: usize = 64;

/// Kinds of JSON scalar, as far as columns tell them apart.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum JsonScalar {
    /// `true` or `false`.
    Boolean,
    /// An integer that a double holds exactly: at most 2⁵³ from zero.
    Integer,
    /// Any other integer of 64 bits.
    WideInteger,
    /// A number with a fraction or an exponent, within a double's range.
    Fraction,
    /// A number that is neither: an integer beyond 64 bits, or beyond a double's range.
    HugeNumber,
    /// A string.
    String,
}

impl JsonScalar {
    /// The variant of the sibling column for a value of this kind that its own column cannot hold.
    pub fn variant(self) -> &'static str {
        match self {
            Self::Boolean => "boolean",
            Self::Integer | Self::WideInteger => "long",
            Self::Fraction => "double",
            Self::HugeNumber | Self::String => "string",
        }
    }

    /// Whether a column of this type holds the value unchanged (a double rounds the decimals of a fraction).
    pub fn fits(self, column: &PrimitiveType) -> bool {
        match column {
            PrimitiveType::String => true,
            PrimitiveType::Boolean => self == Self::Boolean,
            PrimitiveType::Long => matches!(self, Self::Integer | Self::WideInteger),
            PrimitiveType::Double => matches!(self, Self::Integer | Self::Fraction),
            _ => false,
        }
    }

    fn is_number(self) -> bool {
        !matches!(self, Self::Boolean | Self::String)
    }

    const ALL: [Self; 6] = [
        Self::Boolean,
        Self::Integer,
        Self::WideInteger,
        Self::Fraction,
        Self::HugeNumber,
        Self::String,
    ];
}

/// What has been seen at one place of an event's JSON values: enough to choose its column's type.
#[derive(Debug, Clone, Default)]
pub struct JsonShape {
    kinds: Kinds,
    fields: Vec<(String, JsonShape)>,
    positions: HashMap<String, usize>,
    elements: Option<Box<JsonShape>>,
    digits: Digits,
}

/// The most digits that numbers had before and after the point.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
struct Digits {
    whole: u32,
    fraction: u32,
}

impl Digits {
    fn fit(self, precision: u32, scale: u32) -> bool {
        self.fraction <= scale && self.whole <= precision.saturating_sub(scale)
    }
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
struct Kinds(u8);

impl Kinds {
    const OBJECT: u8 = 64;
    const ARRAY: u8 = 128;

    fn add(&mut self, scalar: JsonScalar) {
        self.0 |= 1 << scalar as u8;
    }

    fn scalars(self) -> impl Iterator<Item = JsonScalar> {
        JsonScalar::ALL
            .into_iter()
            .filter(move |scalar| self.0 & (1 << *scalar as u8) != 0)
    }

    fn only_from(self, allowed: &[JsonScalar]) -> bool {
        self.scalars().all(|scalar| allowed.contains(&scalar))
    }
}

impl JsonShape {
    /// A scalar was seen here.
    pub fn see_scalar(&mut self, scalar: JsonScalar) {
        self.kinds.add(scalar);
    }

    /// A number with so many digits before and after the point, zeros around it left out, was seen here.
    pub fn see_digits(&mut self, whole: u32, fraction: u32) {
        self.digits.whole = self.digits.whole.max(whole);
        self.digits.fraction = self.digits.fraction.max(fraction);
    }

    /// An object was seen here.
    pub fn see_object(&mut self) {
        self.kinds.0 |= Kinds::OBJECT;
    }

    /// A list was seen here; its elements go into what is returned.
    pub fn see_array(&mut self) -> &mut JsonShape {
        self.kinds.0 |= Kinds::ARRAY;
        self.elements.get_or_insert_default()
    }

    /// The place of an object's field. The order in which names first come is the order of the columns.
    pub fn field(&mut self, name: &str) -> &mut JsonShape {
        let position = match self.positions.get(name) {
            Some(position) => *position,
            None => {
                self.positions.insert(name.to_owned(), self.fields.len());
                self.fields.push((name.to_owned(), JsonShape::default()));
                self.fields.len() - 1
            }
        };
        &mut self.fields[position].1
    }

    /// The columns that the values need, given what the table has.
    ///
    /// A field without a column gets the type that holds all of its values. A field with one keeps it, and values
    /// that do not fit go to siblings (`price__double`), so neither the order of arrival nor a sloppy producer
    /// loses a value. What is only ever null or empty waits for a type. Beyond `max_columns`, new fields go into
    /// `_kafka_unknown_fields`. A field that the settings exclude has no column, and one that they hash has one of
    /// strings: whoever saw the values has hashed them.
    pub fn columns(
        &self,
        table: Option<(&Schema, &FieldMap)>,
        max_columns: usize,
        mapping: &Mapping,
    ) -> Vec<Column> {
        self.columns_of(RecordPart::Value, table, max_columns, mapping)
    }

    /// The same for one part of records. Columns of keys are as [`Column::of_key`] takes them, and have room of their
    /// own; what finds none there is in `_kafka_key`.
    pub fn columns_of(
        &self,
        part: RecordPart,
        table: Option<(&Schema, &FieldMap)>,
        max_columns: usize,
        mapping: &Mapping,
    ) -> Vec<Column> {
        let empty = FieldMap::default();
        let (current, fields) = match table {
            Some((schema, fields)) => (Some(schema.as_struct()), fields),
            None => (None, &empty),
        };
        let leaves = current.map_or(0, |current| {
            let others = |id: i32| {
                fields
                    .iter()
                    .any(|(path, mapped)| mapped == id && !part.feeds(path))
            };
            current
                .fields()
                .iter()
                .filter(|field| !others(field.id))
                .map(|field| leaves(&field.field_type))
                .sum()
        });
        let mut chooser = Chooser {
            part,
            fields,
            mapping,
            sources: Vec::new(),
            room: max_columns.saturating_sub(leaves),
            overflow: false,
        };
        let mut columns = chooser.object(self, current, &FieldPath::value(), 0);
        if chooser.overflow && part == RecordPart::Value {
            columns.push(Column::unknown_fields());
        }
        columns
    }
}

fn leaves(data_type: &Type) -> usize {
    match data_type {
        Type::Primitive(_) => 1,
        Type::Struct(inner) => inner.fields().iter().map(|field| leaves(&field.field_type)).sum(),
        Type::List(list) => leaves(&list.element_field.field_type),
        Type::Map(map) => leaves(&map.key_field.field_type) + leaves(&map.value_field.field_type),
    }
}

struct Chooser<'a> {
    part: RecordPart,
    fields: &'a FieldMap,
    mapping: &'a Mapping,
    /// The names of the fields around the one that is looked at.
    sources: Vec<String>,
    room: usize,
    overflow: bool,
}

/// A column's type, and the variants that values which it cannot hold go to.
struct Choice {
    column: Option<ColumnType>,
    rest: Vec<&'static str>,
}

impl<'a> Chooser<'a> {
    fn object(
        &mut self,
        shape: &JsonShape,
        current: Option<&StructType>,
        parent: &FieldPath,
        depth: usize,
    ) -> Vec<Column> {
        let mut columns = Vec::new();
        let (mapping, fields, part) = (self.mapping, self.fields, self.part);
        let path_of = |name: &str, variant| match parent.is_value_root() {
            true => parent.field(name, part.variant(variant)),
            false => parent.field(name, variant),
        };
        for (name, shape) in &shape.fields {
            let setting = self.setting(name);
            if setting.is_some_and(|setting| setting.exclude) {
                continue;
            }
            let exists = |variant| {
                current
                    .zip(fields.get(&path_of(name, variant)))
                    .and_then(|(current, id)| current.field_by_id(id))
                    .map(|field| field.field_type.as_ref())
            };
            if let Some(method) = setting.and_then(|setting| setting.hash) {
                let variant = Some(method.as_str());
                if shape.kinds != Kinds::default() && (exists(variant).is_some() || self.claim(1)) {
                    columns.push(Column {
                        variant,
                        ..Column::named(name, mapping.name(name), ColumnType::STRING)
                    });
                }
                continue;
            }
            let wanted = setting.and_then(|setting| setting.data_type.clone());
            let wanted = wanted.map(Type::Primitive);
            let (own, path) = (exists(None), path_of(name, None));
            self.sources.push(name.clone());
            let choice = match own.or(wanted.as_ref()) {
                Some(existing) => self.existing(shape, existing, &path, depth + 1),
                None => self.new_type(shape, &path, depth + 1),
            };
            self.sources.pop();
            if let Some(data_type) = choice.column
                && (own.is_some() || self.claim(data_type.leaves()))
            {
                columns.push(Column::named(name, mapping.name(name), data_type));
            }
            for variant in choice.rest {
                if exists(Some(variant)).is_some() || self.claim(1) {
                    let mut sibling = Column::sibling(name, variant, sibling_type(variant));
                    sibling.name = format!("{}__{variant}", mapping.name(name));
                    columns.push(sibling);
                }
            }
        }
        columns
    }

    /// What the settings say about a field of the object that is looked at.
    fn setting(&self, name: &str) -> Option<&'a FieldMapping> {
        if self.mapping.fields.is_empty() {
            return None;
        }
        let parent: Vec<&str> = self.sources.iter().map(String::as_str).collect();
        self.mapping.field(&parent, name)
    }

    fn claim(&mut self, leaves: usize) -> bool {
        let fits = leaves <= self.room;
        if fits {
            self.room -= leaves;
        } else {
            self.overflow = true;
        }
        fits
    }

    fn new_type(&mut self, shape: &JsonShape, path: &FieldPath, depth: usize) -> Choice {
        use JsonScalar::{Boolean, Fraction, Integer, WideInteger};
        let kinds = shape.kinds;
        let scalars = kinds.scalars().next().is_some();
        let (object, array) = (kinds.0 & Kinds::OBJECT != 0, kinds.0 & Kinds::ARRAY != 0);
        let mut rest = Vec::new();
        let column = match (scalars, object, array) {
            (false, false, false) => None,
            (false, true, false) | (false, false, true) if depth >= MAX_COLUMN_DEPTH => {
                Some(ColumnType::STRING)
            }
            (false, true, false) => {
                // Room is claimed for the whole: a struct half of whose fields have columns helps nobody.
                let room = std::mem::replace(&mut self.room, usize::MAX);
                let columns = self.object(shape, None, path, depth);
                self.room = room;
                (!columns.is_empty()).then_some(ColumnType::Struct(columns))
            }
            (false, false, true) => {
                let element = shape
                    .elements
                    .as_ref()
                    .map(|elements| self.new_type(elements, &path.element(), depth + 1));
                element.and_then(|element| {
                    if !element.rest.is_empty() {
                        rest.push("string");
                    }
                    Some(ColumnType::List(Box::new(element.column?)))
                })
            }
            (true, false, false) => Some(ColumnType::Primitive(if kinds.only_from(&[Boolean]) {
                PrimitiveType::Boolean
            } else if kinds.only_from(&[Integer, WideInteger]) {
                PrimitiveType::Long
            } else if kinds.only_from(&[Integer, WideInteger, Fraction]) {
                rest.extend(
                    kinds
                        .scalars()
                        .any(|scalar| scalar == WideInteger)
                        .then_some("long"),
                );
                PrimitiveType::Double
            } else {
                PrimitiveType::String
            })),
            _ => Some(ColumnType::STRING),
        };
        Choice { column, rest }
    }

    fn existing(&mut self, shape: &JsonShape, existing: &Type, path: &FieldPath, depth: usize) -> Choice {
        let kinds = shape.kinds;
        let mut rest = Vec::new();
        let mut add = |variant: &'static str| {
            if !rest.contains(&variant) {
                rest.push(variant);
            }
        };
        let mut column = None;
        for scalar in kinds.scalars() {
            match existing {
                Type::Primitive(decimal @ PrimitiveType::Decimal { precision, scale })
                    if scalar.is_number() =>
                {
                    column = Some(ColumnType::Primitive(decimal.clone()));
                    if !shape.digits.fit(*precision, *scale) {
                        add(scalar.variant());
                    }
                }
                Type::Primitive(primitive) if scalar.fits(primitive) => {
                    column = Some(ColumnType::Primitive(primitive.clone()));
                }
                _ => add(scalar.variant()),
            }
        }
        if kinds.0 & Kinds::OBJECT != 0 {
            match existing {
                Type::Struct(inner) => {
                    let columns = self.object(shape, Some(inner), path, depth);
                    column = Some(ColumnType::Struct(columns));
                }
                Type::Primitive(PrimitiveType::String) => column = Some(ColumnType::STRING),
                _ if shape.fields.is_empty() => {}
                _ => add("string"),
            }
        }
        if kinds.0 & Kinds::ARRAY != 0
            && let Some(elements) = &shape.elements
        {
            match existing {
                Type::List(list) => {
                    let element = self.existing(
                        elements,
                        &list.element_field.field_type,
                        &path.element(),
                        depth + 1,
                    );
                    // An empty list is a value too, once there is a column for it.
                    let data_type = element
                        .column
                        .unwrap_or_else(|| bare(&list.element_field.field_type));
                    column = Some(ColumnType::List(Box::new(data_type)));
                    if !element.rest.is_empty() {
                        add("string");
                    }
                }
                Type::Primitive(PrimitiveType::String) => column = Some(ColumnType::STRING),
                _ => add("string"),
            }
        }
        Choice { column, rest }
    }
}

/// The column's own type, for values that hold nothing but nulls.
fn bare(existing: &Type) -> ColumnType {
    match existing {
        Type::Primitive(primitive) => ColumnType::Primitive(primitive.clone()),
        Type::Struct(_) => ColumnType::Struct(Vec::new()),
        Type::List(list) => ColumnType::List(Box::new(bare(&list.element_field.field_type))),
        Type::Map(map) => ColumnType::Map(
            Box::new(bare(&map.key_field.field_type)),
            Box::new(bare(&map.value_field.field_type)),
        ),
    }
}

fn sibling_type(variant: &str) -> ColumnType {
    ColumnType::Primitive(match variant {
        "boolean" => PrimitiveType::Boolean,
        "long" => PrimitiveType::Long,
        "double" => PrimitiveType::Double,
        _ => PrimitiveType::String,
    })
}

#[cfg(test)]
mod tests;
