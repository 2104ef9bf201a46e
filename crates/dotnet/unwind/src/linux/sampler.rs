//! The sampling thread and its handle. While no samples are requested the thread sleeps: no signal, no work.
//!
//! A forked child has a copy of the handle but no sampling thread: the handle does nothing there, and the child can start
//! its own sampler.

use std::process;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use super::memory;
use super::modules::KnownObjects;
use super::schedule;
use super::signal;
use super::task;
use super::threads::Threads;
use crate::{Options, Sample, StartError, Statistics};

const MAX_COPY: usize = 1 << 20;
const MIN_COPY: usize = 4096;
const MIN_PERIOD: Duration = Duration::from_micros(100);

/// The id of the process that has a sampler, 0 if there is none. A process has at most one sampler (one signal, one set of
/// slots); a forked child finds its parent's id here.
static RUNNING: AtomicU32 = AtomicU32::new(0);

/// Samples the threads of this process while it is active. Dropping it stops the sampling thread. Does nothing in a forked
/// child.
#[derive(Debug)]
pub struct Sampler {
    /// The id of the process that started it.
    process: u32,
    shared: Arc<Shared>,
    known: KnownObjects,
    thread: Option<JoinHandle<()>>,
}

/// The state shared by the handle and the thread.
#[derive(Debug, Default)]
struct Shared {
    state: Mutex<SamplerState>,
    changed: Condvar,
    statistics: Counters,
}

#[derive(Debug, Default, Clone, Copy)]
struct SamplerState {
    active: bool,
    ending: bool,
    /// The number of times that sampling was activated.
    begun: u64,
}

#[derive(Debug, Default)]
struct Counters([AtomicU64; 5]);

/// Allows another sampler when it is dropped.
struct SingleSampler;

impl Drop for SingleSampler {
    fn drop(&mut self) {
        RUNNING.store(0, Ordering::Release);
    }
}

impl Sampler {
    /// Installs the signal's handler and starts the thread. `on_sample` is called on that thread, for each thread in each
    /// period; a slow function delays the next round.
    ///
    /// # Errors
    /// If the signal is in use, system calls are forbidden, or for another reason in [`StartError`].
    pub fn start(
        mut options: Options,
        mut on_sample: impl FnMut(&Sample<'_>) + Send + 'static,
    ) -> Result<Self, StartError> {
        options.stack_bytes = options.stack_bytes.clamp(MIN_COPY, MAX_COPY);
        options.period = options.period.max(MIN_PERIOD);
        options.max_frames = options.max_frames.max(1);
        let process = process::id();
        if RUNNING.swap(process, Ordering::AcqRel) == process {
            return Err(StartError::AlreadyRunning);
        }
        let only_one = SingleSampler;
        memory::choose_way().map_err(StartError::Memory)?;
        task::threads().map_err(StartError::Threads)?;
        signal::install(options.signal)?;
        let (shared, known) = (Arc::<Shared>::default(), KnownObjects::default());
        let (told, found) = (Arc::clone(&shared), known.clone());
        let run = move || {
            let _only_one = only_one;
            told.run(&options, &found, &mut on_sample);
        };
        let thread = thread::Builder::new().name("runtap-sampler".into()).spawn(run);
        let thread = Some(thread.map_err(StartError::Thread)?);
        Ok(Self { process, shared, known, thread })
    }

    /// Starts or stops sampling. A new sampler is inactive.
    pub fn set_active(&self, active: bool) {
        if self.is_inherited() {
            return;
        }
        let mut state = self.shared.lock();
        state.begun += u64::from(active && !state.active);
        state.active = active;
        drop(state);
        self.shared.changed.notify_all();
    }

    /// Returns the statistics up to the last round.
    pub fn statistics(&self) -> Statistics {
        self.shared.statistics.get()
    }

    /// Returns whether this is the copy in a forked child: its locks may be held forever, by threads of the parent.
    fn is_inherited(&self) -> bool {
        self.process != process::id()
    }

    pub(super) fn known(&self) -> KnownObjects {
        self.known.clone()
    }
}

impl Drop for Sampler {
    fn drop(&mut self) {
        let thread = self.thread.take();
        if self.is_inherited() {
            // A forked child has no such thread to join or detach.
            std::mem::forget(thread);
            return;
        }
        self.shared.lock().ending = true;
        self.shared.changed.notify_all();
        if let Some(thread) = thread {
            // The thread returns no value.
            let _ = thread.join();
        }
    }
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, SamplerState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits until samples are requested. Returns how often sampling was activated; `None` at the end.
    fn wait(&self) -> Option<u64> {
        let idle = |state: &mut SamplerState| !state.active && !state.ending;
        let state = self.changed.wait_while(self.lock(), idle).unwrap_or_else(PoisonError::into_inner);
        (!state.ending).then_some(state.begun)
    }

    fn run(&self, options: &Options, known: &KnownObjects, on_sample: &mut dyn FnMut(&Sample<'_>)) {
        schedule::request_short_slices();
        let mut threads: Option<Threads> = None;
        let mut next = Instant::now();
        let mut last = 0;
        while let Some(begun) = self.wait() {
            // Resources are allocated when samples are requested for the first time.
            let threads = threads.get_or_insert_with(|| Threads::new(options.clone(), known.clone()));
            if std::mem::replace(&mut last, begun) != begun {
                threads.rest();
            }
            // Without a list of threads this round has nothing to sample.
            let _ = threads.round(on_sample);
            self.statistics.set(threads.statistics);
            next = (next + options.period).max(Instant::now());
            thread::sleep(next.saturating_duration_since(Instant::now()));
        }
        if let Some(threads) = &mut threads {
            threads.rest();
        }
    }
}

impl Counters {
    fn set(&self, now: Statistics) {
        let values = [now.rounds, now.samples, now.signals, now.unanswered, now.partial];
        for (place, value) in self.0.iter().zip(values) {
            place.store(value, Ordering::Relaxed);
        }
    }

    fn get(&self) -> Statistics {
        let [rounds, samples, signals, unanswered, partial] =
            self.0.each_ref().map(|place| place.load(Ordering::Relaxed));
        Statistics { rounds, samples, signals, unanswered, partial }
    }
}
