//! The Java program to attach to: selecting it, loading and unloading the agent, and presenting errors to users.

use runtap_discover::{Fix, Options, Process, ProcessKind, Reason, System};
use runtap_jvm_attach::codec::LoadError;
use runtap_jvm_attach::{AgentAnswer, AttachError, CLibrary, Client, Jvm, PlacedLibrary, Timeouts};
use runtap_os::in_a_thread;
use runtap_target::{local_name, name_of};

use super::carried::{self, AgentLibrary, NAME};
use crate::cli::JvmTarget;
use crate::cmd::fix;
use crate::exit::{self, expected, with_list};
use crate::output::Output;
use crate::units::parse_pid;

/// The first version of Java whose JVMs print a warning when an agent is loaded (JEP 451).
const FIRST_WARNING_VERSION: u32 = 21;
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
        check_library(&jvm)?;
        jvm.check_enabled()
    };
    let error = explain(in_a_thread(look).await.ok()?.err()?);
    Some(match exit::hint_of(&error) {
        Some(hint) => format!("{hint} ({error})"),
        None => error.to_string(),
    })
}

/// Checks that the agent can be loaded with the program's C library.
fn check_library(jvm: &Jvm) -> Result<(), AttachError> {
    match jvm.c_library() {
        CLibrary::Musl => Err(AttachError::Musl { pid: jvm.pid() }),
        _ => Ok(()),
    }
}

/// Returns the id of the only Java program of the current user that has this name.
async fn find_by_name(name: &str) -> anyhow::Result<u32> {
    let listed = in_a_thread(|| System::current().processes(Options::default())).await?;
    let own_uid = rustix::process::getuid().as_raw();
    let main = |process: &Process| process.java.as_ref().and_then(|java| java.main().map(str::to_owned));
    let is_meant = |process: &Process| {
        process.kind == ProcessKind::Jvm
            && process.uid == own_uid
            && main(process).is_some_and(|main| main == name)
    };
    // The performance data of a container that shares /tmp carries the container's process ids, which belong to other processes
    // here.
    let is_jvm =
        |process: &Process| matches!(Jvm::examine(process.pid), Ok(_) | Err(AttachError::OpenJ9 { .. }));
    let is_dotnet = |process: &&Process| {
        process.kind == ProcessKind::Dotnet && process.uid == own_uid && local_name(process) == name
    };
    let dotnet = listed.iter().find(is_dotnet).map(|process| process.pid);
    let found: Vec<Process> = listed.into_iter().filter(is_meant).filter(is_jvm).collect();
    match &found[..] {
        [one] => Ok(one.pid),
        [] => {
            let message = format!("no Java program of yours is called '{name}'");
            let hint = dotnet.map_or_else(|| LIST_HINT.to_owned(), instead_of_jvm);
            Err(expected(exit::NO_TARGET, message, hint))
        }
        several => {
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
    check_library(&jvm).map_err(explain)?;
    Client::attach(jvm, Timeouts::default()).await.map_err(explain)
}

/// Loads the agent, or passes new options to one that is already loaded.
///
/// # Errors
/// Fails if the agent does not start.
pub(super) async fn load(
    client: &Client,
    carried: AgentLibrary,
    options: &str,
    output: Output,
) -> anyhow::Result<()> {
    // Also checks that the JVM responds, before the longer time-out of loading applies.
    let version = java_version(client).await?;
    let answer = AgentAnswer::create(client.jvm()).await.map_err(explain)?;
    let options = carried::with_answer(options, answer.path());
    let refused = |error| refusal(error, client.jvm().pid(), answer.read());
    let loaded = client.loaded_libraries(&carried.name).map_err(explain)?;
    for path in loaded {
        match client.load(&path, &options).await {
            Ok(()) => return Ok(()),
            // The JVM tried to open the file again, which has been deleted.
            Err(AttachError::NotLoaded(LoadError::NotLoaded { .. })) => {}
            Err(error) => return Err(refused(error)),
        }
    }
    announce_jvm_warning(client, version, output);
    let placed = PlacedLibrary::write(client.jvm(), &carried.name, carried.bytes).await.map_err(explain)?;
    client.load(placed.path(), &options).await.map_err(refused)
}

/// Adds the reason that the agent reported.
fn refusal(error: AttachError, pid: u32, why: Option<String>) -> anyhow::Error {
    let (AttachError::NotLoaded(LoadError::Failed { .. }), Some(why)) = (&error, why) else {
        return explain(error);
    };
    let hint = if why.contains("traced already") {
        Some(format!("'runtap jvm detach {pid}' ends that trace"))
    } else if why.starts_with("HQ refuses") {
        Some("the collector has no place for it, or is another program: see what it says".to_owned())
    } else {
        None
    };
    expected(exit::REFUSED, format!("the agent in process {pid} does not start: {why}"), hint)
}

/// Returns the major version of Java; 0 if unknown.
async fn java_version(client: &Client) -> anyhow::Result<u32> {
    let properties = client.properties().await.map_err(explain)?;
    Ok(properties.get("java.specification.version").and_then(|version| version.parse().ok()).unwrap_or(0))
}

/// Announces the warning that the JVM is about to print, if any.
fn announce_jvm_warning(client: &Client, version: u32, output: Output) {
    if version >= FIRST_WARNING_VERSION && client.jvm().has_option("EnableDynamicAgentLoading") != Some(true)
    {
        output.note(format_args!(
            "process {} prints a warning that an agent was loaded (JEP 451); started with -XX:+EnableDynamicAgentLoading it does not",
            client.jvm().pid()
        ));
    }
}

/// Unloads all agents of runtap, of any build. Returns whether one of them was tracing.
///
/// # Errors
/// Fails if an agent cannot be unloaded.
pub(super) async fn unload(client: &Client) -> Result<bool, AttachError> {
    let loaded = client.loaded_libraries(NAME)?;
    let mut traced = false;
    for path in &loaded {
        // Agents of other builds may not support the answer file.
        let is_this_build = path.file_name().is_some_and(|name| name == carried::name().as_str());
        if !is_this_build {
            client.load(path, carried::DETACH).await?;
            traced = true;
            continue;
        }
        let answer = AgentAnswer::create(client.jvm()).await?;
        client.load(path, &carried::with_answer(carried::DETACH, answer.path())).await?;
        traced |= answer.read().is_none();
    }
    Ok(traced)
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
        AttachError::Stopped { .. } => Some("let it go on: kill -CONT PID".to_owned()),
        AttachError::Disabled { .. }
        | AttachError::ReadOnlyTemp { .. }
        | AttachError::NotLoaded(LoadError::Disabled) => Some(fix::text(&[Fix::TraceJvmFromStart])),
        _ => None,
    };
    expected(code, error.to_string(), hint)
}
