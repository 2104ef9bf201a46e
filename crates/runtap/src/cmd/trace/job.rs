//! What all recordings of one `runtap trace` have in common.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use runtap_diag::providers::Request;
use runtap_diag::{Buffering, DEFAULT_RUNDOWN_KEYWORD, RundownFallback, SessionConfig};
use tokio::sync::{Semaphore, watch};

use super::recorder::Counting;
use super::signals::Stops;
use super::stopping::{Condition, Lookout};
use crate::cli::{BufferingMode, FileFormat, Recording};
use crate::files::{Destination, Planned, insert_before_extension, is_regular, plan};
use crate::output::Output;

/// Sessions that are being stopped at the same time. Each runtime writes the names of all its methods then.
const STOPPING: usize = 16;

/// Everything that a recording needs to know besides its process.
#[derive(Debug)]
pub(super) struct Job {
    pub(super) options: Recording,
    pub(super) formats: Vec<FileFormat>,
    pub(super) config: SessionConfig,
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
    taken: Mutex<BTreeSet<PathBuf>>,
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
            config: session_config(options, request),
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
        })
    }

    /// When the events of a recording are counted, whose file this is.
    pub(super) fn counting(&self, file: Option<PathBuf>) -> Counting {
        let lookout =
            self.stopping.clone().map(|condition| Box::new(Lookout::new(condition, self.stops.clone())));
        match file.filter(|file| self.children && lookout.is_none() && is_regular(file)) {
            Some(file) => Counting::Afterwards(file, Arc::clone(&self.count_turn)),
            None => Counting::Live(lookout),
        }
    }

    /// Whether a result goes to stdout.
    pub(super) fn to_stdout(&self) -> bool {
        self.options.output.as_deref() == Some(Path::new("-"))
    }

    /// The files of one process. The first one gets the names that the user gave, each other one has its process id in
    /// them.
    pub(super) fn files(&self, base: &Path, pid: u64, is_first: bool) -> anyhow::Result<Vec<Planned>> {
        let mut planned = plan(&self.formats, self.options.output.as_deref(), base)?;
        let mut taken = self.taken.lock().unwrap_or_else(PoisonError::into_inner);
        for Planned { to, .. } in &mut planned {
            let Destination::File(path) = to else { continue };
            if !is_regular(path) {
                continue;
            }
            if !is_first && self.options.output.is_some() {
                *path = insert_before_extension(path, &format!(".{pid}"));
            }
            // An id may be used again in a long recording.
            let (wanted, mut n) = (path.clone(), 1);
            while !taken.insert(path.clone()) {
                n += 1;
                *path = insert_before_extension(&wanted, &format!("_{n}"));
            }
        }
        Ok(planned)
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
