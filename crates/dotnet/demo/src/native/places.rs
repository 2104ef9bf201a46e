//! Samples the worker on systems where stacks can't be unwound from outside. The worker records which function it is in. A thread
//! reads that once per millisecond and writes it like a runtime's sample profiler. The addresses are those of the functions.
//!
//! | event | provider | contents |
//! | --- | --- | --- |
//! | 0 | `Microsoft-DotNETCore-SampleProfiler` | i32: 1 if the worker waits, 2 if it works; with its stack |
//! | 144, version 1 | `Microsoft-Windows-DotNETRuntimeRundown` | a function of the worker: address, size, path, name |

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU8, AtomicU64, Ordering};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use runtap_diag_server::{Event, EventData, EventPipe, Rundown, current_thread_id};
use runtap_nettrace::Metadata;
use runtap_wire::Writer;

use crate::Error;
use crate::work::{FUNCTIONS, Function, WorkerPosition};

const PROFILER: &str = "Microsoft-DotNETCore-SampleProfiler";
const RUNDOWN: &str = "Microsoft-Windows-DotNETRuntimeRundown";
/// The keywords of the runtime's method events: JIT and precompiled code.
const METHODS: u64 = 0x30;
const PERIOD: Duration = Duration::from_millis(1);
/// The values of the sample's only field.
const EXTERNAL: i32 = 1;
const MANAGED: i32 = 2;
/// The size of a function in the method events, unless another one starts within it.
const SIZE: u32 = 16;

/// The function and the thread id of the worker. 0 if it is not running.
static PLACE: AtomicU8 = AtomicU8::new(0);
static WORKER: AtomicU64 = AtomicU64::new(0);

/// Records the function of the worker.
pub(crate) fn at(place: WorkerPosition) {
    if place == WorkerPosition::Serving {
        WORKER.store(current_thread_id(), Ordering::Relaxed);
    }
    PLACE.store(place as u8, Ordering::Relaxed);
}

/// Samples the worker for sessions that have enabled it, until dropped.
pub(crate) fn samples(pipe: &EventPipe) -> Result<Samples, Error> {
    let define = |metadata| pipe.define(metadata).map_err(Error::define("the events of samples"));
    let sample = define(Metadata::new(PROFILER, 0, ""))?;
    let mut method = Metadata::new(RUNDOWN, 144, "");
    (method.version, method.keywords) = (1, METHODS);
    let method = define(method)?;
    pipe.on_rundown(move |rundown| explain(rundown, &method));
    Ok(Samples::start(sample)?)
}

/// The sampling thread.
#[derive(Debug)]
pub(crate) struct Samples {
    over: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl Samples {
    fn start(event: Event) -> io::Result<Self> {
        let over = Arc::new(AtomicBool::new(false));
        let told = Arc::clone(&over);
        let thread = thread::Builder::new().name("sampler".into()).spawn(move || {
            while !told.load(Ordering::Relaxed) {
                thread::sleep(PERIOD);
                if event.is_enabled() {
                    look(&event);
                }
            }
        })?;
        Ok(Self { over, thread: Some(thread) })
    }
}

impl Drop for Samples {
    fn drop(&mut self) {
        self.over.store(true, Ordering::Relaxed);
        if let Some(thread) = self.thread.take() {
            // The thread has no result and can't fail.
            let _ = thread.join();
        }
    }
}

fn look(event: &Event) {
    let worker = WORKER.load(Ordering::Relaxed);
    let Some(place) = WorkerPosition::of(PLACE.load(Ordering::Relaxed)).filter(|_| worker != 0) else {
        return;
    };
    let stack: Vec<u64> = place.functions().map(Function::address).collect();
    let kind = if place == WorkerPosition::Waiting { EXTERNAL } else { MANAGED };
    event.write(&EventData {
        thread_id: Some(worker),
        stack: &stack,
        payload: &kind.to_le_bytes(),
        ..EventData::default()
    });
}

/// Writes the names of the functions at the end of a session.
fn explain(rundown: &mut Rundown<'_>, method: &Event) {
    if rundown.keyword() & METHODS == 0 {
        return;
    }
    for (number, function) in (1..).zip(&FUNCTIONS) {
        rundown.write(method, &payload(number, function));
    }
}

/// Encodes version 1 of the event, which ends with the names of the method.
fn payload(number: u32, function: &Function) -> Vec<u8> {
    /// The kind of a method definition in a metadata token.
    const DEFINITION: u32 = 0x0600_0000;
    /// Jitted. Other methods are looked up by tools in the module's file.
    const JITTED: u32 = 8;
    let mut w = Writer::new();
    w.u64(function.address()).u64(1).u64(function.address());
    w.u32(SIZE).u32(DEFINITION | number).u32(JITTED);
    w.utf16z("runtap_demo.work").utf16z(function.name).utf16z("").u16(0);
    w.into_bytes()
}
