//! JSON that is the same for every reader, and does nothing where it is shown.
//!
//! Owns: which characters are escaped beside those that have to be. A terminal obeys U+0080 to U+009F, marks that turn the
//! direction of writing make a line look like another one, and build servers obey `##[` anywhere in a line of output.

use std::io::{self, Write};

use serde::Serialize;
use serde_json::Serializer;
use serde_json::ser::{Formatter, PrettyFormatter};

use crate::text;

/// Writes a value in one line.
pub(crate) fn write(w: impl Write, value: &impl Serialize) -> io::Result<()> {
    let mut serializer = Serializer::with_formatter(w, Compact);
    Ok(value.serialize(&mut serializer)?)
}

/// Writes a value for people.
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

/// A part of a string without what JSON itself escapes.
fn write_fragment<W: ?Sized + Write>(w: &mut W, fragment: &str) -> io::Result<()> {
    let mut rest = fragment;
    while let Some(at) = rest.find(acts) {
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

/// All of them have one unit in UTF-16.
fn acts(c: char) -> bool {
    matches!(c, '#' | '\x7f'..='\u{9f}' | '\u{2028}' | '\u{2029}') || text::turns(c)
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
    fn what_acts_is_escaped() {
        assert_eq!(written("##[error] #1 ###"), "\"\\u0023#[error] #1 \\u0023\\u0023#\"");
        assert_eq!(written("\u{9b}1m \u{202e}a\x1b"), r#""\u009b1m \u202ea\u001b""#);
    }

    proptest! {
        #[test]
        fn readers_get_the_same(text in any::<String>(), hashes in 0usize..4) {
            let text = format!("{text}{}[", "#".repeat(hashes));
            let json = written(&text);
            prop_assert_eq!(serde_json::from_str::<String>(&json).unwrap(), text);
            prop_assert!(!json.contains("##") && !json.chars().any(|c| c != '#' && acts(c)));
        }
    }
}
