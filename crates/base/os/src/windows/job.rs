//! Job objects: groups of processes that are terminated together.

use std::io;
use std::os::windows::io::{AsHandle, AsRawHandle, OwnedHandle};
use std::ptr;

use windows_sys::Win32::System::JobObjects::{
    AssignProcessToJobObject, CreateJobObjectW, JOB_OBJECT_LIMIT_KILL_ON_JOB_CLOSE,
    JOBOBJECT_EXTENDED_LIMIT_INFORMATION, JobObjectExtendedLimitInformation, SetInformationJobObject,
    TerminateJobObject,
};

use crate::windows::handle::{owned, worked};

/// Exit code of terminated processes, which is also that after Ctrl-C.
const ENDED: u32 = 1;

/// A group of processes and all processes that they start. They are terminated when this is dropped or the program
/// exits.
#[derive(Debug)]
pub struct Job(OwnedHandle);

impl Job {
    /// Creates an empty job.
    ///
    /// # Errors
    /// If the job cannot be created.
    #[expect(unsafe_code, reason = "calls of the system, which read a structure")]
    pub fn new() -> io::Result<Self> {
        // SAFETY: all pointers are null; the result is a new handle or null.
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

    /// Adds a process. Processes that it starts from now on belong to the job too.
    ///
    /// # Errors
    /// If the process has exited, or is in a job that does not permit another one.
    #[expect(unsafe_code, reason = "a call of the system")]
    pub fn take_in(&self, process: &impl AsHandle) -> io::Result<()> {
        // SAFETY: both are open.
        worked(unsafe {
            AssignProcessToJobObject(self.0.as_raw_handle(), process.as_handle().as_raw_handle())
        })
    }

    /// Terminates all processes of the job.
    ///
    /// # Errors
    /// If the processes cannot be terminated.
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
    fn dropping_or_ending_a_job_terminates_its_processes() {
        for by_end in [true, false] {
            let job = Job::new().unwrap();
            // Reads until its input is closed.
            let mut child =
                Command::new("cmd.exe").stdin(Stdio::piped()).stdout(Stdio::null()).spawn().unwrap();
            let _input = child.stdin.take();
            job.take_in(&child).unwrap();
            if by_end {
                job.end().unwrap();
            }
            drop(job);
            // Blocks forever if the process was not terminated.
            child.wait().unwrap();
        }
    }
}
