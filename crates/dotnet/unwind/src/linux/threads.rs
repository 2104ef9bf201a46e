//! Decides which threads are sampled in a round, and how.
//!
//! ```text
//! used no processor time since the last round       reported again, as waiting
//! runs                                              gets a signal; reported as running
//! waits where a signal is not noticed               gets a signal, once until it has run again
//! waits elsewhere, or blocks the signal             read from outside: its stack does not change
//! ```
//!
//! A signalled thread that does not answer at once, because it has no processor, is not waited for: its answer is
//! collected in a later round. A thread that blocks the signal never answers: its request is withdrawn, and for some
//! time it gets no other.

use std::collections::BTreeMap;
use std::io;
use std::sync::atomic::AtomicU64;
use std::thread;
use std::time::{Duration, Instant};

use super::memory;
use super::modules::KnownObjects;
use super::signal::{Answer, NoTicket, Pool, Registers, Ticket};
use super::task::{self, Activity, Wait};
use super::thread::{Pending, Thread};
use super::unwind::UNKNOWN;
use super::unwinder::Unwinder;
use crate::{Options, Sample, Statistics};

/// The processor time of the handler, in nanoseconds.
const HANDLER_TIME: u64 = 20_000;
/// The number of rounds after which the list of threads is read although their number is unchanged: a thread that was
/// never seen may have exited while another started.
const LIST_EVERY: u64 = 100;
/// The number of rounds between checks of the number of threads: a new thread is seen at most this many periods later.
const COUNT_EVERY: u64 = 4;
/// How long to wait for answers: a thread that has a processor needs some microseconds.
const ANSWER_TIMEOUT: Duration = Duration::from_micros(250);
const POLL: Duration = Duration::from_micros(20);
/// The most threads whose files are kept open.
const MAX_OPEN: usize = 128;
/// The most words of a stack that is read from outside.
const MAX_STACK_WORDS: usize = 1 << 17;

/// All threads except the sampler's.
pub(super) struct Threads {
    options: Options,
    this: libc::pid_t,
    pool: &'static Pool,
    table: BTreeMap<libc::pid_t, Thread>,
    count: task::Count,
    listed: Option<u64>,
    unwinder: Unwinder,
    /// A buffer for a stack that is read from outside.
    words: Vec<AtomicU64>,
    /// Withdrawn requests whose threads were just answering.
    abandoned: Vec<Ticket>,
    pub(super) statistics: Statistics,
}

/// An error: no slot is free for another request.
struct NoSlot;

/// The result of checking a thread in a round.
enum CheckResult {
    Gone,
    Signalled,
    /// The thread was signalled in an earlier round.
    Pending,
    Repeated,
    Fresh,
    Nothing,
}

impl Threads {
    pub(super) fn new(options: Options, known: KnownObjects) -> Self {
        let pool = Pool::of_this_process(options.stack_bytes);
        let unwinder = Unwinder::new(known, options.max_frames);
        let words = space(options.stack_bytes.div_ceil(8));
        Self {
            options,
            this: memory::current_thread(),
            pool,
            table: BTreeMap::new(),
            count: task::Count::open(),
            listed: None,
            unwinder,
            words,
            abandoned: Vec::new(),
            statistics: Statistics::default(),
        }
    }

    /// Samples all threads once and reports each.
    pub(super) fn round(&mut self, report: &mut dyn FnMut(&Sample<'_>)) -> io::Result<()> {
        if self.listed.is_none() {
            self.list()?;
        }
        self.statistics.rounds += 1;
        let ids: Vec<libc::pid_t> = self.table.keys().copied().collect();
        let mut asked = Vec::new();
        for id in ids {
            // Removed from the map while it is checked, so that all other fields can be used.
            let Some(mut thread) = self.table.remove(&id) else { continue };
            let look = self.check(id, &mut thread);
            match look {
                CheckResult::Gone => {
                    self.forget(&thread);
                    continue;
                }
                CheckResult::Signalled => asked.push(id),
                CheckResult::Pending => {
                    if !self.answered(id, &mut thread, report) {
                        self.unanswered(id, &mut thread, report);
                    }
                }
                CheckResult::Repeated => self.report(id, &thread, true, report),
                CheckResult::Fresh => self.report(id, &thread, false, report),
                CheckResult::Nothing => {}
            }
            self.table.insert(id, thread);
            if asked.len() >= super::signal::SLOTS {
                self.collect(&mut asked, report);
            }
        }
        // While threads answer.
        self.abandoned.retain(|ticket| !self.pool.release(*ticket));
        self.unwinder.keep_fresh();
        let listed = self.list();
        self.collect(&mut asked, report);
        listed
    }

    /// Forgets all threads: their state is outdated when sampling continues.
    pub(super) fn rest(&mut self) {
        for thread in std::mem::take(&mut self.table).values() {
            self.forget(thread);
        }
        self.listed = None;
    }

    fn forget(&mut self, thread: &Thread) {
        self.abandoned.extend(thread.pending.map(|pending| pending.ticket));
        self.abandoned.retain(|ticket| !self.pool.release(*ticket));
    }

    fn list(&mut self) -> io::Result<()> {
        if self.listed.is_some() && !self.statistics.rounds.is_multiple_of(COUNT_EVERY) {
            return Ok(());
        }
        let count = self.count.now();
        let same = count.is_some() && self.listed == count;
        if same && !self.statistics.rounds.is_multiple_of(LIST_EVERY) {
            return Ok(());
        }
        for id in task::threads()? {
            if id != self.this {
                let keep_open = self.table.len() < MAX_OPEN;
                self.table.entry(id).or_insert_with(|| Thread::new(id, keep_open));
            }
        }
        self.listed = count;
        Ok(())
    }

    fn check(&mut self, id: libc::pid_t, thread: &mut Thread) -> CheckResult {
        let now = Instant::now();
        let Some(time) = memory::processor_time(id) else {
            self.listed = None;
            return CheckResult::Gone;
        };
        if thread.time.is_some_and(|before| time < before) {
            // Another thread has its id.
            self.forget(thread);
            *thread = Thread::new(id, self.table.len() < MAX_OPEN);
        }
        if let Some(pending) = &mut thread.pending {
            pending.seen_at = time;
            return CheckResult::Pending;
        }
        let again = if thread.stack.is_empty() { CheckResult::Nothing } else { CheckResult::Repeated };
        let ran = thread.time.is_none_or(|before| time != before);
        if !ran {
            // It waits, perhaps only for a processor.
            thread.running = false;
            return again;
        }
        // Reading a thread's activity is the most expensive check.
        let activity =
            if thread.has_not_waited(now, time) { Activity::Running } else { thread.activity_file.now() };
        thread.ran = (activity == Activity::Running).then_some((now, time));
        match activity {
            Activity::Running => self.ask(id, thread, time, again),
            Activity::Waiting(wait) => {
                let used = thread.time.map_or(u64::MAX, |before| time.saturating_sub(before));
                if thread.wait == Some(wait) && used < HANDLER_TIME && !thread.stack.is_empty() {
                    // Keep the time, so that small amounts add up.
                    thread.running = false;
                    return again;
                }
                if wait.survives_a_signal() && !thread.is_muted() {
                    thread.wait = Some(wait);
                    match self.request(id, thread, time, false) {
                        Ok(look) => look,
                        Err(NoSlot) => self.read(id, thread, wait, again),
                    }
                } else {
                    self.read(id, thread, wait, again)
                }
            }
            // It is unknown what a signal would interrupt.
            Activity::Unknown if thread.time.is_none() => {
                thread.time = Some(time);
                CheckResult::Nothing
            }
            Activity::Unknown => self.ask(id, thread, time, again),
        }
    }

    /// Signals a running thread.
    fn ask(&mut self, id: libc::pid_t, thread: &mut Thread, time: u64, again: CheckResult) -> CheckResult {
        if thread.is_muted() {
            return again;
        }
        thread.wait = None;
        self.request(id, thread, time, true).unwrap_or(again)
    }

    fn request(
        &mut self,
        id: libc::pid_t,
        thread: &mut Thread,
        time: u64,
        running: bool,
    ) -> Result<CheckResult, NoSlot> {
        match self.pool.request(self.options.signal, id, thread.top) {
            Ok(ticket) => {
                self.statistics.signals += 1;
                thread.time = Some(time);
                let (asked_at, seen_at) = (time, time);
                thread.pending = Some(Pending { ticket, asked_at, seen_at, running, rounds: 0 });
                Ok(CheckResult::Signalled)
            }
            Err(NoTicket::Full) => Err(NoSlot),
            Err(NoTicket::Rejected) => Ok(CheckResult::Gone),
        }
    }

    /// Reads the complete stack of a waiting thread from outside, which costs the thread nothing. If the thread ran meanwhile,
    /// the result is discarded.
    fn read(&mut self, id: libc::pid_t, thread: &mut Thread, wait: Wait, again: CheckResult) -> CheckResult {
        let registers =
            Registers { instruction: wait.instruction, stack: wait.stack, frame: UNKNOWN, link: UNKNOWN };
        // First only the part that unwinding needed last time.
        let mut wanted = known(thread.top, wait.stack).min(self.words.len());
        loop {
            let before = memory::processor_time(id);
            let copied = memory::copy_words(wait.stack, self.words.get(..wanted).unwrap_or_default()) / 8;
            if thread.activity_file.now() != Activity::Waiting(wait) || memory::processor_time(id) != before {
                return again;
            }
            (thread.wait, thread.time, thread.running) = (Some(wait), before, false);
            let words = std::mem::take(&mut self.words);
            self.unwinder.unwind(thread, registers, words.get(..copied).unwrap_or_default());
            let cut = !thread.complete && copied == wanted && copied < MAX_STACK_WORDS;
            self.words = if cut && copied == words.len() { space(copied.saturating_mul(4)) } else { words };
            wanted = self.words.len();
            if !cut {
                return CheckResult::Fresh;
            }
        }
    }

    /// Waits briefly for the answers of the signalled threads, and reports them.
    fn collect(&mut self, asked: &mut Vec<libc::pid_t>, report: &mut dyn FnMut(&Sample<'_>)) {
        let start = Instant::now();
        loop {
            asked.retain(|id| {
                let Some(mut thread) = self.table.remove(id) else { return false };
                let waiting = !self.answered(*id, &mut thread, report);
                self.table.insert(*id, thread);
                waiting
            });
            if asked.is_empty() || start.elapsed() >= ANSWER_TIMEOUT {
                break;
            }
            thread::sleep(POLL);
        }
        for id in asked.drain(..) {
            let Some(mut thread) = self.table.remove(&id) else { continue };
            self.unanswered(id, &mut thread, report);
            self.table.insert(id, thread);
        }
    }

    /// Takes the answer of a thread, if there is one.
    fn answered(
        &mut self,
        id: libc::pid_t,
        thread: &mut Thread,
        report: &mut dyn FnMut(&Sample<'_>),
    ) -> bool {
        let Some(pending) = thread.pending else { return true };
        let pool = self.pool;
        let Answer::Ready(registers, words) = pool.answer(pending.ticket) else { return false };
        self.unwinder.unwind(thread, registers, words);
        pool.release(pending.ticket);
        thread.pending = None;
        if !pending.running {
            // The handler's time is not a reason to signal again.
            thread.time = memory::processor_time(id);
        }
        thread.running = pending.running;
        self.report(id, thread, false, report);
        true
    }

    /// Reports a thread without an answer with its last stack: it had no processor since, or blocks the signal.
    fn unanswered(&mut self, id: libc::pid_t, thread: &mut Thread, report: &mut dyn FnMut(&Sample<'_>)) {
        let Some(pending) = &mut thread.pending else { return };
        // In the round of the request, the answer may still arrive in time.
        let late = pending.rounds > 0;
        pending.rounds = pending.rounds.saturating_add(1);
        let ticket = pending.ticket;
        // A handler that runs later does not find its request, and does nothing.
        if thread.is_hopeless() && self.pool.release(ticket) {
            self.statistics.unanswered += 1;
            thread.withdraw(id, self.options.signal);
        }
        thread.running = false;
        if late && !thread.stack.is_empty() {
            self.report(id, thread, true, report);
        }
    }

    fn report(
        &mut self,
        id: libc::pid_t,
        thread: &Thread,
        repeated: bool,
        report: &mut dyn FnMut(&Sample<'_>),
    ) {
        self.statistics.samples += 1;
        self.statistics.partial += u64::from(!thread.complete);
        report(&Sample {
            thread_id: u64::try_from(id).unwrap_or_default(),
            running: thread.running,
            stack: &thread.stack,
            complete: thread.complete,
            repeated,
        });
    }
}

/// Returns the number of words from a stack pointer to the known end of the stack, `usize::MAX` if the pointer is beyond it.
fn known(top: u64, stack: u64) -> usize {
    let bytes = top.checked_sub(stack).filter(|bytes| *bytes > 0);
    bytes.and_then(|bytes| usize::try_from(bytes.div_ceil(8)).ok()).unwrap_or(usize::MAX)
}

fn space(words: usize) -> Vec<AtomicU64> {
    (0..words).map(|_| AtomicU64::new(0)).collect()
}

#[cfg(test)]
mod tests {
    use super::super::signal;
    use super::*;

    fn ask(threads: &mut Threads, id: libc::pid_t) -> Ticket {
        let mut thread = Thread::new(id, false);
        let asked = threads.ask(id, &mut thread, 0, CheckResult::Nothing);
        assert!(matches!(asked, CheckResult::Signalled));
        thread.pending.unwrap().ticket
    }

    #[test]
    fn a_late_answer_to_an_earlier_sampler_is_ignored() {
        let _alone = signal::alone();
        let options = Options::default();
        signal::install(options.signal).unwrap();
        let new = || Threads::new(options.clone(), KnownObjects::default());
        let this = memory::current_thread();
        signal::block(options.signal, true);
        let mut earlier = new();
        let withdrawn = ask(&mut earlier, this);
        assert!(earlier.pool.release(withdrawn));
        drop(earlier);
        let mut later = new();
        // Another thread, which never answers here.
        let (sender, id) = std::sync::mpsc::channel();
        let (end, wait) = std::sync::mpsc::channel::<()>();
        let other = thread::spawn(move || {
            signal::block(Options::default().signal, true);
            sender.send(memory::current_thread()).unwrap();
            // Until the other end is dropped.
            let _ = wait.recv();
        });
        let asked = ask(&mut later, id.recv().unwrap());
        // The earlier signal arrives before the call returns.
        signal::block(options.signal, false);
        assert!(matches!(later.pool.answer(asked), Answer::Pending), "the stack of another thread");
        assert!(later.pool.release(asked));
        drop(end);
        other.join().unwrap();
    }
}
