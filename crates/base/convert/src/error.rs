//! Why a recording could not be converted.

use std::path::PathBuf;

/// Why a recording could not be converted.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The recording can't be read.
    #[error(transparent)]
    Recording(#[from] crate::source::Error),
    /// The file can't be written.
    #[error(transparent)]
    Output(#[from] runtap_os::output::Error),
    /// What is to be in the file can't be written there.
    #[error("can't write {}", path.display())]
    File {
        /// Of the file.
        path: PathBuf,
        /// Why.
        #[source]
        error: runtap_sinks::Error,
    },
    /// The same on standard output.
    #[error(transparent)]
    Stdout(runtap_sinks::Error),
    /// A stream is not made of a profile.
    #[error("a profile can't be written as nettrace")]
    NoSink,
    /// Standard output takes one file.
    #[error("several formats can't go to stdout")]
    SeveralToStdout,
    /// A file that is to be written is the recording itself.
    #[error("{} is the recording{} itself", output.display(), if output == input { String::new() } else { format!(" {}", input.display()) })]
    Overwrites {
        /// As it was given.
        output: PathBuf,
        /// As it was given.
        input: PathBuf,
    },
    /// Only recordings in the first format, `NetPerf`, have to be renewed.
    #[error("the recording is in the nettrace format already")]
    NotNetPerf,
    /// What comes once only can't be repaired.
    #[error("{} is no file: it has to be read twice", .0.display())]
    ReadTwice(PathBuf),
    /// There is nothing in it that a copy could begin with.
    #[error("{} can't be repaired: {}", path.display(), reason.as_ref().map_or_else(|| "it has no header".to_owned(), ToString::to_string))]
    Unrepairable {
        /// As it was given.
        path: PathBuf,
        /// What is wrong, and where.
        reason: Option<runtap_nettrace::Partial>,
    },
    /// The new format can't hold what the old one has.
    #[error("{what} can't be copied: {error}")]
    Copy {
        /// A definition, or an event.
        what: &'static str,
        /// Why.
        error: runtap_nettrace::WriteError,
    },
}

impl Error {
    /// That of a file, or of standard output.
    pub(crate) fn of_sink(path: Option<&std::path::Path>) -> impl Fn(runtap_sinks::Error) -> Self {
        move |error| match path {
            Some(path) => Self::File { path: path.to_owned(), error },
            None => Self::Stdout(error),
        }
    }

    /// Whether what was asked for can't be done, whoever tries again.
    pub fn is_refusal(&self) -> bool {
        matches!(
            self,
            Self::SeveralToStdout
                | Self::Overwrites { .. }
                | Self::NotNetPerf
                | Self::NoSink
                | Self::ReadTwice(_)
                | Self::Unrepairable { .. }
        )
    }

    /// The I/O error behind it, if there is one.
    pub fn io(&self) -> Option<&std::io::Error> {
        match self {
            Self::Output(error) => match &error.cause {
                runtap_os::output::Cause::Io(error) => Some(error),
                _ => None,
            },
            error => match error.sink()? {
                runtap_sinks::Error::Io(error) => Some(error),
                _ => None,
            },
        }
    }

    /// Whether there was nothing in a recording that could be shown.
    pub fn is_nothing_to_show(&self) -> bool {
        matches!(self.sink(), Some(runtap_sinks::Error::NoSamples { .. }))
    }

    /// What a sink said, if one did.
    pub fn sink(&self) -> Option<&runtap_sinks::Error> {
        match self {
            Self::File { error, .. } | Self::Stdout(error) => Some(error),
            _ => None,
        }
    }
}
