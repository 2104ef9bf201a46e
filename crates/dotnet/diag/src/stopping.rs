//! Ending a session without harm: not while the runtime waits at its start.
//!
//! Measured on .NET 8, 9 and 10: a session that is stopped by command while the runtime waits is kept until it goes on,
//! and where another session was started meanwhile, the process ends with SIGSEGV then. To hang up instead is harmless:
//! the runtime notices when it writes the first event. Does not decide who hangs up.

use std::io;
use std::time::Duration;

use runtap_diag_proto::{Request, SessionId};
use tokio::time::{Instant, sleep};

use crate::Error;
use crate::client::Client;
use crate::exchange::Exchange;
use crate::preflight::{self, Objection};

/// How long a runtime that was just told to go on may take to get there.
const STARTING: Duration = Duration::from_secs(1);
/// Between two looks.
const LOOK: Duration = Duration::from_millis(20);

impl Client {
    /// A connection for the end of a session.
    ///
    /// # Errors
    /// [`Objection::StopAtStartup`].
    pub(crate) async fn connect_to_stop(&self, id: SessionId) -> Result<Exchange, Error> {
        let exchange = self.dial(Request::StopTracing(id)).await?;
        let waits = |process: &io::Result<u32>| process.as_ref().is_ok_and(|pid| preflight::is_waiting(*pid));
        let process = exchange.process();
        if !waits(&process) {
            return Ok(exchange);
        }
        // A runtime serves one client at a time, and somebody may be about to tell it to go on.
        drop(exchange);
        let until = Instant::now() + STARTING;
        while waits(&process) {
            if Instant::now() >= until {
                let command = Request::StopTracing(id).command();
                return Err(Error::Objection { command, objection: Objection::StopAtStartup });
            }
            sleep(LOOK).await;
        }
        self.dial(Request::StopTracing(id)).await
    }
}
