//! Output of JSON: documents over several lines, or one per line.

use std::io::{self, Write as _};

use runtap_model::text::{acts_unseen, json_escape};
use serde::Serialize;

/// Writes a document over several lines.
pub fn write_document(out: &mut impl io::Write, value: &impl Serialize) -> io::Result<()> {
    write(out, serde_json::to_string_pretty(value)?)
}

/// Writes a document as a single line.
pub fn write_line(out: &mut impl io::Write, value: &impl Serialize) -> io::Result<()> {
    write(out, serde_json::to_string(value)?)
}

/// Writes a document with one long list, whose elements are written immediately and not kept in memory. Nothing is
/// written before the first element or the end, so that an unreadable input leaves no document.
///
/// The result is the same as that of [`write_document`] for an object with the members of the head, the list, and the
/// members of the tail.
#[derive(Debug)]
pub struct ListDocument<W: io::Write> {
    out: io::BufWriter<W>,
    /// The text up to the first element, until it is written.
    start: Option<String>,
    has_elements: bool,
}

impl<W: io::Write> ListDocument<W> {
    /// Creates a document. `head` is an object with at least one member, `list` the name of the list.
    ///
    /// # Errors
    /// If the head is not JSON.
    pub fn new(out: W, head: &impl Serialize, list: &str) -> io::Result<Self> {
        let head = harmless(serde_json::to_string_pretty(head)?);
        let members = head.strip_suffix("\n}").unwrap_or(&head);
        let start = Some(format!("{members},\n  {}: [", harmless(serde_json::to_string(list)?)));
        Ok(Self { out: io::BufWriter::with_capacity(1 << 16, out), start, has_elements: false })
    }

    fn write_start(&mut self) -> io::Result<()> {
        self.start.take().map_or(Ok(()), |start| self.out.write_all(start.as_bytes()))
    }

    /// Writes the next element of the list.
    ///
    /// # Errors
    /// If writing fails.
    pub fn element(&mut self, element: &impl Serialize) -> io::Result<()> {
        self.write_start()?;
        let comma = if std::mem::replace(&mut self.has_elements, true) { "," } else { "" };
        write!(self.out, "{comma}\n    ")?;
        // JSON strings contain no line breaks; all of them are between values.
        let element = harmless(serde_json::to_string_pretty(element)?);
        for (index, line) in element.split('\n').enumerate() {
            let indent = if index == 0 { "" } else { "\n    " };
            write!(self.out, "{indent}{line}")?;
        }
        Ok(())
    }

    /// Ends the list and the document. `tail` is an object with at least one member.
    ///
    /// # Errors
    /// If writing fails.
    pub fn finish(mut self, tail: &impl Serialize) -> io::Result<()> {
        self.write_start()?;
        let tail = harmless(serde_json::to_string_pretty(tail)?);
        let members = tail.strip_prefix('{').unwrap_or(&tail);
        let end = if self.has_elements { "\n  ]" } else { "]" };
        writeln!(self.out, "{end},{members}")?;
        self.out.flush()
    }
}

fn write(out: &mut impl io::Write, json: String) -> io::Result<()> {
    let mut text = harmless(json);
    text.push('\n');
    out.write_all(text.as_bytes())?;
    out.flush()
}

/// Escapes [special characters](acts_unseen) in JSON, so that the value does not change and displaying it is harmless,
/// even in the log of a build server, which interprets `##[` and `##vso[` anywhere in a line. Outside of strings, JSON
/// contains line breaks, but no `#`.
fn harmless(json: String) -> String {
    let acts = |c: char| c != '\n' && acts_unseen(c);
    if !json.contains(acts) && !json.contains("##") {
        return json;
    }
    let mut text = String::with_capacity(json.len() + 16);
    for c in json.chars() {
        if acts(c) || c == '#' && text.ends_with('#') {
            json_escape(c, &mut text);
        } else {
            text.push(c);
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn documents_have_the_same_value_and_no_special_characters() {
        let texts =
            ["plain 中", "##[error] ##vso[a] ### #1", "\u{1b}[2J\u{9b}\u{202e}\u{200b}", "\u{e0041}\n"];
        let (mut document, mut line) = (Vec::new(), Vec::new());
        write_document(&mut document, &texts).unwrap();
        write_line(&mut line, &texts).unwrap();
        let [document, line] = [document, line].map(|bytes| String::from_utf8(bytes).unwrap());
        assert_eq!(line.lines().count(), 1);
        for shown in [document, line] {
            assert!(!shown.contains(|c| c != '\n' && acts_unseen(c)) && !shown.contains("##"), "{shown:?}");
            assert_eq!(serde_json::from_str::<Vec<String>>(&shown).unwrap(), texts);
        }
    }
    #[test]
    fn a_list_written_by_element_gives_the_same_document() {
        #[derive(Serialize)]
        struct Whole<'a> {
            schema: &'a str,
            rows: &'a [serde_json::Value],
            end: u8,
        }

        let rows = [
            serde_json::json!({"a": [1, {"b": "x\n\u{9b}"}], "c": {}}),
            serde_json::json!([]),
            serde_json::json!("text"),
        ];
        for rows in [&rows[..], &[]] {
            let (mut whole, mut streamed) = (Vec::new(), Vec::new());
            write_document(&mut whole, &Whole { schema: "s", rows, end: 1 }).unwrap();
            let mut list =
                ListDocument::new(&mut streamed, &serde_json::json!({"schema": "s"}), "rows").unwrap();
            for row in rows {
                list.element(row).unwrap();
            }
            list.finish(&serde_json::json!({"end": 1})).unwrap();
            assert_eq!(String::from_utf8(streamed).unwrap(), String::from_utf8(whole).unwrap());
        }
    }
}
