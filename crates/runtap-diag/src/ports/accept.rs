//! The task behind a port: accepts connections and reads who dials in. Waits for no single one of them.

use std::collections::VecDeque;
use std::io;
use std::sync::Arc;
use std::time::Duration;

use runtap_diag_proto::Advertise;
use runtap_transport::{Listener, Stream};
use runtap_wire::Reader;
use tokio::io::AsyncReadExt;
use tokio::task::{AbortHandle, JoinSet};
use tokio::time::{sleep, timeout};

use super::Registry;

/// For a whole Advertise message; the same as Microsoft's tools.
const DEADLINE: Duration = Duration::from_millis(250);
/// Connections that may be about to say who they are. Beyond this the oldest is hung up on: a runtime dials in again.
const GREETING: usize = 256;
/// How long it waits when the system is out of descriptors.
const OUT_OF_DESCRIPTORS: Duration = Duration::from_millis(100);

/// Runs until it is aborted.
pub(super) async fn run(listener: Arc<Listener>, registry: Arc<Registry>) {
    let mut greetings = JoinSet::new();
    let mut oldest: VecDeque<AbortHandle> = VecDeque::new();
    loop {
        tokio::select! {
            Some(_) = greetings.join_next() => {
                while oldest.front().is_some_and(AbortHandle::is_finished) {
                    oldest.pop_front();
                }
            }
            accepted = listener.accept() => match accepted {
                Ok((stream, peer)) => {
                    while oldest.len() >= GREETING && let Some(greeting) = oldest.pop_front() {
                        greeting.abort();
                    }
                    let registry = Arc::clone(&registry);
                    oldest.push_back(greetings.spawn(async move {
                        // Who says something else, or nothing, is hung up on.
                        if let Some((advertise, stream)) = greet(stream).await {
                            registry.dialled_in(advertise, peer, stream);
                        }
                    }));
                }
                Err(_out_of_descriptors) => sleep(OUT_OF_DESCRIPTORS).await,
            },
        }
    }
}

/// Reads the Advertise message, and not a byte more.
async fn greet(mut stream: Stream) -> Option<(Advertise, Stream)> {
    let mut bytes = [0; Advertise::LEN];
    let read: io::Result<_> = timeout(DEADLINE, stream.read_exact(&mut bytes)).await.ok()?;
    read.ok()?;
    let advertise = Advertise::decode(&mut Reader::new(&bytes)).ok()?;
    Some((advertise, stream))
}
