//! Text in JSON strings, escaped as .NET does by default: ASCII only, and without characters that are special in HTML.

use std::fmt::{self, Display, Write};

/// A writer that escapes its input for a JSON string, without the surrounding quotation marks.
pub(super) struct Escaped<'a>(pub(super) &'a mut dyn Write);

impl Write for Escaped<'_> {
    fn write_str(&mut self, mut text: &str) -> fmt::Result {
        let plain =
            |c: char| matches!(c, ' '..='~') && !matches!(c, '\\' | '"' | '&' | '\'' | '+' | '<' | '>' | '`');
        while !text.is_empty() {
            let end = text.find(|c| !plain(c)).unwrap_or(text.len());
            let (before, rest) = text.split_at(end);
            self.0.write_str(before)?;
            let mut rest = rest.chars();
            if let Some(c) = rest.next() {
                self.escape(c)?;
            }
            text = rest.as_str();
        }
        Ok(())
    }
}

impl Escaped<'_> {
    fn escape(&mut self, c: char) -> fmt::Result {
        match c {
            '\\' => self.0.write_str("\\\\"),
            '\n' => self.0.write_str("\\n"),
            '\r' => self.0.write_str("\\r"),
            '\t' => self.0.write_str("\\t"),
            '\u{8}' => self.0.write_str("\\b"),
            '\u{c}' => self.0.write_str("\\f"),
            _ => c.encode_utf16(&mut [0; 2]).iter().try_for_each(|unit| self.unit(u32::from(*unit))),
        }
    }

    fn unit(&mut self, unit: u32) -> fmt::Result {
        write!(self.0, "\\u{unit:04X}")
    }
}

/// Writes members of an object, each a string.
pub(super) struct Members<'a> {
    text: &'a mut dyn Write,
    any: bool,
}

impl<'a> Members<'a> {
    pub(super) fn new(text: &'a mut dyn Write) -> Result<Self, fmt::Error> {
        text.write_char('{')?;
        Ok(Self { text, any: false })
    }

    pub(super) fn add(&mut self, name: &str, value: &dyn Display) -> fmt::Result {
        self.text.write_str(if self.any { ",\"" } else { "\"" })?;
        self.any = true;
        Escaped(self.text).write_str(name)?;
        self.text.write_str("\":\"")?;
        write!(Escaped(self.text), "{value}")?;
        self.text.write_char('"')
    }

    pub(super) fn end(self) -> fmt::Result {
        self.text.write_char('}')
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn members_are_escaped_as_by_dotnet() {
        let mut text = String::new();
        let mut members = Members::new(&mut text).unwrap();
        members.add("Text", &"é中😀").unwrap();
        members.add("a\"b", &"\\ \n \u{1} \u{7f} <>").unwrap();
        members.end().unwrap();
        let expected = r#"{"Text":"\u00E9\u4E2D\uD83D\uDE00","a\u0022b":"\\ \n \u0001 \u007F \u003C\u003E"}"#;
        assert_eq!(text, expected);
    }
}
