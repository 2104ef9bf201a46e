//! Whether a command that no runtime dials in of runs a Java virtual machine: then another verb traces it.

use std::sync::{Arc, OnceLock};
use std::time::Duration;

use runtap_os::in_a_thread;
use tokio::task::JoinSet;
use tokio::time::sleep;

/// The time until the first look at the processes, and between the first two. A JVM is seen some hundredths of a second after its start.
const FIRST: Duration = Duration::from_millis(100);
/// The most time between two looks.
const LAST: Duration = Duration::from_secs(5);

/// A look at the processes of a command, again and again until there is a JVM.
#[derive(Debug, Default)]
pub(crate) struct JavaWatch {
    found: Arc<OnceLock<u32>>,
    looking: JoinSet<()>,
}

impl JavaWatch {
    /// Looks at this process and all below it.
    pub(crate) fn start(root: Option<u32>) -> Self {
        let mut watch = Self::default();
        if let Some(root) = root {
            let found = Arc::clone(&watch.found);
            watch.looking.spawn(async move {
                let mut pause = FIRST;
                loop {
                    sleep(pause).await;
                    if let Ok(Some(jvm)) = in_a_thread(move || jvm_of(root)).await {
                        // This task alone sets it.
                        let _ = found.set(jvm);
                        return;
                    }
                    pause = LAST.min(pause * 2);
                }
            });
        }
        watch
    }

    /// Looks no more.
    pub(crate) fn stop(&mut self) {
        self.looking.abort_all();
    }

    /// Returns the first JVM that was seen.
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

/// Which process is a JVM does not show here.
#[cfg(not(target_os = "linux"))]
fn jvm_of(_: u32) -> Option<u32> {
    None
}
