//! Notices of a server to its program about clients and about tools to which it connects, as identified by the kernel.

use std::fmt;
use std::path::PathBuf;
use std::sync::Arc;

use runtap_diag_proto::{Command, SessionId};
use runtap_transport::Peer;

/// An event that the program may want to log.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Notice {
    /// A client has sent a request, which will now be carried out.
    Request {
        /// The client's process. `None` on connections that the program provided.
        peer: Option<Peer>,
        /// The command.
        command: Command,
    },
    /// A session requested that threads block when its buffer is full, and a thread has waited for
    /// [`Limits::blocked_writer`](crate::Limits::blocked_writer) without success. Events are lost until the client reads
    /// again. Reported once each time that this starts.
    Overdue {
        /// The session.
        session: SessionId,
    },
    /// The listener on a connect port belongs neither to the program's own user nor to root: the server did not identify
    /// itself. Reported once for each user.
    ForeignTool {
        /// The port.
        path: PathBuf,
        /// The listening process.
        peer: Peer,
    },
}

impl fmt::Display for Notice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Request { peer: Some(peer), command } => {
                write!(f, "{} requested {command}", DisplayPeer(*peer))
            }
            Self::Request { peer: None, command } => write!(f, "a client requested {command}"),
            Self::Overdue { session } => write!(
                f,
                "the client of session {} does not read events; threads have waited for it, and events are now lost",
                session.0
            ),
            Self::ForeignTool { path, peer } => write!(
                f,
                "{} listens on {} but belongs to another user; only tools of this process's user or of root are accepted",
                DisplayPeer(*peer),
                path.display()
            ),
        }
    }
}

/// Formats a peer for messages.
struct DisplayPeer(Peer);

impl fmt::Display for DisplayPeer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0.pid {
            Some(pid) => write!(f, "process {pid} of user {}", self.0.uid),
            None => write!(f, "a process of user {}", self.0.uid),
        }
    }
}

type NoticeHandler = Arc<dyn Fn(&Notice) + Send + Sync>;

/// The receiver of the notices, called on the server's own thread: it must not block.
#[derive(Clone, Default)]
pub(crate) struct Notifier(Option<NoticeHandler>);

impl Notifier {
    pub(crate) fn new(handler: impl Fn(&Notice) + Send + Sync + 'static) -> Self {
        Self(Some(Arc::new(handler)))
    }

    pub(crate) fn notify(&self, notice: impl FnOnce() -> Notice) {
        if let Some(handler) = &self.0 {
            handler(&notice());
        }
    }
}

impl fmt::Debug for Notifier {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(if self.0.is_some() { "Notifier" } else { "None" })
    }
}
