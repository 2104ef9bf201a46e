//! Samples of the worker where no stack can be unwound from outside: the worker says in which function it is, and a thread
//! looks at that once a millisecond, and writes it as a runtime's sample profiler does. The addresses are those of the
//! functions.
//!
//! | event | of | contains |
//! | --- | --- | --- |
//! | 0 | `Microsoft-DotNETCore-SampleProfiler` | i32: 1 while the worker waits, 2 while it works; with its stack |
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
use crate::work::{FUNCTIONS, Function, Place};

const PROFILER: &str = "Microsoft-DotNETCore-SampleProfiler";
const RUNDOWN: &str = "Microsoft-Windows-DotNETRuntimeRundown";
/// The keywords of the runtime's own events for methods: JIT and precompiled code.
const METHODS: u64 = 0x30;
const PERIOD: Duration = Duration::from_millis(1);
/// Values of the sample's only field.
const EXTERNAL: i32 = 1;
const MANAGED: i32 = 2;
/// What a function counts as, as long as no other begins in it.
const SIZE: u32 = 16;

/// Where the worker is, and which thread it is; 0 as long as there is none.
static PLACE: AtomicU8 = AtomicU8::new(0);
static WORKER: AtomicU64 = AtomicU64::new(0);

/// The worker is somewhere else.
pub(crate) fn at(place: Place) {
    if place == Place::Serving {
        WORKER.store(current_thread_id(), Ordering::Relaxed);
    }
    PLACE.store(place as u8, Ordering::Relaxed);
}

/// Samples the worker for the sessions that want it, until it is dropped.
pub(crate) fn samples(pipe: &EventPipe) -> Result<Samples, Error> {
    let define = |metadata| pipe.define(metadata).map_err(Error::define("the events of samples"));
    let sample = define(Metadata::new(PROFILER, 0, ""))?;
    let mut method = Metadata::new(RUNDOWN, 144, "");
    (method.version, method.keywords) = (1, METHODS);
    let method = define(method)?;
    pipe.on_rundown(move |rundown| explain(rundown, &method));
    Ok(Samples::start(sample)?)
}

/// The thread that looks.
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
            // It has nothing to tell, and nothing to fail at.
            let _ = thread.join();
        }
    }
}

fn look(event: &Event) {
    let worker = WORKER.load(Ordering::Relaxed);
    let Some(place) = Place::of(PLACE.load(Ordering::Relaxed)).filter(|_| worker != 0) else { return };
    let stack: Vec<u64> = place.functions().map(Function::address).collect();
    let kind = if place == Place::Waiting { EXTERNAL } else { MANAGED };
    event.write(&EventData {
        thread_id: Some(worker),
        stack: &stack,
        payload: &kind.to_le_bytes(),
        ..EventData::default()
    });
}

/// Names the functions at the end of a session.
fn explain(rundown: &mut Rundown<'_>, method: &Event) {
    if rundown.keyword() & METHODS == 0 {
        return;
    }
    for (number, function) in (1..).zip(&FUNCTIONS) {
        rundown.write(method, &payload(number, function));
    }
}

/// Version 1 of the event that ends with the method's names.
fn payload(number: u32, function: &Function) -> Vec<u8> {
    /// The kind of a method definition in a metadata token.
    const DEFINITION: u32 = 0x0600_0000;
    /// Jitted: what is not, tools look up in the module's file.
    const JITTED: u32 = 8;
    let mut w = Writer::new();
    w.u64(function.address()).u64(1).u64(function.address());
    w.u32(SIZE).u32(DEFINITION | number).u32(JITTED);
    w.utf16z("runtap_demo.work").utf16z(function.name).utf16z("").u16(0);
    w.into_bytes()
}
