//! The agent of this process, and its consecutive traces.
//!
//! Owns: [`Agent`], which is created once and never freed, since probes have its addresses; [`Session`], one trace from hello
//! to the end, which the agent's threads and the JVM's threads share.

use std::collections::HashSet;
use std::ffi::c_void;
use std::sync::atomic::{AtomicBool, AtomicPtr, AtomicU8, AtomicU16, AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, OnceLock, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use runtap_bytefrog_proto::{Mode, WhenSlow};

use crate::delegates::Delegates;
use crate::hook::{ClassReport, Plan};
use crate::lines::Lines;
use crate::names::Names;
use crate::options::Options;
use crate::region::Region;
use crate::ring::{CAPACITY, PAUSED, UNREAD};
use crate::rings::Rings;
use crate::sys::{Jvmti, Vm};
use crate::table::Table;

pub(crate) fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

static AGENT: OnceLock<Agent> = OnceLock::new();

/// Returns the agent. `None` before the library is loaded.
pub(crate) fn agent() -> Option<&'static Agent> {
    AGENT.get()
}

/// State that all traces of this process share.
#[derive(Debug)]
pub(crate) struct Agent {
    pub(crate) vm: Vm,
    /// The JVMTI environment; null while there is none.
    jvmti: AtomicPtr<c_void>,
    /// Whether classes have had probes, so that program threads may still be entering the agent.
    used: AtomicBool,
    pub(crate) table: Table,
    /// The memory of coverage: one byte for each method, then one for each line.
    pub(crate) coverage: Region,
    pub(crate) rings: Rings,
    pub(crate) methods: Arc<Names>,
    pub(crate) exceptions: Arc<Names>,
    pub(crate) lines: Lines,
    pub(crate) delegates: Arc<Delegates>,
    /// The name of the probe class, once defined.
    pub(crate) probe: OnceLock<String>,
    paused: AtomicBool,
    /// Whether classes loaded before the trace are getting their probes.
    changing_loaded: AtomicBool,
    gone: AtomicBool,
    when_slow: AtomicU8,
    plan: Mutex<Option<Arc<Plan>>>,
    session: Mutex<Option<Arc<Session>>>,
    /// The names of classes that currently have probes.
    pub(crate) traced: Mutex<HashSet<Vec<u8>>>,
}

impl Agent {
    /// Creates the agent, or returns the existing one.
    pub(crate) fn install(vm: Vm, jvmti: Jvmti, table: Table, coverage: Region) -> &'static Self {
        AGENT.get_or_init(|| Self {
            vm,
            jvmti: AtomicPtr::new(jvmti.as_ptr()),
            used: AtomicBool::new(false),
            table,
            coverage,
            rings: Rings::default(),
            methods: Arc::default(),
            exceptions: Arc::default(),
            lines: Lines::default(),
            delegates: Arc::default(),
            probe: OnceLock::new(),
            paused: AtomicBool::new(false),
            changing_loaded: AtomicBool::new(false),
            gone: AtomicBool::new(true),
            when_slow: AtomicU8::new(0),
            plan: Mutex::new(None),
            session: Mutex::new(None),
            traced: Mutex::default(),
        })
    }

    /// Returns the JVMTI environment. `None` if it was disposed.
    pub(crate) fn jvmti(&self) -> Option<Jvmti> {
        Jvmti::from_raw(self.jvmti.load(Ordering::Acquire))
    }

    /// Sets a new environment, after the first was disposed.
    pub(crate) fn set_jvmti(&self, jvmti: Jvmti) {
        self.jvmti.store(jvmti.as_ptr(), Ordering::Release);
    }

    /// Disposes the JVMTI environment, unless probes were ever called: program threads may still be using it.
    pub(crate) fn dispose(&self) {
        if !self.used.load(Ordering::Acquire)
            && let Some(jvmti) = Jvmti::from_raw(self.jvmti.swap(std::ptr::null_mut(), Ordering::AcqRel))
        {
            jvmti.dispose();
        }
    }

    /// Returns the limit of a new ring.
    pub(crate) fn first_limit(&self) -> u64 {
        if self.is_gone() {
            UNREAD
        } else if self.is_paused() {
            PAUSED
        } else {
            CAPACITY
        }
    }

    pub(crate) fn is_paused(&self) -> bool {
        self.paused.load(Ordering::Acquire) && !self.is_gone()
    }

    pub(crate) fn set_paused(&self, paused: bool) {
        self.paused.store(paused, Ordering::Release);
    }

    pub(crate) fn is_changing_loaded(&self) -> bool {
        self.changing_loaded.load(Ordering::Acquire)
    }

    pub(crate) fn set_changing_loaded(&self, changing: bool) {
        self.changing_loaded.store(changing, Ordering::Release);
    }

    /// Returns whether the rings are not read.
    pub(crate) fn is_gone(&self) -> bool {
        self.gone.load(Ordering::Acquire)
    }

    pub(crate) fn set_gone(&self, gone: bool) {
        self.gone.store(gone, Ordering::Release);
    }

    pub(crate) fn when_slow(&self) -> WhenSlow {
        match self.when_slow.load(Ordering::Relaxed) {
            0 => WhenSlow::Block,
            1 => WhenSlow::Drop,
            _ => WhenSlow::Counts,
        }
    }

    pub(crate) fn set_when_slow(&self, when_slow: WhenSlow) {
        let number = match when_slow {
            WhenSlow::Block => 0,
            WhenSlow::Drop => 1,
            WhenSlow::Counts => 2,
        };
        self.when_slow.store(number, Ordering::Relaxed);
    }

    /// Returns the plan for classes; `None` if classes get no probes.
    pub(crate) fn plan(&self) -> Option<Arc<Plan>> {
        locked(&self.plan).clone()
    }

    pub(crate) fn set_plan(&self, plan: Option<Arc<Plan>>) {
        if plan.is_some() {
            self.used.store(true, Ordering::Release);
        }
        *locked(&self.plan) = plan;
    }

    pub(crate) fn session(&self) -> Option<Arc<Session>> {
        locked(&self.session).clone()
    }

    /// Makes a trace the current one before the JVM has started to run, in place of a trace from earlier options, which is
    /// returned.
    pub(crate) fn replace(&self, session: &Arc<Session>) -> Option<Arc<Session>> {
        locked(&self.session).replace(Arc::clone(session))
    }

    /// Makes a trace the current one. Returns `false` if there is another one.
    pub(crate) fn begin(&self, session: &Arc<Session>) -> bool {
        let mut current = locked(&self.session);
        if current.as_ref().is_some_and(|current| current.phase() != Phase::Ended) {
            return false;
        }
        *current = Some(Arc::clone(session));
        true
    }
}

/// The progress of a trace.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Phase {
    /// HQ has not sent its configuration.
    Connecting,
    /// HQ has sent its configuration.
    Configured,
    /// The program may run.
    Started,
    /// The connections are closed, or were never opened.
    Ended,
}

/// The state of one trace.
#[derive(Debug)]
pub(crate) struct Session {
    pub(crate) options: Options,
    phase: Mutex<Phase>,
    changed: Condvar,
    mode: AtomicU8,
    finishing: AtomicBool,
    lost: AtomicBool,
    waiting: AtomicU16,
    progress: AtomicU64,
    /// The requested snapshot: 1 if HQ wants counts, 3 if counting also restarts from zero then.
    snapshot: AtomicU8,
    /// Whether a thread of the JVM waits for the start, and will make the changes in the JVM.
    host: AtomicBool,
    /// The version of the JVM, and the program that it runs.
    pub(crate) description: OnceLock<(Vec<u8>, Vec<u8>)>,
    class_reports: Mutex<Vec<ClassReport>>,
    breaks: Mutex<Vec<u32>>,
    /// Whether the attaching tool waits for the result.
    awaited: AtomicBool,
    /// The reason why there is no trace, for the attaching tool.
    failure: Mutex<Option<String>>,
    /// The thread that holds the control connection.
    pub(crate) thread: Mutex<Option<JoinHandle<()>>>,
}

impl Session {
    pub(crate) fn new(options: Options) -> Self {
        Self {
            options,
            phase: Mutex::new(Phase::Connecting),
            changed: Condvar::new(),
            mode: AtomicU8::new(Mode::Initializing.byte().0),
            finishing: AtomicBool::new(false),
            lost: AtomicBool::new(false),
            waiting: AtomicU16::new(0),
            progress: AtomicU64::new(0),
            snapshot: AtomicU8::new(0),
            host: AtomicBool::new(false),
            description: OnceLock::new(),
            class_reports: Mutex::default(),
            breaks: Mutex::default(),
            awaited: AtomicBool::new(false),
            failure: Mutex::default(),
            thread: Mutex::default(),
        }
    }

    pub(crate) fn phase(&self) -> Phase {
        *locked(&self.phase)
    }

    pub(crate) fn set_phase(&self, phase: Phase) {
        let mut current = locked(&self.phase);
        *current = (*current).max(phase);
        drop(current);
        self.changed.notify_all();
    }

    /// Sets whether the attaching tool waits for the result.
    pub(crate) fn set_awaited(&self, awaited: bool) {
        self.awaited.store(awaited, Ordering::Release);
    }

    /// Records why there is no trace, or why it has ended, for the attaching tool; prints the reason if no tool waits.
    pub(crate) fn fail(&self, why: String, log: impl FnOnce(&str)) {
        if self.awaited.load(Ordering::Acquire) {
            *locked(&self.failure) = Some(why);
        } else {
            log(&why);
        }
    }

    pub(crate) fn take_failure(&self) -> Option<String> {
        locked(&self.failure).take()
    }

    /// Sets whether a thread of the JVM waits for the start. Returns the earlier value.
    pub(crate) fn set_host(&self, waits: bool) -> bool {
        self.host.swap(waits, Ordering::AcqRel)
    }

    /// Waits until the trace has reached a phase, for at most `most`. Returns the current phase.
    pub(crate) fn wait_for(&self, phase: Phase, most: Duration) -> Phase {
        let current = locked(&self.phase);
        let (current, _) = self
            .changed
            .wait_timeout_while(current, most, |current| *current < phase)
            .unwrap_or_else(PoisonError::into_inner);
        *current
    }

    /// Sends all events, ends the trace, and waits for the end while data is still being sent: HQ may be slow, but
    /// not forever.
    pub(crate) fn finish(&self, patience: Duration) {
        self.finishing.store(true, Ordering::Release);
        let (mut last, mut since) = (self.progress.load(Ordering::Relaxed), Instant::now());
        while self.wait_for(Phase::Ended, Duration::from_millis(100)) != Phase::Ended {
            let now = self.progress.load(Ordering::Relaxed);
            if now != last {
                (last, since) = (now, Instant::now());
            } else if since.elapsed() > patience {
                // All waits of the trace's threads end now.
                self.set_lost();
                self.wait_for(Phase::Ended, Duration::from_secs(2));
                return;
            }
        }
    }

    pub(crate) fn mode(&self) -> Mode {
        let byte = runtap_bytefrog_proto::ModeByte(self.mode.load(Ordering::Acquire));
        byte.mode().unwrap_or(Mode::ShuttingDown)
    }

    pub(crate) fn set_mode(&self, mode: Mode) {
        self.mode.store(mode.byte().0, Ordering::Release);
    }

    pub(crate) fn is_finishing(&self) -> bool {
        self.finishing.load(Ordering::Acquire)
    }

    pub(crate) fn set_finishing(&self) {
        self.finishing.store(true, Ordering::Release);
    }

    pub(crate) fn is_lost(&self) -> bool {
        self.lost.load(Ordering::Acquire)
    }

    pub(crate) fn set_lost(&self) {
        self.lost.store(true, Ordering::Release);
    }

    pub(crate) fn progressed(&self) {
        self.progress.fetch_add(1, Ordering::Relaxed);
    }

    pub(crate) fn waiting(&self) -> u16 {
        self.waiting.load(Ordering::Relaxed)
    }

    pub(crate) fn set_waiting(&self, rings: u16) {
        self.waiting.store(rings, Ordering::Relaxed);
    }

    pub(crate) fn ask_snapshot(&self, reset: bool) {
        self.snapshot.fetch_or(if reset { 3 } else { 1 }, Ordering::AcqRel);
    }

    pub(crate) fn wants_snapshot(&self) -> bool {
        self.snapshot.load(Ordering::Acquire) != 0
    }

    /// Returns whether counts restart from zero after the current snapshot.
    pub(crate) fn take_snapshot(&self) -> bool {
        self.snapshot.swap(0, Ordering::AcqRel) & 2 != 0
    }

    /// Adds the result for a class to the reports for HQ.
    pub(crate) fn add_class_report(&self, report: ClassReport) {
        locked(&self.class_reports).push(report);
    }

    pub(crate) fn take_class_reports(&self) -> Vec<ClassReport> {
        std::mem::take(&mut locked(&self.class_reports))
    }

    /// Versions 1 to 4: reports a break before the event with this number.
    pub(crate) fn break_at(&self, sequence: u32) {
        locked(&self.breaks).push(sequence);
    }

    pub(crate) fn take_breaks(&self) -> Vec<u32> {
        std::mem::take(&mut locked(&self.breaks))
    }
}
