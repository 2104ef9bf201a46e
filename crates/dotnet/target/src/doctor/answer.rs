//! Asking a runtime who it is. Refuses to judge why it does not answer.

use std::time::Duration;

use runtap_diag::{Client, Error, Timeouts};
use runtap_diag_proto::ProcessInfo;
use runtap_transport::Endpoint;

/// How long a runtime may take to answer. One that is not held up needs a few milliseconds.
pub(crate) const DEADLINE: Duration = Duration::from_secs(1);

/// What a runtime said when it was asked who it is.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum Answer {
    /// There was nobody to ask.
    #[default]
    NotAsked,
    /// It answered. .NET Core 3 can't say who it is.
    Answered(Option<Box<ProcessInfo>>),
    /// It did not answer in time.
    Silent,
    /// We may not connect.
    NotPermitted,
    /// Nobody listens on the socket.
    NobodyListens,
    /// Another process listens on the socket: who, in words.
    Foreign(String),
    /// The socket is gone.
    NotThere,
    /// Somebody answered who is no runtime, or something else failed.
    Failed(String),
}

/// Asks a runtime who it is, for at most this time.
pub async fn ask(endpoint: Option<Endpoint>, limit: Duration) -> Answer {
    let Some(endpoint) = endpoint else { return Answer::NotAsked };
    let client = Client::new(endpoint).with_timeouts(Timeouts::all(limit));
    match tokio::time::timeout(limit, client.process_info()).await {
        Ok(Ok(info)) => Answer::Answered(Some(Box::new(info))),
        Ok(Err(error)) => Answer::of_error(&error),
        Err(_elapsed) => Answer::Silent,
    }
}

impl Answer {
    /// What a failure to ask says.
    pub fn of_error(error: &Error) -> Self {
        match error {
            error if error.is_unknown_command() => Self::Answered(None),
            Error::Busy { .. } | Error::TimedOut { .. } => Self::Silent,
            Error::NotPermitted { .. } => Self::NotPermitted,
            Error::WrongPeer { reason, .. } => Self::Foreign(reason.to_string()),
            Error::NotThere { stale: true, .. } => Self::NobodyListens,
            Error::NotThere { stale: false, .. } => Self::NotThere,
            other => Self::Failed(other.to_string()),
        }
    }
}
