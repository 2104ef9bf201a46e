//! The errors of commands, distinguished by what the user can do.

use std::{io, time::Duration};

use runtap_diag_proto::{Command, DecodeError, EncodeError, ErrorReply, Hresult, SessionForm, SessionId};
use runtap_transport::{ConnectError, ConnectFailure, Endpoint};
use thiserror::Error;

use crate::preflight::Objection;

/// An error of a command.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum Error {
    /// The runtime does not answer because it is busy: it serves one client at a time, and another client is connected.
    #[error("{endpoint} did not answer within {} ms", waited.as_millis())]
    Busy {
        /// The endpoint of the runtime.
        endpoint: Endpoint,
        /// The time waited.
        waited: Duration,
    },
    /// The connection was closed before the answer was complete.
    #[error("the runtime closed the connection without an answer to {command} ({received} bytes received)")]
    Closed {
        /// The command.
        command: Command,
        /// The number of bytes of the answer that were received.
        received: u64,
    },
    /// The process that connected to the port has closed its connection, and therefore has exited.
    #[error("process {process_id} closed its connection to {endpoint}")]
    HungUp {
        /// The port.
        endpoint: Endpoint,
        /// The process id from the kernel or, if unknown, the one that the process claims.
        process_id: u64,
    },
    /// An operating system error.
    #[error("{endpoint}: {source}")]
    Io {
        /// The endpoint of the connection.
        endpoint: Endpoint,
        /// The error.
        source: io::Error,
    },
    /// The socket, or a directory on the way to it, belongs to another user.
    #[error("{endpoint}: permission denied")]
    NotPermitted {
        /// The endpoint of the runtime.
        endpoint: Endpoint,
    },
    /// The process has not reconnected to the port since its last command.
    #[error("process {process_id} did not reconnect to {endpoint} within {} ms", waited.as_millis())]
    NotReconnected {
        /// The port.
        endpoint: Endpoint,
        /// The process id from the kernel or, if unknown, the one that the process claims.
        process_id: u64,
        /// The time waited.
        waited: Duration,
    },
    /// The runtime reported success for a dump, but the file does not exist.
    #[error("the runtime reported success, but the dump {path} does not exist in the target's file system")]
    NoDump {
        /// The path where the dump should be.
        path: String,
    },
    /// The socket does not exist, or no process listens on it any more.
    #[error("{endpoint}: {}", if *stale { "no process listens on this socket" } else { "there is no such socket" })]
    NotThere {
        /// The endpoint of the runtime.
        endpoint: Endpoint,
        /// Whether the file exists without a listening process.
        stale: bool,
    },
    /// The file is not a socket.
    #[error("{endpoint}: not a socket")]
    NoSocket {
        /// The endpoint of the file.
        endpoint: Endpoint,
    },
    /// Another process than the expected one listens there, or its identity cannot be verified. Nothing was sent.
    #[error("{endpoint}: {reason}")]
    WrongPeer {
        /// The endpoint of the expected process.
        endpoint: Endpoint,
        /// The reason.
        reason: ConnectFailure,
    },
    /// The answer does not follow the protocol.
    #[error("the answer to {command} is not valid: {source}")]
    Protocol {
        /// The command.
        command: Command,
        /// The invalid field and its offset.
        source: DecodeError,
    },
    /// The runtime rejected the command, or the command failed.
    #[error("{}", describe(*command, reply))]
    Refused {
        /// The command.
        command: Command,
        /// The error reply.
        reply: ErrorReply,
    },
    /// The request must not be sent. Nothing was sent.
    #[error("the request was not sent: {0}")]
    Invalid(#[from] EncodeError),
    /// The request would harm the target, or the target could not carry it out. Nothing was sent.
    #[error("{objection}; nothing was sent to the process")]
    Objection {
        /// The command.
        command: Command,
        /// The reason.
        objection: Objection,
    },
    /// A stop of the session was requested before. It is not repeated: the id may belong to another client's session now.
    #[error("the stop of session {id} was already requested")]
    StopRequested {
        /// The id of the session.
        id: SessionId,
    },
    /// The answer was not complete in time, or the stop of a session made no progress.
    #[error("the answer to {command} was incomplete after {} ms ({received} bytes received)", waited.as_millis())]
    TimedOut {
        /// The command.
        command: Command,
        /// The number of bytes of the answer that were received.
        received: u64,
        /// The time waited.
        waited: Duration,
    },
}

/// Formats the command, the meaning of its error code, and the text of the runtime.
fn describe(command: Command, reply: &ErrorReply) -> String {
    let code = reply.hresult;
    let is_dump = matches!(
        command,
        Command::GENERATE_CORE_DUMP | Command::GENERATE_CORE_DUMP2 | Command::GENERATE_CORE_DUMP3
    );
    let returned = match (is_dump, code, code.name(), code.meaning()) {
        (true, Hresult::E_FAIL, ..) => {
            format!("the runtime wrote no dump: {command} returned E_FAIL, {:#010x}", code.0)
        }
        (.., Some(name), Some(meaning)) => {
            format!("the runtime rejected {command}: {meaning} ({name}, {:#010x})", code.0)
        }
        _ => format!("the runtime rejected {command} with {code}"),
    };
    let words = reply.message.as_deref().map(str::trim).filter(|text| !text.is_empty());
    format!("{returned}{}", words.map(|text| format!(": {text}")).unwrap_or_default())
}

impl Error {
    /// Returns the runtime's error code. `None` for other errors.
    pub fn hresult(&self) -> Option<Hresult> {
        match self {
            Self::Refused { reply, .. } => Some(reply.hresult),
            _ => None,
        }
    }

    /// Returns whether the runtime is too old for the command.
    pub fn is_unknown_command(&self) -> bool {
        self.hresult() == Some(Hresult::UNKNOWN_COMMAND)
    }

    /// Returns whether the runtime could not be reached at all: missing, not permitted, or busy.
    pub fn is_unreachable(&self) -> bool {
        matches!(
            self,
            Self::NotThere { .. }
                | Self::NoSocket { .. }
                | Self::NotPermitted { .. }
                | Self::WrongPeer { .. }
                | Self::Busy { .. }
                | Self::NotReconnected { .. }
                | Self::HungUp { .. }
        )
    }

    /// Returns the endpoint that did not answer. `None` for other errors.
    pub fn unanswered(&self) -> Option<&Endpoint> {
        match self {
            Self::Busy { endpoint, .. }
            | Self::NotPermitted { endpoint }
            | Self::NotThere { endpoint, .. } => Some(endpoint),
            _ => None,
        }
    }

    /// Returns advice for the user in one sentence. `None` for errors without advice.
    pub fn hint(&self) -> Option<&'static str> {
        Some(match self {
            Self::Busy { .. } => {
                "a runtime serves one diagnostic client at a time: another tool holds a connection to it, or it is \
                 writing a dump; stop that tool or try again"
            }
            Self::Closed { received: 0, command: Command::APPLY_STARTUP_HOOK } => {
                "the startup hook may have failed, which crashes .NET 9 and later: check the target's output"
            }
            Self::Closed { received: 0, .. } => {
                "the process may have just exited: check whether it is still running"
            }
            Self::Closed { .. } => "the process exited while it answered",
            Self::NoDump { .. } => "check the target's output for messages of createdump",
            Self::Objection { objection, .. } => return objection.hint(),
            Self::HungUp { .. } => "the process has exited",
            Self::NotReconnected { .. } => {
                "the process may have exited, be stopped, or be busy with another diagnostic client"
            }
            Self::NoSocket { .. } => "specify the path of a diagnostic socket",
            Self::WrongPeer { reason: ConnectFailure::WrongPeer { wanted: None, .. }, .. } => {
                "nothing was sent: run this as the user of that process, if it is the intended one"
            }
            Self::WrongPeer { reason: ConnectFailure::UnknownPeer { .. }, .. } => {
                "nothing was sent: run this where the process is visible, in its container or on its host"
            }
            Self::WrongPeer { .. } => {
                "nothing was sent: another process listens on this socket; find out what it is, or stop it"
            }
            Self::NotPermitted { .. } => "only the user who runs the process and root can diagnose it",
            Self::NotThere { stale: true, .. } => {
                "the process that created this socket was killed; the file can be deleted"
            }
            Self::NotThere { stale: false, .. } => {
                "the process has exited, has its socket in another TMPDIR, or runs with DOTNET_EnableDiagnostics=0"
            }
            Self::Protocol { .. } => "check that this is the diagnostic socket of a .NET process",
            Self::Refused { command, reply } => match reply.hresult {
                Hresult::UNKNOWN_COMMAND => "this needs a newer .NET runtime in the target",
                Hresult::BAD_ENCODING => {
                    "this runtime does not support one of the options: retry without the newest ones"
                }
                Hresult::E_FAIL if SessionForm::from_command(*command).is_some() => {
                    "a runtime has at most 64 sessions at a time: stop other recordings and retry"
                }
                Hresult::PROFILER_ALREADY_ACTIVE => "a process can load only one profiler in its lifetime",
                Hresult::NOTSUPPORTED => "this build of the runtime does not support this command",
                Hresult::NOT_YET_AVAILABLE => "the target is suspended at startup: resume it first",
                _ => return None,
            },
            Self::TimedOut { .. } => {
                "the process may be stopped by a debugger or a signal, or may get no CPU time"
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
    fn a_rejection_shows_code_name_meaning_and_text() {
        let error =
            Error::Refused { command: Command::COLLECT_TRACING5, reply: Hresult::UNKNOWN_COMMAND.into() };
        assert_eq!(
            error.to_string(),
            "the runtime rejected 0x0206 (CollectTracing5): the runtime is too old to support this command \
             (UNKNOWN_COMMAND, 0x80131385)"
        );
        assert!(error.is_unknown_command() && !error.is_unreachable());
        let reply = ErrorReply { hresult: Hresult(0x8000_1234), message: Some("disk full\n".into()) };
        let error = Error::Refused { command: Command::GENERATE_CORE_DUMP3, reply };
        assert!(error.to_string().ends_with(" with 0x80001234: disk full"), "{error}");
        let reply = Hresult::E_FAIL.into();
        let error = Error::Refused { command: Command::GENERATE_CORE_DUMP3, reply };
        let text = "the runtime wrote no dump: 0x0103 (GenerateCoreDump3) returned E_FAIL, 0x80004005";
        assert_eq!(error.to_string(), text);
    }

    #[test]
    fn stale_and_missing_sockets_have_different_hints() {
        let missing = |stale| Error::NotThere { endpoint: Endpoint::unix("/x"), stale };
        assert_ne!(missing(true).hint(), missing(false).hint());
        assert_eq!(missing(true).to_string(), "/x: no process listens on this socket");
        assert_eq!(missing(false).to_string(), "/x: there is no such socket");
    }

    #[test]
    fn failures_to_connect_are_distinguished() {
        let shown = |reason| Error::from(ConnectError { endpoint: Endpoint::unix("/x"), reason }).to_string();
        let waited = Duration::from_millis(250);
        assert_eq!(shown(ConnectFailure::PermissionDenied), "/x: permission denied");
        assert_eq!(shown(ConnectFailure::Busy { waited }), "/x did not answer within 250 ms");
        assert_eq!(shown(ConnectFailure::Refused), "/x: no process listens on this socket");
        assert_eq!(shown(ConnectFailure::NotFound), "/x: there is no such socket");
        assert_eq!(shown(ConnectFailure::NoSocket), "/x: not a socket");
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
