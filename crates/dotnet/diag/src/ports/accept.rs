//! The task behind a port: accepts connections and reads who dials in. Waits for no single one of them.
//!
//! Whose a connection is, is asked before anything else; `admission` decides what becomes of it.

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

/// How long it waits when the system is out of descriptors, and nobody can be hung up on.
const OUT_OF_DESCRIPTORS: Duration = Duration::from_millis(100);

/// Runs until it is aborted.
pub(super) async fn run(listener: Arc<Listener>, registry: Arc<Registry>) {
    let mut door =
        Door { registry, opened: Instant::now(), greetings: JoinSet::new(), running: HashMap::new() };
    loop {
        let due = door.registry.admission().poll_timeout();
        let late = async {
            match due {
                Some(due) => {
                    sleep_until(door.opened + due).await;
                    due
                }
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            due = late => {
                // On a busy machine it is we who are late: what has been said meanwhile is read first.
                yield_now().await;
                let late = door.registry.admission().handle_timeout(due);
                door.hang_up_on(late);
            }
            Some(greeted) = door.greetings.join_next() => if let Ok(ticket) = greeted {
                door.running.remove(&ticket);
            },
            accepted = listener.accept_unverified() => match accepted {
                Ok((stream, peer)) => door.knock(stream, peer),
                Err(_out_of_descriptors) => {
                    let guests = door.registry.admission().handle_out_of_descriptors();
                    if guests.is_empty() {
                        sleep(OUT_OF_DESCRIPTORS).await;
                    } else {
                        door.hang_up_on(guests);
                        // Those that say nothing are closed by the tasks that listened to them.
                        yield_now().await;
                    }
                }
            },
        }
    }
}

/// Those who come in.
struct Door {
    registry: Arc<Registry>,
    opened: Instant,
    /// Connections that are about to say who they are, by ticket.
    greetings: JoinSet<u64>,
    running: HashMap<u64, AbortHandle>,
}

impl Door {
    /// Somebody has connected.
    fn knock(&mut self, stream: Stream, peer: Peer) {
        let registry = &self.registry;
        if !registry.everybody && !process::is_trusted(peer) {
            registry.turned_away(peer);
            return;
        }
        let standing = process::standing(peer);
        if standing == Standing::Guest {
            registry.came_in(peer);
        }
        // Looked up each time: the limit may have been raised since.
        let limits = Limits::for_descriptors(u64::try_from(most_descriptors()).unwrap_or(u64::MAX));
        let verdict =
            registry.admission().handle_connection(standing, peer.uid, self.opened.elapsed(), &limits);
        if let Some(ticket) = verdict.ticket {
            let (registry, ticket) = (Arc::clone(registry), self.registry.ticket(ticket));
            let id = ticket.id();
            let greeting = self.greetings.spawn(async move {
                // Who says something else is hung up on; who says nothing, at its deadline.
                if let Some((advertise, stream)) = greet(stream).await {
                    registry.dialled_in(advertise, peer, standing, stream, ticket);
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
            // It may have said who it is at this moment, on another thread.
            self.registry.hang_up_on(ticket);
        }
    }
}

/// Reads the Advertise message, and not a byte more.
async fn greet(mut stream: Stream) -> Option<(Advertise, Stream)> {
    let mut bytes = [0; Advertise::LEN];
    stream.read_exact(&mut bytes).await.ok()?;
    let advertise = Advertise::decode(&mut Reader::new(&bytes)).ok()?;
    Some((advertise, stream))
}
