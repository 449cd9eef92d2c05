use std::collections::HashMap;

/// The values that a schema allows, as far as columns tell them apart: for each kind of JSON value whether it may be
/// there, and what is known of it. `allOf` intersects domains, `anyOf` and `oneOf` unite them.
#[derive(Debug, Clone, Default, PartialEq)]
pub(super) struct Domain {
    pub(super) null: bool,
    pub(super) boolean: bool,
    pub(super) number: Option<Number>,
    pub(super) string: Option<Text>,
    pub(super) array: Option<Array>,
    pub(super) object: Option<Object>,
    pub(super) doc: Option<String>,
}

#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum Number {
    Double,
    Integer,
    Float,
    Int,
    Decimal {
        precision: u32,
        scale: u32,
    },
    /// Connect's days since 1970-01-01.
    Date,
    /// Connect's milliseconds since midnight.
    Time,
    /// Connect's milliseconds since 1970-01-01.
    Timestamp,
    /// Of several kinds that have no type in common.
    Mixed,
}

#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum Text {
    Plain,
    DateTime,
    Date,
    Time,
    Uuid,
    Base64,
}

#[derive(Debug, Clone, PartialEq)]
pub(super) enum Array {
    Any,
    List(Box<Domain>),
    /// Elements whose types depend on their place.
    Tuple,
}

#[derive(Debug, Clone, PartialEq)]
pub(super) struct Object {
    pub(super) fields: Vec<(String, Domain)>,
    pub(super) rest: Rest,
}

/// What the fields without a name in the schema may be.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Rest {
    Any,
    Nothing,
    Values(Box<Domain>),
}

impl Domain {
    /// Every JSON value.
    pub(super) fn any() -> Self {
        Self {
            null: true,
            boolean: true,
            number: Some(Number::Double),
            string: Some(Text::Plain),
            array: Some(Array::Any),
            object: Some(Object::any()),
            doc: None,
        }
    }

    /// No value at all.
    pub(super) fn nothing() -> Self {
        Self::default()
    }

    /// Whether it is every value, whatever its description.
    pub(super) fn is_any(&self) -> bool {
        let mut bare = Self::any();
        bare.doc.clone_from(&self.doc);
        *self == bare
    }

    /// The values that both allow; of two ways to see them the more telling one.
    pub(super) fn and(self, other: Self) -> Self {
        Self {
            null: self.null && other.null,
            boolean: self.boolean && other.boolean,
            number: self.number.zip(other.number).map(|(a, b)| a.and(b)),
            string: self.string.zip(other.string).map(|(a, b)| a.and(b)),
            array: self.array.zip(other.array).map(|(a, b)| a.and(b)),
            object: self.object.zip(other.object).map(|(a, b)| a.and(b)),
            doc: self.doc.or(other.doc),
        }
    }

    /// The values that one of them allows.
    pub(super) fn or(self, other: Self) -> Self {
        fn either<T>(a: Option<T>, b: Option<T>, both: impl FnOnce(T, T) -> T) -> Option<T> {
            match (a, b) {
                (Some(a), Some(b)) => Some(both(a, b)),
                (a, b) => a.or(b),
            }
        }
        Self {
            null: self.null || other.null,
            boolean: self.boolean || other.boolean,
            number: either(self.number, other.number, Number::or),
            string: either(self.string, other.string, Text::or),
            array: either(self.array, other.array, Array::or),
            object: either(self.object, other.object, Object::or),
            doc: self.doc.or(other.doc),
        }
    }
}

impl Number {
    fn and(self, other: Self) -> Self {
        if other.narrowness() > self.narrowness() {
            other
        } else {
            self
        }
    }

    fn narrowness(self) -> u8 {
        match self {
            Self::Double => 0,
            Self::Integer => 1,
            Self::Float => 2,
            Self::Int => 3,
            Self::Decimal { .. } | Self::Date | Self::Time | Self::Timestamp => 4,
            Self::Mixed => 5,
        }
    }

    fn or(self, other: Self) -> Self {
        match (self, other) {
            (a, b) if a == b => a,
            (Self::Int, Self::Integer) | (Self::Integer, Self::Int) => Self::Integer,
            (
                Self::Int | Self::Integer | Self::Float | Self::Double,
                Self::Int | Self::Integer | Self::Float | Self::Double,
            ) => Self::Double,
            (
                Self::Decimal { precision, scale },
                Self::Decimal {
                    precision: other,
                    scale: other_scale,
                },
            ) if scale == other_scale => Self::Decimal {
                precision: precision.max(other),
                scale,
            },
            _ => Self::Mixed,
        }
    }
}

impl Text {
    fn and(self, other: Self) -> Self {
        if self == Self::Plain { other } else { self }
    }

    fn or(self, other: Self) -> Self {
        if self == other { self } else { Self::Plain }
    }
}

impl Array {
    fn and(self, other: Self) -> Self {
        match (self, other) {
            (Self::Tuple, _) | (_, Self::Tuple) => Self::Tuple,
            (Self::Any, other) | (other, Self::Any) => other,
            (Self::List(a), Self::List(b)) => Self::List(Box::new(a.and(*b))),
        }
    }

    fn or(self, other: Self) -> Self {
        match (self, other) {
            (Self::List(a), Self::List(b)) => Self::List(Box::new(a.or(*b))),
            _ => Self::Any,
        }
    }
}

impl Object {
    pub(super) fn any() -> Self {
        Self {
            fields: Vec::new(),
            rest: Rest::Any,
        }
    }

    fn and(self, other: Self) -> Self {
        Self {
            fields: merged(self.fields, other.fields, Domain::and),
            rest: match (self.rest, other.rest) {
                (Rest::Nothing, _) | (_, Rest::Nothing) => Rest::Nothing,
                (Rest::Any, rest) | (rest, Rest::Any) => rest,
                (Rest::Values(a), Rest::Values(b)) => Rest::Values(Box::new(a.and(*b))),
            },
        }
    }

    fn or(self, other: Self) -> Self {
        Self {
            fields: merged(self.fields, other.fields, Domain::or),
            rest: match (self.rest, other.rest) {
                (Rest::Any, _) | (_, Rest::Any) => Rest::Any,
                (Rest::Nothing, rest) | (rest, Rest::Nothing) => rest,
                (Rest::Values(a), Rest::Values(b)) => Rest::Values(Box::new(a.or(*b))),
            },
        }
    }

    /// Adds fields that are only there under a condition.
    pub(super) fn may_have(&mut self, fields: Vec<(String, Domain)>) {
        let own = std::mem::take(&mut self.fields);
        // What holds in any case is known better than what holds under a condition.
        self.fields = merged(
            own,
            fields,
            |own, conditional| {
                if own.is_any() { conditional } else { own }
            },
        );
    }
}

fn merged(
    mut fields: Vec<(String, Domain)>,
    others: Vec<(String, Domain)>,
    both: impl Fn(Domain, Domain) -> Domain,
) -> Vec<(String, Domain)> {
    /// Up to here looking through the fields is cheaper than an index of them: schemas may have thousands of branches
    /// of a field or two.
    const FEW: usize = 8;
    if fields.is_empty() {
        return others;
    }
    let index: Option<HashMap<String, usize>> = (others.len() > FEW).then(|| {
        let positions = fields.iter().enumerate();
        positions
            .map(|(position, (name, _))| (name.clone(), position))
            .collect()
    });
    for (name, domain) in others {
        // Names are unique among the others, so those that are added need no place in the index.
        let position = match &index {
            Some(index) => index.get(&name).copied(),
            None => fields.iter().position(|(own, _)| *own == name),
        };
        match position {
            Some(position) => {
                let own = std::mem::take(&mut fields[position].1);
                fields[position].1 = both(own, domain);
            }
            None => fields.push((name, domain)),
        }
    }
    fields
}
