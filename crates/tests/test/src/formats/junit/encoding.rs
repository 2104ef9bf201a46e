//! Documents that are not UTF-8.

use crate::formats::case::{Event, LONGEST_REASON, shortened};

/// A declaration is within so many bytes.
const LONGEST_DECLARATION: usize = 200;

/// The text of a document that is not UTF-8, by the encoding that it declares. What can't be read becomes U+FFFD.
pub(super) fn decode(bytes: &[u8], problems: &mut Vec<Event>) -> String {
    let start = bytes.get(..LONGEST_DECLARATION).unwrap_or(bytes);
    let declared = declared(&String::from_utf8_lossy(start)).map(str::to_ascii_lowercase);
    match declared.as_deref() {
        Some("iso-8859-1" | "iso8859-1" | "latin1") => bytes.iter().copied().map(char::from).collect(),
        declared => {
            if let Some(name) = declared.filter(|name| !matches!(*name, "utf-8" | "utf8")) {
                let name = shortened(name, LONGEST_REASON);
                problems.push(Event::Unreadable(format!(
                    "the JUnit document declares the encoding {name}, which runtap does not read: write UTF-8"
                )));
            }
            String::from_utf8_lossy(bytes).into_owned()
        }
    }
}

/// The encoding in `<?xml version="1.0" encoding="…"?>`.
fn declared(start: &str) -> Option<&str> {
    let (declaration, _) = start.trim_start().strip_prefix("<?xml")?.split_once("?>")?;
    let (_, value) = declaration.split_once("encoding")?;
    let value = value.trim_start().strip_prefix('=')?.trim_start();
    let quote = value.chars().next().filter(|quote| ['"', '\''].contains(quote))?;
    value.get(1..)?.split(quote).next()
}
