//! What can go wrong with a command, told apart by what one can do about it.

use std::{io, time::Duration};

use runtap_diag_proto::{Command, DecodeError, EncodeError, ErrorReply, Hresult, SessionForm, SessionId};
use runtap_transport::{ConnectError, ConnectFailure, Endpoint};
use thiserror::Error;

use crate::preflight::Objection;

/// A command without a result.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum Error {
    /// The runtime does not answer because it is busy: it serves one client at a time, and another one holds it.
    #[error("{endpoint} did not answer within {} ms", waited.as_millis())]
    Busy {
        /// Who was asked.
        endpoint: Endpoint,
        /// How long.
        waited: Duration,
    },
    /// The connection ended before the answer was complete.
    #[error("the runtime closed the connection without an answer to {command} ({received} bytes came)")]
    Closed {
        /// What was asked.
        command: Command,
        /// Bytes of the answer that came.
        received: u64,
    },
    /// The process that dialled in has closed its connection, and so has ended.
    #[error("process {process_id} has hung up on {endpoint}")]
    HungUp {
        /// The port.
        endpoint: Endpoint,
        /// As the kernel says; where it does not, as the process says itself.
        process_id: u64,
    },
    /// The operating system failed.
    #[error("{endpoint}: {source}")]
    Io {
        /// The connection it was about.
        endpoint: Endpoint,
        /// What the system said.
        source: io::Error,
    },
    /// The socket, or a directory on the way to it, belongs to somebody else.
    #[error("{endpoint}: permission denied")]
    NotPermitted {
        /// Who was asked.
        endpoint: Endpoint,
    },
    /// The process has not dialled in again since its last command.
    #[error("process {process_id} did not dial in again on {endpoint} within {} ms", waited.as_millis())]
    NotDialledIn {
        /// The port.
        endpoint: Endpoint,
        /// As the kernel says; where it does not, as the process says itself.
        process_id: u64,
        /// How long.
        waited: Duration,
    },
    /// The runtime says that it has written a dump, and there is none.
    #[error("the runtime says that the dump is written, but the target's file system has none at {path}")]
    NoDump {
        /// Where it should be.
        path: String,
    },
    /// There is no such socket, or nobody listens on it any more.
    #[error("{endpoint}: {}", if *stale { "nobody listens on this socket" } else { "there is no such socket" })]
    NotThere {
        /// Who was asked.
        endpoint: Endpoint,
        /// The file is there, its owner is gone.
        stale: bool,
    },
    /// What lies there is no socket.
    #[error("{endpoint}: this is no socket")]
    NoSocket {
        /// Who was asked.
        endpoint: Endpoint,
    },
    /// Another process than the one that is meant listens there, or nothing proves that it is that one. Nothing was sent.
    #[error("{endpoint}: {reason}")]
    WrongPeer {
        /// Who was to be asked.
        endpoint: Endpoint,
        /// Who it is.
        reason: ConnectFailure,
    },
    /// What came is no answer of this protocol.
    #[error("the answer to {command} is not valid: {source}")]
    Protocol {
        /// What was asked.
        command: Command,
        /// Where and what.
        source: DecodeError,
    },
    /// The runtime refused, or failed.
    #[error("the runtime refused {command}: {}", describe(reply))]
    Refused {
        /// What was asked.
        command: Command,
        /// Its answer.
        reply: ErrorReply,
    },
    /// The request must not be sent. Nothing was.
    #[error("the request was not sent: {0}")]
    Invalid(#[from] EncodeError),
    /// The target would be harmed by the request, or could not do it. Nothing was sent.
    #[error("{command} was not sent: {objection}")]
    Objection {
        /// What was asked for.
        command: Command,
        /// Why not.
        objection: Objection,
    },
    /// The session was told to stop before. It is not told twice: its id may belong to a stranger's session by now.
    #[error("session {id} was told to stop before")]
    StopRequested {
        /// The session.
        id: SessionId,
    },
    /// An answer began and did not end, or the stop of a session made no progress.
    #[error("the answer to {command} was not complete after {} ms ({received} bytes came)", waited.as_millis())]
    TimedOut {
        /// What was asked.
        command: Command,
        /// Bytes of the answer that came.
        received: u64,
        /// How long.
        waited: Duration,
    },
}

fn describe(reply: &ErrorReply) -> String {
    let meaning = reply.hresult.meaning().map(|text| format!(": {text}")).unwrap_or_default();
    let words = reply.message.as_deref().map(str::trim).filter(|text| !text.is_empty());
    format!("{}{meaning}{}", reply.hresult, words.map(|text| format!(": {text}")).unwrap_or_default())
}

impl Error {
    /// The runtime's code, if it refused.
    pub fn hresult(&self) -> Option<Hresult> {
        match self {
            Self::Refused { reply, .. } => Some(reply.hresult),
            _ => None,
        }
    }

    /// Whether the runtime is too old for the command.
    pub fn is_unknown_command(&self) -> bool {
        self.hresult() == Some(Hresult::UNKNOWN_COMMAND)
    }

    /// Whether the runtime was not reached at all: not there, not permitted, or busy.
    pub fn is_unreachable(&self) -> bool {
        matches!(
            self,
            Self::NotThere { .. }
                | Self::NoSocket { .. }
                | Self::NotPermitted { .. }
                | Self::WrongPeer { .. }
                | Self::Busy { .. }
                | Self::NotDialledIn { .. }
                | Self::HungUp { .. }
        )
    }

    /// Who did not answer, where that is what happened.
    pub fn unanswered(&self) -> Option<&Endpoint> {
        match self {
            Self::Busy { endpoint, .. }
            | Self::NotPermitted { endpoint }
            | Self::NotThere { endpoint, .. } => Some(endpoint),
            _ => None,
        }
    }

    /// What one can do about it, one sentence for people; `None` if there is nothing useful to say.
    pub fn hint(&self) -> Option<&'static str> {
        Some(match self {
            Self::Busy { .. } => {
                "a runtime serves one diagnostic client at a time: another tool holds a connection to it, or it is \
                 writing a dump; end that tool or try again"
            }
            Self::Closed { received: 0, command: Command::APPLY_STARTUP_HOOK } => {
                "the startup hook may have failed, which ends .NET 9 and later: look at the target's output"
            }
            Self::Closed { received: 0, .. } => {
                "the process may have ended at this moment: check whether it is still there"
            }
            Self::Closed { .. } => "the process ended while it answered",
            Self::NoDump { .. } => "look at the target's output for what createdump says",
            Self::Objection { objection, .. } => return objection.hint(),
            Self::HungUp { .. } => "the process has ended",
            Self::NotDialledIn { .. } => {
                "the process may have ended, be stopped, or be busy with another diagnostic client"
            }
            Self::NoSocket { .. } => "give the path of a diagnostic socket",
            Self::WrongPeer { reason: ConnectFailure::WrongPeer { wanted: None, .. }, .. } => {
                "nothing was sent: try it as the user who runs that process, if that is the one you mean"
            }
            Self::WrongPeer { reason: ConnectFailure::UnknownPeer { .. }, .. } => {
                "nothing was sent: try it where the process can be seen, in its container or on its host"
            }
            Self::WrongPeer { .. } => {
                "nothing was sent: somebody stands in for the process, or has its socket; end that one, or find out who it is"
            }
            Self::NotPermitted { .. } => "only the user who runs the process, and root, may diagnose it",
            Self::NotThere { stale: true, .. } => {
                "the process that made this socket was killed; the file is a leftover and can be deleted"
            }
            Self::NotThere { stale: false, .. } => {
                "the process has ended, has its socket in another TMPDIR, or runs with DOTNET_EnableDiagnostics=0"
            }
            Self::Protocol { .. } => "is this the diagnostic socket of a .NET process?",
            Self::Refused { command, reply } => match reply.hresult {
                Hresult::UNKNOWN_COMMAND => "this needs a newer .NET runtime in the target",
                Hresult::BAD_ENCODING => {
                    "this runtime does not take one of the options: try without the newest ones"
                }
                Hresult::E_FAIL if SessionForm::from_command(*command).is_some() => {
                    "a runtime has at most 64 sessions at a time: end other recordings and try again"
                }
                Hresult::PROFILER_ALREADY_ACTIVE => "a process has one profiler for all its life",
                Hresult::NOTSUPPORTED => "this build of the runtime can't do that at all",
                Hresult::NOT_YET_AVAILABLE => "the target waits at startup: resume it first",
                _ => return None,
            },
            Self::TimedOut { .. } => {
                "the process may be stopped by a debugger or by a signal, or be out of CPU"
            }
            Self::Io { .. } | Self::Invalid(_) | Self::StopRequested { .. } => return None,
        })
    }
}

impl From<ConnectError> for Error {
    fn from(error: ConnectError) -> Self {
        let ConnectError { endpoint, reason } = error;
        match reason {
            ConnectFailure::NotFound => Self::NotThere { endpoint, stale: false },
            ConnectFailure::Refused => Self::NotThere { endpoint, stale: true },
            ConnectFailure::PermissionDenied => Self::NotPermitted { endpoint },
            ConnectFailure::Busy { waited } => Self::Busy { endpoint, waited },
            ConnectFailure::NoSocket => Self::NoSocket { endpoint },
            reason @ (ConnectFailure::WrongPeer { .. } | ConnectFailure::UnknownPeer { .. }) => {
                Self::WrongPeer { endpoint, reason }
            }
            ConnectFailure::Io(source) => Self::Io { endpoint, source },
            other => Self::Io { endpoint, source: io::Error::other(other) },
        }
    }
}

#[cfg(test)]
mod tests {
    use runtap_transport::Peer;

    use super::*;

    #[test]
    fn a_refusal_shows_code_name_meaning_and_words() {
        let error =
            Error::Refused { command: Command::COLLECT_TRACING5, reply: Hresult::UNKNOWN_COMMAND.into() };
        assert_eq!(
            error.to_string(),
            "the runtime refused 0x0206 (CollectTracing5): 0x80131385 (UNKNOWN_COMMAND): the runtime does not know \
             this command: it is too old"
        );
        assert!(error.is_unknown_command() && !error.is_unreachable());
        let reply = ErrorReply { hresult: Hresult(0x8000_1234), message: Some("disk full\n".into()) };
        let error = Error::Refused { command: Command::GENERATE_CORE_DUMP3, reply };
        assert!(error.to_string().ends_with(": 0x80001234: disk full"), "{error}");
    }

    #[test]
    fn stale_and_missing_sockets_have_different_hints() {
        let missing = |stale| Error::NotThere { endpoint: Endpoint::unix("/x"), stale };
        assert_ne!(missing(true).hint(), missing(false).hint());
        assert_eq!(missing(true).to_string(), "/x: nobody listens on this socket");
        assert_eq!(missing(false).to_string(), "/x: there is no such socket");
    }

    #[test]
    fn failures_to_connect_are_told_apart() {
        let shown = |reason| Error::from(ConnectError { endpoint: Endpoint::unix("/x"), reason }).to_string();
        let waited = Duration::from_millis(250);
        assert_eq!(shown(ConnectFailure::PermissionDenied), "/x: permission denied");
        assert_eq!(shown(ConnectFailure::Busy { waited }), "/x did not answer within 250 ms");
        assert_eq!(shown(ConnectFailure::Refused), "/x: nobody listens on this socket");
        assert_eq!(shown(ConnectFailure::NotFound), "/x: there is no such socket");
        assert_eq!(shown(ConnectFailure::NoSocket), "/x: this is no socket");
        let peer = Peer { pid: Some(77), uid: 65_534 };
        let wrong = |wanted| ConnectFailure::WrongPeer { peer, user: "nobody".to_owned(), wanted };
        let text = "/x: the process behind this socket is PID 77 of user nobody, not 1234";
        assert_eq!(shown(wrong(Some(1234))), text);
        let text =
            "/x: the process behind this socket is PID 77 of user nobody, which is neither you nor root";
        assert_eq!(shown(wrong(None)), text);
        assert_eq!(shown(ConnectFailure::Io(io::ErrorKind::OutOfMemory.into())), "/x: out of memory");
    }
}
