//! The task behind a port: accepts connections and reads their Advertise messages, without waiting for a single one.
//!
//! The owner of a connection is determined first; `admission` decides whether to keep the connection.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use runtap_diag_proto::Advertise;
use runtap_transport::{Listener, Peer, Stream, most_descriptors};
use runtap_wire::Reader;
use tokio::io::AsyncReadExt;
use tokio::task::{AbortHandle, JoinSet, yield_now};
use tokio::time::{Instant, sleep, sleep_until};

use super::Registry;
use super::admission::{Limits, Standing};
use super::process;

/// The wait when the system is out of descriptors and no connection can be closed.
const DESCRIPTOR_RETRY_DELAY: Duration = Duration::from_millis(100);

/// Accepts connections until the task is aborted.
pub(super) async fn run(listener: Arc<Listener>, registry: Arc<Registry>) {
    let mut acceptor =
        Acceptor { registry, opened: Instant::now(), greetings: JoinSet::new(), running: HashMap::new() };
    loop {
        let due = acceptor.registry.admission().poll_timeout();
        let late = async {
            match due {
                Some(due) => {
                    sleep_until(acceptor.opened + due).await;
                    due
                }
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            due = late => {
                // On a busy system this task may be late: handle messages that have already arrived first.
                yield_now().await;
                let late = acceptor.registry.admission().handle_timeout(due);
                acceptor.hang_up_on(late);
            }
            Some(greeted) = acceptor.greetings.join_next() => if let Ok(ticket) = greeted {
                acceptor.running.remove(&ticket);
            },
            accepted = listener.accept_unverified() => match accepted {
                Ok((stream, peer)) => acceptor.handle_connection(stream, peer),
                Err(_out_of_descriptors) => {
                    let guests = acceptor.registry.admission().handle_out_of_descriptors();
                    if guests.is_empty() {
                        sleep(DESCRIPTOR_RETRY_DELAY).await;
                    } else {
                        acceptor.hang_up_on(guests);
                        // The greeting tasks of silent connections close them.
                        yield_now().await;
                    }
                }
            },
        }
    }
}

/// Accepts connections and tracks those that have not identified themselves.
struct Acceptor {
    registry: Arc<Registry>,
    opened: Instant,
    /// Connections that have not identified themselves yet, by ticket.
    greetings: JoinSet<u64>,
    running: HashMap<u64, AbortHandle>,
}

impl Acceptor {
    /// Handles a new connection.
    fn handle_connection(&mut self, stream: Stream, peer: Peer) {
        let registry = &self.registry;
        if !registry.everybody && !process::is_trusted(peer) {
            registry.report_rejected(peer);
            return;
        }
        let standing = process::standing(peer);
        if standing == Standing::Guest {
            registry.report_accepted(peer);
        }
        // Read each time, because the limit may have been raised.
        let limits = Limits::for_descriptors(u64::try_from(most_descriptors()).unwrap_or(u64::MAX));
        let verdict =
            registry.admission().handle_connection(standing, peer.uid, self.opened.elapsed(), &limits);
        if let Some(ticket) = verdict.ticket {
            let (registry, ticket) = (Arc::clone(registry), self.registry.ticket(ticket));
            let id = ticket.id();
            let greeting = self.greetings.spawn(async move {
                // A connection with an invalid message is closed at once, a silent one at its deadline.
                if let Some((advertise, stream)) = read_advertise(stream).await {
                    registry.handle_runtime(advertise, peer, standing, stream, ticket);
                }
                id
            });
            self.running.insert(id, greeting);
        }
        self.hang_up_on(verdict.evicted);
    }

    fn hang_up_on(&mut self, tickets: impl IntoIterator<Item = u64>) {
        for ticket in tickets {
            if let Some(greeting) = self.running.remove(&ticket) {
                greeting.abort();
            }
            // The connection may have identified itself at this moment, on another thread.
            self.registry.hang_up_on(ticket);
        }
    }
}

/// Reads the Advertise message, and no byte after it.
async fn read_advertise(mut stream: Stream) -> Option<(Advertise, Stream)> {
    let mut bytes = [0; Advertise::LEN];
    stream.read_exact(&mut bytes).await.ok()?;
    let advertise = Advertise::decode(&mut Reader::new(&bytes)).ok()?;
    Some((advertise, stream))
}
