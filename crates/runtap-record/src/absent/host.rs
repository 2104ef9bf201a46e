//! Keeps a port as long as anybody may dial in there, where there is no port.

use std::io;
use std::process::ExitStatus;
use std::sync::Arc;

use runtap_diag::ports::Port;
use tokio::sync::mpsc::UnboundedSender;

use crate::conductor::Arrival;
use crate::job::Job;
use crate::launch::Launched;

/// A port and what belongs to it.
#[derive(Debug)]
pub(crate) struct PortHost {
    port: Port,
}

impl PortHost {
    pub(crate) fn new(
        _job: &Arc<Job>,
        port: Port,
        _command: Option<(Launched, bool)>,
        _arrivals: UnboundedSender<Arrival>,
    ) -> Self {
        Self { port }
    }

    /// Runs until everything is finished and the command has ended: nobody can be there.
    #[allow(clippy::unused_async, reason = "the same as elsewhere")]
    pub(crate) async fn run(self) -> Option<io::Result<ExitStatus>> {
        let Self { port: _none } = self;
        None
    }
}
