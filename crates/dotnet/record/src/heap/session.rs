//! Takes the heap graph of a .NET process.
//!
//! A session with [`HEAP_KEYWORDS`] makes the runtime collect all generations while all threads are suspended, and describe
//! every object. The graph is built while the events arrive, and the session is stopped as soon as the description has
//! ended; the runtime then sends the names of modules. If the runtime has dropped events, the session is repeated once with
//! a larger buffer.
//!
//! A runtime sends each type once as long as any session has the keyword for types. A session of another provider in front
//! makes it send all of them again.

use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

use runtap_clr::{ArgumentModules, HEAP_KEYWORDS, HeapEvents};
use runtap_convert::source::{Heap, HeapFormat};
use runtap_diag::{Chunks, Client, Control, Level, Provider, Session, SessionConfig, Timeouts};
use runtap_heap::Incomplete;
use runtap_nettrace::{Observe as _, Reader};
use runtap_os::in_a_thread;
use runtap_target::{ResolvedTarget, is_suspended};
use tokio::sync::{Notify, oneshot};
use tokio::time::{MissedTickBehavior, interval, timeout};

use super::{HeapError, HeapProcess, HeapRequest, HeapSignal, TakenHeap};
use crate::Error;
use crate::stops::Stops;

/// The provider of the events.
const RUNTIME: &str = "Microsoft-Windows-DotNETRuntime";
/// The provider of the session in front.
const SAMPLER: &str = "Microsoft-DotNETCore-SampleProfiler";
/// The names of modules at the end: loader events when the session stops.
const MODULE_RUNDOWN: u64 = 0x108;
/// The buffer of the second session in MB, if the first one was smaller.
const LARGE_BUFFER_MB: u32 = 4096;
/// The time within which the runtime must end a session that is no longer needed.
const STOP_TIMEOUT: Duration = Duration::from_secs(2);
/// The time-out for the answer to the request for the session.
const REPLY_TIMEOUT: Duration = Duration::from_mins(5);
/// The longest time without any data from a runtime that has just been resumed, after which another session is tried.
const STARTUP_PATIENCE: Duration = Duration::from_secs(1);
/// Poll interval of the received bytes.
const TICK: Duration = Duration::from_secs(1);

/// The heap of a .NET process, with the names of the modules that define type arguments.
pub(super) struct DescribedHeap {
    pub(super) heap: Heap,
    pub(super) modules: ArgumentModules,
    pub(super) duration: Duration,
}

/// Takes the heap of a .NET process.
pub(super) async fn take(
    target: &ResolvedTarget,
    process: HeapProcess,
    request: HeapRequest,
    stops: &Stops,
    tell: &dyn Fn(HeapSignal),
) -> Result<TakenHeap, HeapError> {
    let DescribedHeap { heap, duration, .. } = describe(target, request, stops, tell).await?;
    Ok(TakenHeap { process, heap: Some(heap), written: None, duration })
}

/// Has a .NET process describe its heap.
pub(super) async fn describe(
    target: &ResolvedTarget,
    request: HeapRequest,
    stops: &Stops,
    tell: &dyn Fn(HeapSignal),
) -> Result<DescribedHeap, HeapError> {
    if let Some((pid, finding)) = target.stopped() {
        return Err(Error::NotReached { pid, finding }.into());
    }
    let started = Instant::now();
    // The runtime may answer the request for the session only when the collection is complete.
    let mut timeouts = Timeouts::default();
    timeouts.reply = REPLY_TIMEOUT;
    let client = target.client.clone().with_timeouts(timeouts);
    let is_starting = tokio::select! {
        biased;
        () = stops.stopping() => return Err(HeapError::Interrupted),
        is_starting = resume(target) => is_starting,
    };
    let patience = if is_starting { STARTUP_PATIENCE.min(request.patience) } else { request.patience };
    let (mut buffer_mb, mut is_first) = (request.buffer_mb, true);
    loop {
        resend_types(&client, stops).await?;
        let (heap, modules, described) = match run(&client, &config(buffer_mb), patience, stops, tell).await {
            // A runtime that has just been resumed ignores the request for a collection.
            Err(HeapError::NoHeap(_)) if is_starting && started.elapsed() < request.patience => continue,
            taken => taken?,
        };
        let has_loss =
            heap.lost > 0 || matches!(heap.graph.incomplete(), Some(Incomplete::LostEvents { .. }));
        if !has_loss || !is_first {
            let duration = described.saturating_duration_since(started);
            return Ok(DescribedHeap { heap, modules, duration });
        }
        is_first = false;
        buffer_mb = LARGE_BUFFER_MB.max(buffer_mb.saturating_mul(4));
        tell(HeapSignal::Again { buffer_mb });
    }
}

/// Resumes the runtime. Returns whether it was suspended at startup.
async fn resume(target: &ResolvedTarget) -> bool {
    let info = target.client.process_info().await;
    let is_starting = target
        .process
        .as_ref()
        .zip(info.as_ref().ok())
        .is_some_and(|(process, info)| is_suspended(process, info) == Some(true));
    // .NET Core 3 does not support the command, which has no effect on a running program.
    let _ = target.client.resume().await;
    is_starting
}

fn config(buffer_mb: u32) -> SessionConfig {
    let mut config = SessionConfig::new(vec![Provider::new(RUNTIME, HEAP_KEYWORDS, Level::Verbose)]);
    config.buffer_mb = buffer_mb;
    config.rundown_keyword = MODULE_RUNDOWN;
    config.stackwalk = false;
    config
}

/// Starts and ends a session of another provider.
async fn resend_types(client: &Client, stops: &Stops) -> Result<(), HeapError> {
    let mut config = SessionConfig::new(vec![Provider::new(SAMPLER, 0, Level::Informational)]);
    (config.rundown_keyword, config.stackwalk) = (0, false);
    let session = start(client, &config, stops).await?;
    let (control, mut chunks) = session.split();
    let ended = async {
        // The runtime writes what it has before it confirms the end.
        let drained = async { while let Ok(Some(_)) = chunks.next().await {} };
        let _ = tokio::join!(control.stop(), drained);
    };
    // If it does not end, the next session fails with the reason.
    let _ = timeout(STOP_TIMEOUT, ended).await;
    Ok(())
}

async fn start(client: &Client, config: &SessionConfig, stops: &Stops) -> Result<Session, HeapError> {
    let session = tokio::select! {
        biased;
        () = stops.stopping() => return Err(HeapError::Interrupted),
        session = client.start_session(config) => session,
    };
    match session {
        Ok(session) => Ok(session),
        // The process controls how long an examination takes.
        Err(error) => {
            let examined = in_a_thread(move || Error::of_runtime(error)).await;
            Err(examined.unwrap_or_else(Into::into).into())
        }
    }
}

/// What the thread has read.
struct Read {
    events: HeapEvents,
    lost: u64,
    described: Instant,
    error: Option<runtap_diag::Error>,
}

async fn run(
    client: &Client,
    config: &SessionConfig,
    patience: Duration,
    stops: &Stops,
    tell: &dyn Fn(HeapSignal),
) -> Result<(Heap, ArgumentModules, Instant), HeapError> {
    let session = start(client, config, stops).await?;
    let (control, chunks) = session.split();
    let described = Arc::new(Notify::new());
    let (tell_result, mut result) = oneshot::channel();
    let notify = Arc::clone(&described);
    let reading = move || {
        // The receiver is gone if the session was abandoned.
        let _ = tell_result.send(read(chunks, &notify));
    };
    thread::Builder::new().name("heap".into()).spawn(reading).map_err(Error::from)?;

    let mut control = Some(control);
    let (mut stopping, mut bytes, mut progress) = (None, 0, Instant::now());
    let mut tick = interval(TICK);
    tick.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let read = loop {
        tokio::select! {
            read = &mut result => break read,
            () = described.notified(), if stopping.is_none() => {
                stopping = control.as_ref().map(Control::stop);
            }
            _ = tick.tick() => {
                let Some(received) = control.as_ref().map(Control::received) else { continue };
                if received > bytes {
                    (bytes, progress) = (received, Instant::now());
                    tell(HeapSignal::Progress { bytes });
                } else if progress.elapsed() >= patience {
                    // Closing the connection ends the stream.
                    control = None;
                }
            }
            () = stops.stopping() => {
                if let Some(control) = control.take() {
                    let _ = timeout(STOP_TIMEOUT, control.stop()).await;
                }
                return Err(HeapError::Interrupted);
            }
        }
    };
    let has_waited = control.is_none();
    let Read { events, lost, described, error } = read.map_err(|_panic| HeapError::Ended)?;
    let Some((graph, modules)) = events.finish_with_modules() else {
        return Err(match error {
            Some(error) => Error::Runtime(error).into(),
            None if has_waited => HeapError::NoHeap(patience),
            None => HeapError::Ended,
        });
    };
    let heap = Heap { format: HeapFormat::Recording, graph, texts: None, lost, partial: None };
    Ok((heap, modules, described))
}

/// Reads the stream to its end, and notifies when the heap has been described.
fn read(chunks: Chunks, described: &Notify) -> Read {
    let (mut chunks, mut reader, mut events) = (chunks.direct(), Reader::new(), HeapEvents::new());
    let (mut at, mut error) = (None, None);
    loop {
        let chunk = match chunks.blocking_next() {
            Ok(Some(chunk)) => chunk,
            Ok(None) => break,
            Err(broken) => {
                error = Some(broken);
                break;
            }
        };
        feed(&mut reader, &mut events, &chunk);
        if at.is_none() && events.has_ended() {
            at = Some(Instant::now());
            described.notify_one();
        }
    }
    reader.finish();
    feed(&mut reader, &mut events, &[]);
    Read { events, lost: reader.lost(), described: at.unwrap_or_else(Instant::now), error }
}

fn feed(reader: &mut Reader, events: &mut HeapEvents, bytes: &[u8]) {
    let mut items = reader.items(bytes);
    // After a damaged block, reading continues.
    while items.for_each(|item| events.item(&item)).is_err() {}
}
