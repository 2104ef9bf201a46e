//! Job objects: processes that end together. Refuses to start one.

use std::io;
use std::os::windows::io::{AsHandle, AsRawHandle, OwnedHandle};
use std::ptr;

use windows_sys::Win32::System::JobObjects::{
    AssignProcessToJobObject, CreateJobObjectW, JOB_OBJECT_LIMIT_KILL_ON_JOB_CLOSE,
    JOBOBJECT_EXTENDED_LIMIT_INFORMATION, JobObjectExtendedLimitInformation, SetInformationJobObject,
    TerminateJobObject,
};

use crate::windows::handle::{owned, worked};

/// What processes say that were ended: as those do that Ctrl-C has ended.
const ENDED: u32 = 1;

/// A process, and all that it starts. They end when this is dropped, and when we end.
#[derive(Debug)]
pub struct Job(OwnedHandle);

impl Job {
    /// An empty one.
    ///
    /// # Errors
    /// The system makes none.
    #[expect(unsafe_code, reason = "calls of the system, which read a structure")]
    pub fn new() -> io::Result<Self> {
        // SAFETY: takes nothing of ours, and gives a new handle or null.
        let job = unsafe { owned(CreateJobObjectW(ptr::null(), ptr::null())) }?;
        let mut limits = JOBOBJECT_EXTENDED_LIMIT_INFORMATION::default();
        limits.BasicLimitInformation.LimitFlags = JOB_OBJECT_LIMIT_KILL_ON_JOB_CLOSE;
        let size = u32::try_from(size_of_val(&limits)).map_err(io::Error::other)?;
        let pointer = (&raw const limits).cast();
        // SAFETY: the job is open, and the structure is there, with the size that is told.
        worked(unsafe {
            SetInformationJobObject(job.as_raw_handle(), JobObjectExtendedLimitInformation, pointer, size)
        })?;
        Ok(Self(job))
    }

    /// Takes a process in; what it starts from now on is in it, too.
    ///
    /// # Errors
    /// It has ended, or is in a job that allows no other one.
    #[expect(unsafe_code, reason = "a call of the system")]
    pub fn take_in(&self, process: &impl AsHandle) -> io::Result<()> {
        // SAFETY: both are open.
        worked(unsafe {
            AssignProcessToJobObject(self.0.as_raw_handle(), process.as_handle().as_raw_handle())
        })
    }

    /// Ends all that are in it.
    ///
    /// # Errors
    /// The system does not.
    #[expect(unsafe_code, reason = "a call of the system")]
    pub fn end(&self) -> io::Result<()> {
        // SAFETY: the job is open.
        worked(unsafe { TerminateJobObject(self.0.as_raw_handle(), ENDED) })
    }
}

#[cfg(test)]
mod tests {
    use std::process::{Command, Stdio};

    use super::*;

    #[test]
    fn what_is_in_it_ends_with_it() {
        for by_end in [true, false] {
            let job = Job::new().unwrap();
            // It reads for as long as somebody could write.
            let mut child =
                Command::new("cmd.exe").stdin(Stdio::piped()).stdout(Stdio::null()).spawn().unwrap();
            let _input = child.stdin.take();
            job.take_in(&child).unwrap();
            if by_end {
                job.end().unwrap();
            }
            drop(job);
            // Else this would never come to its end.
            child.wait().unwrap();
        }
    }
}
