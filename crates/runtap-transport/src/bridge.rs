//! Connections that this process makes in place of the system: to a peer that no socket of this machine leads to.
//!
//! Whoever dials a [`Bridge`] gets one end of a pair of sockets, as if it had dialled one. The other end goes to the bridge's
//! maker, who moves the bytes. No name in a file system stands for it, so that nobody else can dial it. Knows nothing of
//! where it leads.

use std::fmt;
use std::io;
use std::os::unix::net::UnixStream;
use std::time::Duration;

use tokio::sync::{mpsc, oneshot};
use tokio::time::timeout;

use crate::{ConnectFailure, Stream};

/// The near side: dialled by [`Endpoint::Bridge`](crate::Endpoint::Bridge).
pub struct Bridge {
    name: String,
    calls: mpsc::UnboundedSender<Call>,
}

/// Somebody dials. The far side answers whether the peer was reached; bytes pass over the stream from then on.
#[derive(Debug)]
pub struct Call {
    /// The far end of the connection. It does not block.
    pub stream: UnixStream,
    /// Whether it was reached.
    pub answer: oneshot::Sender<io::Result<()>>,
}

impl Bridge {
    /// A bridge to a peer of this name, and where its calls come in.
    pub fn new(name: impl Into<String>) -> (Self, mpsc::UnboundedReceiver<Call>) {
        let (calls, incoming) = mpsc::unbounded_channel();
        (Self { name: name.into(), calls }, incoming)
    }

    /// What the peer is called.
    pub fn name(&self) -> &str {
        &self.name
    }

    pub(crate) async fn connect(&self, within: Duration) -> Result<Stream, ConnectFailure> {
        let (near, far) = UnixStream::pair().map_err(ConnectFailure::Io)?;
        let near = near.set_nonblocking(true).and_then(|()| tokio::net::UnixStream::from_std(near));
        let near = near.map_err(ConnectFailure::Io)?;
        far.set_nonblocking(true).map_err(ConnectFailure::Io)?;
        let (answer, answered) = oneshot::channel();
        let gone = || ConnectFailure::Io(io::Error::new(io::ErrorKind::NotConnected, "the bridge has ended"));
        self.calls.send(Call { stream: far, answer }).map_err(|_call| gone())?;
        match timeout(within, answered).await {
            Ok(Ok(Ok(()))) => Ok(Stream::from(near)),
            Ok(Ok(Err(error))) => Err(ConnectFailure::Io(error)),
            Ok(Err(_dropped)) => Err(gone()),
            Err(elapsed) => Err(ConnectFailure::Io(elapsed.into())),
        }
    }
}

impl fmt::Debug for Bridge {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Bridge").field("name", &self.name).finish_non_exhaustive()
    }
}

/// One bridge is another one if it is called otherwise.
impl PartialEq for Bridge {
    fn eq(&self, other: &Self) -> bool {
        self.name == other.name
    }
}

impl Eq for Bridge {}

impl std::hash::Hash for Bridge {
    fn hash<H: std::hash::Hasher>(&self, state: &mut H) {
        self.name.hash(state);
    }
}
