//! What all recordings of one `runtap trace` have in common.

use std::collections::BTreeSet;
use std::io::IsTerminal;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use runtap_diag::providers::{Request, Requested};
use runtap_diag::{Buffering, DEFAULT_RUNDOWN_KEYWORD, RundownFallback, SessionConfig};
use tokio::sync::{Semaphore, watch};

use super::outputs::Outputs;
use super::recorder::Counting;
use super::signals::Stops;
use super::stopping::{Condition, Lookout};
use crate::cli::{BufferingMode, FileFormat, Recording};
use crate::output::Output;

/// Sessions that are being stopped at the same time. Each runtime writes the names of all its methods then.
const STOPPING: usize = 16;

/// Everything that a recording needs to know besides its process.
#[derive(Debug)]
pub(super) struct Job {
    pub(super) options: Recording,
    pub(super) formats: Vec<FileFormat>,
    pub(super) config: SessionConfig,
    /// Names of methods are to come at the end only.
    pub(super) expects_names: bool,
    /// The providers in it, and which option asked for each.
    pub(super) asked: Vec<Requested>,
    /// Every process of the tree, not only the first.
    pub(super) children: bool,
    /// One file for all processes.
    pub(super) merge: bool,
    /// The event that ends all recordings.
    pub(super) stopping: Option<Condition>,
    /// How long a command may take until a runtime of it dials in.
    pub(super) dial_in: Duration,
    /// What the variable for ports was before we changed it for a command.
    pub(super) restore: Option<Restore>,
    pub(super) stops: Stops,
    pub(super) output: Output,
    /// Held while a file is being counted.
    count_turn: Arc<Mutex<()>>,
    /// Held while a session is being stopped.
    pub(super) stop_turns: Semaphore,
    /// Processes that are being recorded, from the decision to the last byte.
    active: AtomicUsize,
    phase: watch::Sender<Phase>,
    /// Files that were given to a process.
    pub(super) taken: Mutex<BTreeSet<PathBuf>>,
    /// The outputs with the names that the user gave, until a process has them.
    pub(super) named: Mutex<Option<Outputs>>,
    /// How many others there are.
    pub(super) numbers: AtomicUsize,
}

/// The value that a variable had, or that there was none.
#[derive(Debug, Clone)]
pub(super) struct Restore {
    pub(super) value: Option<String>,
}

/// How far the whole is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Phase {
    Recording,
    /// Every stream has ended.
    Recorded,
    /// The files are there.
    Finished,
}

impl Job {
    pub(super) fn new(
        options: &Recording,
        formats: &[FileFormat],
        request: &Request,
        output: Output,
    ) -> std::io::Result<Self> {
        Ok(Self {
            options: options.clone(),
            formats: formats.to_vec(),
            expects_names: rundown_keyword(options, request) != 0 && !request.tells_method_names(),
            config: session_config(options, request),
            asked: request.providers.clone(),
            children: false,
            merge: false,
            stopping: None,
            dial_in: Duration::ZERO,
            restore: None,
            stops: Stops::listen()?,
            output,
            count_turn: Arc::default(),
            stop_turns: Semaphore::new(STOPPING),
            active: AtomicUsize::new(0),
            phase: watch::Sender::new(Phase::Recording),
            taken: Mutex::default(),
            named: Mutex::default(),
            numbers: AtomicUsize::new(0),
        })
    }

    /// When the events of a recording are counted.
    pub(super) fn counting(&self) -> Counting {
        let lookout =
            self.stopping.clone().map(|condition| Box::new(Lookout::new(condition, self.stops.clone())));
        if self.children && lookout.is_none() {
            Counting::Afterwards(Arc::clone(&self.count_turn))
        } else {
            Counting::Live(lookout)
        }
    }

    /// Whether Enter ends it: a launched command has the keyboard for itself.
    pub(super) fn hears_enter(&self) -> bool {
        self.restore.is_none() && self.output.progress() && std::io::stdin().is_terminal()
    }

    /// Whether a result goes to stdout.
    pub(super) fn to_stdout(&self) -> bool {
        self.options.output.as_deref() == Some(Path::new("-"))
    }

    /// One more process is going to be recorded.
    pub(super) fn begin_one(&self) {
        self.active.fetch_add(1, Ordering::SeqCst);
    }

    /// Its recording is over, or was none.
    pub(super) fn end_one(&self) {
        self.active.fetch_sub(1, Ordering::SeqCst);
    }

    /// Processes that are being recorded.
    pub(super) fn active(&self) -> usize {
        self.active.load(Ordering::SeqCst)
    }

    pub(super) fn enter(&self, phase: Phase) {
        self.phase.send_replace(phase);
    }

    /// Ready when the whole is that far.
    pub(super) async fn reached(&self, phase: Phase) {
        // Fails only without a sender, which is `self`.
        let _ = self.phase.subscribe().wait_for(|now| *now >= phase).await;
    }
}

fn session_config(options: &Recording, request: &Request) -> SessionConfig {
    let mut config =
        SessionConfig::new(request.providers.iter().map(|asked| asked.provider.clone()).collect());
    config.buffer_mb = options.buffersize;
    let details = options.session;
    config.rundown_keyword = rundown_keyword(options, request);
    // A profile that asks for a small rundown is for targets in which the standard one would hurt. Who types a keyword
    // wants names.
    config.rundown_fallback =
        if details.rundown_keyword.is_some() { RundownFallback::Standard } else { RundownFallback::None };
    config.stackwalk = !details.no_stackwalk;
    if details.buffering_mode == BufferingMode::Block {
        config.buffering = Buffering::Block;
    }
    config
}

/// Which names are asked for at the end.
pub(super) fn rundown_keyword(options: &Recording, request: &Request) -> u64 {
    match (options.session.rundown_keyword, options.rundown) {
        (Some(keyword), _) => keyword,
        (None, Some(false)) => 0,
        (None, Some(true)) => DEFAULT_RUNDOWN_KEYWORD,
        (None, None) => request.rundown_keyword.unwrap_or(DEFAULT_RUNDOWN_KEYWORD),
    }
}
