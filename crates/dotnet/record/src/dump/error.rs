//! Why there is no dump.

use std::io;
use std::path::PathBuf;

use runtap_diag::core_file::CoreFileError;

/// Why there is no dump, or none that is kept.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// Where a process may write can't be seen there, nor are its core files read.
    #[error(
        "dumps are written on Linux and Windows only: on this system it can't be seen where a process may write, nor \
         whether its dump is whole"
    )]
    Unsupported,
    /// Runtimes write crash reports elsewhere than on Windows.
    #[error("runtimes write no crash reports on Windows")]
    NoCrashReports,
    /// It is a share, a device or a pipe: who writes there tells another machine or program who he is.
    #[error("{} is on no disk of this machine", .0.display())]
    NoDisk(PathBuf),
    /// Nothing that is there is replaced on Windows.
    #[error("{} is there already, and is not replaced", .0.display())]
    Taken(PathBuf),
    /// It ends in what is no name.
    #[error("{} is no name for a file", .0.display())]
    NoName(PathBuf),
    /// A folder, a pipe or a device has the name.
    #[error("{} is not a regular file", .0.display())]
    NotOrdinary(PathBuf),
    /// The name leads to what is written to as it stands.
    #[error("{} can't be replaced by a dump", .0.display())]
    NotReplaceable(PathBuf),
    /// The protocol can't carry the path of the target's temporary folder.
    #[error("{} is no UTF-8", .0.display())]
    NoText(PathBuf),
    /// We may not look at the target's files.
    #[error("can't look into process {pid}: {error}")]
    Unseen {
        /// The target.
        pid: u32,
        /// Why.
        error: io::Error,
    },
    /// There is no folder that the target may write to.
    #[error("the target can't write to {}: {why}; nor to {}: {not_there}", folder.display(), temp.display())]
    NoPlace {
        /// The folder that the dump is to be in.
        folder: PathBuf,
        /// Why not there.
        why: String,
        /// The target's temporary folder.
        temp: PathBuf,
        /// Why not there.
        not_there: String,
    },
    /// A file system on the way is too full.
    #[error("{} has {free} bytes left, and the dump takes about {needed}", folder.display())]
    NoSpace {
        /// The folder.
        folder: PathBuf,
        /// Bytes that are left there.
        free: u64,
        /// A guess.
        needed: u64,
        /// Whether that is with the copy that is made of another user's file.
        with_copy: bool,
    },
    /// The runtime, or the way to it.
    #[error(transparent)]
    Runtime(#[from] runtap_diag::Error),
    /// What the target has written can't be had.
    #[error("the runtime says that {} is written, but it can't be taken", theirs.display())]
    NotTaken {
        /// Where the target wrote it, as it sees that.
        theirs: PathBuf,
        /// Why.
        #[source]
        error: io::Error,
    },
    /// There is nothing in it.
    #[error("the runtime says that the dump is written, but {} is empty", .0.display())]
    Empty(PathBuf),
    /// It is something else altogether, and was not kept.
    #[error("the runtime says that the dump is written, but of {}: {error}", theirs.display())]
    NoCore {
        /// Where the target wrote it, as it sees that.
        theirs: PathBuf,
        /// What it is.
        error: CoreFileError,
    },
    /// The crash report can't be had.
    #[error("can't take the crash report {}", theirs.display())]
    NoReport {
        /// Where the target wrote it, as it sees that.
        theirs: PathBuf,
        /// Why.
        #[source]
        error: io::Error,
    },
    /// The crash report has no end, or might as well have none.
    #[error("the crash report {} has {bytes} bytes, more than {most}", theirs.display())]
    LongReport {
        /// Where the target wrote it, as it sees that.
        theirs: PathBuf,
        /// Its size.
        bytes: u64,
        /// The most that is taken.
        most: u64,
    },
    /// The crash report is damaged.
    #[error("the crash report {} is no whole JSON", theirs.display())]
    BrokenReport {
        /// Where the target wrote it, as it sees that.
        theirs: PathBuf,
        /// What is wrong.
        #[source]
        error: io::Error,
    },
    /// The end was asked for while the file was fetched.
    #[error("interrupted")]
    Interrupted,
    /// Our file can't be written.
    #[error(transparent)]
    Output(#[from] runtap_os::output::Error),
    /// The file system.
    #[error(transparent)]
    Io(#[from] io::Error),
}

/// A refusal of which it is known what to do about it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Refusal {
    /// `createdump` may not trace its own parent: a container needs the capability `SYS_PTRACE`.
    NoPtrace,
    /// A program that has its runtime in its own file writes full dumps only.
    FullOnly,
}

impl Refusal {
    /// What a runtime's refusal of a dump means, which it says in words only; `None` for any other error.
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
    fn a_missing_right_to_trace_is_known_by_its_text() {
        let text =
            "[createdump] Problem suspending threads: ptrace(ATTACH, 1) FAILED Operation not permitted (1)";
        assert_eq!(Refusal::of_words(text), Some(Refusal::NoPtrace));
        assert_eq!(Refusal::of_words("[createdump] Could not create output file"), None);
        assert_eq!(Refusal::of_words(""), None);
    }
}
