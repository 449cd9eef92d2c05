//! The pieces that text for people is put together from.

use comfy_table::{CellAlignment, Table, presets};

/// Rows under headers. Columns named in `right` are numbers.
pub(crate) fn table(headers: &[&str], right: &[&str], rows: impl IntoIterator<Item = Vec<String>>) -> String {
    let mut table = Table::new();
    table.load_preset(presets::NOTHING);
    table.set_header(headers.iter().map(|header| (*header).to_owned()));
    table.add_rows(rows);
    for (column, header) in table.column_iter_mut().zip(headers) {
        column.set_padding((0, 2));
        if right.contains(header) {
            column.set_cell_alignment(CellAlignment::Right);
        }
    }
    lines(&table)
}

/// Names and what they are, one per line.
pub(crate) fn pairs<const N: usize>(pairs: [(&str, String); N]) -> String {
    let width = pairs
        .iter()
        .map(|(name, _)| name.chars().count())
        .max()
        .unwrap_or(0);
    let mut text = String::new();
    for (name, value) in pairs.iter().filter(|(_, value)| !value.is_empty()) {
        text.push_str(&format!("{name:width$}  {value}\n"));
    }
    text
}

/// The text with every line indented.
pub(crate) fn indented(text: &str) -> String {
    text.lines()
        .map(|line| {
            if line.is_empty() {
                "\n".to_owned()
            } else {
                format!("  {line}\n")
            }
        })
        .collect()
}

/// Text from elsewhere on one line: a terminal must not obey what a record or a message says.
pub(crate) fn plain(text: &str) -> String {
    let mut plain = String::with_capacity(text.len());
    for character in text.chars() {
        if character.is_control() {
            plain.extend(character.escape_default());
        } else {
            plain.push(character);
        }
    }
    plain
}

/// The table's lines without the blanks at their ends.
fn lines(table: &Table) -> String {
    table
        .lines()
        .map(|line| format!("{}\n", line.trim_end()))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_stand_under_each_other() {
        let rows = [
            vec!["orders".to_owned(), "1,200".to_owned()],
            vec!["web_clicks".to_owned(), "7".to_owned()],
        ];
        assert_eq!(
            table(&["TABLE", "ROWS"], &["ROWS"], rows),
            "TABLE        ROWS\n\
             orders      1,200\n\
             web_clicks      7\n"
        );
    }

    #[test]
    fn empty_values_are_left_out() {
        let text = pairs([
            ("state", "running".to_owned()),
            ("reason", String::new()),
            ("epoch", "0".to_owned()),
        ]);
        assert_eq!(text, "state   running\nepoch   0\n");
        assert_eq!(indented("a\n\nb\n"), "  a\n\n  b\n");
    }

    #[test]
    fn a_terminal_does_not_obey_records() {
        assert_eq!(plain("\u{1b}[31mred\r\n\tü"), "\\u{1b}[31mred\\r\\n\\tü");
    }
}
