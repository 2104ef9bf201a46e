//! Clients that have connected but not sent a complete request. As with a runtime there is no time-out, but their number is
//! limited: the oldest is disconnected to admit a new one.

use std::collections::VecDeque;

use runtap_transport::most_descriptors;
use tokio::sync::oneshot;

/// The maximum number of such clients, if the limit of descriptors is at least four times as high.
const MAX_CLIENTS: usize = 1024;

/// Receives the notification to disconnect.
pub(super) type DisconnectSignal = oneshot::Receiver<()>;

/// The clients that may be disconnected, oldest first.
#[derive(Debug)]
pub(super) struct PendingClients {
    clients: VecDeque<oneshot::Sender<()>>,
    limit: usize,
}

impl PendingClients {
    /// Creates an empty list whose capacity depends on the limit of descriptors.
    pub(super) fn new() -> Self {
        Self { clients: VecDeque::new(), limit: MAX_CLIENTS.min(most_descriptors() / 4).max(1) }
    }

    /// Adds a client. The client has to disconnect when the receiver is notified, and leaves the list by dropping the receiver.
    pub(super) fn enter(&mut self) -> DisconnectSignal {
        if self.clients.len() >= self.limit {
            self.clients.retain(|client| !client.is_closed());
            if self.clients.len() >= self.limit {
                self.disconnect_oldest();
            }
        }
        let (notify, leave) = oneshot::channel();
        self.clients.push_back(notify);
        leave
    }

    /// Disconnects the oldest client to make room.
    pub(super) fn disconnect_oldest(&mut self) {
        // Skip clients that have sent their requests.
        while self.clients.pop_front().is_some_and(|oldest| oldest.send(()).is_err()) {}
    }
}
