//! Accepting clients within the limit. At the limit, the client that the server has waited for the longest is
//! disconnected: one that has not sent its complete request, or does not read its answer.

use std::collections::VecDeque;
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use runtap_transport::Listener;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::task::{AbortHandle, JoinSet};
use tokio::time::{sleep, timeout};

use crate::connection::{ConnectionContext, Dispatcher};

/// The wait when the system is out of descriptors.
const DESCRIPTOR_RETRY_DELAY: Duration = Duration::from_millis(100);
/// The interval of checks for a client to disconnect, while all clients are being served.
const CROWDED_CHECK_INTERVAL: Duration = Duration::from_millis(10);

/// Serves connections forever.
pub(crate) async fn accept(listener: &Listener, dispatcher: &Dispatcher, connections: &mut JoinSet<()>) {
    let mut slots = ClientSlots::new(dispatcher.limits().connections);
    loop {
        while connections.try_join_next().is_some() {}
        let (stream, peer) = match listener.accept().await {
            Ok(accepted) => accepted,
            Err(_out_of_descriptors) => {
                slots.evict_client();
                sleep(DESCRIPTOR_RETRY_DELAY).await;
                continue;
            }
        };
        let permit = slots.enter().await;
        slots.remove_finished();
        let waited_for = Arc::new(AtomicBool::new(true));
        let context =
            ConnectionContext { peer: Some(peer), permit: Some(permit), waited_for: Arc::clone(&waited_for) };
        let dispatcher = dispatcher.clone();
        let task = connections.spawn(async move {
            // An error means that the client has disconnected.
            let _: io::Result<()> = dispatcher.serve_with(stream, context).await;
        });
        slots.clients.push_back(Client { task, waited_for });
    }
}

struct ClientSlots {
    places: Arc<Semaphore>,
    /// The clients, oldest first.
    clients: VecDeque<Client>,
    /// The number of clients at which disconnected ones are removed.
    most: usize,
}

struct Client {
    task: AbortHandle,
    waited_for: Arc<AtomicBool>,
}

impl ClientSlots {
    fn new(places: usize) -> Self {
        let places = places.max(1);
        let most = places.saturating_mul(2);
        Self { places: Arc::new(Semaphore::new(places)), clients: VecDeque::new(), most }
    }

    /// Waits for a free place.
    async fn enter(&mut self) -> OwnedSemaphorePermit {
        loop {
            if let Ok(permit) = Arc::clone(&self.places).try_acquire_owned() {
                return permit;
            }
            self.evict_client();
            // The semaphore is never closed.
            if let Ok(Ok(permit)) =
                timeout(CROWDED_CHECK_INTERVAL, Arc::clone(&self.places).acquire_owned()).await
            {
                return permit;
            }
        }
    }

    /// Removes the handles of finished connections, which hold some memory. Done rarely to keep the cost low.
    fn remove_finished(&mut self) {
        if self.clients.len() >= self.most {
            self.clients.retain(|client| !client.task.is_finished());
        }
    }

    /// Disconnects the client that the server has waited for the longest, if there is one.
    fn evict_client(&mut self) {
        self.clients.retain(|client| !client.task.is_finished());
        let place = self.clients.iter().position(|client| client.waited_for.load(Ordering::Relaxed));
        if let Some(client) = place.and_then(|place| self.clients.remove(place)) {
            client.task.abort();
        }
    }
}
