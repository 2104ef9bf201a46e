//! A Java program that is attached to: which one is meant, what it was told by its JVM, and errors as people read them.

use runtap_discover::{Options, Process, ProcessKind, Reason, System};
use runtap_jvm_attach::codec::LoadError;
use runtap_jvm_attach::{AgentAnswer, AttachError, CLibrary, Client, Jvm, PlacedLibrary, Timeouts};
use runtap_os::in_a_thread;
use runtap_target::local_name;

use super::carried::{self, Carried, NAME};
use crate::cli::JvmTarget;
use crate::cmd::fix;
use crate::exit::{self, expected, with_list};
use crate::output::Output;
use crate::units::parse_pid;

/// The first version of Java whose JVMs print a warning when an agent is loaded (JEP 451).
const WARNS: u32 = 21;
const OTHERS: &str = "'runtap ps' lists Java programs; --process-id chooses one";

/// The program that is meant.
///
/// # Errors
/// There is none, or several, or it runs no JVM that we know.
pub(super) async fn choose(target: &JvmTarget) -> anyhow::Result<Jvm> {
    let word = target.word.as_deref();
    let by_word = word.and_then(|word| parse_pid(word).ok());
    let pid = match (target.process_id.or(by_word), target.name.as_deref().or(word)) {
        (Some(pid), _) => pid,
        (None, Some(name)) => named(name).await?,
        (None, None) => return Err(exit::usage("which process: its id or its name is missing")),
    };
    in_a_thread(move || Jvm::examine(pid).map_err(explain)).await?
}

/// What is to be done with a Java program that can't be attached to, as `attach` would say it; `None` if nothing is known that
/// speaks against it.
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

/// Whether our agent can be loaded by its C library.
fn check_library(jvm: &Jvm) -> Result<(), AttachError> {
    match jvm.c_library() {
        CLibrary::Musl => Err(AttachError::Musl { pid: jvm.pid() }),
        _ => Ok(()),
    }
}

/// Of our own user.
async fn named(name: &str) -> anyhow::Result<u32> {
    let listed = in_a_thread(|| System::current().processes(Options::default())).await?;
    let us = rustix::process::getuid().as_raw();
    let main = |process: &Process| process.java.as_ref().and_then(|java| java.main().map(str::to_owned));
    let is_meant = |process: &Process| {
        process.kind == ProcessKind::Jvm
            && process.uid == us
            && main(process).is_some_and(|main| main == name)
    };
    // A container that shares our /tmp has its counters there by its own numbers: another process may have one of them here.
    let is_jvm =
        |process: &Process| matches!(Jvm::examine(process.pid), Ok(_) | Err(AttachError::OpenJ9 { .. }));
    let is_dotnet = |process: &&Process| {
        process.kind == ProcessKind::Dotnet && process.uid == us && local_name(process) == name
    };
    let dotnet = listed.iter().find(is_dotnet).map(|process| process.pid);
    let found: Vec<Process> = listed.into_iter().filter(is_meant).filter(is_jvm).collect();
    match &found[..] {
        [one] => Ok(one.pid),
        [] => {
            let message = format!("no Java program of yours is called '{name}'");
            let hint = dotnet.map_or_else(|| OTHERS.to_owned(), instead_of_jvm);
            Err(expected(exit::NO_TARGET, message, hint))
        }
        several => {
            let line = |process: &Process| format!("{}  {}", process.pid, process.command_line.join(" "));
            let list = several.iter().map(line).collect();
            let message = format!("several Java programs are called '{name}'");
            Err(with_list(exit::NO_TARGET, message, list, OTHERS.to_owned()))
        }
    }
}

/// Has its JVM listen.
///
/// # Errors
/// It does not.
pub(super) async fn attach(jvm: Jvm) -> anyhow::Result<Client> {
    check_library(&jvm).map_err(explain)?;
    Client::attach(jvm, Timeouts::default()).await.map_err(explain)
}

/// Loads the agent, or has one that it has loaded before take new options.
///
/// # Errors
/// It does not run.
pub(super) async fn load(
    client: &Client,
    carried: Carried,
    options: &str,
    output: Output,
) -> anyhow::Result<()> {
    // Also shows whether it answers at all, before it is given long to load something.
    let version = java_version(client).await?;
    let answer = AgentAnswer::create(client.jvm()).await.map_err(explain)?;
    let options = carried::with_answer(options, answer.path());
    let refused = |error| refusal(error, client.jvm().pid(), answer.read());
    let loaded = client.loaded_libraries(&carried.name).map_err(explain)?;
    for path in loaded {
        match client.load(&path, &options).await {
            Ok(()) => return Ok(()),
            // The JVM has looked for the file, which is gone.
            Err(AttachError::NotLoaded(LoadError::NotLoaded { .. })) => {}
            Err(error) => return Err(refused(error)),
        }
    }
    tell_of_warning(client, version, output);
    let placed = PlacedLibrary::write(client.jvm(), &carried.name, carried.bytes).await.map_err(explain)?;
    client.load(placed.path(), &options).await.map_err(refused)
}

/// With the reason that the agent gives.
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

/// The version of Java; 0: it says none.
async fn java_version(client: &Client) -> anyhow::Result<u32> {
    let properties = client.properties().await.map_err(explain)?;
    Ok(properties.get("java.specification.version").and_then(|version| version.parse().ok()).unwrap_or(0))
}

/// Says that the JVM is going to print something, if it is.
fn tell_of_warning(client: &Client, version: u32, output: Output) {
    if version >= WARNS && client.jvm().has_option("EnableDynamicAgentLoading") != Some(true) {
        output.note(format_args!(
            "process {} prints a warning that an agent was loaded (JEP 451); started with -XX:+EnableDynamicAgentLoading it does not",
            client.jvm().pid()
        ));
    }
}

/// Has every agent of ours leave, whichever build it is of. Says whether any has traced something.
///
/// # Errors
/// One of them does not.
pub(super) async fn unload(client: &Client) -> Result<bool, AttachError> {
    let loaded = client.loaded_libraries(NAME)?;
    let mut traced = false;
    for path in &loaded {
        // Those of other builds may not know how to answer.
        let is_ours = path.file_name().is_some_and(|name| name == carried::name().as_str());
        if !is_ours {
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

/// What is to be done with a .NET program.
fn instead_of_jvm(pid: u32) -> String {
    format!("process {pid} is a .NET program: 'runtap trace {pid}' records it")
}

/// With an exit code, and a next step.
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
        AttachError::NotAJvm { pid } if System::current().facts(*pid).is_dotnet() => {
            return expected(code, error.to_string(), instead_of_jvm(*pid));
        }
        AttachError::NotAJvm { .. } | AttachError::NoProcess { .. } => {
            Some("'runtap ps' lists Java programs")
        }
        AttachError::OpenJ9 { .. } | AttachError::Musl { .. } => Some(
            "'runtap jvm hq' takes what the original Java agent sends: java -javaagent:bytefrog-tracer.jar=HOST:PORT",
        ),
        AttachError::Stopped { .. } => Some("let it go on: kill -CONT PID"),
        AttachError::Disabled { .. }
        | AttachError::ReadOnlyTemp { .. }
        | AttachError::NotLoaded(LoadError::Disabled) => {
            Some("start it with the agent instead: runtap jvm run -- java …")
        }
        _ => None,
    };
    expected(code, error.to_string(), hint.map(str::to_owned))
}
