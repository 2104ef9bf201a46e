//! Heap graphs as text files of other tools. Each module starts with its mapping.

pub mod dot;
pub mod heapsnapshot;
pub mod json;

use std::io::{self, Write};

/// Writes a text as a JSON string.
fn json_text(text: &str, out: &mut dyn Write) -> io::Result<()> {
    out.write_all(b"\"")?;
    let mut start = 0;
    for (at, character) in text.char_indices() {
        // Line separators are valid in JSON, but not in all readers that treat it as JavaScript.
        let is_plain = !matches!(character, '"' | '\\' | '\u{2028}' | '\u{2029}') && !character.is_control();
        if is_plain {
            continue;
        }
        out.write_all(text.get(start..at).unwrap_or_default().as_bytes())?;
        start = at + character.len_utf8();
        match character {
            '"' | '\\' => write!(out, "\\{character}")?,
            '\n' => out.write_all(b"\\n")?,
            _ => write!(out, "\\u{:04x}", u32::from(character))?,
        }
    }
    out.write_all(text.get(start..).unwrap_or_default().as_bytes())?;
    out.write_all(b"\"")
}

/// Writes a text as a JSON string, or `null`.
fn json_option(text: Option<&str>, out: &mut dyn Write) -> io::Result<()> {
    match text {
        Some(text) => json_text(text, out),
        None => out.write_all(b"null"),
    }
}

/// Writes `separator` before each element but the first one.
fn separated<T>(
    items: impl IntoIterator<Item = T>,
    separator: &str,
    out: &mut dyn Write,
    mut write: impl FnMut(T, &mut dyn Write) -> io::Result<()>,
) -> io::Result<()> {
    for (number, item) in items.into_iter().enumerate() {
        if number > 0 {
            out.write_all(separator.as_bytes())?;
        }
        write(item, out)?;
    }
    Ok(())
}
