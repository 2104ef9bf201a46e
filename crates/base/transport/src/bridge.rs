//! Connections that this process makes in place of the system: to a peer that no socket of this machine leads to.
//!
//! Whoever dials a [`Bridge`] gets one end of a pair of sockets, as if it had dialled one. The other end goes to the bridge's
//! maker, who moves the bytes. No name in a file system stands for it, so that nobody else can dial it. Knows nothing of
//! where it leads.

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

/// The near side: dialled by [`Endpoint::Bridge`](crate::Endpoint::Bridge).
pub struct Bridge {
    name: String,
    calls: mpsc::UnboundedSender<Call>,
}

/// Somebody dials. The far side answers whether the peer was reached; bytes pass over the stream from then on.
#[derive(Debug)]
pub struct Call {
    /// The far end of the connection.
    pub stream: FarEnd,
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
        let (near, far) = far_end::pair().map_err(ConnectFailure::Io)?;
        let (answer, answered) = oneshot::channel();
        let gone = || ConnectFailure::Io(io::Error::new(io::ErrorKind::NotConnected, "the bridge has ended"));
        self.calls.send(Call { stream: far, answer }).map_err(|_call| gone())?;
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

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use tokio::io::{AsyncReadExt, AsyncWriteExt};

    use super::*;
    use crate::Endpoint;

    const SOON: Duration = Duration::from_mins(1);

    #[tokio::test]
    async fn who_dials_has_the_far_end_at_the_other_end() {
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
            // Whoever dials next is told why not.
            let call = calls.recv().await.unwrap();
            call.answer.send(Err(io::Error::other("not today"))).unwrap();
        });
        let mut near = endpoint.connect(SOON).await.unwrap();
        let mut said = String::new();
        near.read_to_string(&mut said).await.unwrap();
        assert_eq!(said, "here");
        assert_eq!(endpoint.connect(SOON).await.unwrap_err().to_string(), "connect to far:1: not today");
        far.await.unwrap();
        // And when nobody is there any more.
        assert!(endpoint.connect(SOON).await.unwrap_err().to_string().contains("has ended"));
    }

    #[tokio::test]
    async fn a_far_end_that_does_not_answer_is_not_waited_for() {
        let (bridge, _calls) = Bridge::new("far:1");
        let error = Endpoint::Bridge(Arc::new(bridge)).connect(Duration::ZERO).await.unwrap_err();
        assert!(matches!(error.reason, ConnectFailure::Io(error) if error.kind() == io::ErrorKind::TimedOut));
    }
}
