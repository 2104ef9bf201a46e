//! The built-in target: a small program to which any .NET diagnostic tool can attach, without a .NET runtime.
//!
//! It is not a .NET program, but its data is real: its threads run the functions below, [`runtap_events`] samples them once per
//! millisecond (on Windows the worker reports its position, which is sampled), and [`runtap_diag_server`] serves the real protocol
//! on a real socket.
//!
//! ```text
//! thread demo-worker   serve → handle_request → hot_work            3 units of CPU time per request
//!                                             → warm_work → parse   1 unit
//!                            → wait_for_request                     sleeps for a millisecond
//! main thread          serve → tick_until_stopped → tick               four Tick events per second
//! ```
//!
//! * `work`: the functions of the worker.
//! * `telemetry`: its metrics and log messages.
//! * `child`: runs the program as a child process.
//! * [`jvm`]: an imitated Java program for collectors of Bytefrog.
//!
//! [`serve`] is the program; [`Program`] starts a command that calls it, and stops it.

mod child;
mod error;
pub mod jvm;
#[cfg_attr(unix, path = "native/unix.rs")]
#[cfg_attr(windows, path = "native/windows.rs")]
mod native;
mod telemetry;
mod work;

use std::io::{self, Write};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

pub use runtap_diag_server::Notice;
use runtap_diag_server::{Builder, Event, EventPipe, ProcessDescription};
use runtap_nettrace::{Field, FieldType, Metadata};
use runtap_wire::Writer;
use tokio::time::{Instant, interval_at, sleep};

pub use self::child::Program;
pub use self::error::Error;
use self::telemetry::Telemetry;

/// The name of the program in tools.
const NAME: &str = "demo";
const TICK_EVERY: Duration = Duration::from_millis(250);

/// Runs for `lifetime`, or until SIGTERM or SIGINT (on Windows Ctrl-C, Ctrl-Break or the end of standard input). Writes to `out`
/// when tools can attach, and what it did: the lines `pid N`, `ready`, `truth {"ticks":…,"requests":…,"logs":…,…}`, `done`. Notices
/// of the server about its clients are passed to `on_notice`, on the server's thread.
///
/// The meter `runtap.demo` has the counter `requests` and the histogram `latency` (in ms, one value per request). Every hundredth
/// request is logged with the category `Runtap.Demo`.
///
/// # Errors
/// Returns an error if the server can't be started, or the lines can't be written.
pub fn serve(
    lifetime: Duration,
    out: &mut dyn Write,
    on_notice: impl Fn(&Notice) + Send + Sync + 'static,
) -> Result<(), Error> {
    let pipe = EventPipe::new();
    let tick = pipe.define(tick_event()).map_err(Error::define("the event Tick"))?;
    let samples = native::samples(&pipe)?;
    let telemetry = Telemetry::new(&pipe)?;
    let description = ProcessDescription::of_this_process().entry_assembly(NAME);
    let mut builder = Builder::new(description).pipe(pipe).on_notice(on_notice);
    if let Some(ports) = std::env::var_os("DOTNET_DiagnosticPorts") {
        builder = builder.diagnostic_ports(&ports);
    }
    let server = builder.spawn().map_err(Error::Server)?;
    // As in any .NET program, a tool may record from startup.
    server.wait_until_resumed();

    let stop = Arc::new(AtomicBool::new(false));
    let worker = work::start(Arc::clone(&stop), telemetry.clone())?;
    let ready = || say(out, &format!("pid {}\nready", std::process::id()));
    let ticks = tick_until_stopped(lifetime, &tick, ready)?;
    stop.store(true, Ordering::Relaxed);
    let done = worker.join().map_err(|_panic| Error::Worker)?;
    server.shut_down();
    drop(samples);
    let truth = serde_json::json!({
        "ticks": ticks,
        "requests": done.requests,
        "logs": telemetry.logged(),
        "hot_units": done.hot_units,
        "warm_units": done.warm_units,
    });
    Ok(say(out, &format!("truth {truth}\ndone"))?)
}

/// Writes lines and flushes them. A missing reader is not an error.
fn say(out: &mut dyn Write, lines: &str) -> io::Result<()> {
    match writeln!(out, "{lines}").and_then(|()| out.flush()) {
        Err(error) if error.kind() != io::ErrorKind::BrokenPipe => Err(error),
        _ => Ok(()),
    }
}

fn tick_event() -> Metadata {
    let mut metadata = Metadata::new("Runtap-Demo", 1, "Tick");
    metadata.keywords = 1;
    metadata.fields = vec![Field::new("n", FieldType::I32), Field::new("text", FieldType::String)];
    metadata
}

/// The work of the main thread: ticks, counted from 1, until the time is over or a signal is received. Returns their number.
#[inline(never)]
fn tick_until_stopped(
    lifetime: Duration,
    event: &Event,
    ready: impl FnOnce() -> io::Result<()>,
) -> io::Result<i32> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    runtime.block_on(async {
        let mut told = std::pin::pin!(native::stop_requested()?);
        // The reader may send a signal at once.
        ready()?;
        let mut over = std::pin::pin!(sleep(lifetime));
        let mut ticking = interval_at(Instant::now() + TICK_EVERY, TICK_EVERY);
        let mut n = 0;
        loop {
            tokio::select! {
                () = &mut over => break,
                () = &mut told => break,
                _ = ticking.tick() => {}
            }
            n += 1;
            tick(event, n);
        }
        Ok(n)
    })
}

#[inline(never)]
fn tick(event: &Event, n: i32) {
    let mut payload = Writer::new();
    payload.i32(n).utf16z(if n % 2 == 1 { "tick" } else { "tock" });
    event.write_here(payload.as_bytes());
}
