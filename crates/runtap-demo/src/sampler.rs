//! Looks at every registered thread once a millisecond and writes what it sees as the runtime's SampleProfiler does.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use runtap_diag_server::{Event, EventData, EventPipe};
use runtap_nettrace::Metadata;

use crate::Error;
use crate::shadow::{ShadowStack, Snapshot};

const PERIOD: Duration = Duration::from_millis(1);
/// How often it looks whether anybody listens, when nobody does.
const IDLE: Duration = Duration::from_millis(20);

/// Values of the event's only field.
const EXTERNAL: i32 = 1;
const MANAGED: i32 = 2;

type Stacks = Arc<Mutex<Vec<Arc<ShadowStack>>>>;

/// The sampling thread; ends when it is dropped.
pub(crate) struct Sampler {
    stacks: Stacks,
    stop: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl Sampler {
    /// Starts it. It samples only while a session asks for samples.
    pub(crate) fn start(pipe: &EventPipe) -> Result<Self, Error> {
        let event = pipe
            .define(Metadata::new("Microsoft-DotNETCore-SampleProfiler", 0, ""))
            .map_err(Error::define("the sample event"))?;
        let stacks = Stacks::default();
        let stop = Arc::new(AtomicBool::new(false));
        let (seen, told) = (Arc::clone(&stacks), Arc::clone(&stop));
        let run = move || {
            while !told.load(Ordering::Relaxed) {
                if event.is_enabled() {
                    sample(&event, &seen);
                    thread::sleep(PERIOD);
                } else {
                    thread::sleep(IDLE);
                }
            }
        };
        let thread = thread::Builder::new().name("demo-sampler".into()).spawn(run)?;
        Ok(Self { stacks, stop, thread: Some(thread) })
    }

    /// A stack that will be looked at from now on.
    pub(crate) fn register(&self) -> Arc<ShadowStack> {
        let stack = Arc::new(ShadowStack::default());
        self.stacks.lock().unwrap_or_else(PoisonError::into_inner).push(Arc::clone(&stack));
        stack
    }
}

impl Drop for Sampler {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        if let Some(thread) = self.thread.take() {
            // It has nothing to tell but that it ended.
            let _ = thread.join();
        }
    }
}

fn sample(event: &Event, stacks: &Stacks) {
    let snapshots: Vec<Snapshot> = stacks
        .lock()
        .unwrap_or_else(PoisonError::into_inner)
        .iter()
        .filter_map(|stack| stack.look())
        .collect();
    for snapshot in snapshots {
        let addresses: Vec<u64> = snapshot.leaf_first().map(crate::code::Function::address).collect();
        let kind = if snapshot.resting { EXTERNAL } else { MANAGED };
        event.write(&EventData {
            thread_id: Some(snapshot.thread),
            stack: &addresses,
            payload: &kind.to_le_bytes(),
            ..EventData::default()
        });
    }
}
