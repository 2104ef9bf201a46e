//! ProcessInfo (0x0400), ProcessInfo2 (0x0404), ProcessInfo3 (0x0408): identifies the process. The request has no
//! payload; each form of the reply adds fields.
//!
//! ```text
//! 0400                u64 pid  GUID cookie  str command line  str OS  str architecture
//! 0404                … as 0400, then  str entry assembly  str runtime version
//! 0408  u32 version,  … as 0404, then  str portable RID, and whatever later versions add
//! ```
//!
//! Bytes after the known fields are ignored: newer runtimes may send more. (In the specification's struct the
//! cookie is last; in its bullet list and in every runtime it follows the pid.)

use runtap_wire::{DecodeError, Reader, Uuid, Writer};

use super::{Command, string};

/// The version number in ProcessInfo3 replies of current runtimes.
const INFO3_VERSION: u32 = 1;

/// The commands that request [`ProcessInfo`], oldest first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum InfoForm {
    /// 0x0400.
    ProcessInfo,
    /// 0x0404: adds entry assembly and runtime version.
    ProcessInfo2,
    /// 0x0408: adds the portable RID.
    ProcessInfo3,
}

impl InfoForm {
    /// Every form, in the order in which a client should try them.
    pub const NEWEST_FIRST: [Self; 3] = [Self::ProcessInfo3, Self::ProcessInfo2, Self::ProcessInfo];

    /// Returns the command.
    pub fn command(self) -> Command {
        match self {
            Self::ProcessInfo => Command::PROCESS_INFO,
            Self::ProcessInfo2 => Command::PROCESS_INFO2,
            Self::ProcessInfo3 => Command::PROCESS_INFO3,
        }
    }

    /// Returns the form of a command. `None` if it is another command.
    pub fn from_command(command: Command) -> Option<Self> {
        Self::NEWEST_FIRST.into_iter().find(|form| form.command() == command)
    }
}

/// The description of a process by its runtime.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ProcessInfo {
    /// The pid in the **target's** pid namespace.
    pub process_id: u64,
    /// Identifies this run of the runtime; equal in every reply and in Advertise messages.
    pub runtime_cookie: Uuid,
    /// The executable and its arguments. Only the host while the runtime is suspended at startup.
    pub command_line: String,
    /// `Linux`, `macOS`, `Windows` or anything else.
    pub os: String,
    /// `x64`, `arm64`, `x86`, `arm32` or anything else.
    pub arch: String,
    /// The name of the entry assembly. `None` before ProcessInfo2; empty while a runtime before .NET 8 is suspended.
    pub entry_assembly: Option<String>,
    /// The product version, e.g. `8.0.33`. `None` before ProcessInfo2.
    pub runtime_version: Option<String>,
    /// The portable runtime identifier, e.g. `linux-x64`. `None` before ProcessInfo3.
    pub portable_rid: Option<String>,
}

impl ProcessInfo {
    pub(super) fn encode(&self, w: &mut Writer, form: InfoForm) {
        if form >= InfoForm::ProcessInfo3 {
            w.u32(INFO3_VERSION);
        }
        w.u64(self.process_id).guid(self.runtime_cookie);
        w.utf16_counted(Some(&self.command_line))
            .utf16_counted(Some(&self.os))
            .utf16_counted(Some(&self.arch));
        // Runtimes write a missing string as an empty one.
        let text = |text: &Option<String>| Some(text.clone().unwrap_or_default());
        if form >= InfoForm::ProcessInfo2 {
            w.utf16_counted(text(&self.entry_assembly).as_deref());
            w.utf16_counted(text(&self.runtime_version).as_deref());
        }
        if form >= InfoForm::ProcessInfo3 {
            w.utf16_counted(text(&self.portable_rid).as_deref());
        }
    }

    pub(super) fn decode(r: &mut Reader<'_>, form: InfoForm) -> Result<Self, DecodeError> {
        if form >= InfoForm::ProcessInfo3 {
            r.u32("version")?;
        }
        let mut info = Self {
            process_id: r.u64("process id")?,
            runtime_cookie: r.guid("runtime cookie")?,
            command_line: string(r, "command line")?.unwrap_or_default(),
            os: string(r, "operating system")?.unwrap_or_default(),
            arch: string(r, "architecture")?.unwrap_or_default(),
            entry_assembly: None,
            runtime_version: None,
            portable_rid: None,
        };
        if form >= InfoForm::ProcessInfo2 {
            info.entry_assembly = Some(string(r, "entry assembly")?.unwrap_or_default());
            info.runtime_version = Some(string(r, "runtime version")?.unwrap_or_default());
        }
        if form >= InfoForm::ProcessInfo3 {
            info.portable_rid = Some(string(r, "portable RID")?.unwrap_or_default());
        }
        Ok(info)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Reply, Request, message::decode_ok};

    fn sample() -> ProcessInfo {
        ProcessInfo {
            process_id: 42,
            runtime_cookie: Uuid::from_u128(0x123e_4567_e89b_12d3_a456_4266_1417_4000),
            command_line: "a b".into(),
            os: "Linux".into(),
            arch: "x64".into(),
            entry_assembly: Some("E".into()),
            runtime_version: Some("8.0.4".into()),
            portable_rid: Some("linux-x64".into()),
        }
    }

    #[test]
    fn golden_bytes() {
        let request = Request::ProcessInfo(InfoForm::ProcessInfo3);
        assert_eq!(request.to_bytes().unwrap(), b"DOTNET_IPC_V1\0\x14\0\x04\x08\0\0");
        let reply = Reply::ProcessInfo(sample()).to_bytes(&request).unwrap();
        let mut expected = b"DOTNET_IPC_V1\0\x88\0\xff\0\0\0".to_vec();
        expected.extend(b"\x01\0\0\0\x2a\0\0\0\0\0\0\0");
        expected.extend(b"\x67\x45\x3e\x12\x9b\xe8\xd3\x12\xa4\x56\x42\x66\x14\x17\x40\x00");
        expected.extend(b"\x04\0\0\0a\0 \0b\0\0\0\x06\0\0\0L\0i\0n\0u\0x\0\0\0\x04\0\0\0x\0\x36\0\x34\0\0\0");
        expected.extend(b"\x02\0\0\0E\0\0\0\x06\0\0\0\x38\0.\0\x30\0.\0\x34\0\0\0");
        expected.extend(b"\x0a\0\0\0l\0i\0n\0u\0x\0-\0x\0\x36\0\x34\0\0\0");
        assert_eq!(reply, expected);
    }

    #[test]
    fn every_form_round_trips_with_its_fields() {
        for form in InfoForm::NEWEST_FIRST {
            let mut expected = sample();
            if form < InfoForm::ProcessInfo3 {
                expected.portable_rid = None;
            }
            if form < InfoForm::ProcessInfo2 {
                expected.entry_assembly = None;
                expected.runtime_version = None;
            }
            let request = Request::ProcessInfo(form);
            let bytes = Reply::ProcessInfo(sample()).to_bytes(&request).unwrap();
            let mut payload = bytes[20..].to_vec();
            assert_eq!(decode_ok(&request, &payload).unwrap(), Ok(Reply::ProcessInfo(expected.clone())));
            for n in 0..payload.len() {
                assert!(decode_ok(&request, &payload[..n]).unwrap_err().is_incomplete(), "{form:?} {n}");
            }
            payload.extend(b"later fields");
            assert_eq!(decode_ok(&request, &payload).unwrap(), Ok(Reply::ProcessInfo(expected)));
        }
    }

    #[test]
    fn null_strings_are_empty() {
        let mut payload = vec![0; 24];
        payload.extend([0; 12]);
        let request = Request::ProcessInfo(InfoForm::ProcessInfo);
        let Ok(Reply::ProcessInfo(info)) = decode_ok(&request, &payload).unwrap() else { panic!() };
        assert_eq!(info.command_line, "");
    }
}
