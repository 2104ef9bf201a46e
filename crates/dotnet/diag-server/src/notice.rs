//! What a server tells its program of those who come to it, and of those whom it dials: who they are, says the kernel.

use std::fmt;
use std::path::PathBuf;
use std::sync::Arc;

use runtap_diag_proto::{Command, SessionId};
use runtap_transport::Peer;

/// Something that the program may want to know, to keep a record of or to warn of.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Notice {
    /// A client has sent a request, which is carried out now.
    Request {
        /// Whose it is; `None` on connections that the program has brought itself.
        peer: Option<Peer>,
        /// What it asks for.
        command: Command,
    },
    /// A session asked that threads wait when its buffer is full; one has waited for
    /// [`Limits::blocked_writer`](crate::Limits::blocked_writer) in vain, and events are lost until the client takes
    /// some again. Given once for each time that this begins.
    Overdue {
        /// The session.
        session: SessionId,
    },
    /// Whoever listens on a connect port is neither of our own user nor root: it was not told who we are. Given once for
    /// each user that is found there.
    ForeignTool {
        /// The port.
        path: PathBuf,
        /// Who listens there.
        peer: Peer,
    },
}

impl fmt::Display for Notice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Request { peer: Some(peer), command } => {
                write!(f, "{} asks for {command}", Described(*peer))
            }
            Self::Request { peer: None, command } => write!(f, "a client asks for {command}"),
            Self::Overdue { session } => write!(
                f,
                "the client of session {} takes no events: threads have waited for it, and events are lost now",
                session.0
            ),
            Self::ForeignTool { path, peer } => write!(
                f,
                "{} listens on {}, and is not told who we are: only a tool of our own user or of root is",
                Described(*peer),
                path.display()
            ),
        }
    }
}

/// A peer for people.
struct Described(Peer);

impl fmt::Display for Described {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0.pid {
            Some(pid) => write!(f, "process {pid} of user {}", self.0.uid),
            None => write!(f, "a process of user {}", self.0.uid),
        }
    }
}

type NoticeHandler = Arc<dyn Fn(&Notice) + Send + Sync>;

/// Who gets the notices. Called on the server's own thread: it must not block, and must not take long.
#[derive(Clone, Default)]
pub(crate) struct Notifier(Option<NoticeHandler>);

impl Notifier {
    pub(crate) fn new(tell: impl Fn(&Notice) + Send + Sync + 'static) -> Self {
        Self(Some(Arc::new(tell)))
    }

    pub(crate) fn notify(&self, notice: impl FnOnce() -> Notice) {
        if let Some(tell) = &self.0 {
            tell(&notice());
        }
    }
}

impl fmt::Debug for Notifier {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(if self.0.is_some() { "Notifier" } else { "Nobody" })
    }
}
