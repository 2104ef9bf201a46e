//! The sampling thread and its handle. Without anybody who wants samples it sleeps: no signal, no work.
//!
//! A forked child has a copy of the handle but no sampling thread: there the handle does nothing, and the child can start
//! a sampler of its own.

use std::process;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use super::memory;
use super::modules::Known;
use super::schedule;
use super::signal;
use super::task;
use super::threads::Threads;
use crate::{Options, Sample, StartError, Statistics};

const LARGEST_COPY: usize = 1 << 20;
const SMALLEST_COPY: usize = 4096;
const SHORTEST_PERIOD: Duration = Duration::from_micros(100);

/// There is one sampler in a process: one signal, one set of slots. The number of the process that has one: a forked child
/// finds its parent's here. 0 if there is none.
static RUNNING: AtomicU32 = AtomicU32::new(0);

/// Samples the threads of this process while it is active. Dropping it ends the sampling thread. In a forked child it does
/// nothing.
#[derive(Debug)]
pub struct Sampler {
    /// In which it was started.
    process: u32,
    shared: Arc<Shared>,
    known: Known,
    thread: Option<JoinHandle<()>>,
}

/// What the handle and the thread share.
#[derive(Debug, Default)]
struct Shared {
    state: Mutex<State>,
    changed: Condvar,
    statistics: Counters,
}

#[derive(Debug, Default, Clone, Copy)]
struct State {
    active: bool,
    ending: bool,
    /// How often sampling was begun.
    begun: u64,
}

#[derive(Debug, Default)]
struct Counters([AtomicU64; 5]);

/// Makes room for another sampler.
struct OnlyOne;

impl Drop for OnlyOne {
    fn drop(&mut self) {
        RUNNING.store(0, Ordering::Release);
    }
}

impl Sampler {
    /// Installs the signal's handler and starts the thread. `on_sample` is called on it, for each thread in each
    /// period; what it takes long for, delays the next look.
    ///
    /// # Errors
    /// A signal that is in use, system calls that are forbidden, and whatever [`StartError`] lists.
    pub fn start(
        mut options: Options,
        mut on_sample: impl FnMut(&Sample<'_>) + Send + 'static,
    ) -> Result<Self, StartError> {
        options.stack_bytes = options.stack_bytes.clamp(SMALLEST_COPY, LARGEST_COPY);
        options.period = options.period.max(SHORTEST_PERIOD);
        options.max_frames = options.max_frames.max(1);
        let process = process::id();
        if RUNNING.swap(process, Ordering::AcqRel) == process {
            return Err(StartError::AlreadyRunning);
        }
        let only_one = OnlyOne;
        memory::choose_way().map_err(StartError::Memory)?;
        task::threads().map_err(StartError::Threads)?;
        signal::install(options.signal)?;
        let (shared, known) = (Arc::<Shared>::default(), Known::default());
        let (told, found) = (Arc::clone(&shared), known.clone());
        let run = move || {
            let _only_one = only_one;
            told.run(&options, &found, &mut on_sample);
        };
        let thread = thread::Builder::new().name("runtap-sampler".into()).spawn(run);
        let thread = Some(thread.map_err(StartError::Thread)?);
        Ok(Self { process, shared, known, thread })
    }

    /// Begins or ends sampling. Begins without it.
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

    /// What was done so far.
    pub fn statistics(&self) -> Statistics {
        self.shared.statistics.get()
    }

    /// Whether this is the copy of a forked child: its locks may be held for ever, by threads that exist only in the parent.
    fn is_inherited(&self) -> bool {
        self.process != process::id()
    }

    pub(super) fn known(&self) -> Known {
        self.known.clone()
    }
}

impl Drop for Sampler {
    fn drop(&mut self) {
        let thread = self.thread.take();
        if self.is_inherited() {
            // There is no such thread here, to wait for or to detach.
            std::mem::forget(thread);
            return;
        }
        self.shared.lock().ending = true;
        self.shared.changed.notify_all();
        if let Some(thread) = thread {
            // It has nothing to tell but that it ended.
            let _ = thread.join();
        }
    }
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits while nobody wants samples. Returns how often that has begun; `None` at the end.
    fn wait(&self) -> Option<u64> {
        let idle = |state: &mut State| !state.active && !state.ending;
        let state = self.changed.wait_while(self.lock(), idle).unwrap_or_else(PoisonError::into_inner);
        (!state.ending).then_some(state.begun)
    }

    fn run(&self, options: &Options, known: &Known, on_sample: &mut dyn FnMut(&Sample<'_>)) {
        schedule::ask_for_short_slices();
        let mut threads: Option<Threads> = None;
        let mut next = Instant::now();
        let mut last = 0;
        while let Some(begun) = self.wait() {
            // What it needs is gathered when samples are wanted for the first time.
            let threads = threads.get_or_insert_with(|| Threads::new(options.clone(), known.clone()));
            if std::mem::replace(&mut last, begun) != begun {
                threads.rest();
            }
            // Without a list there is nothing to look at, in this round.
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
