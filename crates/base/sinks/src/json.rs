//! Writes JSON directly, because files may be too large to be built in memory first.

use runtap_model::text::{acts_unseen, json_escape};
use runtap_model::{FrameHandle, NO_STACK, Trace};
use serde::Serializer as _;
use std::fmt;
use std::io::{self, Write};

/// Writes a number. Files consist mostly of numbers, which serde formats faster than `write!`.
pub(crate) fn number(w: &mut impl Write, number: u64) -> io::Result<()> {
    Ok(serde_json::Serializer::new(w).serialize_u64(number)?)
}

/// Writes a JSON string without copying it. [Special characters](acts_unseen) are escaped, and the second of two `#`,
/// which build servers may interpret: the parsed string is the same, and printing the file is harmless.
pub(crate) fn string(w: &mut impl Write, text: &(impl fmt::Display + ?Sized)) -> io::Result<()> {
    Ok(serde_json::Serializer::new(Harmless { w, ends_in_hash: false }).collect_str(text)?)
}

/// A writer for JSON that serde passes in pieces of whole characters.
struct Harmless<'a, W> {
    w: &'a mut W,
    /// Whether the last piece ended with `#`.
    ends_in_hash: bool,
}

impl<W: Write> Harmless<'_, W> {
    /// Writes text that contains no special characters.
    fn visible(&mut self, text: &[u8]) -> io::Result<()> {
        if !text.contains(&b'#') {
            self.ends_in_hash &= text.is_empty();
            return self.w.write_all(text);
        }
        for part in text.split_inclusive(|byte| *byte == b'#') {
            match part {
                b"#" if self.ends_in_hash => self.w.write_all(b"\\u0023")?,
                part => self.w.write_all(part)?,
            }
            self.ends_in_hash = part.ends_with(b"#");
        }
        Ok(())
    }
}

impl<W: Write> Write for Harmless<'_, W> {
    fn write(&mut self, piece: &[u8]) -> io::Result<usize> {
        self.write_all(piece)?;
        Ok(piece.len())
    }

    fn write_all(&mut self, piece: &[u8]) -> io::Result<()> {
        if piece.iter().all(|byte| byte.is_ascii() && *byte != 0x7f) {
            return self.visible(piece);
        }
        let text = str::from_utf8(piece).map_err(io::Error::other)?;
        let mut rest = text;
        while let Some(at) = rest.find(acts_unseen) {
            let (before, from) = rest.split_at(at);
            self.visible(before.as_bytes())?;
            let mut letters = from.chars();
            if let Some(c) = letters.next() {
                let mut escaped = String::new();
                json_escape(c, &mut escaped);
                self.ends_in_hash = false;
                self.w.write_all(escaped.as_bytes())?;
            }
            rest = letters.as_str();
        }
        self.visible(rest.as_bytes())
    }

    fn flush(&mut self) -> io::Result<()> {
        self.w.flush()
    }
}

/// Maximum length of a name that is repeated with every use, in characters.
const MAX_REPEATED: usize = 1000;

/// The names of all frames as JSON strings, for formats that repeat them.
pub(crate) struct Names {
    text: Vec<u8>,
    /// End of each name in `text`; it starts at the end of the previous one. The last is [`NO_STACK`].
    ends: Vec<usize>,
}

impl Names {
    pub(crate) fn new(trace: &Trace) -> io::Result<Self> {
        let mut names = Self { text: Vec::new(), ends: Vec::with_capacity(trace.frames().len() + 1) };
        for (_, frame) in trace.all_frames() {
            let name = frame.to_string();
            match name.char_indices().nth(MAX_REPEATED) {
                // A name of 65,535 characters would make a small recording a thousand times larger.
                Some((end, _)) => {
                    string(&mut names.text, &format_args!("{}…", name.get(..end).unwrap_or_default()))?;
                }
                None => string(&mut names.text, &name)?,
            }
            names.ends.push(names.text.len());
        }
        string(&mut names.text, NO_STACK)?;
        names.ends.push(names.text.len());
        Ok(names)
    }

    /// Returns the quoted name of a frame. For `None`, returns the name of the missing stack.
    pub(crate) fn get(&self, frame: Option<FrameHandle>) -> &[u8] {
        let index = frame.map_or(self.ends.len() - 1, FrameHandle::index);
        let start = if index == 0 { 0 } else { self.ends[index - 1] };
        &self.text[start..self.ends[index]]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn strings_have_the_same_value_and_no_special_characters() {
        for text in [
            "plain 中😀 C#",
            "a\u{9b}31m\u{202e}b\u{7f}\n\"\\",
            "\u{200b}",
            "\u{e0041}x\u{feff}",
            "##[error]x### #\u{9b}#\"##",
        ] {
            for (first, second) in text.char_indices().map(|(at, _)| text.split_at(at)) {
                let mut json = Vec::new();
                string(&mut json, &format_args!("{first}{second}")).unwrap();
                let json = String::from_utf8(json).unwrap();
                assert!(!json.contains(acts_unseen) && !json.contains("##"), "{json:?}");
                assert_eq!(serde_json::from_str::<String>(&json).unwrap(), text);
            }
        }
    }
}
