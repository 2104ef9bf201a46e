//! JSON as it is printed: documents over several lines, or one a line.

use std::io;

use runtap_model::text::{acts_unseen, json_escape};
use serde::Serialize;

/// Writes a document over several lines, for people too.
pub fn write_document(out: &mut impl io::Write, value: &impl Serialize) -> io::Result<()> {
    write(out, serde_json::to_string_pretty(value)?)
}

/// Writes a document as one line: one of several.
pub fn write_line(out: &mut impl io::Write, value: &impl Serialize) -> io::Result<()> {
    write(out, serde_json::to_string(value)?)
}

fn write(out: &mut impl io::Write, json: String) -> io::Result<()> {
    let mut text = harmless(json);
    text.push('\n');
    out.write_all(text.as_bytes())?;
    out.flush()
}

/// JSON with what [acts unseen](acts_unseen) escaped too, and the second of two `#`, which begin commands to build servers: the
/// document says the same, and does no harm where it is looked at. Outside of its texts there are only line breaks.
fn harmless(json: String) -> String {
    let acts = |c: char| c != '\n' && acts_unseen(c);
    if !json.contains(acts) && !json.contains("##") {
        return json;
    }
    let mut text = String::with_capacity(json.len() + 16);
    let mut last = ' ';
    for c in json.chars() {
        let twice = (last, c) == ('#', '#');
        last = c;
        if twice || acts(c) {
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
    fn documents_say_the_same_and_act_on_nothing() {
        let texts = ["plain 中", "\u{1b}[2J\u{9b}\u{202e}\u{200b}", "\u{e0041}\n", "###vso[x]"];
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
}
