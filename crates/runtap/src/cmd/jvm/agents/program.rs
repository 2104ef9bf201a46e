//! The Java program to attach to: selecting it, loading the agent, and presenting errors to users.

use runtap_discover::{Fix, Process, Reason, System};
use runtap_jvm_attach::codec::LoadError;
use runtap_jvm_attach::{AgentLibrary, AgentOptions, AttachError, Client, Jvm, Timeouts};
use runtap_os::in_a_thread;
use runtap_target::java::{self, JavaNameError};
use runtap_target::name_of;

use crate::cli::JvmTarget;
use crate::cmd::fix;
use crate::exit::{self, expected, with_list};
use crate::output::Output;
use crate::units::parse_pid;

const LIST_HINT: &str = "'runtap ps' lists Java programs; --process-id chooses one";

/// Returns the program that the target selects.
///
/// # Errors
/// Fails if no program or more than one matches, or if the program does not run a supported JVM.
pub(super) async fn choose(target: &JvmTarget) -> anyhow::Result<Jvm> {
    let word = target.word.as_deref();
    let by_word = word.and_then(|word| parse_pid(word).ok());
    let pid = match (target.process_id.or(by_word), target.name.as_deref().or(word)) {
        (Some(pid), _) => pid,
        (None, Some(name)) => find_by_name(name).await?,
        (None, None) => return Err(exit::usage("which process: its id or its name is missing")),
    };
    in_a_thread(move || Jvm::examine(pid).map_err(explain)).await?
}

/// Returns advice for a Java program that can't be attached to, in the words of `attach`; `None` if no obstacle is known.
pub(in crate::cmd) async fn instead_of_attaching(pid: u32) -> Option<String> {
    let look = move || {
        let jvm = Jvm::examine(pid)?;
        jvm.check_c_library()?;
        jvm.check_enabled()
    };
    let error = explain(in_a_thread(look).await.ok()?.err()?);
    Some(match exit::hint_of(&error) {
        Some(hint) => format!("{hint} ({error})"),
        None => error.to_string(),
    })
}

/// Returns the id of the only Java program of the current user that has this name.
async fn find_by_name(name: &str) -> anyhow::Result<u32> {
    let owned = name.to_owned();
    match in_a_thread(move || java::find_by_name(&owned)).await? {
        Ok(pid) => Ok(pid),
        Err(JavaNameError::NotFound { dotnet }) => {
            let message = format!("no Java program of yours is called '{name}'");
            let hint = dotnet.map_or_else(|| LIST_HINT.to_owned(), instead_of_jvm);
            Err(expected(exit::NO_TARGET, message, hint))
        }
        Err(JavaNameError::Ambiguous(several)) => {
            let line = |process: &Process| format!("{}  {}", process.pid, process.command_line.join(" "));
            let list = several.iter().map(line).collect();
            let message = format!("several Java programs are called '{name}'");
            Err(with_list(exit::NO_TARGET, message, list, LIST_HINT.to_owned()))
        }
    }
}

/// Makes the JVM start its attach listener.
///
/// # Errors
/// Fails if the JVM does not respond.
pub(super) async fn attach(jvm: Jvm) -> anyhow::Result<Client> {
    jvm.check_c_library().map_err(explain)?;
    Client::attach(jvm, Timeouts::default()).await.map_err(explain)
}

/// Loads the agent, or passes new options to one that is already loaded.
///
/// # Errors
/// Fails if the agent does not start.
pub(super) async fn load(
    client: &Client,
    library: AgentLibrary,
    options: &AgentOptions,
    output: Output,
) -> anyhow::Result<()> {
    let warns = || {
        output.note(format_args!(
            "process {} prints a warning that an agent was loaded (JEP 451); started with -XX:+EnableDynamicAgentLoading it does not",
            client.jvm().pid()
        ));
    };
    client.load_agent(library, options, warns).await.map_err(explain)
}

/// Returns advice for a process that is a .NET program.
fn instead_of_jvm(pid: u32) -> String {
    format!("to record process {pid}, a .NET program: runtap trace -p {pid}")
}

/// Creates the error for a process without a JVM that can be attached to.
fn not_a_jvm(pid: u32) -> anyhow::Error {
    let facts = System::current().facts(pid);
    if facts.is_dotnet() {
        let name = name_of(&facts.command_line, &facts.comm);
        let message =
            format!("process {pid} ({name}) is a .NET program; 'runtap jvm attach' traces Java programs");
        return expected(exit::NO_TARGET, message, instead_of_jvm(pid));
    }
    let message = format!("process {pid} {}", Reason::NotDotnet);
    expected(exit::NO_TARGET, message, "'runtap ps' lists .NET and Java programs".to_owned())
}

/// Adds an exit code and a hint to an error.
#[expect(clippy::needless_pass_by_value, reason = "it stands in map_err")]
pub(super) fn explain(error: AttachError) -> anyhow::Error {
    let code = match &error {
        AttachError::NoProcess { .. }
        | AttachError::NotPermitted { .. }
        | AttachError::Protected { .. }
        | AttachError::NotAJvm { .. }
        | AttachError::OpenJ9 { .. }
        | AttachError::Stopped { .. }
        | AttachError::SignalNotHandled { .. }
        | AttachError::NotListening { .. }
        | AttachError::Connect { .. } => exit::NO_TARGET,
        AttachError::Musl { .. }
        | AttachError::ReadOnlyTemp { .. }
        | AttachError::Disabled { .. }
        | AttachError::NotLoaded(_)
        | AttachError::AgentRefused { .. }
        | AttachError::Rejected { .. } => exit::REFUSED,
        _ => exit::FAILED,
    };
    let hint = match &error {
        AttachError::NotPermitted { pid, .. } | AttachError::Protected { pid } => {
            let reason = Reason::hidden(&System::current().facts(*pid));
            return expected(code, format!("process {pid} {reason}"), fix::text(&[reason.fix()]));
        }
        AttachError::NotAJvm { pid } => return not_a_jvm(*pid),
        AttachError::NoProcess { .. } => Some("'runtap ps' lists Java programs".to_owned()),
        AttachError::OpenJ9 { .. } | AttachError::Musl { .. } => Some(fix::text(&[Fix::OriginalAgent])),
        AttachError::AgentRefused { pid, why } if why.contains("traced already") => {
            Some(format!("'runtap jvm detach {pid}' ends that trace"))
        }
        AttachError::AgentRefused { why, .. } if why.starts_with("HQ refuses") => {
            Some("the collector has no place for it, or is another program: see what it says".to_owned())
        }
        AttachError::Stopped { .. } => Some("let it go on: kill -CONT PID".to_owned()),
        AttachError::Disabled { .. }
        | AttachError::ReadOnlyTemp { .. }
        | AttachError::NotLoaded(LoadError::Disabled) => Some(fix::text(&[Fix::TraceJvmFromStart])),
        _ => None,
    };
    expected(code, error.to_string(), hint)
}
