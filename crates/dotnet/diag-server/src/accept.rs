//! Taking in clients, no more than there is room for. Where it is crowded, the one that has kept the server waiting for the
//! longest time goes: one that has not sent its whole request, or does not take its answer.

use std::collections::VecDeque;
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use runtap_transport::Listener;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::task::{AbortHandle, JoinSet};
use tokio::time::{sleep, timeout};

use crate::connection::{Dispatcher, Visit};

/// How long the server waits when the system is out of descriptors.
const OUT_OF_DESCRIPTORS: Duration = Duration::from_millis(100);
/// How often it is looked for somebody who keeps the server waiting, while all others are at work.
const CROWDED: Duration = Duration::from_millis(10);

/// Serves whoever connects, for ever.
pub(crate) async fn accept(listener: &Listener, dispatcher: &Dispatcher, connections: &mut JoinSet<()>) {
    let mut room = Room::new(dispatcher.limits().connections);
    loop {
        while connections.try_join_next().is_some() {}
        let (stream, peer) = match listener.accept().await {
            Ok(accepted) => accepted,
            Err(_out_of_descriptors) => {
                room.make();
                sleep(OUT_OF_DESCRIPTORS).await;
                continue;
            }
        };
        let permit = room.enter().await;
        room.forget_who_has_gone();
        let waited_for = Arc::new(AtomicBool::new(true));
        let visit = Visit { peer: Some(peer), permit: Some(permit), waited_for: Arc::clone(&waited_for) };
        let dispatcher = dispatcher.clone();
        let task = connections.spawn(async move {
            // A client that went away is its own affair.
            let _: io::Result<()> = dispatcher.serve_with(stream, visit).await;
        });
        room.clients.push_back(Client { task, waited_for });
    }
}

struct Room {
    places: Arc<Semaphore>,
    /// The oldest first.
    clients: VecDeque<Client>,
    /// At so many of them it is looked who has gone.
    most: usize,
}

struct Client {
    task: AbortHandle,
    waited_for: Arc<AtomicBool>,
}

impl Room {
    fn new(places: usize) -> Self {
        let places = places.max(1);
        let most = places.saturating_mul(2);
        Self { places: Arc::new(Semaphore::new(places)), clients: VecDeque::new(), most }
    }

    /// A place, as soon as there is one.
    async fn enter(&mut self) -> OwnedSemaphorePermit {
        loop {
            if let Ok(permit) = Arc::clone(&self.places).try_acquire_owned() {
                return permit;
            }
            self.make();
            // Never closed.
            if let Ok(Ok(permit)) = timeout(CROWDED, Arc::clone(&self.places).acquire_owned()).await {
                return permit;
            }
        }
    }

    /// A handle keeps some memory of a connection that is long over. Now and then, so that it costs little each time.
    fn forget_who_has_gone(&mut self) {
        if self.clients.len() >= self.most {
            self.clients.retain(|client| !client.task.is_finished());
        }
    }

    /// Hangs up on the client that has kept the server waiting for the longest time, if there is one.
    fn make(&mut self) {
        self.clients.retain(|client| !client.task.is_finished());
        let place = self.clients.iter().position(|client| client.waited_for.load(Ordering::Relaxed));
        if let Some(client) = place.and_then(|place| self.clients.remove(place)) {
            client.task.abort();
        }
    }
}
