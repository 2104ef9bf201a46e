//! Imitates a Java program with an agent, without a JVM: an invented shop, whose calls are sent in the real protocol over real
//! connections.
//!
//! * `shop`: the program, in which every call and its duration are fixed.
//! * `encoder`: the encoder for the selected version.
//! * `agent`: the connections.
//!
//! [`serve`] reports what was sent, so that a collector can be verified.

mod agent;
mod encoder;
mod shop;

use std::io::Write;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use crate::{Error, native, say};
pub use runtap_bytefrog_proto::Dialect;

/// Runs the shop for `lifetime`, or until SIGTERM, and sends its events to a collector at `hq`. Writes the lines `pid N`, `ready`,
/// `truth {…}` and `done` to `out`. The truth has the numbers of sent messages: `entries`, `exits`, `exceptions`, `bubbles`,
/// `markers`, `methods` {signature: calls}; and `untold`, the number of calls that were not sent.
///
/// # Errors
/// Returns an error if signals can't be handled, or the lines can't be written. A missing collector, or one that disconnects, is not
/// an error: the program continues untraced.
pub fn serve(hq: SocketAddr, dialect: Dialect, lifetime: Duration, out: &mut dyn Write) -> Result<(), Error> {
    let stop = Arc::new(AtomicBool::new(false));
    stop_on_signal(Arc::clone(&stop))?;
    say(out, &format!("pid {}\nready", std::process::id()))?;
    let truth = agent::run(hq, dialect, lifetime, &|| stop.load(Ordering::Relaxed));
    Ok(say(out, &format!("truth {}\ndone", truth.to_json()))?)
}

/// Stops on SIGTERM. Ctrl-C is left to the collector, which stops the agent.
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
