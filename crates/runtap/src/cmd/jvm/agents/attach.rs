//! `runtap jvm attach`: loads the agent into a running program and unloads it at the end.

use std::time::Duration;

use runtap_jvm_attach::{AttachError, Client, Jvm};
use runtap_record::Stops;
use runtap_transport::remote::HostPort;
use tokio::time::{sleep, timeout};

use super::carried::{self, AgentLibrary};
use super::collection::Collection;
use super::patterns::{self, TargetAgents};
use super::program;
use crate::cli::{JvmAttach, JvmTracing, WhenSlow};
use crate::cmd::interrupt::unless;
use crate::exit::{self, expected, usage};
use crate::output::Output;

/// The time within which the process of a JVM that is shutting down must exit.
const EXIT_TIMEOUT: Duration = Duration::from_secs(2);
const POLL_INTERVAL: Duration = Duration::from_millis(20);

pub(super) async fn run(options: &JvmAttach, output: Output) -> anyhow::Result<u8> {
    patterns::check(&options.tracing, TargetAgents::Runtap)?;
    // Installed first: an interruption at any later point still unloads the agent.
    let stops = Stops::listen()?;
    let carried = AgentLibrary::unpack()?;
    let jvm = program::choose(&options.target).await?;
    if let Some(hq) = &options.hq {
        let address = HostPort::parse(hq).map_err(|error| usage(format!("--hq: {error}")))?;
        let agent_options = carried::options_for_host(address.host(), address.port());
        let client = unless(&stops, program::attach(jvm)).await?;
        let own_uid = rustix::process::geteuid().as_raw();
        let agent_options = carried::options_for_user(&agent_options, own_uid, client.jvm());
        unless(&stops, program::load(&client, carried, &agent_options, output)).await?;
        let pid = client.jvm().pid();
        output.note(format_args!(
            "the agent in process {pid} dials {hq}; 'runtap jvm detach {pid}' unloads it"
        ));
        return Ok(exit::OK);
    }
    if jvm.has_other_network() {
        let message = format!("process {} has a network of its own, from which it can't reach us", jvm.pid());
        let hint = "run 'runtap jvm hq --listen ADDR:PORT --insecure' at an address that it reaches, and attach with --hq";
        return Err(expected(exit::NO_TARGET, message, hint.to_owned()));
    }
    // Every local user can connect to the port, so restrict it to these users.
    let users = vec![rustix::process::geteuid().as_raw(), jvm.user()];
    // A live program must not wait for runtap, which may be stopped (Ctrl-Z) at any time.
    let when_slow = options.tracing.when_slow.or(Some(WhenSlow::Counts));
    let (tracing, shown) = (JvmTracing { when_slow, ..options.tracing.clone() }, options.shown.clone());
    let collection = Collection::start(&tracing, shown, options.duration, &users, stops.clone(), output)?;
    let client = unless(&stops, program::attach(jvm)).await?;
    // An interruption ends the trace: the agent unloads itself when the collector is gone.
    let own_uid = rustix::process::geteuid().as_raw();
    let boot = patterns::first_jdk_pattern(&tracing.include).is_some();
    let agent_options =
        carried::options_for_user(&carried::options(collection.address(), boot), own_uid, client.jvm());
    unless(&stops, program::load(&client, carried, &agent_options, output)).await?;
    let pid = client.jvm().pid();
    output.note(format_args!("process {pid} is traced; Ctrl-C ends with a report"));
    collection.collect(output).await;
    let mut again = stops.listener();
    let left = tokio::select! {
        biased;
        () = collection.until(unload_agent(&client, output), output) => true,
        _ = again.next() => false,
    };
    if !left {
        output.warning(format_args!(
            "not waited for: the agent leaves process {pid} as soon as that goes on ('runtap jvm detach {pid}')"
        ));
    }
    collection.end(!left, output).await
}

/// Unloads the agent and restores the classes. No warning if the process has exited, because the agent is gone as well.
async fn unload_agent(client: &Client, output: Output) {
    let Err(error) = program::unload(client).await else { return };
    if !has_ended(client.jvm(), &error).await {
        let pid = client.jvm().pid();
        output.warning(format_args!(
            "the agent is still in process {pid} ('runtap jvm detach {pid}'): {error}"
        ));
    }
}

/// Returns whether the JVM has exited. A JVM that shuts down closes its connections and rejects commands before its process
/// exits.
async fn has_ended(jvm: &Jvm, error: &AttachError) -> bool {
    match error {
        AttachError::NoProcess { .. } => true,
        AttachError::Stopped { .. } => false,
        _ => {
            let ended = async {
                while !jvm.has_ended() {
                    sleep(POLL_INTERVAL).await;
                }
            };
            timeout(EXIT_TIMEOUT, ended).await.is_ok()
        }
    }
}
