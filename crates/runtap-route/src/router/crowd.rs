//! Many clients at once: how many there may be, and who has to leave for the next one.

use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::task::AbortHandle;
use tokio::time::timeout;

use super::notice::Teller;

/// How long a client waits for room while there is one that has sent nothing.
const CROWDED: Duration = Duration::from_millis(100);

/// The clients of a router.
#[derive(Debug)]
pub(crate) struct Crowd {
    room: Arc<Semaphore>,
    /// Those that have not sent a request yet, the oldest first.
    silent: VecDeque<Silent>,
    most_silent: usize,
    teller: Teller,
}

/// A client that has not sent its request yet.
#[derive(Debug)]
struct Silent {
    task: AbortHandle,
    asked: Arc<AtomicBool>,
}

impl Silent {
    fn is_so(&self) -> bool {
        !self.asked.load(Ordering::Relaxed) && !self.task.is_finished()
    }
}

impl Crowd {
    pub(crate) fn new(connections: usize, silent: usize, teller: Teller) -> Self {
        Self {
            room: Arc::new(Semaphore::new(connections.max(1))),
            silent: VecDeque::new(),
            most_silent: silent.max(1),
            teller,
        }
    }

    /// Room for one more. The oldest that has sent nothing makes some.
    pub(crate) async fn admit(&mut self) -> OwnedSemaphorePermit {
        loop {
            match timeout(CROWDED, Arc::clone(&self.room).acquire_owned()).await {
                Ok(Ok(permit)) => return permit,
                // Never closed.
                Ok(Err(_closed)) => return std::future::pending().await,
                Err(_crowded) => self.disconnect_oldest(),
            }
        }
    }

    /// One has come in, and has sent nothing yet.
    pub(crate) fn enter(&mut self, task: AbortHandle, asked: Arc<AtomicBool>) {
        self.silent.push_back(Silent { task, asked });
        if self.silent.len() > self.most_silent {
            self.silent.retain(Silent::is_so);
            if self.silent.len() > self.most_silent {
                self.disconnect_oldest();
            }
        }
    }

    /// Out of descriptors, or of room.
    pub(crate) fn disconnect_oldest(&mut self) {
        while let Some(oldest) = self.silent.pop_front() {
            if oldest.is_so() {
                oldest.task.abort();
                self.teller.silent();
                return;
            }
        }
    }
}
