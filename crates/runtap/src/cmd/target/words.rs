//! Errors of the choice of a target: message, list, next step and exit code.

use runtap_os::is_root;
use runtap_target::{Error, MatchingProcess, RemoteError, SpecError};
use runtap_transport::remote::{HandshakeError, Refusal, RemoteAddress};

use crate::cmd::failure::{explain, not_reached};
use crate::cmd::fix;
use crate::exit::{self, expected, usage, with_list};
use crate::output::Output;

/// The maximum number of processes in a list, because users can start any number of them.
const MAX_LISTED: usize = 20;

/// The next step if a name matches several processes.
#[cfg_attr(not(unix), allow(dead_code, reason = "for verbs that are not there"))]
pub(super) const TAKE_ONE: &str = "choose one with -p";
/// The next step if a name matches several processes, for verbs with `--all`.
pub(super) const TAKE_ALL: &str = "choose one with -p, or take them all with --all";

/// Creates the error for an invalid target specification.
pub(in crate::cmd) fn spec_error(error: SpecError) -> anyhow::Error {
    let hint = "write a path, uds:PATH or file://PATH, with ',connect' or ',listen' behind it";
    let wrong = |port, what: &str| {
        expected(exit::USAGE, format!("--diagnostic-port '{port}': {what}"), hint.to_owned())
    };
    match error {
        SpecError::UserWithoutName => {
            usage("--user says whose process a name stands for: give the name with -n")
        }
        SpecError::Port { port, error } => wrong(port, &error.to_string()),
        SpecError::Pipe { port } => wrong(port, "a named pipe is of Windows; here a port is a socket"),
        SpecError::OtherAddress(_) => expected(
            exit::USAGE,
            error.to_string(),
            "a process behind the router of another machine is runtap://HOST:PORT or runtap://HOST:PORT/PID"
                .to_owned(),
        ),
        SpecError::NoToken(_) => expected(
            exit::USAGE,
            error.to_string(),
            "give the file of the token with --token-file, or the token itself in RUNTAP_TOKEN".to_owned(),
        ),
        error => usage(error.to_string()),
    }
}

/// Creates the error for a target that cannot be resolved. `several` is the next step if a name matches several processes.
pub(in crate::cmd) async fn target_error(error: Error, several: &str, output: Output) -> anyhow::Error {
    let no_target = |message: String, hint: &str| expected(exit::NO_TARGET, message, hint.to_owned());
    let message = error.to_string();
    match error {
        Error::NotFound(error) => {
            for step in &error.looked_at {
                output.detail(format_args!("looked at {step}"));
            }
            expected(exit::NO_TARGET, message, fix::text_after_checking_jvm(&[error.reason.fix()]).await)
        }
        Error::NoSocket(_) => expected(exit::NO_TARGET, message, None),
        Error::Stopped { pid, finding } => not_reached(pid, &finding),
        Error::UnknownUser(_) => {
            no_target(message, "a user that is not in /etc/passwd is given by number: --user UID")
        }
        Error::NoMatch { name, java, .. } if !java.is_empty() => {
            let message = format!("no .NET process is called '{name}'; Java programs of that name:");
            let hint = "trace one of them as a Java program: runtap jvm attach PID".to_owned();
            with_list(exit::NO_TARGET, message, rows(&java), hint)
        }
        Error::Environment { .. } => expected(exit::NO_TARGET, message, None),
        Error::NoMatch { name, user, silent, .. } => {
            let of = user.as_ref().map_or_else(String::new, |user| format!(" of user {user}"));
            let hint = match user {
                Some(_) => {
                    "'runtap ps --all-users' lists names and users; a user that /etc/passwd does not have is given by number"
                }
                None => "'runtap ps' lists the names; upper and lower case matter",
            };
            no_target(format!("no .NET or Java process{of} is called '{name}'{}", but(&silent)), hint)
        }
        Error::NoManagedMatch { silent, .. } => no_target(
            message + &but(&silent),
            "'runtap doctor' lists those that do; upper and lower case matter",
        ),
        Error::OtherUsersOnly { name, user, processes } => {
            let whose = user.map_or_else(|| "our user".to_owned(), |user| format!("user {user}"));
            let message =
                format!("no .NET or Java process of {whose} is called '{name}'; those of others are:");
            let hint = if is_root() {
                "take one with -p PID, or those of a user with --user NAME"
            } else {
                "only their users and root can reach them: run runtap as one of these; upper and lower case matter"
            };
            with_list(exit::NO_TARGET, message, rows(&processes), hint.to_owned())
        }
        Error::Ambiguous { name, processes } if RemoteAddress::is_meant(&name) => {
            let hint = "name one of them: runtap://HOST:PORT/PID";
            with_list(exit::NO_TARGET, message + ":", rows(&processes), hint.to_owned())
        }
        Error::Ambiguous { processes, .. } => {
            with_list(exit::NO_TARGET, message + ":", rows(&processes), several.to_owned())
        }
        Error::NotSpecified => self::no_target(),
        Error::NotOffered { .. } => no_target(message, "'runtap ps runtap://HOST:PORT' lists what it offers"),
        Error::Remote { source, .. } => expected(exit::NO_TARGET, message, remote_hint(&source)),
        Error::OnAnotherMachine(_) => no_target(message, "run this command on that machine"),
        Error::NoneRunning => no_target(message, "'runtap demo' has one built in"),
        Error::NotInList { answer, of } => usage(invalid_choice(&answer, of)),
        Error::Runtime(error) => explain(error),
        Error::Port(error) => error.into(),
        Error::Io(error) => error.into(),
        error => error.into(),
    }
}

/// Returns the next step after an error of a remote router, or `None` if unknown.
fn remote_hint(error: &RemoteError) -> Option<String> {
    let hint = match error {
        RemoteError::Handshake(
            HandshakeError::Refused(Refusal::Unauthenticated) | HandshakeError::Unproven,
        ) => {
            "both sides need the same token: compare the file here with that of 'runtap router listen' there"
        }
        RemoteError::Handshake(HandshakeError::Refused(Refusal::Elsewhere(_))) => {
            "a tunnel needs the same port number at both ends, or 'runtap router listen --public-address HOST:PORT' there \
             with the address that is used here; without a tunnel, somebody else listens at that address"
        }
        RemoteError::Handshake(HandshakeError::Malformed(_) | HandshakeError::Closed { .. }) => {
            "is that the port of a 'runtap router listen'? The other modes of the router have no such address"
        }
        RemoteError::Io(_) | RemoteError::TooSlow => {
            "is 'runtap router listen' running there, and is the port open?"
        }
        _ => return None,
    };
    Some(hint.to_owned())
}

pub(super) fn no_target() -> anyhow::Error {
    let hint =
        "give a process id or a name ('runtap ps' lists them), or 'runtap demo' for a built-in program";
    expected(exit::USAGE, "no target given", hint.to_owned())
}

/// Formats the message for an answer that selects no item of the list.
pub(super) fn invalid_choice(answer: &str, of: usize) -> String {
    format!("'{answer}' is not a number from 1 to {of}, or a process id of the list")
}

/// Formats the processes that may have the name but did not respond.
fn but(silent: &[u32]) -> String {
    if silent.is_empty() {
        return String::new();
    }
    let pids: Vec<String> = silent.iter().map(ToString::to_string).collect();
    format!("; not known, because they did not answer: {}", pids.join(", "))
}

fn rows(processes: &[MatchingProcess]) -> Vec<String> {
    let row = |MatchingProcess { pid, user, command_line }: &MatchingProcess| {
        format!("{pid:>8}  {user:<10}  {command_line}")
    };
    limited_list(processes, row, "          ")
}

/// Formats the first items and the number of the others; `lead` precedes that number.
pub(super) fn limited_list<T>(all: &[T], one: impl Fn(&T) -> String, lead: &str) -> Vec<String> {
    let more = all.len().checked_sub(MAX_LISTED).filter(|more| *more > 0);
    all.iter().take(MAX_LISTED).map(one).chain(more.map(|more| format!("{lead}and {more} more"))).collect()
}
