//! What all recordings of one specification have in common.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use tokio::sync::{Semaphore, watch};

use crate::event::{Event, Reporter};
use crate::launch::Restore;
use crate::outputs::Outputs;
use crate::recorder::Counting;
use crate::spec::Specification;
use crate::stop_event::StopEventWatch;
use crate::stops::Stops;

/// Sessions that are being stopped at the same time. Each runtime writes the names of all its methods then.
const STOPPING: usize = 16;

/// Everything that a recording needs to know besides its process.
#[derive(Debug)]
pub(crate) struct Job {
    pub(crate) spec: Specification,
    pub(crate) stops: Stops,
    reporter: Reporter,
    /// What the variable for ports was before we changed it for a command.
    pub(crate) restore: Option<Restore>,
    /// Held while a file is being counted.
    count_turn: Arc<Mutex<()>>,
    /// Held while a session is being stopped.
    pub(crate) stop_turns: Semaphore,
    /// Processes that are being recorded, from the decision to the last byte.
    active: AtomicUsize,
    phase: watch::Sender<Phase>,
    /// Files that were given to a process.
    pub(crate) taken: Mutex<BTreeSet<PathBuf>>,
    /// The outputs with the names that the user gave, until a process has them.
    pub(crate) named: Mutex<Option<Outputs>>,
    /// How many others there are.
    pub(crate) numbers: AtomicUsize,
}

/// How far the whole is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Phase {
    Recording,
    /// Every stream has ended.
    Recorded,
    /// The files are there.
    Finished,
}

/// A process that is being recorded, or about to be; counted until it is dropped.
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
        }
    }

    pub(crate) fn report(&self, event: Event) {
        self.reporter.report(event);
    }

    pub(crate) fn reporter(&self) -> Reporter {
        self.reporter.clone()
    }

    /// When the events of a recording are counted.
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

    /// Whether a result goes to standard output.
    pub(crate) fn to_stdout(&self) -> bool {
        self.spec.output.as_deref() == Some(Path::new("-"))
    }

    /// One more process is going to be recorded.
    pub(crate) fn begin_one(self: &Arc<Self>) -> Active {
        self.active.fetch_add(1, Ordering::SeqCst);
        Active(Arc::clone(self))
    }

    /// Processes that are being recorded.
    pub(crate) fn active(&self) -> usize {
        self.active.load(Ordering::SeqCst)
    }

    pub(crate) fn enter(&self, phase: Phase) {
        self.phase.send_replace(phase);
    }

    /// Ready when the whole is that far.
    #[cfg_attr(not(unix), allow(dead_code, reason = "the host of a port waits for it"))]
    pub(crate) async fn reached(&self, phase: Phase) {
        // Fails only without a sender, which is `self`.
        let _ = self.phase.subscribe().wait_for(|now| *now >= phase).await;
    }
}
