//! `runtap jvm attach`: loads the agent into a running program and unloads it at the end.

use runtap_jvm::agents::{TargetAgents, names_jdk_class};
use runtap_jvm_attach::{AgentOptions, Client};
use runtap_os::my_uid;
use runtap_record::Stops;
use runtap_text::Output;
use runtap_transport::remote::HostPort;

use super::{carried, collection, hq, program};
use crate::cli::{JvmAttach, JvmTracing, WhenSlow};
use crate::cmd::interrupt::unless;
use crate::exit::{self, expected, usage};

pub(super) async fn run(options: &JvmAttach, output: Output) -> anyhow::Result<u8> {
    hq::check(&options.tracing, TargetAgents::Runtap)?;
    // Installed first: an interruption at any later point still unloads the agent.
    let stops = Stops::listen()?;
    let carried = carried::unpack()?;
    let jvm = program::choose(&options.target).await?;
    let own_uid = my_uid();
    if let Some(hq) = &options.hq {
        let address = HostPort::parse(hq).map_err(|error| usage(format!("--hq: {error}")))?;
        let client = unless(&stops, program::attach(jvm)).await?;
        let agent_options = AgentOptions::connecting_to(address.host(), address.port());
        let agent_options = agent_options.for_user(own_uid, client.jvm());
        unless(&stops, program::load(&client, carried, &agent_options, output)).await?;
        let pid = client.jvm().pid();
        output.note(format_args!(
            "The agent in process {pid} connects to {hq}; 'runtap jvm detach {pid}' unloads it."
        ));
        return Ok(exit::OK);
    }
    if jvm.has_other_network() {
        let message = format!("process {} has its own network and cannot connect to runtap", jvm.pid());
        let hint = "Run 'runtap jvm hq --listen ADDR:PORT --insecure' with an address that the process can reach, and attach with --hq.";
        return Err(expected(exit::NO_TARGET, message, hint.to_owned()));
    }
    // Every local user can connect to the port, so restrict it to these users.
    let users = vec![own_uid, jvm.user()];
    // A live program must not wait for runtap, which may be stopped (Ctrl-Z) at any time.
    let when_slow = options.tracing.when_slow.or(Some(WhenSlow::Counts));
    let (tracing, shown) = (JvmTracing { when_slow, ..options.tracing.clone() }, options.shown.clone());
    let has_boot_classes = names_jdk_class(&tracing.include);
    let collection = collection(tracing, shown, options.duration, users, stops.clone(), output)?;
    let client = unless(&stops, program::attach(jvm)).await?;
    // An interruption ends the trace: the agent unloads itself when the collector is gone.
    let agent_options = AgentOptions::connecting_to_address(collection.address())
        .with_boot_classes(has_boot_classes)
        .for_user(own_uid, client.jvm());
    unless(&stops, program::load(&client, carried, &agent_options, output)).await?;
    let pid = client.jvm().pid();
    output.note(format_args!("Tracing process {pid}; Ctrl-C stops the trace and prints a report"));
    collection.log().await;
    let mut again = stops.listener();
    let left = tokio::select! {
        biased;
        () = collection.until(unload_agent(&client, output)) => true,
        _ = again.next() => false,
    };
    if !left {
        output.warning(format_args!(
            "not waiting any longer: the agent leaves process {pid} as soon as the process continues ('runtap jvm detach {pid}')"
        ));
    }
    collection.end(!left).await
}

/// Unloads the agent and restores the classes. No warning if the process has exited, because the agent is gone as well.
async fn unload_agent(client: &Client, output: Output) {
    let Err(error) = client.unload_agents(&carried::name()).await else { return };
    if !client.has_exited(&error).await {
        let pid = client.jvm().pid();
        output.warning(format_args!(
            "the agent is still in process {pid} ('runtap jvm detach {pid}'): {error}"
        ));
    }
}
