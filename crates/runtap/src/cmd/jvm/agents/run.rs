//! `runtap jvm run`: starts a command with the agent and prints a report when it exits.

use std::ffi::OsStr;

use runtap_discover::Fix;
use runtap_jvm::agents::{TargetAgents, names_jdk_class};
use runtap_jvm_attach::{AgentOptions, JAVA_TOOL_OPTIONS, built_for_musl, is_java, keep, with_agent};
use runtap_os::{exit_code, my_uid};
use runtap_record::{Command, Io, Launched, Stops};
use runtap_target::fixes;
use runtap_text::Output;
use runtap_text::units::Things;

use super::program::explain;
use super::{carried, collection, hq};
use crate::cli::JvmRun;
use crate::cmd::trace::ours;
use crate::exit;

pub(super) async fn run(options: JvmRun, output: Output) -> anyhow::Result<u8> {
    hq::check(&options.tracing, TargetAgents::Runtap)?;
    let stops = Stops::listen()?;
    if let Some(java) = options.command.first().filter(|word| is_java(word)) {
        check_c_library(java).map_err(ours)?;
    }
    let carried = carried::unpack().map_err(ours)?;
    // JVMs of other users start with the agent but untraced: a command that changes its user no longer belongs to this user.
    let has_boot_classes = names_jdk_class(&options.tracing.include);
    let collection = collection(options.tracing, options.shown, None, vec![my_uid()], stops.clone(), output);
    let collection = collection.map_err(ours)?;
    // Kept on disk: processes that the command leaves behind may start JVMs at any time, even after the trace.
    let library = keep(&carried.name, &carried.bytes).map_err(|error| ours(explain(error)))?;
    let agent_options = AgentOptions::connecting_to_address(collection.address())
        .with_boot_classes(has_boot_classes)
        .without_retry();
    let given = std::env::var_os(JAVA_TOOL_OPTIONS);
    let (words, variable) = with_agent(options.command, &library, &agent_options, given.as_deref());
    let io = if output.json() { Io::ShownOnStderr } else { Io::Shown };
    let command = Command { words, io, kill: false };
    let uses_variable = variable.is_some();
    let launched = Launched::start_with(&command, variable.map(|value| (JAVA_TOOL_OPTIONS, value)));
    let mut launched = launched.map_err(|error| ours(explain_start_error(error)))?;
    if uses_variable {
        output.note(format_args!(
            "The command is not 'java' itself, so {JAVA_TOOL_OPTIONS} loads the agent: each JVM that the command starts prints a line about this variable."
        ));
    }
    let status = collection.until(launched.ended()).await.map_err(|error| ours(error.into()))?;
    let command_code = exit_code(status).unwrap_or(u8::MAX);
    let watch = &collection.collector.watch;
    if watch.connected_agents() == 0 {
        match watch.rejected_users() {
            0 => output
                .warning("no agent has connected: the command started no JVM, or exited too early"),
            refused => output.warning(format_args!(
                "no agent has connected: the command started no JVM, exited too early, or its JVMs belong to another user (rejected {} of other users)",
                Things(refused, "connection")
            )),
        }
        return Ok(if command_code == exit::OK { exit::PARTIAL } else { command_code });
    }
    match collection.end(false).await {
        Err(error) if exit::is_broken_pipe(&error) => Ok(command_code),
        Err(error) => Err(ours(error)),
        Ok(code) if command_code == exit::OK => Ok(code),
        Ok(_) => Ok(command_code),
    }
}

/// Rejects a program that was built for musl: its JVM could not load the agent and would not start.
fn check_c_library(java: &OsStr) -> anyhow::Result<()> {
    let Some(path) = built_for_musl(java) else { return Ok(()) };
    let message = format!(
        "{} runs on musl (Alpine Linux), where a JVM cannot load the agent, because it is built for glibc",
        path.display()
    );
    Err(exit::expected(exit::REFUSED, message, fixes::text(&[Fix::OriginalAgent])))
}

/// Explains why a command could not be started. The system reports a file that is not executable as a missing permission.
fn explain_start_error(error: runtap_record::Error) -> anyhow::Error {
    use std::os::unix::fs::PermissionsExt as _;
    let runtap_record::Error::Command { program, error: cause } = &error else { return error.into() };
    let mode = std::fs::metadata(program).map(|found| (found.is_dir(), found.permissions().mode()));
    let why = match mode {
        Ok((true, _)) => "it is a directory",
        Ok((false, mode)) if mode & 0o111 == 0 => "the file is not executable",
        _ => return error.into(),
    };
    if cause.kind() != std::io::ErrorKind::PermissionDenied {
        return error.into();
    }
    exit::expected(exit::FAILED, format!("cannot start {program}: {why}"), None)
}
