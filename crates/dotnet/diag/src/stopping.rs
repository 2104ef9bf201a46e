//! Stopping a session without harm: not while the runtime is suspended at startup.
//!
//! Measured on .NET 8, 9 and 10: a session that is stopped by command during the suspension is kept until the resume,
//! and if another session was started meanwhile, the process then crashes with SIGSEGV. Closing the connection instead is
//! harmless: the runtime notices when it writes the first event.

use std::io;
use std::time::Duration;

use runtap_diag_proto::{Request, SessionId};
use tokio::time::{Instant, sleep};

use crate::Error;
use crate::client::Client;
use crate::exchange::Exchange;
use crate::preflight::{self, Objection};

/// How long a runtime may take to leave its wait after a resume.
const RESUME_TIME: Duration = Duration::from_secs(1);
/// The interval between two checks.
const CHECK_INTERVAL: Duration = Duration::from_millis(20);

impl Client {
    /// Opens a connection for stopping a session.
    ///
    /// # Errors
    /// [`Objection::StopAtStartup`] if the runtime is suspended.
    pub(crate) async fn connect_to_stop(&self, id: SessionId) -> Result<Exchange, Error> {
        let exchange = self.connect_unchecked(Request::StopTracing(id)).await?;
        let waits = |process: &io::Result<u32>| process.as_ref().is_ok_and(|pid| preflight::is_waiting(*pid));
        let process = exchange.process();
        if !waits(&process) {
            return Ok(exchange);
        }
        // A runtime serves one client at a time, and another client may be about to resume it.
        drop(exchange);
        let until = Instant::now() + RESUME_TIME;
        while waits(&process) {
            if Instant::now() >= until {
                let command = Request::StopTracing(id).command();
                return Err(Error::Objection { command, objection: Objection::StopAtStartup });
            }
            sleep(CHECK_INTERVAL).await;
        }
        self.connect_unchecked(Request::StopTracing(id)).await
    }
}
