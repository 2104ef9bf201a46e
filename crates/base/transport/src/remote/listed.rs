//! The processes that a router offers.

use runtap_wire::{DecodeError, DecodeErrorKind, Reader, Writer};

use crate::remote::message::MAX_ANSWER;

/// The most processes of a list. Further ones are left out.
pub const MAX_LISTED: usize = 1024;
/// The longest text of one of them, in bytes. The rest is left out.
pub const MAX_TEXT: usize = 1024;

/// A process that a router offers.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Listed {
    /// Its process id there.
    pub pid: u32,
    /// When it was started, in the units of that system.
    pub started: u64,
    /// Whether it waits at its start, where that is known.
    pub suspended: Option<bool>,
    /// Its entry assembly, else what it is called.
    pub name: String,
    /// The arguments, program first.
    pub command_line: String,
    /// Of the runtime; empty where it is not known.
    pub runtime_version: String,
    /// The processor that it is compiled for; empty where it is not known.
    pub arch: String,
    /// Its user.
    pub user: String,
}

impl Listed {
    /// A list as bytes, with as many of them as have room.
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
                // MAX_TEXT is less.
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

    /// Reads a list.
    ///
    /// # Errors
    /// What is wrong with it.
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
