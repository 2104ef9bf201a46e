//! Id 2: the process id of a test host. Sent on the private pipe between a controller and its test host. The body is
//! not an envelope: `i32` process id.

use runtap_wire::{DecodeError, Reader, Writer};

/// The process id of a test host.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash)]
pub struct TestHostProcessId {
    /// The process id.
    pub pid: i32,
}

impl TestHostProcessId {
    pub(crate) fn read(reader: &mut Reader<'_>) -> Result<Self, DecodeError> {
        Ok(Self { pid: reader.i32("TestHostProcessPIDRequest.PID")? })
    }

    pub(crate) fn write(&self, writer: &mut Writer) {
        writer.i32(self.pid);
    }
}
