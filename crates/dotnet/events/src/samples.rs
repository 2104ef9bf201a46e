//! CPU samples of this process's threads, as the runtime's sample profiler writes them.
//!
//! ```no_run
//! use runtap_events::CpuSamples;
//!
//! let pipe = runtap_diag_server::EventPipe::new();
//! let samples = CpuSamples::start(&pipe)?;
//! // … until it is dropped, whoever asks for them gets samples.
//! # drop(samples);
//! # Ok::<(), runtap_events::SamplesError>(())
//! ```
//!
//! | event | of | contains |
//! | --- | --- | --- |
//! | 0 | `Microsoft-DotNETCore-SampleProfiler` | i32: 1 for a thread that waited, 2 for one that ran; with the thread's stack |
//! | 144, version 1 | `Microsoft-Windows-DotNETRuntimeRundown` | a function that was on a stack: address, size, path, name |
//! | 154, version 1 | the same | an executable or library with such functions |
//!
//! Threads are sampled only while a session wants the first event. Refuses to unwind: `runtap_unwind` does.

use std::collections::{BTreeSet, HashSet};
use std::fmt;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use runtap_diag_server::{DefineError, Event, EventData, EventPipe, Metadata, Rundown};
use runtap_nettrace::MAX_STACK_DEPTH;
use runtap_unwind::{Function, ModuleFile, Namer, Options, Sample, Sampler, StartError, Statistics};
use runtap_wire::Writer;
use thiserror::Error;

const PROFILER: &str = "Microsoft-DotNETCore-SampleProfiler";
const RUNDOWN: &str = "Microsoft-Windows-DotNETRuntimeRundown";
/// Keywords of the runtime's own rundown events: loader; JIT and precompiled code.
const LOADER: u64 = 0x8;
const METHODS: u64 = 0x30;

/// Values of the sample's only field: the thread waits or is in foreign code; it runs the program's own.
const EXTERNAL: i32 = 1;
const MANAGED: i32 = 2;

/// As many distinct addresses are named at the end of a session: some megabytes. A large program has some ten thousand.
const MAX_ADDRESSES: usize = 1 << 18;

/// Samples this process's threads for the sessions that want it, until it is dropped.
#[derive(Debug)]
pub struct CpuSamples {
    sampler: Arc<Sampler>,
    shared: Arc<Shared>,
}

/// How threads are sampled. See [`CpuSamples::builder`].
#[derive(Debug, Clone, Default)]
#[must_use]
pub struct CpuSamplesBuilder {
    options: Options,
    functions: Vec<(u64, String)>,
}

/// Why there are no CPU samples.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum SamplesError {
    /// An event can't be defined.
    #[error("define the events of CPU samples")]
    Define(#[from] DefineError),
    /// Threads can't be sampled.
    #[error("sample the threads of this process")]
    Sampler(#[from] StartError),
}

/// What samples and rundown share.
#[derive(Default)]
struct Shared {
    /// What was on stacks since a session has wanted samples, as it is looked up.
    addresses: Mutex<HashSet<u64>>,
    left_out: AtomicU64,
    /// Held while tables of symbols are read, which takes a while: only for the ends of sessions.
    namer: Mutex<Option<Namer>>,
}

impl CpuSamples {
    /// Samples once per millisecond, as a runtime does.
    ///
    /// # Errors
    /// There is a sampler already, or this system can't have one: [`StartError`] has the reasons.
    pub fn start(pipe: &EventPipe) -> Result<Self, SamplesError> {
        Self::builder().start(pipe)
    }

    /// For other periods, larger stacks, another signal.
    pub fn builder() -> CpuSamplesBuilder {
        CpuSamplesBuilder::default()
    }

    /// What was sampled so far.
    pub fn statistics(&self) -> Statistics {
        self.sampler.statistics()
    }

    /// Addresses on stacks that will have no name at the end of the sessions that run now, because there are too many.
    pub fn addresses_left_out(&self) -> u64 {
        self.shared.left_out.load(Ordering::Relaxed)
    }
}

impl CpuSamplesBuilder {
    /// The time from one look at all threads to the next; not below 0.1 ms.
    pub fn period(mut self, period: Duration) -> Self {
        self.options.period = period;
        self
    }

    /// How much of a stack is copied, from its leaf: from 4 KiB to 1 MiB, 64 KiB unless it is changed. Callers beyond are missing.
    pub fn stack_bytes(mut self, bytes: usize) -> Self {
        self.options.stack_bytes = bytes;
        self
    }

    /// The signal that running threads get, if the program needs SIGURG itself.
    pub fn signal(mut self, signal: i32) -> Self {
        self.options.signal = signal;
        self
    }

    /// Names a function by its address (`function as *const () as u64`), for a binary without symbols. The name is written as
    /// in Rust: `my_crate::module::function`.
    pub fn function(mut self, address: u64, name: impl Into<String>) -> Self {
        self.functions.push((address, name.into()));
        self
    }

    /// Starts the sampling thread, which sleeps until a session wants samples.
    ///
    /// # Errors
    /// As [`CpuSamples::start`].
    pub fn start(mut self, pipe: &EventPipe) -> Result<CpuSamples, SamplesError> {
        self.options.max_frames = MAX_STACK_DEPTH;
        let sample = pipe.define(Metadata::new(PROFILER, 0, ""))?;
        let shared = Arc::<Shared>::default();
        explain(pipe, &shared)?;

        let (event, seen) = (sample.clone(), Arc::clone(&shared));
        let sampler = Sampler::start(self.options, move |sample| seen.write(&event, sample))?;
        let sampler = Arc::new(sampler);
        let mut namer = Namer::new(&sampler);
        namer.add(self.functions);
        *lock(&shared.namer) = Some(namer);

        // The pipe keeps what watches it: the sampler must end without the pipe's doing.
        let (watched, seen) = (Arc::downgrade(&sampler), Arc::clone(&shared));
        pipe.watch(PROFILER, move |_| {
            let Some(sampler) = watched.upgrade() else { return };
            let wanted = sample.is_enabled();
            sampler.set_active(wanted);
            if !wanted {
                seen.forget();
            }
        });
        Ok(CpuSamples { sampler, shared })
    }
}

/// Has every session end with the names of the functions, as a runtime's does.
fn explain(pipe: &EventPipe, shared: &Arc<Shared>) -> Result<(), DefineError> {
    let event = |id, keywords| {
        let mut metadata = Metadata::new(RUNDOWN, id, "");
        (metadata.version, metadata.keywords) = (1, keywords);
        pipe.define(metadata)
    };
    let (method, module) = (event(144, METHODS)?, event(154, LOADER)?);
    let shared = Arc::clone(shared);
    pipe.on_rundown(move |rundown| shared.explain(rundown, &method, &module));
    Ok(())
}

impl Shared {
    /// On the sampler's thread.
    fn write(&self, event: &Event, sample: &Sample<'_>) {
        if !sample.repeated {
            self.note(&mut sample.lookup_addresses());
        }
        let kind = if sample.running { MANAGED } else { EXTERNAL };
        event.write(&EventData {
            thread_id: Some(sample.thread_id),
            stack: sample.stack,
            payload: &kind.to_le_bytes(),
            ..EventData::default()
        });
    }

    fn note(&self, seen: &mut dyn Iterator<Item = u64>) {
        let mut addresses = lock(&self.addresses);
        for address in seen {
            if addresses.len() < MAX_ADDRESSES {
                addresses.insert(address);
            } else if !addresses.contains(&address) {
                self.left_out.fetch_add(1, Ordering::Relaxed);
            }
        }
    }

    fn forget(&self) {
        lock(&self.addresses).clear();
        self.left_out.store(0, Ordering::Relaxed);
    }

    /// At the end of a session. Neither samples nor sessions that come and go wait for it: it holds the lock of the namer only.
    fn explain(&self, rundown: &mut Rundown<'_>, method: &Event, module: &Event) {
        if rundown.keyword() & (LOADER | METHODS) == 0 {
            return;
        }
        let addresses: Vec<u64> = lock(&self.addresses).iter().copied().collect();
        let names = lock(&self.namer).as_mut().map(|namer| namer.names(addresses));
        let Some(names) = names else { return };
        let mut used = BTreeSet::new();
        for (number, function) in (1..).zip(&names.functions) {
            let Some(file) = names.modules.get(function.module) else { continue };
            rundown.write(method, &method_payload(number, function, file));
            used.insert(function.module);
        }
        for file in used.iter().filter_map(|module| names.modules.get(*module)) {
            rundown.write(module, &module_payload(file));
        }
    }
}

impl fmt::Debug for Shared {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Shared").finish_non_exhaustive()
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Version 1 of the event that ends with the method's names. The signature is empty: the symbols do not have it.
fn method_payload(number: u32, function: &Function, file: &ModuleFile) -> Vec<u8> {
    /// The kind of a method definition in a metadata token.
    const DEFINITION: u32 = 0x0600_0000;
    /// Jitted: what is not, tools look up in the module's file.
    const JITTED: u32 = 8;
    let mut w = Writer::new();
    w.u64(function.start).u64(file.range.start).u64(function.start);
    w.u32(u32::try_from(function.size).unwrap_or(u32::MAX)).u32(DEFINITION | number).u32(JITTED);
    w.utf16z(&function.name.path).utf16z(&function.name.name).utf16z("").u16(0);
    w.into_bytes()
}

/// Version 1 of the event that names a module. It counts as its own assembly.
fn module_payload(file: &ModuleFile) -> Vec<u8> {
    const MANIFEST: u32 = 8;
    let mut w = Writer::new();
    w.u64(file.range.start).u64(file.range.start).u32(MANIFEST).u32(0);
    w.utf16z(&file.path.to_string_lossy()).utf16z("").u16(0);
    w.into_bytes()
}

#[cfg(all(test, target_os = "linux", any(target_arch = "x86_64", target_arch = "aarch64")))]
mod tests {
    use runtap_wire::Reader;

    use super::*;

    #[inline(never)]
    fn named_by_its_symbol() {}

    /// A sampler that rests, as no session wants samples, and what it would name.
    #[test]
    fn functions_are_described_by_their_real_addresses() {
        let given = 0x10 + functions_are_described_by_their_real_addresses as *const () as u64;
        let pipe = EventPipe::new();
        let builder = CpuSamples::builder().period(Duration::from_millis(2)).stack_bytes(1 << 15);
        let samples = builder.function(given, "my_app::<Given as Trait>::run").start(&pipe).unwrap();
        assert!(matches!(CpuSamples::start(&pipe), Err(SamplesError::Sampler(StartError::AlreadyRunning))));
        assert_eq!((samples.statistics().rounds, samples.addresses_left_out()), (0, 0));

        samples.sampler.set_active(true);
        let start = std::time::Instant::now();
        while samples.statistics().rounds < 2 {
            assert!(start.elapsed() < Duration::from_mins(1));
            std::thread::yield_now();
        }
        // As while the end of a session is written.
        let naming = lock(&samples.shared.namer);
        let before = samples.statistics().rounds;
        samples.shared.note(&mut [given].into_iter());
        while samples.statistics().rounds < before + 2 {
            assert!(start.elapsed() < Duration::from_mins(1), "samples wait for names");
            std::thread::yield_now();
        }
        samples.shared.forget();
        drop(naming);

        let address = named_by_its_symbol as *const () as u64;
        let find = |address| lock(&samples.shared.namer).as_mut().unwrap().names([address]);
        let names = find(given + 1);
        let [function] = names.functions.as_slice() else { panic!("{names:?}") };
        assert_eq!((function.start, function.name.path.as_str()), (given, "my_app.<Given as Trait>"));
        assert_eq!(function.name.name, "run");
        let names = find(address);
        let [function] = names.functions.as_slice() else { panic!("{names:?}") };
        let file = &names.modules[function.module];
        let payload = method_payload(7, function, file);
        let mut reader = Reader::new(&payload);
        let mut number = || reader.u64("number").unwrap();
        assert_eq!([number(), number(), number()], [address, file.range.start, address]);
        let mut number = || reader.u32("number").unwrap();
        assert!((1..4096).contains(&number()));
        assert_eq!([number(), number()], [0x0600_0007, 8]);
        let mut text = || reader.utf16z("text").unwrap().to_string();
        assert_eq!(
            [text(), text(), text()],
            ["runtap_events.samples.tests", "named_by_its_symbol", ""].map(str::to_owned)
        );
        let module = module_payload(file);
        let mut reader = Reader::new(&module);
        let ids = [reader.u64("module").unwrap(), reader.u64("assembly").unwrap()];
        assert_eq!(ids, [file.range.start; 2]);
        let flags = [reader.u32("flags").unwrap(), reader.u32("reserved").unwrap()];
        assert_eq!(flags, [8, 0]);
        let path = std::env::current_exe().unwrap();
        assert_eq!(reader.utf16z("path").unwrap().to_string(), path.to_string_lossy());
    }

    #[test]
    fn addresses_are_limited_and_forgotten() {
        let shared = Shared::default();
        *lock(&shared.addresses) = (1..=u64::try_from(MAX_ADDRESSES).unwrap() - 2).map(|n| n << 20).collect();
        shared.note(&mut [5, 6, 7, 5].into_iter());
        assert_eq!(lock(&shared.addresses).len(), MAX_ADDRESSES);
        assert_eq!(shared.left_out.load(Ordering::Relaxed), 1);
        shared.forget();
        assert_eq!((lock(&shared.addresses).len(), shared.left_out.load(Ordering::Relaxed)), (0, 0));
    }
}
