//! A runtime that has dialled in.

use std::sync::Arc;
use std::time::Duration;

use runtap_diag_proto::Hresult;
use runtap_transport::Peer;
use tokio::time::sleep;
use uuid::Uuid;

use super::admission::Standing;
use super::{Slot, process};
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
    standing: Standing,
}

impl Runtime {
    pub(super) fn new(slot: Arc<Slot>, standing: Standing) -> Self {
        let start_time = slot.peer().pid.and_then(runtap_discover::start_time);
        Self { slot, start_time, standing }
    }

    #[cfg(test)]
    pub(super) fn slot(&self) -> &Slot {
        &self.slot
    }

    /// The pid in **its own** pid namespace, as it says itself: a claim. Whose connection it is, says [`peer`](Self::peer).
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

    /// Whether it is a process of our own user, of root, or one that was started below us. Everybody else has dialled in
    /// because a port is open to everybody.
    pub fn is_kin(&self) -> bool {
        self.standing == Standing::Kin
    }

    /// Whether the process that the kernel sees calls itself otherwise in its own pid namespace than what it has said
    /// here: it speaks for another one, as routers do, or does not say the truth. `None` where that can't be seen:
    /// without `/proc`, or from within a pid namespace that it is not in.
    pub fn claims_another_id(&self) -> Option<bool> {
        Some(u64::from(process::own_pid(self.peer().pid?)?) != self.process_id())
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
            !runtap_discover::is_running(pid, started)
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
            let answer = tokio::select! {
                biased;
                answer = client.resume() => answer,
                // Its connection is not to be held until it answers.
                () = self.slot.closed() => self.slot.take(Duration::ZERO).await.map(drop),
            };
            let error = match answer {
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
