//! Clients that have dialled the recorder and have not sent a whole request. There is no time limit for that, as there is none
//! at a runtime; but there is one to their number: one more, and the oldest is disconnected.

use std::collections::VecDeque;

use runtap_transport::most_descriptors;
use tokio::sync::oneshot;

/// How many there may be, if there are descriptors for four times as many.
const MOST: usize = 1024;

/// Hears that it has to leave.
pub(super) type Leave = oneshot::Receiver<()>;

/// Those that may have to leave, the oldest first.
#[derive(Debug)]
pub(super) struct Silent {
    clients: VecDeque<oneshot::Sender<()>>,
    most: usize,
}

impl Silent {
    /// As many as the limit of descriptors allows.
    pub(super) fn new() -> Self {
        Self { clients: VecDeque::new(), most: MOST.min(most_descriptors() / 4).max(1) }
    }

    /// One has come. It has to leave when it hears so, and stays when it has dropped what it hears it by.
    pub(super) fn enter(&mut self) -> Leave {
        if self.clients.len() >= self.most {
            self.clients.retain(|client| !client.is_closed());
            if self.clients.len() >= self.most {
                self.disconnect_oldest();
            }
        }
        let (tell, leave) = oneshot::channel();
        self.clients.push_back(tell);
        leave
    }

    /// There is no room for another one.
    pub(super) fn disconnect_oldest(&mut self) {
        // Who has sent its request by now does not listen any more.
        while self.clients.pop_front().is_some_and(|oldest| oldest.send(()).is_err()) {}
    }
}
