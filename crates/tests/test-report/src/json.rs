//! JSON that is equivalent for all readers, and safe to print.
//!
//! Escapes characters in addition to those that JSON requires: terminals interpret U+0080 to U+009F, bidirectional
//! control characters make a line look different, and build servers interpret `##[` anywhere in a line.

use std::io::{self, Write};

use serde::Serialize;
use serde_json::Serializer;
use serde_json::ser::{Formatter, PrettyFormatter};

use crate::text;

/// Writes a value on one line.
pub(crate) fn write(w: impl Write, value: &impl Serialize) -> io::Result<()> {
    let mut serializer = Serializer::with_formatter(w, Compact);
    Ok(value.serialize(&mut serializer)?)
}

/// Writes a value with indentation.
pub(crate) fn write_pretty(w: impl Write, value: &impl Serialize) -> io::Result<()> {
    let mut serializer = Serializer::with_formatter(w, Pretty(PrettyFormatter::new()));
    Ok(value.serialize(&mut serializer)?)
}

struct Compact;

impl Formatter for Compact {
    fn write_string_fragment<W: ?Sized + Write>(&mut self, w: &mut W, fragment: &str) -> io::Result<()> {
        write_fragment(w, fragment)
    }
}

struct Pretty<'a>(PrettyFormatter<'a>);

impl Formatter for Pretty<'_> {
    fn begin_array<W: ?Sized + Write>(&mut self, w: &mut W) -> io::Result<()> {
        self.0.begin_array(w)
    }

    fn end_array<W: ?Sized + Write>(&mut self, w: &mut W) -> io::Result<()> {
        self.0.end_array(w)
    }

    fn begin_array_value<W: ?Sized + Write>(&mut self, w: &mut W, first: bool) -> io::Result<()> {
        self.0.begin_array_value(w, first)
    }

    fn end_array_value<W: ?Sized + Write>(&mut self, w: &mut W) -> io::Result<()> {
        self.0.end_array_value(w)
    }

    fn begin_object<W: ?Sized + Write>(&mut self, w: &mut W) -> io::Result<()> {
        self.0.begin_object(w)
    }

    fn end_object<W: ?Sized + Write>(&mut self, w: &mut W) -> io::Result<()> {
        self.0.end_object(w)
    }

    fn begin_object_key<W: ?Sized + Write>(&mut self, w: &mut W, first: bool) -> io::Result<()> {
        self.0.begin_object_key(w, first)
    }

    fn begin_object_value<W: ?Sized + Write>(&mut self, w: &mut W) -> io::Result<()> {
        self.0.begin_object_value(w)
    }

    fn end_object_value<W: ?Sized + Write>(&mut self, w: &mut W) -> io::Result<()> {
        self.0.end_object_value(w)
    }

    fn write_string_fragment<W: ?Sized + Write>(&mut self, w: &mut W, fragment: &str) -> io::Result<()> {
        write_fragment(w, fragment)
    }
}

/// Writes a part of a string without characters that JSON itself escapes.
fn write_fragment<W: ?Sized + Write>(w: &mut W, fragment: &str) -> io::Result<()> {
    let mut rest = fragment;
    while let Some(at) = rest.find(is_escaped) {
        let (before, found) = rest.split_at_checked(at).unwrap_or((rest, ""));
        let Some(c) = found.chars().next() else { break };
        w.write_all(before.as_bytes())?;
        rest = found.get(c.len_utf8()..).unwrap_or_default();
        if c == '#' && !rest.starts_with('#') {
            w.write_all(b"#")?;
        } else {
            write!(w, "\\u{:04x}", u32::from(c))?;
        }
    }
    w.write_all(rest.as_bytes())
}

/// Returns whether a character is escaped. All of them have one UTF-16 unit.
fn is_escaped(c: char) -> bool {
    matches!(c, '#' | '\x7f'..='\u{9f}' | '\u{2028}' | '\u{2029}') || text::is_bidi_control(c)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn written(text: &str) -> String {
        let mut bytes = Vec::new();
        write(&mut bytes, &text).unwrap();
        String::from_utf8(bytes).unwrap()
    }

    #[test]
    fn active_characters_are_escaped() {
        assert_eq!(written("##[error] #1 ###"), "\"\\u0023#[error] #1 \\u0023\\u0023#\"");
        assert_eq!(written("\u{9b}1m \u{202e}a\x1b"), r#""\u009b1m \u202ea\u001b""#);
    }

    proptest! {
        #[test]
        fn readers_get_an_equal_text(text in any::<String>(), hashes in 0usize..4) {
            let text = format!("{text}{}[", "#".repeat(hashes));
            let json = written(&text);
            prop_assert_eq!(serde_json::from_str::<String>(&json).unwrap(), text);
            prop_assert!(!json.contains("##") && !json.chars().any(|c| c != '#' && is_escaped(c)));
        }
    }
}
