//! A runtime that has connected to a port.

use std::sync::Arc;
use std::time::Duration;

use runtap_diag_proto::Hresult;
use runtap_transport::Peer;
use tokio::time::sleep;
use uuid::Uuid;

use super::admission::Standing;
use super::{Slot, process};
use crate::{Client, Error};

/// The time between retries if a runtime did not answer.
const RETRY_DELAY: Duration = Duration::from_millis(50);
/// The number of attempts if it is unknown whether the process still runs.
const MAX_TRIES: u32 = 3;

/// A runtime that has connected to a [`Port`](super::Port). Cheap to clone; clones refer to one runtime.
#[derive(Debug, Clone)]
pub struct Runtime {
    slot: Arc<Slot>,
    /// The start time of its process, to detect reuse of its pid.
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

    /// Returns the pid in the runtime's **own** pid namespace, as it claims. [`peer`](Self::peer) is the kernel's
    /// information.
    pub fn process_id(&self) -> u64 {
        self.slot.advertise().process_id
    }

    /// Returns the cookie, which identifies this run of this runtime.
    pub fn cookie(&self) -> Uuid {
        self.slot.advertise().runtime_cookie
    }

    /// Returns the connected process as reported by the kernel; its pid is in the caller's namespace.
    pub fn peer(&self) -> Peer {
        self.slot.peer()
    }

    /// Returns whether the process belongs to this process's user or to root, or is a descendant of this process. Other
    /// processes can only connect to a port for all users.
    pub fn is_kin(&self) -> bool {
        self.standing == Standing::Kin
    }

    /// Returns whether the claimed process id differs from the kernel's id of the process in its own pid namespace: the
    /// process speaks for another one, as routers do, or lies. `None` if unknown: without `/proc`, or from within a pid
    /// namespace that does not contain the process.
    pub fn claims_another_id(&self) -> Option<bool> {
        Some(u64::from(process::own_pid(self.peer().pid?)?) != self.process_id())
    }

    /// Returns a client. Each command uses up a connection, and waits for the next one if there is none.
    pub fn client(&self) -> Client {
        Client::for_port(Arc::clone(&self.slot))
    }

    /// Returns whether its process has exited: it closed its connection, or the process does not exist any more. `false` if
    /// unknown.
    pub fn has_ended(&self) -> bool {
        let gone = || {
            let (Some(pid), Some(started)) = (self.peer().pid, self.start_time) else { return false };
            !runtap_discover::is_running(pid, started)
        };
        self.slot.has_hung_up() || gone()
    }

    /// Resumes the runtime. Retries while its process runs: a runtime that is stopped, busy, or was interrupted
    /// in the middle of a command reconnects when it can.
    ///
    /// # Errors
    /// If the process exited, the runtime rejected the command, or the port was closed.
    pub async fn resume(&self) -> Result<(), Error> {
        let client = self.client();
        let mut tries = 0;
        loop {
            let answer = tokio::select! {
                biased;
                answer = client.resume() => answer,
                // Do not hold its connection while waiting for the answer.
                () = self.slot.closed() => self.slot.take(Duration::ZERO).await.map(drop),
            };
            let error = match answer {
                Ok(()) => return Ok(()),
                // .NET Core 3 cannot be suspended.
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
            if self.has_ended() || (self.start_time.is_none() && tries >= MAX_TRIES) {
                return Err(error);
            }
            sleep(RETRY_DELAY).await;
        }
    }
}
