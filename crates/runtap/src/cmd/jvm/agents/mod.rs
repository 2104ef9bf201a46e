//! The subcommands that load the agent's library into a Java program.

mod attach;
mod carried;
mod detach;
mod library;
mod program;
mod run;

pub(in crate::cmd) use self::program::explain;

use std::net::{Ipv4Addr, SocketAddr};
use std::time::Duration;

use runtap_record::Stops;
use runtap_text::Output;

use super::hq::{self, collection::Collection};
use crate::cli::{JvmAgents, JvmHq, JvmShown, JvmTracing};
use crate::cmd::{at_once, block_on, on_processes};

pub(super) fn run(verb: JvmAgents, output: Output) -> anyhow::Result<u8> {
    match verb {
        JvmAgents::Run(options) => block_on(run::run(*options, output)),
        JvmAgents::Attach(options) => on_processes(attach::run(&options, output), output),
        JvmAgents::Agent(options) => library::run(&options, output),
        JvmAgents::Detach(options) => at_once(detach::run(&options, output), output),
    }
}

/// Listens on a free port of the loopback interface, for processes of these users.
///
/// # Errors
/// No port is available.
fn collection(
    tracing: JvmTracing,
    shown: JvmShown,
    duration: Option<Duration>,
    users: Vec<u32>,
    stops: Stops,
    output: Output,
) -> anyhow::Result<Collection> {
    let address = SocketAddr::from((Ipv4Addr::LOCALHOST, 0));
    let JvmShown { slow, limit, record, format } = shown;
    let listen = address.to_string();
    let common = JvmHq { once: true, plain: true, listen, ..JvmHq::default() };
    let options = JvmHq { tracing, duration, slow, limit, record, format, ..common };
    Collection::listen(options, &[address], Some(users), stops, output)
}
