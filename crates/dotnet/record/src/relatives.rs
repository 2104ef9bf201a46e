//! Follows a process and its descendants by polling. Short-lived processes may be missed; only a launched command is recorded from
//! its first event.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use runtap_diag::Client;
use runtap_discover::{Process, System};
use runtap_os::in_a_thread;
use runtap_target::ResolvedTarget;
use runtap_transport::Endpoint;
use tokio::sync::mpsc::UnboundedSender;
use tokio::time::{MissedTickBehavior, interval, sleep};

use crate::conductor::Arrival;
use crate::job::Job;
use crate::start;

/// Poll interval.
const POLL_INTERVAL: Duration = Duration::from_millis(250);

/// Reports every .NET process of the tree below `root`, until all have exited or a stop is requested.
pub(crate) async fn follow(job: Arc<Job>, root: Process, arrivals: UnboundedSender<Arrival>) {
    let system = System::current();
    // With start times, because process ids are reused.
    let mut seen = BTreeSet::new();
    let mut alive = vec![(root.pid, root.start_time)];
    let mut tick = interval(POLL_INTERVAL);
    tick.set_missed_tick_behavior(MissedTickBehavior::Delay);
    while !alive.is_empty() {
        let (looking, known) = (system.clone(), alive.clone());
        let Some(tree) = look(&job, move || tree(&looking, &known)).await else { return };
        for (pid, start) in tree {
            if seen.contains(&(pid, start)) {
                continue;
            }
            // A process without a socket may have one the next time.
            let Some(process) = look(&job, move || runtap_discover::process(pid)).await else { return };
            let Ok(process) = process else { continue };
            let Some(endpoint) = process.endpoint().filter(|_| process.start_time == start) else { continue };
            let is_first = seen.is_empty();
            seen.insert((pid, start));
            if pid != root.pid {
                alive.push((pid, start));
            }
            let begun = hand_over(Arc::clone(&job), process, endpoint, arrivals.clone());
            if is_first {
                begun.await;
            } else {
                tokio::spawn(begun);
            }
        }
        // A process whose parent has exited still belongs to the tree, and so do its children.
        alive.retain(|(pid, start)| system.is_running(*pid, *start));
        tokio::select! {
            _ = tick.tick() => {}
            () = job.stops.stopping() => return,
        }
    }
}

/// Runs `look` on a thread, because the processes control how long it takes. Returns `None` if a stop is requested meanwhile.
/// Retries if no thread can be started.
async fn look<T, L>(job: &Job, look: L) -> Option<T>
where
    T: Send + 'static,
    L: FnOnce() -> T + Clone + Send + 'static,
{
    let looking = async {
        loop {
            if let Ok(seen) = in_a_thread(look.clone()).await {
                return seen;
            }
            sleep(POLL_INTERVAL).await;
        }
    };
    tokio::select! {
        seen = looking => Some(seen),
        () = job.stops.stopping() => None,
    }
}

async fn hand_over(job: Arc<Job>, process: Process, endpoint: Endpoint, arrivals: UnboundedSender<Arrival>) {
    let subject = ResolvedTarget::new(Client::new(endpoint), Some(process));
    let (label, active) = (subject.label(), job.begin_one());
    let started = start::begin(&job, subject).await;
    // If no more processes are accepted, it is not recorded.
    let _ = arrivals.send(Arrival { label, started, active });
}

/// Returns the known processes and their descendants, parents first.
fn tree(system: &System, roots: &[(u32, u64)]) -> Vec<(u32, u64)> {
    let mut tree = Vec::new();
    for (root, start) in roots {
        if !system.is_running(*root, *start) {
            continue;
        }
        for pid in system.tree(*root) {
            if let Some(start) = system.start_time(pid)
                && !tree.contains(&(pid, start))
            {
                tree.push((pid, start));
            }
        }
    }
    tree
}
