//! The built-in target: a small program that any .NET diagnostic tool can tap, without a .NET runtime.
//!
//! It is no .NET program, but what it says is true: its threads really run the functions below, [`runtap_events`] samples
//! them once a millisecond (where it can: on Windows the worker says where it is, and that is sampled), and [`runtap_diag_server`] tells it in the real protocol over a real socket.
//!
//! ```text
//! thread demo-worker   serve → handle_request → hot_work            3 units of CPU a request
//!                                             → warm_work → parse   1 unit
//!                            → wait_for_request                     a millisecond of rest
//! main thread          serve → tick_until_told → tick               four Tick events a second
//! ```
//!
//! * `work`: the functions of the worker. * `telemetry`: its metrics and log messages. * `child`: the program in a process of its own. * [`jvm`]: a Java program without a
//!   JVM, for collectors of Bytefrog.
//!
//! [`serve`] is the program; [`Program`] starts a command that calls it, and ends it. Refuses to know the command line, and
//! how it is recorded.

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

/// What tools show as the program's name.
const NAME: &str = "demo";
const TICK_EVERY: Duration = Duration::from_millis(250);

/// Lives for `lifetime`, or until SIGTERM or SIGINT (on Windows Ctrl-C, Ctrl-Break or the end of standard input), and says on `out` when it can be tapped and what it did: the lines
/// `pid N`, `ready`, `truth {"ticks":…,"requests":…,"logs":…,…}`, `done`. What the server reports about its clients goes to
/// `on_notice`, on the server's thread.
///
/// The meter `runtap.demo` has the counter `requests` and the histogram `latency` (in ms, one value a request); every
/// hundredth request is logged under the category `Runtap.Demo`.
///
/// # Errors
/// It can't be made diagnosable, or can't write its lines.
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
    // As any .NET program: for a tool that was told to look at the start.
    server.wait_until_resumed();

    let stop = Arc::new(AtomicBool::new(false));
    let worker = work::start(Arc::clone(&stop), telemetry.clone())?;
    let ready = || say(out, &format!("pid {}\nready", std::process::id()));
    let ticks = tick_until_told(lifetime, &tick, ready)?;
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

/// A line at a time, as those who read them need it. Nobody may be reading: that is no reason to end.
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

/// The main thread's work: ticks, counted from 1, until the time is over or a signal comes. Returns their number.
#[inline(never)]
fn tick_until_told(
    lifetime: Duration,
    event: &Event,
    ready: impl FnOnce() -> io::Result<()>,
) -> io::Result<i32> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    runtime.block_on(async {
        let mut told = std::pin::pin!(native::told_to_end()?);
        // Who reads it may tell it at once.
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
