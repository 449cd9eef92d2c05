use std::cell::RefCell;

use toml::Spanned;
use toml::de::{DeArray, DeTable, DeValue};

use crate::fault::{At, FaultList, Located, Problem, closest, join_key};

/// What the reader makes of one TOML value.
pub(crate) trait FromToml: Sized {
    fn from_toml(value: &DeValue<'_>) -> Result<Self, Problem>;
}

/// A key that a later version will know, and what it is for.
pub(crate) type LaterKey = (&'static str, &'static str);

/// What a section may hold.
#[derive(Debug)]
pub(crate) struct Keys {
    /// Every key that is read.
    pub(crate) known: &'static [&'static [&'static str]],
    /// Keys that people may expect and that this version does not have.
    pub(crate) later: &'static [LaterKey],
    /// Keys that people may expect and that Frazil does without: why, and what to do instead.
    pub(crate) instead: &'static [(&'static str, &'static str, &'static str)],
    /// Keys that stand in another section, and which.
    pub(crate) elsewhere: &'static [(&'static str, &'static str)],
}

impl Keys {
    pub(crate) fn names(&self) -> impl Iterator<Item = &'static str> {
        self.known.iter().copied().flatten().copied()
    }
}

/// A table of the file that is being read key by key. Faults go to the list; reading goes on.
#[derive(Debug)]
pub(crate) struct Section<'d> {
    at: At,
    table: &'d DeTable<'d>,
    keys: &'static Keys,
    faults: &'d FaultList,
    read: RefCell<Vec<&'static str>>,
}

impl<'d> Section<'d> {
    pub(crate) fn new(at: At, table: &'d DeTable<'d>, keys: &'static Keys, faults: &'d FaultList) -> Self {
        Self {
            at,
            table,
            keys,
            faults,
            read: RefCell::default(),
        }
    }

    pub(crate) fn faults(&self) -> &'d FaultList {
        self.faults
    }

    /// The value of a key, if it is there and right.
    pub(crate) fn read<T: FromToml>(&self, key: &'static str) -> Option<Located<T>> {
        let (at, value) = self.find(key)?;
        match T::from_toml(value) {
            Ok(value) => Some(Located { value, at }),
            Err(problem) => {
                self.faults.add(&at, problem);
                None
            }
        }
    }

    /// A list, with a fault for each wrong element; none if one is wrong.
    pub(crate) fn read_list<T: FromToml>(
        &self,
        key: &'static str,
        max_len: usize,
    ) -> Option<Located<Vec<Located<T>>>> {
        let (at, value) = self.find(key)?;
        let Some(elements) = value.as_array() else {
            self.faults.add(
                &at,
                expected("a list", value).hint("write it in brackets: [\"…\"]"),
            );
            return None;
        };
        if elements.len() > max_len {
            self.faults.add(
                &at,
                Problem::new(format!(
                    "{} elements, at most {max_len} are possible",
                    elements.len()
                )),
            );
            return None;
        }
        let value: Vec<_> = self.read_elements(&at, elements).collect();
        (value.len() == elements.len()).then_some(Located { value, at })
    }

    fn read_elements<T: FromToml>(
        &self,
        at: &At,
        elements: &DeArray<'_>,
    ) -> impl Iterator<Item = Located<T>> {
        elements.iter().enumerate().filter_map(move |(index, element)| {
            let at = At {
                key_path: format!("{}[{index}]", at.key_path),
                byte: element.span().start,
            };
            match T::from_toml(element.get_ref()) {
                Ok(value) => Some(Located { value, at }),
                Err(problem) => {
                    self.faults.add(&at, problem);
                    None
                }
            }
        })
    }

    /// The section under a key.
    pub(crate) fn section(&self, key: &'static str, keys: &'static Keys) -> Option<Section<'d>> {
        let (at, value) = self.find(key)?;
        self.open(at, value, keys)
    }

    /// The sections under a key whose names are free, such as `[topics.*]`, in the order of the file.
    pub(crate) fn sections(
        &self,
        key: &'static str,
        keys: &'static Keys,
    ) -> Vec<(Located<String>, Section<'d>)> {
        let Some((at, value)) = self.find(key) else {
            return Vec::new();
        };
        let Some(table) = value.as_table() else {
            self.faults.add(
                &at,
                expected("a section", value).hint(format!("write [{key}.NAME]")),
            );
            return Vec::new();
        };
        let mut sections: Vec<_> = table
            .iter()
            .filter_map(|(name, value)| {
                let at = At {
                    key_path: join_key(&at.key_path, name.get_ref()),
                    byte: name.span().start,
                };
                let section = self.open(at.clone(), value.get_ref(), keys)?;
                Some((
                    Located {
                        value: name.get_ref().to_string(),
                        at,
                    },
                    section,
                ))
            })
            .collect();
        sections.sort_by_key(|(name, _)| name.at.byte);
        sections
    }

    fn open(&self, at: At, value: &'d DeValue<'d>, keys: &'static Keys) -> Option<Section<'d>> {
        match value.as_table() {
            Some(table) => Some(Section::new(at, table, keys, self.faults)),
            None => {
                self.faults.add(&at, expected("a section", value));
                None
            }
        }
    }

    fn find(&self, key: &'static str) -> Option<(At, &'d DeValue<'d>)> {
        debug_assert!(
            self.keys.names().any(|known| known == key),
            "`{key}` is read but not known"
        );
        self.read.borrow_mut().push(key);
        let (name, value) = self.table.get_key_value(key)?;
        Some((self.at_key(name), value.get_ref()))
    }

    fn at_key(&self, name: &Spanned<std::borrow::Cow<'_, str>>) -> At {
        At {
            key_path: join_key(&self.at.key_path, name.get_ref()),
            byte: name.span().start,
        }
    }

    /// Refuses what nobody read. To be called last.
    pub(crate) fn finish(self) {
        self.finish_with(|_, _| None);
    }

    /// Refuses what nobody read, where `explain` may know better what a key was meant to be.
    pub(crate) fn finish_with(self, explain: impl Fn(&str, &DeValue<'_>) -> Option<Problem>) {
        debug_assert!(
            self.keys.names().all(|known| self.read.borrow().contains(&known)),
            "a known key of `{}` was not read",
            self.at.key_path
        );
        for (name, value) in self.table.iter() {
            let key = name.get_ref().as_ref();
            if !self.keys.names().any(|known| known == key) {
                let problem = explain(key, value.get_ref()).unwrap_or_else(|| self.unknown(key));
                self.faults.add(&self.at_key(name), problem);
            }
        }
    }

    fn unknown(&self, key: &str) -> Problem {
        if let Some((_, purpose)) = self.keys.later.iter().find(|(later, _)| *later == key) {
            return Problem::new(format!("{purpose}: this version does not have it yet")).hint("remove it");
        }
        if let Some((_, reason, instead)) = self.keys.instead.iter().find(|(other, _, _)| *other == key) {
            return Problem::new(*reason).hint(*instead);
        }
        let problem = Problem::new("unknown key");
        if let Some((_, section)) = self.keys.elsewhere.iter().find(|(other, _)| *other == key) {
            return problem.hint(format!("it belongs in {section}"));
        }
        match closest(key, self.keys.names()) {
            Some(name) => problem.hint(format!("did you mean `{name}`?")),
            None => {
                let names: Vec<_> = self.keys.names().collect();
                problem.hint(format!("known here: {}", names.join(", ")))
            }
        }
    }
}

/// “a list expected, found an integer”.
pub(crate) fn expected(what: &str, found: &DeValue<'_>) -> Problem {
    let article = if matches!(found, DeValue::Integer(_) | DeValue::Array(_)) {
        "an"
    } else {
        "a"
    };
    Problem::new(format!("expected {what}, found {article} {}", found.type_str()))
}

impl FromToml for bool {
    fn from_toml(value: &DeValue<'_>) -> Result<Self, Problem> {
        value.as_bool().ok_or_else(|| expected("true or false", value))
    }
}

impl FromToml for String {
    fn from_toml(value: &DeValue<'_>) -> Result<Self, Problem> {
        match value.as_str() {
            Some("") => Err(Problem::new("empty").hint("give it a value, or remove the key")),
            Some(text) => Ok(text.to_owned()),
            None => Err(expected("a string", value)),
        }
    }
}

impl FromToml for u32 {
    fn from_toml(value: &DeValue<'_>) -> Result<Self, Problem> {
        let integer = value
            .as_integer()
            .ok_or_else(|| expected("a whole number", value))?;
        u32::from_str_radix(integer.as_str(), integer.radix())
            .map_err(|_| Problem::new(format!("{integer} is not between 0 and {}", u32::MAX)))
    }
}

impl FromToml for f64 {
    fn from_toml(value: &DeValue<'_>) -> Result<Self, Problem> {
        let text = match value {
            DeValue::Float(float) => float.as_str(),
            DeValue::Integer(integer) if integer.radix() == 10 => integer.as_str(),
            _ => return Err(expected("a number", value)),
        };
        text.parse()
            .map_err(|_| Problem::new(format!("{text} is not a number")))
    }
}
