//! CPU samples of this process's threads, as the runtime's sample profiler writes them.
//!
//! ```no_run
//! use runtap_events::CpuSamples;
//!
//! let pipe = runtap_diag_server::EventPipe::new();
//! let samples = CpuSamples::start(&pipe)?;
//! // … sessions get samples until it is dropped.
//! # drop(samples);
//! # Ok::<(), runtap_events::SamplesError>(())
//! ```
//!
//! | event | of | contains |
//! | --- | --- | --- |
//! | 0 | `Microsoft-DotNETCore-SampleProfiler` | i32: 1 for a waiting thread, 2 for a running one; with the thread's stack |
//! | 144, version 1 | `Microsoft-Windows-DotNETRuntimeRundown` | a function on a sampled stack: address, size, path, name |
//! | 154, version 1 | `Microsoft-Windows-DotNETRuntimeRundown` | an executable or library with such functions |
//!
//! Threads are sampled only while a session records the first event. `runtap_unwind` takes the samples.

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
/// Keywords of the runtime's own rundown events: loader, and compiled methods.
const LOADER: u64 = 0x8;
const METHODS: u64 = 0x30;

/// Values of the sample's only field: the thread waits or runs foreign code; it runs the program's code.
const EXTERNAL: i32 = 1;
const MANAGED: i32 = 2;

/// The most distinct addresses that are named at the end of a session: some megabytes. A large program has about ten
/// thousand.
const MAX_ADDRESSES: usize = 1 << 18;

/// A sampler of this process's threads for the sessions that request samples. Stops when it is dropped.
#[derive(Debug)]
pub struct CpuSamples {
    sampler: Arc<Sampler>,
    shared: Arc<Shared>,
}

/// A builder of [`CpuSamples`]. See [`CpuSamples::builder`].
#[derive(Debug, Clone, Default)]
#[must_use]
pub struct CpuSamplesBuilder {
    options: Options,
    functions: Vec<(u64, String)>,
}

/// An error of starting CPU samples.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum SamplesError {
    /// An event cannot be defined.
    #[error("cannot define the events of CPU samples")]
    Define(#[from] DefineError),
    /// Threads cannot be sampled.
    #[error("cannot sample the threads of this process")]
    Sampler(#[from] StartError),
}

/// The state shared by sampling and rundown.
#[derive(Default)]
struct Shared {
    /// The addresses on stacks since a session has requested samples.
    addresses: Mutex<HashSet<u64>>,
    left_out: AtomicU64,
    /// Held while symbol tables are read, which takes time: only at the ends of sessions.
    namer: Mutex<Option<Namer>>,
}

impl CpuSamples {
    /// Starts sampling once per millisecond, as a runtime does.
    ///
    /// # Errors
    /// If a sampler exists already, or the system does not support sampling: see [`StartError`].
    pub fn start(pipe: &EventPipe) -> Result<Self, SamplesError> {
        Self::builder().start(pipe)
    }

    /// Returns a builder for other settings: period, stack size, signal.
    pub fn builder() -> CpuSamplesBuilder {
        CpuSamplesBuilder::default()
    }

    /// Returns statistics of the samples so far.
    pub fn statistics(&self) -> Statistics {
        self.sampler.statistics()
    }

    /// Returns the number of addresses that will have no name at the end of the running sessions, because there are too many.
    pub fn addresses_left_out(&self) -> u64 {
        self.shared.left_out.load(Ordering::Relaxed)
    }
}

impl CpuSamplesBuilder {
    /// Sets the time between two samples of all threads; at least 0.1 ms.
    pub fn period(mut self, period: Duration) -> Self {
        self.options.period = period;
        self
    }

    /// Sets how many bytes of a stack are copied, from its leaf: 4 KiB to 1 MiB, 64 KiB by default. Further callers are missing.
    pub fn stack_bytes(mut self, bytes: usize) -> Self {
        self.options.stack_bytes = bytes;
        self
    }

    /// Sets the signal for sampling running threads, if the program itself needs SIGURG.
    pub fn signal(mut self, signal: i32) -> Self {
        self.options.signal = signal;
        self
    }

    /// Names a function by its address (`function as *const () as u64`), for a binary without symbols. The name is written
    /// as in Rust: `my_crate::module::function`.
    pub fn function(mut self, address: u64, name: impl Into<String>) -> Self {
        self.functions.push((address, name.into()));
        self
    }

    /// Starts the sampling thread, which sleeps until a session requests samples.
    ///
    /// # Errors
    /// As for [`CpuSamples::start`].
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

        // The pipe keeps its watchers, so the watcher must not keep the sampler alive.
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

/// Makes every session end with the names of the functions, as in a runtime.
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
    /// Writes a sample, on the sampler's thread.
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

    /// Writes the names at the end of a session. Locks only the namer, so that samples and other sessions do not wait.
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

/// Returns the payload of version 1 of the event that ends with the method's names. The signature is empty: symbols lack it.
fn method_payload(number: u32, function: &Function, file: &ModuleFile) -> Vec<u8> {
    /// The table of method definitions in a metadata token.
    const DEFINITION: u32 = 0x0600_0000;
    /// The flag of a JIT-compiled method. For other methods tools look into the module's file.
    const JITTED: u32 = 8;
    let mut w = Writer::new();
    w.u64(function.start).u64(file.range.start).u64(function.start);
    w.u32(u32::try_from(function.size).unwrap_or(u32::MAX)).u32(DEFINITION | number).u32(JITTED);
    w.utf16z(&function.name.path).utf16z(&function.name.name).utf16z("").u16(0);
    w.into_bytes()
}

/// Returns the payload of version 1 of the event that names a module. The module is its own assembly.
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

    /// A sampler that is idle because no session requests samples, and the names it would write.
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
        // As during the rundown of a session.
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
