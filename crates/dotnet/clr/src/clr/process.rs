//! The `ProcessInfo` event, which describes the program.

use runtap_wire::{DecodeError, Reader, Utf16};

use super::EVENT_PIPE;

/// Event 1 of `Microsoft-DotNETCore-EventPipe`. Layout: `z command line, [v1] z operating system, z architecture`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ProcessInfoEvent<'a> {
    /// The command line, arguments joined by spaces.
    pub command_line: Utf16<'a>,
    /// The operating system (`Linux`). Empty if the runtime is too old to report it.
    pub os: Utf16<'a>,
    /// The architecture (`x64`). Empty if the runtime is too old to report it.
    pub arch: Utf16<'a>,
}

impl<'a> ProcessInfoEvent<'a> {
    /// Decodes an event of `provider` with id `id`. Returns `None` if it is another event.
    ///
    /// # Errors
    /// Returns the offset in the payload and the field if the payload is too short.
    pub fn decode(provider: &str, id: u32, payload: &'a [u8]) -> Result<Option<Self>, DecodeError> {
        if (provider, id) != (EVENT_PIPE, 1) {
            return Ok(None);
        }
        let mut r = Reader::new(payload);
        let command_line = r.utf16z("CommandLine")?;
        // Version 0, of .NET Core 3, ends here.
        let mut newer = |what| if r.is_empty() { Ok(Utf16::default()) } else { r.utf16z(what) };
        Ok(Some(Self { command_line, os: newer("OSInformation")?, arch: newer("ArchInformation")? }))
    }
}
