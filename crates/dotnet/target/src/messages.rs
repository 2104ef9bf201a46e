//! Messages about the choice of a target: texts, lists and next steps, with the option names of the command line.

use runtap_model::Message;
use runtap_os::{is_root, shell};
use runtap_transport::Peer;
use runtap_transport::remote::{HandshakeError, Refusal, RemoteAddress, TokenError};

use crate::{Error, MatchingProcess, Remark, RemoteError, SpecError, fixes};

/// The maximum number of processes in a list, because users can start any number of them.
const MAX_LISTED: usize = 20;

const CASE_SENSITIVE: &str = "Names are case-sensitive; 'runtap ps' lists them.";
const TOKEN: &str = "Specify the token's file with --token-file, or the token itself in RUNTAP_TOKEN.";
/// The next step without a token.
pub const CREATE_TOKEN: &str = "Create one: (umask 077; head -c 32 /dev/urandom | base64 > FILE)";
const RUN_THERE: &str = "Run this command on that machine.";

/// The next step if a name matches several processes.
pub const PICK_ONE: &str = "Pick one with -p.";
/// The next step if a name matches several processes, for verbs with `--all`.
pub const PICK_OR_ALL: &str = "Pick one with -p, or use --all to select all of them.";

/// An error as it is presented to the user.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ErrorMessage {
    /// What happened.
    pub text: String,
    /// The items that the text refers to.
    pub list: Vec<String>,
    /// The next step. `None` if unknown.
    pub hint: Option<String>,
}

impl ErrorMessage {
    pub(crate) fn new(text: impl Into<String>, hint: impl Into<Option<String>>) -> Self {
        Self { text: text.into(), list: Vec::new(), hint: hint.into() }
    }
}

/// Parses a process id.
///
/// # Errors
/// Returns an error that names the option for what the text seems to be.
pub fn parse_pid(text: &str) -> Result<u32, String> {
    text.parse().map_err(|_no_number| {
        if RemoteAddress::is_meant(text) {
            return format!("'{text}' is not a process id; specify it as TARGET, or with --diagnostic-port");
        }
        format!("'{text}' is not a process id; use -n for a name")
    })
}

/// Returns the message for an invalid target specification.
pub fn spec_error(error: &SpecError) -> ErrorMessage {
    let hint = match error {
        SpecError::UserWithoutName => {
            let text = "--user selects whose process a name refers to; specify the name with -n";
            return ErrorMessage::new(text, None);
        }
        SpecError::Port { .. } | SpecError::Pipe { .. } => {
            "Use a path, uds:PATH or file://PATH, followed by ',connect' or ',listen'."
        }
        SpecError::OtherAddress(_) => {
            "A process behind the router of another machine is runtap://HOST:PORT or runtap://HOST:PORT/PID."
        }
        SpecError::NoToken(_) => TOKEN,
        _ => return ErrorMessage::new(error.to_string(), None),
    };
    let text = match error {
        SpecError::Port { port, error } => format!("--diagnostic-port '{port}': {error}"),
        SpecError::Pipe { port } => {
            format!("--diagnostic-port '{port}': named pipes exist only on Windows; here a port is a socket")
        }
        _ => error.to_string(),
    };
    ErrorMessage::new(text, hint.to_owned())
}

/// Returns the message for a target that cannot be resolved. `several` is the next step if a name matches several processes.
pub async fn target_error(error: &Error, several: &str) -> ErrorMessage {
    let text = error.to_string();
    let with_list = |text: String, processes: &[MatchingProcess], hint: &str| ErrorMessage {
        text,
        list: rows(processes),
        hint: Some(hint.to_owned()),
    };
    let hint = match error {
        Error::NotFound(error) => fixes::text_after_checking_jvm(&[error.reason.fix()]).await,
        Error::UnknownUser(_) => {
            "For a user that is not in /etc/passwd, use the number: --user UID".to_owned()
        }
        Error::NoMatch { name, java, .. } if !java.is_empty() => {
            let text = format!("no .NET process is named '{name}'; Java programs with that name:");
            return with_list(text, java, "Trace one of them as a Java program: runtap jvm attach PID");
        }
        Error::NoMatch { name, user, silent, .. } => {
            let of = user.as_ref().map_or_else(String::new, |user| format!(" of user {user}"));
            let hint = match user {
                Some(_) => {
                    "'runtap ps --all-users' lists names and users. For a user that is not in /etc/passwd, use the number."
                }
                None => CASE_SENSITIVE,
            };
            let text = format!("no .NET or Java process{of} is named '{name}'{}", no_response(silent));
            return ErrorMessage::new(text, hint.to_owned());
        }
        Error::NoManagedMatch { silent, .. } => {
            let hint = "Names are case-sensitive; 'runtap doctor' lists them.";
            return ErrorMessage::new(text + &no_response(silent), hint.to_owned());
        }
        Error::OtherUsersOnly { name, user, processes } => {
            let whose = user.as_ref().map_or_else(|| "your user".to_owned(), |user| format!("user {user}"));
            let text = format!(
                "no .NET or Java process of {whose} is named '{name}'; processes of other users with that name:"
            );
            let hint = if is_root() {
                "Pick one with -p PID, or select a user's processes with --user NAME."
            } else {
                "Only their users and root can reach them: run runtap as one of these users. Names are case-sensitive."
            };
            return with_list(text, processes, hint);
        }
        Error::Ambiguous { name, processes } => {
            let of_router = RemoteAddress::is_meant(name);
            let hint = if of_router { "Specify one of them: runtap://HOST:PORT/PID" } else { several };
            return with_list(text + ":", processes, hint);
        }
        Error::NotSpecified => return no_target(),
        Error::NotOffered { .. } => {
            "'runtap ps runtap://HOST:PORT' lists the processes that it offers.".to_owned()
        }
        Error::Remote { source, .. } => return ErrorMessage::new(text, remote_hint(source)),
        Error::OnAnotherMachine(_) => RUN_THERE.to_owned(),
        Error::NoneRunning => "Try 'runtap demo', which uses a built-in program.".to_owned(),
        Error::NotInList { answer, of } => return ErrorMessage::new(invalid_choice(answer, *of), None),
        _ => return ErrorMessage::new(text, None),
    };
    ErrorMessage::new(text, hint)
}

/// Returns the message for an invalid or unreadable token of a router.
pub fn token_error(error: &TokenError) -> ErrorMessage {
    let hint = match error {
        TokenError::Readable { path, .. } => format!("Run: chmod 600 {}", shell::word(path)),
        TokenError::Length { .. } => CREATE_TOKEN.to_owned(),
        _ => TOKEN.to_owned(),
    };
    ErrorMessage::new(format!("token: {error}"), hint)
}

/// Returns the next step after an error of a remote router, or `None` if unknown.
fn remote_hint(error: &RemoteError) -> Option<String> {
    let hint = match error {
        RemoteError::Handshake(
            HandshakeError::Refused(Refusal::Unauthenticated) | HandshakeError::Unproven,
        ) => {
            "Both sides need the same token: compare the file here with that of 'runtap router listen' there."
        }
        RemoteError::Handshake(HandshakeError::Refused(Refusal::Elsewhere(_))) => {
            "A tunnel needs the same port number at both ends, or 'runtap router listen --public-address HOST:PORT' there \
             with the address that is used here. Without a tunnel, another program listens at that address."
        }
        RemoteError::Handshake(HandshakeError::Malformed(_) | HandshakeError::Closed { .. }) => {
            "Check that this is the port of a 'runtap router listen'; other modes of the router have no such address."
        }
        RemoteError::Io(_) | RemoteError::TooSlow => {
            "Check that 'runtap router listen' is running there, and that the port is open."
        }
        _ => return None,
    };
    Some(hint.to_owned())
}

/// Returns the message for a missing target.
pub fn no_target() -> ErrorMessage {
    let hint = "Specify a process id or a name ('runtap ps' lists them), or try 'runtap demo', which uses a built-in program.";
    ErrorMessage::new("no target specified", hint.to_owned())
}

/// Returns the message for a process on another machine that a verb can't use.
pub fn remote_target(label: &str, why: &str) -> ErrorMessage {
    ErrorMessage::new(format!("{label} is on another machine: {why}"), RUN_THERE.to_owned())
}

/// The message for a list without processes.
pub const NONE_FOUND: &str =
    "No .NET or Java processes found. Try 'runtap demo', which uses a built-in program.";

/// Formats the number of processes of other users that are not listed.
pub fn skipped_users(count: usize) -> String {
    if count == 1 {
        "1 more process belongs to another user; use --all-users (or run as root) to list it.".to_owned()
    } else {
        format!(
            "{count} more processes belong to other users; use --all-users (or run as root) to list them."
        )
    }
}

/// Formats the message for an answer that selects no item of a list.
pub fn invalid_choice(answer: &str, of: usize) -> String {
    format!("'{answer}' is not a number from 1 to {of}, or a process id of the list")
}

/// Returns the message for a remark about the choice of a target. `None` for [`Remark::Listening`].
pub fn remark(remark: &Remark<'_>) -> Option<Message> {
    Some(match remark {
        Remark::Listening(_) => return None,
        Remark::Connecting { pid, endpoint } => {
            Message::Detail(format!("querying process {pid} on {endpoint}"))
        }
        Remark::Router { pid, path } => Message::Note(format!(
            "Process {pid} is a router. To query the program behind it, use --diagnostic-port {}.",
            shell::path(path)
        )),
        Remark::SkippedOtherUsers { name, processes } => {
            let list = limited_list(processes, |process| format!("{} ({})", process.pid, process.user), "");
            Message::Note(format!(
                "Skipped processes named '{name}' that belong to other users: {}. Use --user NAME to select them.",
                list.join(", ")
            ))
        }
        Remark::RejectedPeer(peer) => Message::Warning(format!(
            "{} connected and was disconnected: only a program of your own or of root is accepted here; still waiting",
            peer_name(*peer)
        )),
        Remark::NotInspected(processes) => Message::Warning(format!(
            "could not check whether {processes} processes are .NET: they, or other processes of their users, have more \
             memory mappings than runtap reads; 'runtap doctor PID' examines a single process"
        )),
    })
}

/// Describes the peer of a connection by the process id and user that the kernel reports.
pub fn peer_name(peer: Peer) -> String {
    match peer.pid {
        Some(pid) => format!("process {pid} of user {}", peer.uid),
        None => format!("a process of user {}", peer.uid),
    }
}

/// Formats the processes that may have the name but did not respond.
fn no_response(silent: &[u32]) -> String {
    if silent.is_empty() {
        return String::new();
    }
    let pids: Vec<String> = silent.iter().map(ToString::to_string).collect();
    format!("; names unknown, because these processes did not respond: {}", pids.join(", "))
}

fn rows(processes: &[MatchingProcess]) -> Vec<String> {
    let row = |MatchingProcess { pid, user, command_line }: &MatchingProcess| {
        format!("{pid:>8}  {user:<10}  {command_line}")
    };
    limited_list(processes, row, "          ")
}

/// Formats the first items and the number of the others; `lead` precedes that number.
fn limited_list<T>(all: &[T], one: impl Fn(&T) -> String, lead: &str) -> Vec<String> {
    let more = all.len().checked_sub(MAX_LISTED).filter(|more| *more > 0);
    all.iter().take(MAX_LISTED).map(one).chain(more.map(|more| format!("{lead}and {more} more"))).collect()
}
