//! The sampler with threads of this process whose activity is known.

#![cfg(all(target_os = "linux", any(target_arch = "x86_64", target_arch = "aarch64")))]

use std::collections::{HashMap, HashSet};
use std::ffi::CString;
use std::hint::black_box;
use std::io::Write;
use std::os::unix::net::UnixStream;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc::{self, Receiver, Sender};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use runtap_unwind::{Namer, Options, Sample, Sampler, StartError};
use rustix::event::{PollFd, PollFlags, poll};

/// Serializes the tests, because a process has one sampler.
static ALONE: Mutex<()> = Mutex::new(());

/// Far longer than anything here takes on a loaded machine.
const DEADLINE: Duration = Duration::from_secs(100);

/// An owned sample.
#[derive(Debug, Clone)]
struct Seen {
    thread: u64,
    running: bool,
    complete: bool,
    frames: Vec<u64>,
}

/// An active sampler with its samples.
struct Watch {
    seen: Receiver<Seen>,
    sampler: Sampler,
    _alone: MutexGuard<'static, ()>,
}

impl Watch {
    fn start() -> Self {
        Self::with(Options::default())
    }

    fn with(options: Options) -> Self {
        let alone = ALONE.lock().unwrap_or_else(PoisonError::into_inner);
        let (sender, seen) = mpsc::channel();
        let note = move |sample: &Sample<'_>| {
            let frames = sample.lookup_addresses().collect();
            let (thread, running, complete) = (sample.thread_id, sample.running, sample.complete);
            // The receiver is gone when the test is over.
            let _ = sender.send(Seen { thread, running, complete, frames });
        };
        let sampler = Sampler::start(options, note).unwrap();
        sampler.set_active(true);
        Self { seen, sampler, _alone: alone }
    }

    /// Returns the next `count` samples that match.
    fn take(&self, count: usize, wanted: impl Fn(&Seen) -> bool) -> Vec<Seen> {
        let start = Instant::now();
        let mut taken = Vec::new();
        while taken.len() < count {
            assert!(
                start.elapsed() < DEADLINE,
                "{} of {count}: {:?}",
                taken.len(),
                self.sampler.statistics()
            );
            taken.extend(self.seen.recv_timeout(DEADLINE).ok().filter(&wanted));
        }
        taken
    }

    /// Returns the functions on the samples' stacks, leaf first, as `path.name`.
    fn name(&self, samples: &[Seen]) -> Vec<Vec<String>> {
        let addresses = samples.iter().flat_map(|sample| &sample.frames).copied();
        let names = Namer::new(&self.sampler).names(addresses);
        let name = |address: &u64| {
            let found = names.functions.iter().find(|f| (f.start..f.start + f.size).contains(address));
            found.map_or_else(String::new, |f| format!("{}.{}", f.name.path, f.name.name))
        };
        samples.iter().map(|sample| sample.frames.iter().map(name).collect()).collect()
    }
}

/// A thread that works until this is dropped.
struct Worker {
    stop: Arc<AtomicBool>,
    id: u64,
    thread: Option<JoinHandle<()>>,
}

impl Worker {
    fn start(mut step: impl FnMut() + Send + 'static) -> Self {
        let stop = Arc::<AtomicBool>::default();
        let (stopped, (sender, id)) = (Arc::clone(&stop), mpsc::channel());
        let thread = thread::spawn(move || {
            sender.send(this_thread()).unwrap();
            while !stopped.load(Ordering::Relaxed) {
                step();
            }
        });
        Self { stop, id: id.recv().unwrap(), thread: Some(thread) }
    }

    fn is(&self, sample: &Seen) -> bool {
        sample.thread == self.id
    }
}

impl Drop for Worker {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        let ended = self.thread.take().unwrap().join();
        assert!(ended.is_ok() || thread::panicking());
    }
}

fn this_thread() -> u64 {
    // A link to `PID/task/TID`.
    let link = std::fs::read_link("/proc/thread-self").unwrap();
    link.file_name().unwrap().to_str().unwrap().parse().unwrap()
}

/// Does some microseconds of work in the calling function.
#[expect(clippy::inline_always, reason = "the work is that of the function that asks for it")]
#[inline(always)]
fn burn(units: u64) -> u64 {
    let (mut x, mut left) = (units | 1, units * 20_000);
    while left > 0 {
        x ^= x << 13;
        x ^= x >> 7;
        x ^= x << 17;
        left -= 1;
    }
    x
}

#[inline(never)]
fn hot() {
    black_box(burn(1));
}

#[inline(never)]
fn caller_of_hot() {
    hot();
    black_box(());
}

fn in_order(stack: &[String], functions: &[&str]) -> bool {
    let mut rest = stack.iter();
    functions.iter().all(|function| rest.any(|frame| frame == function))
}

#[test]
fn a_function_is_sampled_with_its_callers() {
    let watch = Watch::start();
    let worker = Worker::start(caller_of_hot);
    let samples = watch.take(200, |sample| worker.is(sample) && sample.running);
    let stacks = watch.name(&samples);
    let right = |stack: &&Vec<String>| in_order(stack, &["sampling.hot", "sampling.caller_of_hot"]);
    let seen = stacks.iter().filter(right).count();
    assert!(seen > 180, "{seen} of 200, such as {:?}", stacks.first());
    assert!(stacks.iter().filter(|stack| stack[0] == "sampling.hot").count() > 150);
    assert!(samples.iter().filter(|sample| sample.complete).count() > 190, "to the start of the thread");
    assert!(watch.sampler.statistics().signals > 0);
}

#[test]
fn samples_are_proportional_to_time() {
    #[inline(never)]
    fn three() {
        black_box(burn(2700));
    }
    #[inline(never)]
    fn one() {
        black_box(burn(900));
    }
    const TURNS: u64 = 16;
    let watch = Watch::start();
    // The two alternate, so that other load delays both alike. A turn is long compared to the time for which a scheduler
    // may delay the sampler, and all turns are counted to their end.
    let (turns, results): (Vec<Sender<()>>, Vec<Receiver<()>>) = (0..2).map(|_| mpsc::channel()).unzip();
    let [first, second]: [Sender<()>; 2] = turns.try_into().unwrap();
    let [of_first, of_second]: [Receiver<()>; 2] = results.try_into().unwrap();
    first.send(()).unwrap();
    let patience = Duration::from_millis(100);
    let long = Worker::start(move || {
        if of_first.recv_timeout(patience).is_ok() {
            three();
            let _ = second.send(());
        }
    });
    let ended = Arc::<AtomicU64>::default();
    let turn = Arc::clone(&ended);
    let short = Worker::start(move || {
        if of_second.recv_timeout(patience).is_ok() {
            one();
            if turn.fetch_add(1, Ordering::Relaxed) + 1 < TURNS {
                let _ = first.send(());
            }
        }
    });
    let mut samples = Vec::new();
    while ended.load(Ordering::Relaxed) < TURNS {
        samples.extend(watch.take(50, |_| true));
    }
    samples.retain(|sample| sample.running && (long.is(sample) || short.is(sample)));
    let of_long = samples.iter().filter(|sample| long.is(sample)).count();
    let share = of_long * 100 / samples.len();
    assert!((65..=90).contains(&share), "{share} % instead of 75 %");
    let stacks = watch.name(&samples);
    let right = stacks.iter().zip(&samples).filter(|(stack, sample)| {
        let function = if long.is(sample) { "::three" } else { "::one" };
        stack.iter().any(|frame| frame.replace('.', "::").ends_with(function))
    });
    let (right, all) = (right.count(), samples.len());
    assert!(right * 10 > all * 8, "{right} of {all}");
}

#[test]
fn a_stack_deeper_than_the_copy_is_partial() {
    #[inline(never)]
    fn descend(depth: u64) -> u64 {
        let place = black_box([depth; 32]);
        if depth == 0 {
            return black_box(burn(10));
        }
        descend(depth - 1) + place[7]
    }
    let mut options = Options::default();
    options.stack_bytes = 8 << 10;
    let watch = Watch::with(options);
    let worker = Worker::start(|| {
        black_box(descend(500));
    });
    let is_leaf = |sample: &Seen| worker.is(sample) && sample.running && !sample.complete;
    let samples = watch.take(50, is_leaf);
    let stacks = watch.name(&samples);
    let deep =
        stacks.iter().filter(|stack| stack.iter().filter(|frame| frame.ends_with("descend")).count() > 5);
    assert!(deep.count() > 40, "{:?}", stacks.first());
    // The round of the last sample may be counted only before the next.
    watch.take(1, is_leaf);
    assert!(watch.sampler.statistics().partial >= 50);
}

#[inline(never)]
fn wait_for(stream: &UnixStream) -> rustix::io::Result<usize> {
    poll(&mut [PollFd::new(stream, PollFlags::IN)], None)
}

#[test]
fn a_waiting_thread_is_sampled_and_not_interrupted() {
    let (ours, theirs) = UnixStream::pair().unwrap();
    let (sender, id) = mpsc::channel();
    let waiting = thread::spawn(move || {
        sender.send(this_thread()).unwrap();
        wait_for(&theirs)
    });
    let id = id.recv().unwrap();
    // The thread waits before sampling starts, so that it is never seen running.
    let start = Instant::now();
    while !std::fs::read_to_string(format!("/proc/self/task/{id}/syscall")).unwrap().contains(' ') {
        assert!(start.elapsed() < DEADLINE);
        thread::yield_now();
    }
    let watch = Watch::start();
    let samples = watch.take(300, |sample| sample.thread == id);
    assert!(samples.iter().all(|sample| !sample.running));
    let stacks = watch.name(&samples);
    let right = |stack: &&Vec<String>| in_order(stack, &["sampling.wait_for"]);
    assert_eq!(stacks.iter().filter(right).count(), 300, "{:?}", stacks.first());
    (&ours).write_all(&[1]).unwrap();
    // EINTR, if the thread had received a signal.
    assert_eq!(waiting.join().unwrap(), Ok(1));
}

#[expect(
    unsafe_code,
    reason = "the standard library has no semaphores, and hides that a wait was interrupted"
)]
mod semaphore {
    use std::cell::UnsafeCell;
    use std::io;
    use std::sync::Arc;

    pub(super) struct Semaphore(UnsafeCell<libc::sem_t>);

    // SAFETY: a semaphore may be used by several threads at once.
    unsafe impl Sync for Semaphore {}
    // SAFETY: it is used where `new` put it and is never moved.
    unsafe impl Send for Semaphore {}

    impl Semaphore {
        pub(super) fn new() -> Arc<Self> {
            // SAFETY: it is initialized at its final address. It is never destroyed: it owns nothing.
            unsafe {
                let semaphore = Arc::new(Self(UnsafeCell::new(std::mem::zeroed())));
                assert_eq!(libc::sem_init(semaphore.0.get(), 0, 0), 0);
                semaphore
            }
        }

        pub(super) fn post(&self) {
            // SAFETY: it was initialized.
            assert_eq!(unsafe { libc::sem_post(self.0.get()) }, 0);
        }

        /// Waits with a time limit that is not reached.
        #[inline(never)]
        pub(super) fn wait_with_a_limit(&self) -> io::Result<()> {
            // SAFETY: it was initialized, and the time outlives the calls.
            let failed = unsafe {
                let mut time = std::mem::zeroed();
                assert_eq!(libc::clock_gettime(libc::CLOCK_REALTIME, &raw mut time), 0);
                time.tv_sec += 10_000;
                libc::sem_timedwait(self.0.get(), &raw const time) != 0
            };
            if failed { Err(io::Error::last_os_error()) } else { Ok(()) }
        }
    }
}

#[test]
fn a_wait_with_a_time_limit_is_sampled_and_not_interrupted() {
    let semaphore = semaphore::Semaphore::new();
    let (sender, id) = mpsc::channel();
    let theirs = Arc::clone(&semaphore);
    let waiting = thread::spawn(move || {
        sender.send(this_thread()).unwrap();
        theirs.wait_with_a_limit()
    });
    let id = id.recv().unwrap();
    let start = Instant::now();
    let futex = format!("{} ", libc::SYS_futex);
    while !std::fs::read_to_string(format!("/proc/self/task/{id}/syscall")).unwrap().starts_with(&futex) {
        assert!(start.elapsed() < DEADLINE);
        thread::yield_now();
    }
    let watch = Watch::start();
    let samples = watch.take(300, |sample| sample.thread == id);
    let stacks = watch.name(&samples);
    let right = |stack: &&Vec<String>| stack.iter().any(|frame| frame.ends_with("wait_with_a_limit"));
    assert!(stacks.iter().filter(right).count() > 290, "{:?}", stacks.first());
    semaphore.post();
    // EINTR, if the thread had received a signal.
    waiting.join().unwrap().unwrap();
}

#[test]
fn a_thread_that_waits_for_a_lock_is_sampled() {
    #[inline(never)]
    fn wait_for_lock(lock: &Mutex<()>) {
        black_box(lock.lock().is_ok());
    }
    let lock = Arc::new(Mutex::new(()));
    let held = lock.lock().unwrap();
    let (sender, id) = mpsc::channel();
    let theirs = Arc::clone(&lock);
    let waiting = thread::spawn(move || {
        sender.send(this_thread()).unwrap();
        wait_for_lock(&theirs);
    });
    let id = id.recv().unwrap();
    let watch = Watch::start();
    let samples = watch.take(200, |sample| sample.thread == id && !sample.running);
    let stacks = watch.name(&samples);
    let right = |stack: &&Vec<String>| stack.iter().any(|frame| frame.ends_with("wait_for_lock"));
    assert!(stacks.iter().filter(right).count() > 190, "{:?}", stacks.first());
    assert!(samples.iter().filter(|sample| sample.complete).count() > 190);
    drop(held);
    waiting.join().unwrap();
}

#[expect(unsafe_code, reason = "there is no other way to change a thread's signal mask")]
fn block_all_signals(block: bool) {
    let how = if block { libc::SIG_BLOCK } else { libc::SIG_UNBLOCK };
    // SAFETY: `all` is a valid set once it is filled, and outlives both calls.
    unsafe {
        let mut all = std::mem::zeroed();
        assert_eq!(libc::sigfillset(&raw mut all), 0);
        assert_eq!(libc::pthread_sigmask(how, &raw const all, std::ptr::null_mut()), 0);
    }
}

#[test]
fn threads_that_block_all_signals_do_not_prevent_sampling_others() {
    #[inline(never)]
    fn wait_for_the_end(end: &Mutex<()>) {
        drop(end.lock());
    }
    // More threads than slots for requests.
    const THREADS: usize = 150;
    let end = Arc::new(Mutex::new(()));
    let held = end.lock().unwrap();
    let (sender, ids) = mpsc::channel();
    let waiting: Vec<JoinHandle<()>> = (0..THREADS)
        .map(|_| {
            let (sender, end) = (sender.clone(), Arc::clone(&end));
            thread::spawn(move || {
                block_all_signals(true);
                sender.send(this_thread()).unwrap();
                wait_for_the_end(&end);
                // The blocked signals arrive now, when no answer is expected any more.
                block_all_signals(false);
                hot();
            })
        })
        .collect();
    let ids: HashSet<u64> = ids.iter().take(THREADS).collect();
    let watch = Watch::start();
    let worker = Worker::start(caller_of_hot);
    let stacks = watch.name(&watch.take(200, |sample| worker.is(sample) && sample.running));
    let right = |stack: &&Vec<String>| in_order(stack, &["sampling.hot", "sampling.caller_of_hot"]);
    assert!(stacks.iter().filter(right).count() > 180, "{:?}", stacks.first());
    // These threads are seen as well, each at its wait.
    let mut seen = HashMap::new();
    let start = Instant::now();
    while seen.len() < THREADS {
        assert!(start.elapsed() < DEADLINE, "{} of {THREADS}", seen.len());
        for sample in watch.take(1, |sample| ids.contains(&sample.thread) && !sample.frames.is_empty()) {
            assert!(!sample.running);
            seen.insert(sample.thread, sample);
        }
    }
    let seen: Vec<Seen> = seen.into_values().collect();
    let stacks = watch.name(&seen);
    let right = |stack: &&Vec<String>| stack.iter().any(|frame| frame.ends_with("wait_for_the_end"));
    assert!(stacks.iter().filter(right).count() > THREADS * 9 / 10, "{:?}", stacks.first());
    let statistics = watch.sampler.statistics();
    assert!(statistics.unanswered > 0, "{statistics:?}");
    drop(held);
    for thread in waiting {
        thread.join().unwrap();
    }
    watch.take(50, |sample| worker.is(sample) && sample.running);
}

#[test]
fn threads_may_start_and_exit() {
    let watch = Watch::start();
    let worker = Worker::start(caller_of_hot);
    for _ in 0..300 {
        let group: Vec<_> = (0..10).map(|_| thread::spawn(hot)).collect();
        for thread in group {
            thread.join().unwrap();
        }
    }
    // Still running.
    while watch.seen.try_recv().is_ok() {}
    watch.take(50, |sample| worker.is(sample) && sample.running);
}

#[test]
fn threads_that_allocate_and_lock_are_not_blocked() {
    let watch = Watch::start();
    let shared = Arc::new(Mutex::new(HashMap::<u64, Vec<u8>>::new()));
    let steps: Vec<Arc<AtomicU64>> = (0..4).map(|_| Arc::default()).collect();
    let workers: Vec<Worker> = steps
        .iter()
        .map(|step| {
            let (step, shared, mut n) = (Arc::clone(step), Arc::clone(&shared), 0_u64);
            Worker::start(move || {
                n = n.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
                let size = usize::try_from(n >> 48).unwrap();
                let old = shared.lock().unwrap().insert(n % 64, vec![1; size]);
                black_box(old);
                step.fetch_add(1, Ordering::Relaxed);
            })
        })
        .collect();
    let rounds = || watch.sampler.statistics().rounds;
    let start = Instant::now();
    let (first, before) =
        (rounds(), steps.iter().map(|step| step.load(Ordering::Relaxed)).collect::<Vec<_>>());
    while rounds() < first + 2000 {
        assert!(start.elapsed() < DEADLINE, "{:?}", watch.sampler.statistics());
        watch.take(100, |_| true);
    }
    for (step, before) in steps.iter().zip(before) {
        assert!(step.load(Ordering::Relaxed) > before);
    }
    drop(workers);
}

#[test]
fn libraries_may_be_loaded_and_unloaded() {
    #[expect(unsafe_code, reason = "there is no other way to load a library")]
    fn load_and_unload(name: &CString) {
        // SAFETY: a library of the C library itself, whose initialization does nothing; it is used while it is loaded.
        unsafe {
            let library = libc::dlopen(name.as_ptr(), libc::RTLD_NOW);
            assert!(!library.is_null());
            assert_eq!(libc::dlclose(library), 0);
        }
    }
    let name = CString::new("libresolv.so.2").unwrap();
    let watch = Watch::start();
    let worker = Worker::start(move || load_and_unload(&name));
    let samples = watch.take(500, |sample| worker.is(sample) && sample.running);
    let stacks = watch.name(&samples);
    let right = |stack: &&Vec<String>| stack.iter().any(|frame| frame.ends_with("load_and_unload"));
    assert!(stacks.iter().filter(right).count() > 400, "{:?}", stacks.first());
}

#[test]
fn a_process_has_one_sampler_and_it_sleeps_while_inactive() {
    let alone = ALONE.lock().unwrap_or_else(PoisonError::into_inner);
    let start = || Sampler::start(Options::default(), |_| ());
    let first = start().unwrap();
    assert!(matches!(start(), Err(StartError::AlreadyRunning)));
    assert_eq!(first.statistics().rounds, 0);
    drop(first);
    let mut options = Options::default();
    options.signal = 9;
    assert!(matches!(Sampler::start(options, |_| ()), Err(StartError::UnusableSignal(9))));
    drop(start().unwrap());
    drop(alone);
}

#[test]
fn a_forked_child_drops_the_sampler_and_starts_its_own() {
    /// Runs a function in a forked child and returns its result.
    #[expect(unsafe_code, reason = "the standard library forks only to execute another program")]
    fn in_a_child(run: impl FnOnce() -> i32) -> i32 {
        // SAFETY: the C library keeps its allocator usable in the child, which exits without running anything that
        // was registered for the end of the process.
        unsafe {
            let child = libc::fork();
            assert!(child >= 0);
            if child == 0 {
                let run = std::panic::AssertUnwindSafe(run);
                libc::_exit(std::panic::catch_unwind(run).unwrap_or(101));
            }
            let mut status = 0;
            assert_eq!(libc::waitpid(child, &raw mut status, 0), child);
            assert!(libc::WIFEXITED(status), "{status}");
            libc::WEXITSTATUS(status)
        }
    }
    let watch = Watch::start();
    let worker = Worker::start(caller_of_hot);
    watch.take(50, |sample| worker.is(sample) && sample.running);
    let Watch { seen, sampler, _alone } = watch;
    let mut inherited = Some(sampler);
    for _ in 0..20 {
        let result = in_a_child(|| {
            // There is no thread to notify or to join.
            let copy = inherited.take().unwrap();
            copy.set_active(false);
            copy.set_active(true);
            drop(copy);
            let (sender, seen) = mpsc::channel();
            let own = Sampler::start(Options::default(), move |sample: &Sample<'_>| {
                let _ = sender.send((sample.thread_id, sample.stack.len()));
            });
            let Ok(own) = own else { return 1 };
            own.set_active(true);
            // This thread, which waits for its own samples.
            let this = this_thread();
            let Some(_) = seen.iter().find(|(id, frames)| *id == this && *frames > 1) else { return 2 };
            drop(own);
            0
        });
        assert_eq!(result, 0);
    }
    while seen.try_recv().is_ok() {}
    // The sampler continues in the parent.
    assert!(seen.iter().any(|sample| worker.is(&sample) && sample.running));
    // The parent's sampler is unaffected.
    drop(inherited.unwrap());
}
