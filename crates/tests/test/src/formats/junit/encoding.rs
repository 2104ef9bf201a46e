//! Documents that are not UTF-8.

use crate::formats::case::{Event, MAX_REASON_BYTES, shortened};

/// The number of bytes that are searched for an encoding declaration.
const MAX_DECLARATION_BYTES: usize = 200;

/// Decodes a document that is not UTF-8 by the encoding that it declares. Invalid bytes become U+FFFD.
pub(super) fn decode(bytes: &[u8], problems: &mut Vec<Event>) -> String {
    let start = bytes.get(..MAX_DECLARATION_BYTES).unwrap_or(bytes);
    let declared = declared(&String::from_utf8_lossy(start)).map(str::to_ascii_lowercase);
    match declared.as_deref() {
        Some("iso-8859-1" | "iso8859-1" | "latin1") => bytes.iter().copied().map(char::from).collect(),
        declared => {
            if let Some(name) = declared.filter(|name| !matches!(*name, "utf-8" | "utf8")) {
                let name = shortened(name, MAX_REASON_BYTES);
                problems.push(Event::Unreadable(format!(
                    "the JUnit document declares the encoding {name}, which is not supported; use UTF-8"
                )));
            }
            String::from_utf8_lossy(bytes).into_owned()
        }
    }
}

/// Returns the encoding in `<?xml version="1.0" encoding="…"?>`.
fn declared(start: &str) -> Option<&str> {
    let (declaration, _) = start.trim_start().strip_prefix("<?xml")?.split_once("?>")?;
    let (_, value) = declaration.split_once("encoding")?;
    let value = value.trim_start().strip_prefix('=')?.trim_start();
    let quote = value.chars().next().filter(|quote| ['"', '\''].contains(quote))?;
    value.get(1..)?.split(quote).next()
}
