//! What all recordings of one specification share.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use tokio::sync::{Semaphore, watch};
use tokio::time::sleep;

use crate::event::{Event, Reporter};
use crate::launch::Restore;
use crate::outputs::Outputs;
use crate::recorder::Counting;
use crate::spec::Specification;
use crate::stop_event::StopEventWatch;
use crate::stops::Stops;

/// The number of sessions that are stopped at the same time. Each runtime then writes the names of all its methods.
const STOPPING: usize = 16;

/// Everything that a recording needs in addition to its process.
#[derive(Debug)]
pub(crate) struct Job {
    pub(crate) spec: Specification,
    pub(crate) stops: Stops,
    reporter: Reporter,
    /// The value of the variable for ports before it was changed for a command.
    pub(crate) restore: Option<Restore>,
    /// Held while a file is being counted.
    count_turn: Arc<Mutex<()>>,
    /// Held while a session is being stopped.
    pub(crate) stop_turns: Semaphore,
    /// The number of processes being recorded.
    active: AtomicUsize,
    phase: watch::Sender<Phase>,
    /// The files that were assigned to a process.
    pub(crate) taken: Mutex<BTreeSet<PathBuf>>,
    /// The outputs with the names given by the user, until they are assigned to a process.
    pub(crate) named: Mutex<Option<Outputs>>,
    /// The number of other outputs.
    pub(crate) numbers: AtomicUsize,
    /// Whether the duration has started.
    has_started: AtomicBool,
}

/// The phase of the whole recording.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Phase {
    Recording,
    /// Every stream has ended.
    Recorded,
    /// The files have been created.
    Finished,
}

/// A process that is being recorded. Counted until dropped.
#[derive(Debug)]
pub(crate) struct Active(Arc<Job>);

impl Drop for Active {
    fn drop(&mut self) {
        self.0.active.fetch_sub(1, Ordering::SeqCst);
    }
}

impl Job {
    pub(crate) fn new(spec: Specification, stops: Stops, reporter: Reporter) -> Self {
        Self {
            spec,
            stops,
            reporter,
            restore: None,
            count_turn: Arc::default(),
            stop_turns: Semaphore::new(STOPPING),
            active: AtomicUsize::new(0),
            phase: watch::Sender::new(Phase::Recording),
            taken: Mutex::default(),
            named: Mutex::default(),
            numbers: AtomicUsize::new(0),
            has_started: AtomicBool::new(false),
        }
    }

    pub(crate) fn report(&self, event: Event) {
        self.reporter.report(event);
    }

    pub(crate) fn reporter(&self) -> Reporter {
        self.reporter.clone()
    }

    /// Starts the duration, after which a stop is requested, unless it has started.
    pub(crate) fn start_duration(&self) {
        let Some(duration) = self.spec.duration else { return };
        if self.has_started.swap(true, Ordering::Relaxed) {
            return;
        }
        let stops = self.stops.clone();
        tokio::spawn(async move {
            sleep(duration).await;
            stops.stop();
        });
    }

    /// Returns when the events of a recording are counted.
    pub(crate) fn counting(&self) -> Counting {
        let watch = self
            .spec
            .stop_event
            .clone()
            .map(|event| Box::new(StopEventWatch::new(event, self.stops.clone())));
        if self.spec.children && watch.is_none() {
            Counting::Afterwards(Arc::clone(&self.count_turn))
        } else {
            Counting::Live(watch)
        }
    }

    /// Whether a result is written to standard output.
    pub(crate) fn to_stdout(&self) -> bool {
        self.spec.output.as_deref() == Some(Path::new("-"))
    }

    /// Counts one more process until the result is dropped.
    pub(crate) fn begin_one(self: &Arc<Self>) -> Active {
        self.active.fetch_add(1, Ordering::SeqCst);
        Active(Arc::clone(self))
    }

    /// Returns the number of processes being recorded.
    pub(crate) fn active(&self) -> usize {
        self.active.load(Ordering::SeqCst)
    }

    pub(crate) fn enter(&self, phase: Phase) {
        self.phase.send_replace(phase);
    }

    /// Waits until the recording has reached a phase.
    #[cfg_attr(not(unix), allow(dead_code, reason = "the host of a port waits for it"))]
    pub(crate) async fn reached(&self, phase: Phase) {
        // Fails only without a sender, which is `self`.
        let _ = self.phase.subscribe().wait_for(|now| *now >= phase).await;
    }
}
