//! Errors of dumps.

use std::io;
use std::path::PathBuf;

use runtap_diag::core_file::CoreFileError;

/// An error because of which there is no dump, or none that is kept.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// Dumps are not supported on this system, because permissions and core files can't be examined.
    #[error(
        "dumps are supported on Linux and Windows only: on this system, runtap can't see where a process may write, nor \
         whether its dump is complete"
    )]
    Unsupported,
    /// Runtimes write no crash reports on Windows.
    #[error("runtimes write no crash reports on Windows")]
    NoCrashReports,
    /// The path is a share, a device or a pipe. Writing there would reveal the user's identity to another machine or program.
    #[error("{} is not on a disk of this machine", .0.display())]
    NoDisk(PathBuf),
    /// The file exists. Files are not replaced on Windows.
    #[error("{} already exists and is not replaced", .0.display())]
    Taken(PathBuf),
    /// The path does not end in a file name.
    #[error("{} is not the name of a file", .0.display())]
    NoName(PathBuf),
    /// The path is a directory, a pipe or a device.
    #[error("{} is not a regular file", .0.display())]
    NotOrdinary(PathBuf),
    /// The path refers to something that can't be replaced.
    #[error("{} can't be replaced by a dump", .0.display())]
    NotReplaceable(PathBuf),
    /// The path of the target's temporary directory can't be sent.
    #[error("{} is not valid UTF-8", .0.display())]
    NoText(PathBuf),
    /// The target's files are not accessible.
    #[error("can't access the files of process {pid}: {error}")]
    Unseen {
        /// The process id of the target.
        pid: u32,
        /// The cause.
        error: io::Error,
    },
    /// There is no directory to which the target may write.
    #[error("the target can't write to {}: {why}; nor to {}: {not_there}", folder.display(), temp.display())]
    NoPlace {
        /// The directory for the dump.
        folder: PathBuf,
        /// Why the target can't write to that directory.
        why: String,
        /// The target's temporary directory.
        temp: PathBuf,
        /// Why the target can't write to its temporary directory.
        not_there: String,
    },
    /// A file system has too little free space.
    #[error("{} has {free} bytes free, but the dump needs about {needed} bytes", folder.display())]
    NoSpace {
        /// The directory.
        folder: PathBuf,
        /// The number of free bytes.
        free: u64,
        /// The estimated number of bytes needed.
        needed: u64,
        /// Whether this includes the copy of a file that belongs to another user.
        with_copy: bool,
    },
    /// The runtime returned an error or could not be reached.
    #[error(transparent)]
    Runtime(#[from] runtap_diag::Error),
    /// The file that the target wrote can't be copied.
    #[error("the runtime reported that {} was written, but it can't be copied", theirs.display())]
    NotTaken {
        /// The path of the file, as seen by the target.
        theirs: PathBuf,
        /// The cause.
        #[source]
        error: io::Error,
    },
    /// The file is empty.
    #[error("the runtime reported that the dump was written, but {} is empty", .0.display())]
    Empty(PathBuf),
    /// The file is not a core file, and was not kept.
    #[error("the runtime reported that the dump was written, but {} is invalid: {error}", theirs.display())]
    NoCore {
        /// The path of the file, as seen by the target.
        theirs: PathBuf,
        /// Why it is invalid.
        error: CoreFileError,
    },
    /// The crash report can't be copied.
    #[error("can't copy the crash report {}", theirs.display())]
    NoReport {
        /// The path of the file, as seen by the target.
        theirs: PathBuf,
        /// The cause.
        #[source]
        error: io::Error,
    },
    /// The crash report is too long.
    #[error("the crash report {} has {bytes} bytes, more than {most}", theirs.display())]
    LongReport {
        /// The path of the file, as seen by the target.
        theirs: PathBuf,
        /// The size in bytes.
        bytes: u64,
        /// The maximum size in bytes.
        most: u64,
    },
    /// The crash report is not valid JSON.
    #[error("the crash report {} is not complete JSON", theirs.display())]
    BrokenReport {
        /// The path of the file, as seen by the target.
        theirs: PathBuf,
        /// The cause.
        #[source]
        error: io::Error,
    },
    /// The operation was interrupted while the file was copied.
    #[error("interrupted")]
    Interrupted,
    /// The output file can't be written.
    #[error(transparent)]
    Output(#[from] runtap_os::output::Error),
    /// An I/O error.
    #[error(transparent)]
    Io(#[from] io::Error),
}

/// A rejection by the runtime whose cause is known.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Refusal {
    /// `createdump` may not trace its parent: a container needs the capability `SYS_PTRACE`.
    NoPtrace,
    /// A single-file program can write full dumps only.
    FullOnly,
}

impl Refusal {
    /// Interprets a runtime's rejection of a dump, which is reported as text. `None` for any other error.
    pub fn of(error: &runtap_diag::Error) -> Option<Self> {
        match error {
            runtap_diag::Error::Refused { reply, .. } => Self::of_words(reply.message.as_deref()?),
            _ => None,
        }
    }

    fn of_words(text: &str) -> Option<Self> {
        if text.contains("ptrace(") && text.contains("not permitted") {
            return Some(Self::NoPtrace);
        }
        text.contains("Only full dumps are supported").then_some(Self::FullOnly)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_missing_permission_to_trace_is_recognized_by_its_text() {
        let text =
            "[createdump] Problem suspending threads: ptrace(ATTACH, 1) FAILED Operation not permitted (1)";
        assert_eq!(Refusal::of_words(text), Some(Refusal::NoPtrace));
        assert_eq!(Refusal::of_words("[createdump] Could not create output file"), None);
        assert_eq!(Refusal::of_words(""), None);
    }
}
