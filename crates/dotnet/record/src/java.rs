//! Detects whether a command to which no runtime connects runs a Java virtual machine, which another subcommand traces.

use std::sync::{Arc, OnceLock};
use std::time::Duration;

use runtap_os::in_a_thread;
use tokio::task::JoinSet;
use tokio::time::sleep;

/// The delay of the first search, and the initial interval. A JVM is visible some hundredths of a second after its start.
const FIRST: Duration = Duration::from_millis(100);
/// The maximum interval.
const LAST: Duration = Duration::from_secs(5);

/// Repeated searches for a JVM among the processes of a command.
#[derive(Debug, Default)]
pub(crate) struct JavaWatch {
    found: Arc<OnceLock<u32>>,
    looking: JoinSet<()>,
}

impl JavaWatch {
    /// Starts searching this process and its descendants.
    pub(crate) fn start(root: Option<u32>) -> Self {
        let mut watch = Self::default();
        if let Some(root) = root {
            let found = Arc::clone(&watch.found);
            watch.looking.spawn(async move {
                let mut pause = FIRST;
                loop {
                    sleep(pause).await;
                    if let Ok(Some(jvm)) = in_a_thread(move || jvm_of(root)).await {
                        // Set only once, by this task.
                        let _ = found.set(jvm);
                        return;
                    }
                    pause = LAST.min(pause * 2);
                }
            });
        }
        watch
    }

    /// Stops searching.
    pub(crate) fn stop(&mut self) {
        self.looking.abort_all();
    }

    /// Returns the process id of the first JVM that was found.
    pub(crate) fn found(&self) -> Option<u32> {
        self.found.get().copied()
    }
}

#[cfg(target_os = "linux")]
fn jvm_of(root: u32) -> Option<u32> {
    use runtap_discover::{Runtime, System};

    let system = System::current();
    let tree = system.tree(root);
    system.facts_of(&tree).into_iter().find(|facts| facts.runtime == Runtime::Jvm).map(|facts| facts.pid)
}

/// JVMs can't be recognized on this system.
#[cfg(not(target_os = "linux"))]
fn jvm_of(_: u32) -> Option<u32> {
    None
}
