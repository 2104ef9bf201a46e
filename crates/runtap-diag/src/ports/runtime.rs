//! A runtime that has dialled in.

use std::sync::Arc;
use std::time::Duration;

use runtap_diag_proto::Hresult;
use runtap_transport::{Peer, discover};
use tokio::time::sleep;
use uuid::Uuid;

use super::Slot;
use crate::{Client, Error};

/// Between two tries of something that a runtime did not answer.
const PAUSE: Duration = Duration::from_millis(50);
/// Tries where nobody can say whether the process lives.
const TRIES: u32 = 3;

/// A runtime that has dialled in on a [`Port`](super::Port). Cheap to clone; clones are the same runtime.
#[derive(Debug, Clone)]
pub struct Runtime {
    slot: Arc<Slot>,
    /// Of its process, so that another one with the same pid is not taken for it.
    start_time: Option<u64>,
}

impl Runtime {
    pub(super) fn new(slot: Arc<Slot>) -> Self {
        let start_time = slot.peer().pid.and_then(discover::start_time);
        Self { slot, start_time }
    }

    /// The pid in **its own** pid namespace, as it says itself.
    pub fn process_id(&self) -> u64 {
        self.slot.advertise().process_id
    }

    /// Identifies this run of this runtime.
    pub fn cookie(&self) -> Uuid {
        self.slot.advertise().runtime_cookie
    }

    /// Who dialled, as the kernel says: the pid in our namespace.
    pub fn peer(&self) -> Peer {
        self.slot.peer()
    }

    /// Asks it. Each command uses up a connection and waits for the next one where there is none.
    pub fn client(&self) -> Client {
        Client::of_port(Arc::clone(&self.slot))
    }

    /// Whether its process has ended: it hung up, or its process is not there any more. `false` where that can't be
    /// known.
    pub fn has_ended(&self) -> bool {
        let gone = || {
            let (Some(pid), Some(started)) = (self.peer().pid, self.start_time) else { return false };
            !discover::is_running(pid, started)
        };
        self.slot.has_hung_up() || gone()
    }

    /// Lets it go on. Tries again as long as its process lives: a runtime that is stopped, busy, or was interrupted
    /// in the middle of a command dials in again when it can.
    ///
    /// # Errors
    /// It ended or refused, or the port was closed.
    pub async fn resume(&self) -> Result<(), Error> {
        let client = self.client();
        let mut tries = 0;
        loop {
            let error = match client.resume().await {
                Ok(()) => return Ok(()),
                // .NET Core 3 can't be suspended.
                Err(Error::Refused { reply, .. }) if reply.hresult == Hresult::UNKNOWN_COMMAND => {
                    return Ok(());
                }
                Err(
                    error @ (Error::Refused { .. }
                    | Error::HungUp { .. }
                    | Error::Protocol { .. }
                    | Error::Io { .. }),
                ) => {
                    return Err(error);
                }
                Err(error) => error,
            };
            tries += 1;
            if self.has_ended() || (self.start_time.is_none() && tries >= TRIES) {
                return Err(error);
            }
            sleep(PAUSE).await;
        }
    }
}
