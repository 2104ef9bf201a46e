//! Id 1: a test host is about to exit. Sent on the private pipe between a controller and its test host, never on the
//! pipe of `dotnet test`. The body is not an envelope: `i32` exit code, and since MTP 2.4 another `i32`.

use runtap_wire::{DecodeError, Reader, Writer};

/// Notification that a test host is about to exit.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash)]
pub struct TestHostCompleted {
    /// The exit code of the test host.
    pub exit_code: i32,
    /// The exit code before `--ignore-exit-code` was applied. `None` if the host is older than MTP 2.4.
    pub unfiltered_exit_code: Option<i32>,
}

impl TestHostCompleted {
    pub(crate) fn read(reader: &mut Reader<'_>) -> Result<Self, DecodeError> {
        let exit_code = reader.i32("TestHostCompleted.ExitCode")?;
        let unfiltered_exit_code =
            if reader.is_empty() { None } else { Some(reader.i32("TestHostCompleted.UnfilteredExitCode")?) };
        Ok(Self { exit_code, unfiltered_exit_code })
    }

    pub(crate) fn write(&self, writer: &mut Writer) {
        writer.i32(self.exit_code);
        if let Some(code) = self.unfiltered_exit_code {
            writer.i32(code);
        }
    }
}
