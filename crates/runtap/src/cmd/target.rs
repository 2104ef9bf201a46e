//! Selects the target processes from the options with [`runtap_target`], and runs a verb on each of them.

mod terminal;

use std::path::Path;

use runtap_record::Stops;
pub(super) use runtap_target::DotnetVerb;
use runtap_target::doctor::Finding;
use runtap_target::messages::{self, PICK_ONE, PICK_OR_ALL};
use runtap_target::{
    Error, Examined, ManagedTarget, PortSpec, ResolvedTarget, Role, SpecError, TargetArgs, TargetSpec, fixes,
    stuck_at_startup,
};
use runtap_text::Output;
use runtap_transport::remote::{RemoteAddress, Token};

use self::terminal::Terminal;
#[cfg(target_os = "linux")]
use super::failure::attach_error;
use super::failure::{explain, not_reached, print_process_error};
use super::interrupt::unless;
use crate::cli::{Target, TargetOptions};
use crate::exit::{self, expected, usage, with_message};

/// The environment variable with a router's token.
pub(super) const TOKEN: &str = "RUNTAP_TOKEN";

/// Exit codes above this mean that a signal stopped runtap.
const SIGNAL_CODE_BASE: u8 = 128;

/// Returns the target that the options specify.
///
/// # Errors
/// The options are invalid (exit code 2).
pub(super) fn target_spec(target: &Target) -> anyhow::Result<TargetSpec> {
    let TargetOptions { process_id, name, user, diagnostic_port, token_file } = &target.options;
    let token = token_for([diagnostic_port, &target.word], token_file.as_deref())?;
    let given = TargetArgs {
        pid: *process_id,
        name: name.as_deref(),
        user: user.as_deref(),
        port: diagnostic_port.as_deref(),
        word: target.word.as_deref(),
        token: token.as_ref(),
    };
    TargetSpec::parse(&given).map_err(|error| spec_error(&error))
}

/// Reads the token if one of the words is the address of a remote process.
///
/// # Errors
/// The token is invalid or unreadable (exit code 2).
pub(super) fn token_for(words: [&Option<String>; 2], file: Option<&Path>) -> anyhow::Result<Option<Token>> {
    if words.into_iter().flatten().any(|word| RemoteAddress::is_meant(word)) { token(file) } else { Ok(None) }
}

/// Reads the token from a file or, without a file, from the environment. `None` if there is no token.
///
/// # Errors
/// The token is invalid or unreadable (exit code 2).
pub(super) fn token(file: Option<&Path>) -> anyhow::Result<Option<Token>> {
    let token = match file {
        Some(file) => Token::from_file(file),
        None => match std::env::var_os(TOKEN) {
            Some(token) => Token::new(token.as_encoded_bytes()),
            None => return Ok(None),
        },
    };
    token.map(Some).map_err(|error| with_message(exit::USAGE, messages::token_error(&error)))
}

/// Finds the .NET process that the options specify.
///
/// # Errors
/// No target is specified (exit code 2), or the process does not exist, has no usable socket or is a Java program (exit code 3).
#[cfg_attr(not(unix), allow(dead_code, reason = "for verbs that are not there"))]
pub(super) async fn choose(
    target: &Target,
    verb: DotnetVerb,
    output: Output,
) -> anyhow::Result<ResolvedTarget> {
    or_message(target_spec(target)?.resolve(&Terminal(output)).await, Some(verb), PICK_ONE, output).await
}

/// Finds the .NET process that the options specify, or takes the port at which a runtime listens. `no_port` is the message for a
/// port to which runtimes connect.
///
/// # Errors
/// The errors of [`choose`].
pub(super) async fn connect_to_one(
    target: &Target,
    no_port: &str,
    verb: DotnetVerb,
    output: Output,
) -> anyhow::Result<ResolvedTarget> {
    match target_spec(target)? {
        TargetSpec::Port(PortSpec { role: Role::Listen, .. }) => Err(usage(no_port)),
        TargetSpec::Port(PortSpec { path, .. }) => Ok(ResolvedTarget::at_port(&path)),
        target => {
            let mut targets = resolve(&target, false, verb, output).await?;
            targets.pop().ok_or_else(|| usage("no process was selected"))
        }
    }
}

/// Finds the .NET processes that the options specify: several only with `--all` and a name, and of a single user.
///
/// # Errors
/// The errors of [`choose`].
pub(super) async fn choose_all(
    target: &Target,
    all: bool,
    verb: DotnetVerb,
    output: Output,
) -> anyhow::Result<Vec<ResolvedTarget>> {
    resolve(&target_spec(target)?, all, verb, output).await
}

/// Finds the .NET processes and Java programs that the options specify: several only with `--all` and a name, and of a single user.
///
/// # Errors
/// No target is specified (exit code 2), or the process does not exist or has no usable socket (exit code 3).
pub(super) async fn choose_managed(
    target: &Target,
    all: bool,
    output: Output,
) -> anyhow::Result<Vec<ManagedTarget>> {
    let (spec, terminal) = (target_spec(target)?, Terminal(output));
    let chosen = if all {
        spec.resolve_all_managed(&terminal).await
    } else {
        spec.resolve_managed(&terminal).await.map(|one| vec![one])
    };
    or_message(chosen, None, PICK_OR_ALL, output).await
}

/// Creates the error for an invalid target specification.
pub(super) fn spec_error(error: &SpecError) -> anyhow::Error {
    with_message(exit::USAGE, messages::spec_error(error))
}

/// Creates the error for a target that cannot be resolved. `several` is the next step if a name matches several processes.
pub(super) async fn target_error(error: Error, several: &str, output: Output) -> anyhow::Error {
    match error {
        Error::Stopped { pid, finding } => not_reached(pid, &finding),
        Error::Runtime(error) => explain(error),
        Error::Port(error) => error.into(),
        Error::Io(error) => error.into(),
        #[cfg(target_os = "linux")]
        Error::Attach(error) => attach_error(&error),
        error => {
            if let Error::NotFound(error) = &error {
                error.looked_at.iter().for_each(|step| output.detail(format_args!("Checked {step}")));
            }
            let is_usage = matches!(error, Error::NotSpecified | Error::NotInList { .. });
            let code = if is_usage { exit::USAGE } else { exit::NO_TARGET };
            with_message(code, messages::target_error(&error, several).await)
        }
    }
}

fn no_target() -> anyhow::Error {
    with_message(exit::USAGE, messages::no_target())
}

/// Adds the message to an error of a verb; `None` for verbs that support Java programs too.
async fn or_message<T>(
    found: Result<T, Error>,
    verb: Option<DotnetVerb>,
    several: &str,
    output: Output,
) -> anyhow::Result<T> {
    match (found, verb) {
        (Ok(found), _) => Ok(found),
        (Err(Error::Java(java)), Some(verb)) => {
            Err(with_message(exit::NO_TARGET, verb.message_for_java(&java).await))
        }
        (Err(error), _) => Err(target_error(error, several, output).await),
    }
}

/// Finds the .NET processes of a target specification.
///
/// # Errors
/// The errors of [`choose`].
pub(super) async fn resolve(
    spec: &TargetSpec,
    all: bool,
    verb: DotnetVerb,
    output: Output,
) -> anyhow::Result<Vec<ResolvedTarget>> {
    let terminal = Terminal(output);
    let chosen = if all {
        spec.resolve_all(&terminal).await
    } else {
        spec.resolve(&terminal).await.map(|one| vec![one])
    };
    or_message(chosen, Some(verb), PICK_OR_ALL, output).await
}

/// Examines the processes that the options specify, or all processes if the options specify none.
///
/// # Errors
/// The errors of [`choose`], but the processes need not respond.
pub(super) async fn examine(target: &Target, all: bool, output: Output) -> anyhow::Result<Examined> {
    or_message(target_spec(target)?.examine(all, &Terminal(output)).await, None, PICK_OR_ALL, output).await
}

/// Runs an action on each process in turn. With several processes, failures are printed, and the first failure determines the
/// exit code. For a process selected by name, its id and user are printed.
///
/// # Errors
/// The action failed on the only process, or was interrupted.
pub(super) async fn each(
    chosen: Vec<ResolvedTarget>,
    output: Output,
    act: impl AsyncFn(ResolvedTarget, Output) -> anyhow::Result<u8>,
) -> anyhow::Result<u8> {
    let (several, output) = (chosen.len() > 1, output.for_results(chosen.len()));
    let mut code = exit::OK;
    for chosen in chosen {
        let pid = chosen.process.as_ref().map(|process| process.pid);
        if let Some((name, process)) = chosen.chosen_name() {
            output.note(format_args!("'{name}' is process {} of user {}", process.pid, process.user));
        }
        let code_of_process = match act(chosen, output).await {
            Err(error)
                if several && !exit::is_broken_pipe(&error) && exit::code_of(&error) <= SIGNAL_CODE_BASE =>
            {
                print_process_error(pid, &error, output)
            }
            other => other?,
        };
        if code_of_process > SIGNAL_CODE_BASE {
            return Ok(code_of_process);
        }
        if code == exit::OK {
            code = code_of_process;
        }
    }
    Ok(code)
}

/// Rejects processes that are suspended at startup on a port without a listener: their sessions would be empty.
///
/// # Errors
/// A process is suspended in this way (exit code 4).
pub(super) async fn reject_stuck(chosen: &[ResolvedTarget], stops: &Stops) -> anyhow::Result<()> {
    match unless(stops, stuck_at_startup(chosen)).await? {
        Some((pid, finding)) => Err(stuck(pid, &finding)),
        None => Ok(()),
    }
}

/// Rejects a process that is suspended at startup, as [`reject_stuck`] does.
///
/// # Errors
/// The process is suspended in this way (exit code 4).
pub(super) async fn reject_suspended(chosen: &ResolvedTarget) -> anyhow::Result<()> {
    match stuck_at_startup(std::slice::from_ref(chosen)).await? {
        Some((pid, finding)) => Err(stuck(pid, &finding)),
        None => Ok(()),
    }
}

fn stuck(pid: u32, finding: &Finding) -> anyhow::Error {
    expected(exit::REFUSED, format!("process {pid} {}", finding.detail), fixes::text(&finding.fixes))
}

/// Rejects remote processes, for verbs that need the target's files or kernel.
///
/// # Errors
/// A process is on another machine (exit code 3).
pub(super) fn reject_remote(chosen: &[ResolvedTarget], why: &str) -> anyhow::Result<()> {
    match chosen.iter().find(|chosen| chosen.is_remote()) {
        Some(remote) => Err(with_message(exit::NO_TARGET, messages::remote_target(&remote.label(), why))),
        None => Ok(()),
    }
}

/// Separates the target from the arguments of a verb: the first word is the target unless an option selects it. `arguments`
/// describes the arguments that must follow.
///
/// # Errors
/// The target or the following arguments are missing (exit code 2).
pub(super) fn split_target<'a>(
    options: &TargetOptions,
    words: &'a [String],
    arguments: &str,
) -> anyhow::Result<(Target, &'a [String])> {
    let (word, rest) = match words {
        _ if options.any() => (None, words),
        [word, rest @ ..] if !rest.is_empty() => (Some(word.clone()), rest),
        // The only word looks like an argument, so the target is missing.
        [word]
            if arguments.contains('=') && word.contains('=')
                || arguments.contains('/') && word.contains('/') =>
        {
            return Err(no_target());
        }
        [word] => {
            return Err(usage(format!(
                "'{word}' is interpreted as the process, and nothing follows it: {arguments} is missing"
            )));
        }
        _ => return Err(no_target()),
    };
    Ok((Target { word, options: options.clone() }, rest))
}
