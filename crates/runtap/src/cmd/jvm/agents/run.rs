//! `runtap jvm run`: starts a command with the agent and prints a report when it exits.

use std::ffi::{OsStr, OsString};
use std::path::Path;

use runtap_jvm_attach::keep;
use runtap_record::{Command, Io, Launched, Stops};

use super::carried::{self, AgentLibrary};
use super::collection::Collection;
use super::loader;
use super::patterns::{self, TargetAgents};
use super::program::explain;
use crate::cli::JvmRun;
use crate::cmd::trace::{exit_code, ours};
use crate::exit;
use crate::output::Output;
use runtap_text::units::Things;

/// The variable with options for every JVM that is started with it. Such a JVM prints that it has picked them up.
const VARIABLE: &str = "JAVA_TOOL_OPTIONS";

pub(super) async fn run(options: JvmRun, output: Output) -> anyhow::Result<u8> {
    patterns::check(&options.tracing, TargetAgents::Runtap)?;
    let stops = Stops::listen()?;
    if let Some(java) = options.command.first().filter(|word| is_java(word)) {
        loader::check(java).map_err(ours)?;
    }
    let carried = AgentLibrary::unpack().map_err(ours)?;
    // JVMs of other users start with the agent but untraced: a command that changes its user no longer belongs to this user.
    let users = vec![rustix::process::geteuid().as_raw()];
    let collection = Collection::start(&options.tracing, options.shown, None, &users, stops.clone(), output);
    let collection = collection.map_err(ours)?;
    // Kept on disk: processes that the command leaves behind may start JVMs at any time, even after the trace.
    let library = keep(&carried.name, &carried.bytes).map_err(|error| ours(explain(error)))?;
    let boot = patterns::first_jdk_pattern(&options.tracing.include).is_some();
    let option = agent_option(&library, &carried::options_for_command(collection.address(), boot));
    let (words, variable) = with_agent(options.command, &option, std::env::var_os(VARIABLE).as_deref());
    let io = if output.json() { Io::ShownOnStderr } else { Io::Shown };
    let command = Command { words, io, kill: false };
    let uses_variable = variable.is_some();
    let launched = Launched::start_with(&command, variable.map(|value| (VARIABLE, value)));
    let mut launched = launched.map_err(|error| ours(explain_start_error(error)))?;
    if uses_variable {
        output.note(format_args!(
            "the agent is in {VARIABLE}, since the command is not 'java' itself: each JVM that it starts prints a line on that"
        ));
    }
    let status = collection.until(launched.ended(), output).await.map_err(|error| ours(error.into()))?;
    let command_code = exit_code(status);
    if !collection.has_agents() {
        match collection.refused_users() {
            0 => output
                .warning("no agent has connected: the command has started no JVM, or ended too early"),
            refused => output.warning(format_args!(
                "no agent has connected: the command has started no JVM, ended too early, or its JVMs belong to another user ({} of other users refused)",
                Things(refused, "connection")
            )),
        }
        return Ok(if command_code == exit::OK { exit::PARTIAL } else { command_code });
    }
    match collection.end(false, output).await {
        Err(error) if exit::is_broken_pipe(&error) => Ok(command_code),
        Err(error) => Err(ours(error)),
        Ok(code) if command_code == exit::OK => Ok(code),
        Ok(_) => Ok(command_code),
    }
}

/// Explains why a command could not be started. The system reports a file that is not executable as a missing permission.
fn explain_start_error(error: runtap_record::Error) -> anyhow::Error {
    use std::os::unix::fs::PermissionsExt as _;
    let runtap_record::Error::Command { program, error: cause } = &error else { return error.into() };
    let mode = std::fs::metadata(program).map(|found| (found.is_dir(), found.permissions().mode()));
    let why = match mode {
        Ok((true, _)) => "it is a directory",
        Ok((false, mode)) if mode & 0o111 == 0 => "it is no program: the file is not executable",
        _ => return error.into(),
    };
    if cause.kind() != std::io::ErrorKind::PermissionDenied {
        return error.into();
    }
    exit::expected(exit::FAILED, format!("can't start {program}: {why}"), None)
}

fn agent_option(library: &Path, options: &str) -> OsString {
    let mut option = OsString::from("-agentpath:");
    option.push(library);
    option.push("=");
    option.push(options);
    option
}

fn is_java(word: &OsStr) -> bool {
    Path::new(word).file_name().is_some_and(|name| name == "java")
}

/// Adds the agent's option to a command: after `java`, or else to the variable's value, which is returned.
fn with_agent(
    mut words: Vec<OsString>,
    option: &OsStr,
    variable: Option<&OsStr>,
) -> (Vec<OsString>, Option<OsString>) {
    if words.first().is_some_and(|word| is_java(word)) {
        words.insert(1, option.to_owned());
        return (words, None);
    }
    // The JVM splits the variable at blanks and quotes; neither the path nor the options contain any.
    let mut value = variable.filter(|value| !value.is_empty()).map(OsStr::to_owned).unwrap_or_default();
    if !value.is_empty() {
        value.push(" ");
    }
    value.push(option);
    (words, Some(value))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_agent_is_added_after_java_or_to_the_variable() {
        let option = agent_option(Path::new("/tmp/a.so"), "port=1");
        assert_eq!(option, "-agentpath:/tmp/a.so=port=1");
        let words = |text: &str| text.split(' ').map(OsString::from).collect::<Vec<_>>();
        let (found, variable) = with_agent(words("/opt/jdk/bin/java -jar x.jar"), "-a".as_ref(), None);
        assert_eq!((found, variable), (words("/opt/jdk/bin/java -a -jar x.jar"), None));
        for (before, after) in [(None, "-a"), (Some(""), "-a"), (Some("-Dx=1"), "-Dx=1 -a")] {
            let (found, variable) = with_agent(words("mvn java"), "-a".as_ref(), before.map(OsStr::new));
            assert_eq!((found, variable), (words("mvn java"), Some(after.into())));
        }
    }
}
