//! The suspension of the program at startup.

use tokio::sync::watch;

/// The ports that must resume the program before it starts.
#[derive(Debug)]
pub(crate) struct Startup {
    /// The numbers of the ports that have not resumed it; 0 is the default port.
    waiting: watch::Sender<Vec<usize>>,
}

impl Startup {
    /// Waits for the ports that suspend: the default port, and the connect ports in order.
    pub(crate) fn new(default_suspends: bool, ports_suspend: impl Iterator<Item = bool>) -> Self {
        let suspends = std::iter::once(default_suspends).chain(ports_suspend);
        let waiting =
            suspends.enumerate().filter_map(|(number, suspends)| suspends.then_some(number)).collect();
        Self { waiting: watch::Sender::new(waiting) }
    }

    /// Handles a resume over this port. No effect if the port does not suspend.
    pub(crate) fn resume(&self, port: usize) {
        self.waiting.send_if_modified(|waiting| {
            let before = waiting.len();
            waiting.retain(|number| *number != port);
            waiting.len() != before
        });
    }

    pub(crate) fn is_over(&self) -> bool {
        self.waiting.borrow().is_empty()
    }

    /// Completes when all ports have resumed the program.
    pub(crate) async fn over(&self) {
        let mut waiting = self.waiting.subscribe();
        // Fails only without a sender, which is `self`.
        let _ = waiting.wait_for(Vec::is_empty).await;
    }
}
