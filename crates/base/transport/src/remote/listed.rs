//! The list of processes behind a router.

use runtap_wire::{DecodeError, DecodeErrorKind, Reader, Writer};

use crate::remote::message::MAX_ANSWER;

/// Maximum number of processes in a list. The rest is omitted.
pub const MAX_LISTED: usize = 1024;
/// Maximum length of a text in a list entry in bytes. Longer texts are truncated.
pub const MAX_TEXT: usize = 1024;

/// A process behind a router.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct RemoteProcess {
    /// Process id on the router's machine.
    pub pid: u32,
    /// Start time, in the unit of the router's operating system.
    pub started: u64,
    /// Whether the process is suspended at startup; `None` if unknown.
    pub suspended: Option<bool>,
    /// Name of its entry assembly, or of the process.
    pub name: String,
    /// Command line, starting with the program.
    pub command_line: String,
    /// Version of its runtime; empty if unknown.
    pub runtime_version: String,
    /// Processor architecture; empty if unknown.
    pub arch: String,
    /// Name of its user.
    pub user: String,
}

impl RemoteProcess {
    /// Encodes a list, omitting entries that do not fit into an answer.
    pub fn encode(list: &[Self]) -> Vec<u8> {
        let mut w = Writer::new();
        let mut count = 0;
        for one in list.iter().take(MAX_LISTED) {
            let mut entry = Writer::new();
            let suspended = match one.suspended {
                None => 2,
                Some(suspended) => u8::from(suspended),
            };
            entry.u32(one.pid).u64(one.started).u8(suspended);
            for text in one.texts() {
                let text = text.get(..text.floor_char_boundary(MAX_TEXT)).unwrap_or_default();
                // Cannot fail, because `MAX_TEXT` is less than `u16::MAX`.
                entry.u16(u16::try_from(text.len()).unwrap_or_default()).bytes(text.as_bytes());
            }
            if w.len().saturating_add(entry.len()).saturating_add(2) > MAX_ANSWER {
                break;
            }
            w.bytes(entry.as_bytes());
            count += 1;
        }
        let mut all = Writer::new();
        all.u16(count).bytes(w.as_bytes());
        all.into_bytes()
    }

    /// Decodes a list.
    ///
    /// # Errors
    /// If the list is invalid.
    pub fn decode(bytes: &[u8]) -> Result<Vec<Self>, DecodeError> {
        let mut r = Reader::new(bytes);
        let count = usize::from(r.u16("number of processes")?);
        if count > MAX_LISTED {
            let kind = DecodeErrorKind::TooLarge { value: count as u64, limit: MAX_LISTED as u64 };
            return Err(r.error("number of processes", kind));
        }
        let mut list = Vec::new();
        for _ in 0..count {
            list.push(Self::decode_one(&mut r)?);
        }
        Ok(list)
    }

    fn decode_one(r: &mut Reader<'_>) -> Result<Self, DecodeError> {
        Ok(Self {
            pid: r.u32("process id")?,
            started: r.u64("start time")?,
            suspended: match r.u8("suspended")? {
                0 => Some(false),
                1 => Some(true),
                _ => None,
            },
            name: text(r, "name")?,
            command_line: text(r, "command line")?,
            runtime_version: text(r, "runtime version")?,
            arch: text(r, "architecture")?,
            user: text(r, "user")?,
        })
    }

    fn texts(&self) -> [&str; 5] {
        [&self.name, &self.command_line, &self.runtime_version, &self.arch, &self.user]
    }
}

fn text(r: &mut Reader<'_>, what: &'static str) -> Result<String, DecodeError> {
    let length = usize::from(r.u16(what)?);
    if length > MAX_TEXT {
        let kind = DecodeErrorKind::TooLarge { value: length as u64, limit: MAX_TEXT as u64 };
        return Err(r.error(what, kind));
    }
    Ok(String::from_utf8_lossy(r.bytes(length, what)?).into_owned())
}
