//! Connections that this process forwards to peers that no local socket leads to.
//!
//! Connecting to a [`Bridge`] returns one end of a socket pair. The other end is passed to the creator of the bridge,
//! who transfers the bytes. A bridge has no name in the file system, so other processes cannot connect to it.

use std::fmt;
use std::io;
use std::time::Duration;

use tokio::sync::{mpsc, oneshot};
use tokio::time::timeout;

use crate::{ConnectFailure, Stream};

#[cfg_attr(unix, path = "bridge/unix.rs")]
#[cfg_attr(windows, path = "bridge/windows.rs")]
mod far_end;

pub use self::far_end::FarEnd;

/// The near side of a bridge; see [`Endpoint::Bridge`](crate::Endpoint::Bridge).
pub struct Bridge {
    name: String,
    calls: mpsc::UnboundedSender<ConnectRequest>,
}

/// A connection request. The far side answers whether it reached the peer, and then transfers bytes over the stream.
#[derive(Debug)]
pub struct ConnectRequest {
    /// The far end of the connection.
    pub stream: FarEnd,
    /// Receives whether the peer was reached.
    pub answer: oneshot::Sender<io::Result<()>>,
}

impl Bridge {
    /// Creates a bridge to a peer with this name, and the receiver of its connection requests.
    pub fn new(name: impl Into<String>) -> (Self, mpsc::UnboundedReceiver<ConnectRequest>) {
        let (calls, incoming) = mpsc::unbounded_channel();
        (Self { name: name.into(), calls }, incoming)
    }

    /// Returns the name of the peer.
    pub fn name(&self) -> &str {
        &self.name
    }

    pub(crate) async fn connect(&self, within: Duration) -> Result<Stream, ConnectFailure> {
        let (near, far) = far_end::pair().map_err(ConnectFailure::Io)?;
        let (answer, answered) = oneshot::channel();
        let gone =
            || ConnectFailure::Io(io::Error::new(io::ErrorKind::NotConnected, "the bridge was closed"));
        self.calls.send(ConnectRequest { stream: far, answer }).map_err(|_call| gone())?;
        match timeout(within, answered).await {
            Ok(Ok(Ok(()))) => Ok(near),
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

/// Bridges are equal if they have the same name.
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

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use tokio::io::{AsyncReadExt, AsyncWriteExt};

    use super::*;
    use crate::Endpoint;

    const SOON: Duration = Duration::from_mins(1);

    #[tokio::test]
    async fn connecting_returns_a_stream_to_the_far_end() {
        let (bridge, mut calls) = Bridge::new("far:1");
        let endpoint = Endpoint::Bridge(Arc::new(bridge));
        assert_eq!(
            (endpoint.to_string().as_str(), endpoint.path(), endpoint.process_id()),
            ("far:1", None, None)
        );
        assert!(endpoint.is_remote() && !Endpoint::unix("/x").is_remote());
        let far = tokio::spawn(async move {
            let call = calls.recv().await.unwrap();
            call.answer.send(Ok(())).unwrap();
            let mut stream = call.stream.into_stream().unwrap();
            stream.write_all(b"here").await.unwrap();
            drop(stream);
            // The reason of a failure is passed on.
            let call = calls.recv().await.unwrap();
            call.answer.send(Err(io::Error::other("not today"))).unwrap();
        });
        let mut near = endpoint.connect(SOON).await.unwrap();
        let mut said = String::new();
        near.read_to_string(&mut said).await.unwrap();
        assert_eq!(said, "here");
        assert_eq!(endpoint.connect(SOON).await.unwrap_err().to_string(), "connect to far:1: not today");
        far.await.unwrap();
        // The far side has been dropped.
        assert!(endpoint.connect(SOON).await.unwrap_err().to_string().contains("was closed"));
    }

    #[tokio::test]
    async fn connecting_times_out_if_the_far_end_does_not_answer() {
        let (bridge, _calls) = Bridge::new("far:1");
        let error = Endpoint::Bridge(Arc::new(bridge)).connect(Duration::ZERO).await.unwrap_err();
        assert!(matches!(error.reason, ConnectFailure::Io(error) if error.kind() == io::ErrorKind::TimedOut));
    }
}
