//! GenerateCoreDump (0x0101), GenerateCoreDump2 (0x0102), GenerateCoreDump3 (0x0103): makes the runtime start
//! `createdump`, which writes a core file. Section "Dump Commands" of the specification, which lists the first only.
//!
//! ```text
//! all three  str path  u32 type  u32 x       x: 0101 nonzero = logging; 0102 and 0103 flags
//! reply      i32 0                           an error reply to 0103 has a text after its code
//! ```
//!
//! OK does not prove that a file was written. A request without a path crashes the runtime, and cannot be encoded.

use std::{fmt, ops::BitOr};

use runtap_wire::{DecodeError, Reader, Writer};

use super::{Command, required};
use crate::EncodeError;

/// How much of the process a dump contains. Any value can be represented; runtimes answer unknown values
/// with E_FAIL.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct DumpType(pub u32);

impl DumpType {
    /// 1: the stacks of all threads and the memory they need, about 6 MB.
    pub const MINI: Self = Self(1);
    /// 2: like 1, with the managed heap.
    pub const WITH_HEAP: Self = Self(2);
    /// 3: like 1, without data that may be personal.
    pub const TRIAGE: Self = Self(3);
    /// 4: all memory of the process. The only type that single-file programs and suspended runtimes can write.
    pub const FULL: Self = Self(4);

    /// The types that .NET 8, 9 and 10 support.
    pub const ALL: [Self; 4] = [Self::MINI, Self::WITH_HEAP, Self::TRIAGE, Self::FULL];

    /// Returns the name. `None` for an unknown type.
    pub fn name(self) -> Option<&'static str> {
        Some(match self {
            Self::MINI => "mini",
            Self::WITH_HEAP => "heap",
            Self::TRIAGE => "triage",
            Self::FULL => "full",
            _ => return None,
        })
    }
}

impl fmt::Debug for DumpType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.name() {
            Some(name) => write!(f, "{} ({name})", self.0),
            None => write!(f, "{}", self.0),
        }
    }
}

/// Options of `createdump`. Runtimes ignore unknown bits.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct DumpFlags(pub u32);

impl DumpFlags {
    /// No options. Progress is still written to the target's standard output.
    pub const NONE: Self = Self(0);
    /// 1: more progress messages on the target's standard output.
    pub const LOGGING: Self = Self(1);
    /// 2: even more progress messages.
    pub const VERBOSE: Self = Self(2);
    /// 4: also a JSON summary next to the dump, `PATH.crashreport.json`. Not on Windows.
    pub const CRASH_REPORT: Self = Self(4);

    /// Returns whether all bits of `other` are set.
    pub fn contains(self, other: Self) -> bool {
        self.0 & other.0 == other.0
    }
}

impl BitOr for DumpFlags {
    type Output = Self;

    fn bitor(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }
}

/// The parameters of a core dump.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct CoreDump {
    /// The file, opened by the **target**: in its mount namespace, as its user. The runtime replaces `%p` by the pid and
    /// `%e` by the program's name.
    pub path: String,
    /// How much of the process to write.
    pub kind: DumpType,
    /// Options.
    pub flags: DumpFlags,
}

impl CoreDump {
    /// Creates a dump without flags.
    pub fn new(path: impl Into<String>, kind: DumpType) -> Self {
        Self { path: path.into(), kind, flags: DumpFlags::NONE }
    }

    /// Sets the flags.
    #[must_use]
    pub fn with_flags(mut self, flags: DumpFlags) -> Self {
        self.flags = flags;
        self
    }
}

/// The commands that carry a [`CoreDump`], oldest first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum DumpForm {
    /// 0x0101: supports only the logging flag.
    GenerateCoreDump,
    /// 0x0102: supports all flags.
    GenerateCoreDump2,
    /// 0x0103: adds an error text to the reply.
    GenerateCoreDump3,
}

impl DumpForm {
    /// Every form, in the order in which a client should try them.
    pub const NEWEST_FIRST: [Self; 3] =
        [Self::GenerateCoreDump3, Self::GenerateCoreDump2, Self::GenerateCoreDump];

    /// Returns the command.
    pub fn command(self) -> Command {
        match self {
            Self::GenerateCoreDump => Command::GENERATE_CORE_DUMP,
            Self::GenerateCoreDump2 => Command::GENERATE_CORE_DUMP2,
            Self::GenerateCoreDump3 => Command::GENERATE_CORE_DUMP3,
        }
    }

    /// Returns the form of a command. `None` if it is another command.
    pub fn from_command(command: Command) -> Option<Self> {
        Self::NEWEST_FIRST.into_iter().find(|form| form.command() == command)
    }
}

pub(super) fn encode(w: &mut Writer, form: DumpForm, dump: &CoreDump) -> Result<(), EncodeError> {
    let path = required("dump path", &dump.path)?;
    if form == DumpForm::GenerateCoreDump && !DumpFlags::LOGGING.contains(dump.flags) {
        return Err(EncodeError::DumpFlags { flags: dump.flags.0 });
    }
    w.utf16_counted(Some(path)).u32(dump.kind.0).u32(dump.flags.0);
    Ok(())
}

pub(super) fn decode(r: &mut Reader<'_>, form: DumpForm) -> Result<CoreDump, DecodeError> {
    let path = super::not_null(r, "dump path")?;
    let kind = DumpType(r.u32("dump type")?);
    let flags = DumpFlags(r.u32("dump flags")?);
    Ok(match form {
        DumpForm::GenerateCoreDump if flags != DumpFlags::NONE => {
            CoreDump::new(path, kind).with_flags(DumpFlags::LOGGING)
        }
        _ => CoreDump::new(path, kind).with_flags(flags),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{ErrorReply, Hresult, Reply, Request, message::decode_ok};

    fn request(form: DumpForm, flags: DumpFlags) -> Request {
        let dump = CoreDump::new("/srv/x.dmp", DumpType::FULL).with_flags(flags);
        Request::GenerateCoreDump { form, dump }
    }

    #[test]
    fn golden_bytes_of_every_form() {
        for (form, id) in DumpForm::NEWEST_FIRST.into_iter().zip([3, 2, 1]) {
            let request = request(form, DumpFlags::LOGGING);
            let mut expected = b"DOTNET_IPC_V1\0\x36\0\x01".to_vec();
            expected.extend([id, 0, 0]);
            expected.extend(b"\x0b\0\0\0/\0s\0r\0v\0/\0x\0.\0d\0m\0p\0\0\0\x04\0\0\0\x01\0\0\0");
            assert_eq!(request.to_bytes().unwrap(), expected);
            assert_eq!(Request::decode(form.command(), &expected[20..]).unwrap(), request);
        }
        let reply = Reply::Done.to_bytes(&request(DumpForm::GenerateCoreDump3, DumpFlags::NONE)).unwrap();
        assert_eq!(reply, b"DOTNET_IPC_V1\0\x18\0\xff\0\0\0\0\0\0\0");
    }

    #[test]
    fn golden_error_text() {
        let error = ErrorReply { hresult: Hresult::E_FAIL, message: Some(String::new()) };
        let bytes = error.to_bytes().unwrap();
        assert_eq!(bytes, b"DOTNET_IPC_V1\0\x1e\0\xff\xff\0\0\x05\x40\0\x80\x01\0\0\0\0\0");
    }

    #[test]
    fn the_oldest_form_knows_logging_only() {
        let flags = DumpFlags::LOGGING | DumpFlags::CRASH_REPORT;
        let error = request(DumpForm::GenerateCoreDump, flags).to_bytes().unwrap_err();
        assert_eq!(error.to_string(), "dump flags: 0x5 need GenerateCoreDump2, since .NET 6");
        assert!(request(DumpForm::GenerateCoreDump2, flags).to_bytes().is_ok());
        // Anything but 0 switches it on.
        let payload = b"\x02\0\0\0x\0\0\0\x01\0\0\0\x07\0\0\0";
        let Request::GenerateCoreDump { dump, .. } =
            Request::decode(Command::GENERATE_CORE_DUMP, payload).unwrap()
        else {
            panic!()
        };
        assert_eq!(dump.flags, DumpFlags::LOGGING);
    }

    #[test]
    fn a_dump_has_a_path() {
        for (path, why) in [("", "dump path: is empty"), ("a\0", "dump path: contains a NUL character")] {
            let dump = CoreDump::new(path, DumpType::MINI);
            let request = Request::GenerateCoreDump { form: DumpForm::GenerateCoreDump3, dump };
            assert_eq!(request.to_bytes().unwrap_err().to_string(), why);
        }
        let error = Request::decode(Command::GENERATE_CORE_DUMP, &[0, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0]);
        assert_eq!(error.unwrap_err().to_string(), "dump path at offset 20: is null");
    }

    #[test]
    fn unknown_types_and_flags_survive() {
        let dump = CoreDump::new("x", DumpType(9)).with_flags(DumpFlags(0x8000_0008));
        let request = Request::GenerateCoreDump { form: DumpForm::GenerateCoreDump2, dump };
        let bytes = request.to_bytes().unwrap();
        assert_eq!(Request::decode(Command::GENERATE_CORE_DUMP2, &bytes[20..]).unwrap(), request);
        assert_eq!(format!("{:?} {:?}", DumpType(9), DumpType::MINI), "9 1 (mini)");
    }

    #[test]
    fn a_failure_may_come_as_ok() {
        let request = request(DumpForm::GenerateCoreDump, DumpFlags::NONE);
        let refused = decode_ok(&request, &[5, 0x40, 0, 0x80]).unwrap().unwrap_err();
        assert_eq!(refused.hresult, Hresult::E_FAIL);
    }
}
