//! A Java program without a JVM: a made-up shop, whose calls a real agent's connections tell in the real protocol.
//!
//! * `shop`: what the program does; every call and what it costs is fixed by construction. * `teller`: the bytes for it, in
//!   the version that was asked for. * `agent`: the connections.
//!
//! [`serve`] says what was told, so that whoever collects it can be checked.

mod agent;
mod shop;
mod teller;

use std::io::Write;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use crate::{Error, native, say};
pub use runtap_bytefrog_proto::Dialect;

/// Runs the shop for `lifetime`, or until SIGTERM, and tells a collector at `hq` about it. Says on `out` the lines `pid N`,
/// `ready`, `truth {…}` and `done`. The truth has what was told: `entries`, `exits`, `exceptions`, `bubbles`, `markers`,
/// `methods` {signature: calls}; and `untold`, calls that nobody wanted to hear of.
///
/// # Errors
/// It can't listen to signals, or can't write its lines. A collector that is not there, or goes away, is no error: the
/// program goes on untraced.
pub fn serve(hq: SocketAddr, dialect: Dialect, lifetime: Duration, out: &mut dyn Write) -> Result<(), Error> {
    let stop = Arc::new(AtomicBool::new(false));
    stop_on_signal(Arc::clone(&stop))?;
    say(out, &format!("pid {}\nready", std::process::id()))?;
    let truth = agent::run(hq, dialect, lifetime, &|| stop.load(Ordering::Relaxed));
    Ok(say(out, &format!("truth {}\ndone", truth.to_json()))?)
}

/// Ends on SIGTERM. Ctrl-C is meant for whoever collects, and tells the agent to stop.
fn stop_on_signal(stop: Arc<AtomicBool>) -> Result<(), Error> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let entered = runtime.enter();
    let terminated = native::terminated()?;
    drop(entered);
    std::thread::Builder::new().name("demo-signals".into()).spawn(move || {
        runtime.block_on(terminated);
        stop.store(true, Ordering::Relaxed);
    })?;
    Ok(())
}
