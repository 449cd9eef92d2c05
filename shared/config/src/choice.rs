use crate::fault::{Problem, closest};

/// One of a few words in the file, with the words that a later version will know.
macro_rules! choice {
    (
        $(#[$meta:meta])*
        pub enum $name:ident {
            $($(#[$variant_meta:meta])* $variant:ident = $text:literal,)+
        }
        later { $($later:literal: $purpose:literal,)* }
    ) => {
        $(#[$meta])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, serde::Serialize, serde::Deserialize)]
        #[cfg_attr(test, derive(schemars::JsonSchema), schemars(inline))]
        pub enum $name {
            $($(#[$variant_meta])* #[serde(rename = $text)] $variant,)+
        }

        impl $name {
            /// The word, as the file writes it.
            pub fn as_str(self) -> &'static str {
                match self {
                    $(Self::$variant => $text,)+
                }
            }
        }

        impl std::fmt::Display for $name {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str(self.as_str())
            }
        }

        impl crate::reader::FromToml for $name {
            fn from_toml(value: &toml::de::DeValue<'_>) -> Result<Self, crate::fault::Problem> {
                match value.as_str() {
                    $(Some($text) => Ok(Self::$variant),)+
                    Some(word) => Err(crate::choice::refuse(word, &[$($text),+], &[$(($later, $purpose)),*])),
                    None => Err(crate::reader::expected("a string", value).hint(
                        crate::choice::alternatives(&[$($text),+]),
                    )),
                }
            }
        }
    };
}
pub(crate) use choice;

pub(crate) fn alternatives(words: &[&str]) -> String {
    let quoted: Vec<String> = words.iter().map(|word| format!("{word:?}")).collect();
    match quoted.as_slice() {
        [only] => format!("write {only}"),
        [others @ .., last] => format!("write {} or {last}", others.join(", ")),
        [] => String::new(),
    }
}

pub(crate) fn refuse(word: &str, words: &[&'static str], later: &[(&str, &str)]) -> Problem {
    if let Some((_, purpose)) = later.iter().find(|(name, _)| *name == word) {
        return Problem::new(format!("{word:?} ({purpose}): this version does not have it yet"))
            .hint(alternatives(words));
    }
    let problem = Problem::new(format!("unknown value {word:?}"));
    match closest(word, words.iter().copied()) {
        Some(name) => problem.hint(format!("did you mean {name:?}?")),
        None => problem.hint(alternatives(words)),
    }
}
