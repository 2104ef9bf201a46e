//! Takes the heap of a JVM over its attach protocol.

use std::io;
use std::pin::pin;
use std::sync::Arc;
use std::time::{Duration, Instant};

use runtap_convert::HeapFileFormat;
use runtap_convert::source::read_opened_heap;
use runtap_heap::ClassHistogram;
use runtap_jvm_attach::{AttachError, Client, HeapDumpFile, Jvm, Timeouts};
use runtap_os::in_a_thread;
use runtap_target::JvmTarget;
use tokio::time::{MissedTickBehavior, interval};

use super::{HeapError, HeapFile, HeapProcess, HeapSignal, TakenHeap, WrittenHeap};
use crate::Error;
use crate::stops::Stops;

/// Poll interval of the file's size.
const TICK: Duration = Duration::from_secs(1);

/// Connects to a JVM.
async fn attach(target: &JvmTarget) -> Result<Client, AttachError> {
    let (pid, start_time) = (target.pid(), target.process.start_time);
    let gone = move || AttachError::NoProcess { pid };
    let jvm = in_a_thread(move || Jvm::examine(pid)).await.map_err(|_no_thread| gone())??;
    // The id may belong to a later process.
    if jvm.start_time() != start_time {
        return Err(gone());
    }
    Client::attach(jvm, Timeouts::default()).await
}

/// Returns the sums by class of a JVM's heap, without the objects themselves.
///
/// # Errors
/// Returns an error if the JVM cannot be attached to, rejects the request, or replies in another format.
pub async fn class_histogram(target: &JvmTarget) -> Result<ClassHistogram, HeapError> {
    let text = attach(target).await?.inspect_heap().await?;
    ClassHistogram::parse(&text).map_err(HeapError::Histogram)
}

/// Has a JVM write its heap to a private file, which is copied to `file` if that is to have the format of JVMs, read if
/// `needs_graph` or another format requires the objects, and deleted.
pub(super) async fn take(
    target: &JvmTarget,
    process: HeapProcess,
    file: &mut Option<HeapFile>,
    needs_graph: bool,
    stops: &Stops,
    tell: &dyn Fn(HeapSignal),
) -> Result<TakenHeap, HeapError> {
    let started = Instant::now();
    let dump = tokio::select! {
        biased;
        dump = dump(target, tell) => Arc::new(dump?),
        () = stops.stopping() => return Err(HeapError::Interrupted),
    };
    let duration = started.elapsed();
    let copied = file.take_if(|file| file.format == HeapFileFormat::Hprof);
    let (reading, shown) = (Arc::clone(&dump), dump.path().to_owned());
    let needs_graph = needs_graph || file.is_some();
    let read = in_a_thread(move || {
        let written = copied.map(|file| copy(&reading, file)).transpose()?;
        let heap = if needs_graph { Some(read_opened_heap(reading.open()?, &shown)?) } else { None };
        Ok::<_, Error>(TakenHeap { process, heap, written, duration })
    });
    let taken = tokio::select! {
        biased;
        taken = read => taken.map_err(Error::from).flatten().map_err(HeapError::from),
        () = stops.stopping() => Err(HeapError::Interrupted),
    };
    // The thread of an interrupted step may outlast the program's other threads.
    dump.delete();
    taken
}

async fn dump(target: &JvmTarget, tell: &dyn Fn(HeapSignal)) -> Result<HeapDumpFile, AttachError> {
    let client = attach(target).await?;
    let file = HeapDumpFile::create(client.jvm()).await?;
    let mut tick = interval(TICK);
    tick.set_missed_tick_behavior(MissedTickBehavior::Delay);
    {
        let mut dumped = pin!(client.dump_heap(&file));
        loop {
            tokio::select! {
                dumped = &mut dumped => break dumped?,
                _ = tick.tick() => tell(HeapSignal::Progress { bytes: file.bytes() }),
            }
        }
    }
    Ok(file)
}

fn copy(dump: &HeapDumpFile, file: HeapFile) -> Result<WrittenHeap, Error> {
    let mut out = file.sink.begin()?;
    io::copy(&mut dump.open()?, &mut out).map_err(|error| out.failed(error))?;
    let (path, bytes) = out.finish()?;
    Ok(WrittenHeap { format: file.format, path, bytes })
}
