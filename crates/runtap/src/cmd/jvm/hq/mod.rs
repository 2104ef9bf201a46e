//! `runtap jvm hq`: a collector. It configures the agents that connect, prints their events, and at the end prints a report.

pub(super) mod collection;

use std::io::{self, IsTerminal as _};
use std::net::SocketAddr;

use runtap_bytefrog::hq::{UnknownUser, allowed_users};
use runtap_jvm::agents::{PatternRole, PatternsError, TargetAgents, check_patterns};
use runtap_os::allow_many_files;
use runtap_record::Stops;
use runtap_text::Output;

use self::collection::Collection;
use super::super::{address, block_on};
use super::control;
use crate::cli::{JvmHq, JvmTracing};
use crate::exit::usage;

pub(super) fn run(options: JvmHq, output: Output) -> anyhow::Result<u8> {
    if let (Some(command), Some(path)) = (&options.send, &options.control) {
        return block_on(control::send(path, command, output));
    }
    // Connections of other users must not exhaust the descriptors. Not for `jvm run`, whose command would inherit the limit.
    allow_many_files();
    Ok(collect_from(options, |_| Ok(()), output)?.0)
}

/// Runs the collector, calling `start` with its address as soon as it listens. Returns the exit code and the result of `start`.
pub(in crate::cmd) fn collect_from<T>(
    options: JvmHq,
    start: impl FnOnce(SocketAddr) -> anyhow::Result<T>,
    output: Output,
) -> anyhow::Result<(u8, T)> {
    block_on(async {
        check(&options.tracing, TargetAgents::Any)?;
        // Installed before listening: a client that sees the listener can already stop the collector by a signal.
        let stops = Stops::listen()?;
        let addresses = address::resolve("--listen", &options.listen, options.insecure, output).await?;
        let users = allowed_users(&options.allow_user, &addresses).map_err(|error| {
            let UnknownUser(name) = &error;
            usage(format!("--allow-user '{name}': {error}"))
        })?;
        let socket = options.control.clone();
        let collection = Collection::listen(options, &addresses, users, stops.clone(), output)?;
        let listener = socket.as_deref().map(control::bind).transpose()?;
        let controlled = listener
            .map(|listener| tokio::spawn(control::serve(listener, collection.collector.clone(), stops)));
        output.note(format_args!(
            "Waiting for agents: 'runtap jvm attach PID --hq {0}', or java -javaagent:bytefrog-tracer.jar={0} …; Ctrl-C stops the collection and prints a report",
            collection.address()
        ));
        let started = start(collection.address())?;
        collection.show().await?;
        let code = collection.end(false).await;
        if let Some(controlled) = controlled {
            // Dropping the server also removes the socket's file.
            controlled.abort();
            let _ = controlled.await;
        }
        Ok((code?, started))
    })
}

/// Returns whether there is a live view: both input and output are a terminal, and this program was built with one. On Windows,
/// reading single keys is not implemented.
pub(in crate::cmd) fn has_live_view(output: Output) -> bool {
    cfg!(all(unix, feature = "tui")) && output.is_seen() && output.progress() && io::stdin().is_terminal()
}

/// Checks the patterns of the classes to trace.
pub(super) fn check(tracing: &JvmTracing, agents: TargetAgents) -> anyhow::Result<()> {
    check_patterns(&tracing.include, &tracing.exclude, agents).map_err(|error| {
        // The error names only the pattern.
        let option = match &error {
            PatternsError::Invalid { role: PatternRole::Include, .. } => "--include",
            PatternsError::Invalid { role: PatternRole::Exclude, .. } => "--exclude",
            _ => "--include, --exclude",
        };
        usage(format!("{option}: {error}"))
    })
}
