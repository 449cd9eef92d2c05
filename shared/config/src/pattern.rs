use crate::fault::Problem;

/// Kafka's own bound on the length of a topic's name.
const MAX_TOPIC_LEN: usize = 249;

/// The topics that a section is about: one name, or a pattern in which each `*` stands for any characters.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct TopicPattern(String);

impl TopicPattern {
    /// Refuses what Kafka could not name a topic.
    pub(crate) fn new(text: &str) -> Result<Self, Problem> {
        let legal = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '_' | '-' | '*');
        if let Some(c) = text.chars().find(|c| !legal(*c)) {
            return Err(
                Problem::new(format!("{c:?} cannot be in the name of a Kafka topic"))
                    .hint("use a-z, A-Z, 0-9, `.`, `_`, `-`, and `*` in patterns"),
            );
        }
        if text.is_empty() || text == "." || text == ".." || text.len() > MAX_TOPIC_LEN {
            return Err(Problem::new("not the name of a Kafka topic").hint(format!(
                "use 1 to {MAX_TOPIC_LEN} characters, and not `.` or `..` alone"
            )));
        }
        Ok(Self(text.to_owned()))
    }

    pub(crate) fn as_str(&self) -> &str {
        &self.0
    }

    /// Whether it names exactly one topic.
    pub(crate) fn is_exact(&self) -> bool {
        !self.0.contains('*')
    }

    /// How specific it is: an exact name before any pattern, then by the characters that it fixes.
    pub(crate) fn rank(&self) -> (bool, usize) {
        (
            self.is_exact(),
            self.0.bytes().filter(|&byte| byte != b'*').count(),
        )
    }

    /// Whether the topic is meant. O(pattern · topic) at worst.
    pub(crate) fn matches(&self, topic: &str) -> bool {
        let (pattern, topic) = (self.0.as_bytes(), topic.as_bytes());
        let (mut p, mut t) = (0, 0);
        // The last star seen, and how far it has been stretched.
        let mut star: Option<(usize, usize)> = None;
        while t < topic.len() {
            match pattern.get(p) {
                Some(b'*') => {
                    star = Some((p, t));
                    p += 1;
                }
                Some(byte) if *byte == topic[t] => {
                    p += 1;
                    t += 1;
                }
                _ => match star {
                    Some((at, stretched)) => {
                        star = Some((at, stretched + 1));
                        p = at + 1;
                        t = stretched + 1;
                    }
                    None => return false,
                },
            }
        }
        pattern[p..].iter().all(|byte| *byte == b'*')
    }

    /// Whether some topic would match both. O(length · length).
    pub(crate) fn overlaps(&self, other: &TopicPattern) -> bool {
        let (a, b) = (self.0.as_bytes(), other.0.as_bytes());
        // `reach[j]`: whether a[i..] and b[j..] have a name in common, filled from the ends.
        let mut reach = vec![false; b.len() + 1];
        for i in (0..=a.len()).rev() {
            let below = reach.clone();
            for j in (0..=b.len()).rev() {
                let (x, y) = (a.get(i), b.get(j));
                reach[j] = match (x, y) {
                    (None, None) => true,
                    (Some(b'*'), _) if below[j] => true,
                    (_, Some(b'*')) if reach[j + 1] => true,
                    (Some(b'*'), Some(_)) => reach[j + 1],
                    (Some(_), Some(b'*')) => below[j],
                    (Some(x), Some(y)) => x == y && below[j + 1],
                    (None, Some(_)) | (Some(_), None) => false,
                };
            }
        }
        reach[0]
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn pattern(text: &str) -> TopicPattern {
        TopicPattern::new(text).unwrap()
    }

    #[test]
    fn stars_stand_for_any_characters() {
        for (text, topic, matches) in [
            ("orders", "orders", true),
            ("orders", "orders2", false),
            ("orders-*", "orders-eu", true),
            ("orders-*", "orders-", true),
            ("orders-*", "orders", false),
            ("*", "anything.at-all", true),
            ("a*b*c", "aXbYbZc", true),
            ("a*b*c", "aXcYb", false),
            ("*.v1", "web.clicks.v1", true),
            ("*.v1", "web.clicks.v12", false),
        ] {
            assert_eq!(pattern(text).matches(topic), matches, "{text} {topic}");
        }
    }

    #[test]
    fn overlaps_are_seen() {
        for (a, b, overlap) in [
            ("orders-*", "*-eu", true),
            ("orders-*", "clicks-*", false),
            ("a*b", "ab*", true),
            ("a*c", "ab*", true),
            ("*a", "*b", false),
            ("**", "*", true),
            ("a*", "a", true),
        ] {
            assert_eq!(pattern(a).overlaps(&pattern(b)), overlap, "{a} {b}");
            assert_eq!(pattern(b).overlaps(&pattern(a)), overlap, "{b} {a}");
        }
    }

    /// All names of up to four characters over two letters.
    fn short_names() -> Vec<String> {
        let mut names = vec![String::new()];
        for from in 0..15 {
            for letter in ["a", "b"] {
                names.push(format!("{}{letter}", names[from]));
            }
        }
        names
    }

    proptest! {
        #[test]
        fn overlap_is_what_trying_every_name_finds(a in "[ab*]{1,3}", b in "[ab*]{1,3}") {
            let (a, b) = (pattern(&a), pattern(&b));
            let tried = short_names().iter().any(|name| a.matches(name) && b.matches(name));
            prop_assert_eq!(a.overlaps(&b), tried, "{:?} {:?}", a, b);
        }
    }
}
