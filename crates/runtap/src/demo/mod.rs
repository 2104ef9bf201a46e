//! The built-in target: a small program that any .NET diagnostic tool can tap, in the same binary.
//!
//! It is no .NET program, but what it says is true: its threads really run the functions below, a sampler really
//! looks at them once a millisecond, and [`runtap_diag_server`] tells it in the real protocol over a real socket.
//!
//! ```text
//! thread demo-worker   main → serve → handle_request → hot_work            3 units of CPU a request
//!                                                    → warm_work → parse   1 unit
//!                           serve → wait_for_request                       a millisecond of rest
//! main thread          main → tick                                         four Tick events a second
//! ```
//!
//! * `work`: the functions. * `shadow`: how a thread tells where it is. * `sampler`: the stacks as events.
//! * `code`: the addresses that the functions pretend to have.

mod code;
mod sampler;
mod shadow;
mod work;

use std::io::Write;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use anyhow::Context;
use runtap_diag_server::{Builder, Event, EventPipe, Notice, ProcessDescription};
use runtap_nettrace::{Field, FieldType, Metadata};
use runtap_wire::Writer;
use tokio::signal::unix::{SignalKind, signal};
use tokio::time::{Instant, interval_at, sleep};

use self::code::Function;
use self::sampler::Sampler;
use self::shadow::ShadowStack;
use crate::output::Output;

/// What tools show as the program's name.
const NAME: &str = "demo";
const TICK_EVERY: Duration = Duration::from_millis(250);

/// Lives for `seconds`, or until SIGTERM or SIGINT, and says on `out` when it can be tapped and what it did: the lines
/// `pid N`, `ready`, `truth {"ticks":…,"requests":…,"logs":…,…}`, `done`. Logs are 0: it writes none. What there is to
/// say of its clients goes to `output`.
pub(crate) fn serve(seconds: Duration, out: &mut dyn Write, output: Output) -> anyhow::Result<()> {
    let pipe = EventPipe::new();
    let tick = pipe.define(tick_event()).context("the event Tick can't be defined")?;
    code::explain_addresses(&pipe).context("the rundown can't be defined")?;
    let sampler = Sampler::start(&pipe)?;
    let description = ProcessDescription::of_this_process().entry_assembly(NAME);
    let mut builder = Builder::new(description).pipe(pipe).on_notice(move |notice| match notice {
        Notice::Request { .. } => output.detail(notice),
        _ => output.warning(notice),
    });
    if let Some(ports) = std::env::var_os("DOTNET_DiagnosticPorts") {
        builder = builder.diagnostic_ports(&ports);
    }
    let server = builder.spawn().context("can't be made diagnosable")?;
    // As any .NET program: for a tool that was told to look at the start.
    server.wait_until_resumed();

    let stop = Arc::new(AtomicBool::new(false));
    let worker = work::start(sampler.register(), Arc::clone(&stop))?;
    say(out, &format!("pid {}\nready", std::process::id()))?;
    let ticks = tick_until_told(seconds, &tick, &sampler.register())?;
    stop.store(true, Ordering::Relaxed);
    let done = worker.join().map_err(|_panic| anyhow::anyhow!("the worker failed"))?;
    server.shut_down();
    drop(sampler);
    let truth = serde_json::json!({
        "ticks": ticks,
        "requests": done.requests,
        "logs": 0,
        "hot_units": done.hot_units,
        "warm_units": done.warm_units,
    });
    say(out, &format!("truth {truth}\ndone"))
}

/// A line at a time, as those who read them need it. Nobody may be reading: that is no reason to end.
fn say(out: &mut dyn Write, lines: &str) -> anyhow::Result<()> {
    match writeln!(out, "{lines}").and_then(|()| out.flush()) {
        Err(error) if error.kind() != std::io::ErrorKind::BrokenPipe => Err(error.into()),
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
fn tick_until_told(seconds: Duration, tick: &Event, stack: &ShadowStack) -> anyhow::Result<i32> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    runtime.block_on(async {
        let mut terminate = signal(SignalKind::terminate())?;
        let mut interrupt = signal(SignalKind::interrupt())?;
        let mut over = std::pin::pin!(sleep(seconds));
        let mut ticking = interval_at(Instant::now() + TICK_EVERY, TICK_EVERY);
        let _main = stack.enter(Function::Main);
        let mut n = 0;
        loop {
            stack.rest(true);
            tokio::select! {
                () = &mut over => break,
                _ = terminate.recv() => break,
                _ = interrupt.recv() => break,
                _ = ticking.tick() => {}
            }
            stack.rest(false);
            let _tick = stack.enter(Function::Tick);
            n += 1;
            let mut payload = Writer::new();
            payload.i32(n).utf16z(if n % 2 == 1 { "tick" } else { "tock" });
            tick.write_here(payload.as_bytes());
        }
        Ok(n)
    })
}
