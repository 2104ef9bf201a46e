//! Gathers facts: what the system shows of a process, whether its runtime answers, and what blocks it. Never connects to a tool's
//! port, because the tool would take the connection for a runtime's.

use std::ffi::OsString;
use std::io::{self, ErrorKind};
use std::path::PathBuf;
use std::time::Duration;

use runtap_diag::{Error, ports};
use runtap_diag_proto::diagnostic_ports::{self, DiagnosticPort, Warning};
use runtap_discover::{Clients, Facts, Holder, Holders, ProcessState, Reason, ReasonCode, Startup, System};
use runtap_os::{allow_many_files, in_a_thread};
use tokio::task::JoinSet;

use crate::doctor::answer::{Answer, DEADLINE, query};
use crate::doctor::jvm::{JvmExamination, query_jvms};
use crate::doctor::{Finding, Severity};

/// Poll interval and number of polls for a runtime whose server has not started yet. On an idle machine the server starts within
/// hundredths of a second.
const STARTUP_PAUSE: Duration = Duration::from_millis(20);
const STARTUP_LOOKS: usize = 150;
/// The number of polls for a process whose socket was deleted, possibly by the runtime itself because it exits.
const ENDING_LOOKS: usize = 25;
/// The age up to which a process may still load a runtime, in hundredths of a second.
const LOADING: u64 = 200;

/// A port to which a runtime connects and for which it waits at startup.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct AwaitedPort {
    /// The address as in the environment variable.
    pub address: String,
    /// The path of the socket as seen from here.
    pub host: PathBuf,
    /// Whether the address is too long for the runtime to connect to.
    pub too_long: bool,
    /// The listeners, as far as permissions allow to see them.
    pub listeners: Vec<Holder>,
    /// Whether it is certain that nothing listens there.
    pub dead: bool,
}

/// The facts about a process.
#[derive(Debug, Clone, Default)]
#[non_exhaustive]
pub struct Examination {
    /// What the system shows.
    pub facts: Facts,
    /// The answer of the runtime.
    pub answer: Answer,
    /// The clients that are connected to the runtime. Filled in only if the runtime does not answer.
    pub clients: Clients,
    /// The ports that the runtime waits for.
    pub awaited: Vec<AwaitedPort>,
    /// Problems in the value of the environment variable.
    pub warnings: Vec<Warning>,
    /// The debugger that traces the process.
    pub tracer: Option<Holder>,
    /// What attaching to the process depends on, if it is a Java program.
    pub jvm: Option<JvmExamination>,
}

/// Examines one process. A process that is starting is given time to start. The work runs on its own thread, because the process
/// controls how long it takes.
///
/// # Errors
/// Returns an error if no thread can be started.
pub async fn examine(system: &System, pid: u32) -> io::Result<Examination> {
    let facts = settled(system, pid).await?;
    let answer = query(facts.endpoint(), DEADLINE).await;
    let system = system.clone();
    let mut examination = in_a_thread(move || complete(&system, &system.holders(), facts, answer)).await?;
    query_jvms(std::slice::from_mut(&mut examination)).await;
    Ok(examination)
}

/// Returns what the system shows of a process, after giving a runtime that starts or exits time to do so. Waits at most 3 s for a
/// young process, and at most 0.5 s for a process whose socket was deleted.
///
/// # Errors
/// Returns an error if no thread can be started.
pub async fn settled(system: &System, pid: u32) -> io::Result<Facts> {
    let look = || {
        let system = system.clone();
        in_a_thread(move || system.facts(pid))
    };
    let mut facts = look().await?;
    for looks in 0..STARTUP_LOOKS {
        if !(may_come_up(&facts) || looks < ENDING_LOOKS && may_be_ending(&facts)) {
            break;
        }
        tokio::time::sleep(STARTUP_PAUSE).await;
        facts = look().await?;
    }
    Ok(facts)
}

/// Whether the process may still load a runtime, or its runtime may still start its server.
fn may_come_up(facts: &Facts) -> bool {
    match Reason::all(facts)[..] {
        [Reason::Starting] => true,
        [Reason::NotDotnet] => facts.age.is_some_and(|age| age < LOADING),
        _ => false,
    }
}

/// Whether the socket's file was deleted while the runtime listens: a runtime deletes the file before the process exits.
fn may_be_ending(facts: &Facts) -> bool {
    facts.endpoint().is_none() && !facts.deleted.is_empty()
}

/// Queries the runtimes of these processes at the same time, so that a busy one does not delay the others.
pub async fn query_all(all: Vec<Facts>) -> Vec<(Facts, Answer)> {
    // Each process may have many sockets that look like its own.
    allow_many_files();
    let mut asking = JoinSet::new();
    for facts in all {
        asking.spawn(async move {
            let answer = query(facts.endpoint(), DEADLINE).await;
            (facts, answer)
        });
    }
    asking.join_all().await
}

/// Examines processes that were queried. Looks up only once what the processes have in common.
pub fn examine_queried(system: &System, asked: Vec<(Facts, Answer)>) -> Vec<Examination> {
    let holders = system.holders();
    asked.into_iter().map(|(facts, answer)| complete(system, &holders, facts, answer)).collect()
}

/// Returns why each of the queried processes cannot be reached, or `None` if it can. Does a cheap examination and looks up only once
/// what the processes have in common: a user may have created hundreds of processes and sockets.
pub fn reasons(system: &System, asked: Vec<(u32, Answer)>) -> Vec<Option<ReasonCode>> {
    let pids: Vec<u32> = asked.iter().map(|(pid, _)| *pid).collect();
    let examine = |(facts, (_, answer))| Examination { facts, answer, ..Examination::default() };
    let examinations = system.facts_of(&pids).into_iter().zip(asked).map(examine);
    examinations.map(|examination| examination.diagnose().reason()).collect()
}

/// Returns why a process did not execute a command, in more detail than the error. `None` if unknown or if the process id is
/// unknown.
pub fn explain(system: &System, error: &Error) -> Option<Finding> {
    let pid = error.unanswered()?.process_id()?;
    let facts = system.facts(pid);
    let findings = complete(system, &system.holders(), facts, Answer::of_error(error)).diagnose().findings;
    findings.into_iter().find(|finding| finding.severity == Severity::Error)
}

/// Returns why a process is stopped, or `None` if it runs. Reads nothing that could take long.
pub fn stopped(system: &System, pid: u32) -> Option<Finding> {
    if !system.is_stopped(pid) {
        return None;
    }
    let mut facts = Facts::default();
    (facts.pid, facts.state, facts.startup) = (pid, ProcessState::Stopped, Startup::Done);
    Some(complete(system, &system.holders(), facts, Answer::NotQueried).busy())
}

/// Returns why a process can't write dumps, as far as that can be seen from outside: a runtime gives no reason for the failure.
pub fn no_dumps(system: &System, pid: u32) -> Option<Finding> {
    let examination = Examination { facts: system.facts(pid), ..Examination::default() };
    examination.dumps().into_iter().next()
}

/// Returns why a process is suspended at startup with no way to resume it over its own port: it waits for a port that it can't reach
/// or on which nothing listens. `None` if that is not certain.
pub fn stuck_at_startup(system: &System, pid: u32) -> Option<Finding> {
    if system.startup(pid) != Startup::Waiting {
        return None;
    }
    let examination = complete(system, &system.holders(), system.facts(pid), Answer::NotQueried);
    let lost = examination.awaited.iter().any(|port| port.too_long || port.dead);
    examination.suspended().filter(|_| lost)
}

fn complete(system: &System, holders: &Holders, facts: Facts, answer: Answer) -> Examination {
    let clients = if answer == Answer::TimedOut { holders.clients(facts.pid) } else { Clients::default() };
    let value = facts.environment.as_ref().and_then(|environment| environment.ports.clone());
    let value = value.map(OsString::into_encoded_bytes).unwrap_or_default();
    let awaited =
        if facts.startup == Startup::Done { Vec::new() } else { awaited(system, holders, &facts, &value) };
    let tracer = match facts.state {
        ProcessState::Traced { by } => Some(system.holder(by)),
        _ => None,
    };
    let jvm = facts.is_jvm().then(|| JvmExamination::of(&facts));
    Examination { facts, answer, clients, awaited, warnings: diagnostic_ports::lint(&value), tracer, jvm }
}

fn awaited(system: &System, holders: &Holders, facts: &Facts, value: &[u8]) -> Vec<AwaitedPort> {
    let view = system.file_view(facts.pid).ok();
    // The process's sockets may be in another mount namespace.
    let elsewhere = facts.other_mount_namespace;
    let ports = ports::awaited(value);
    let port = |port: DiagnosticPort<'_>| {
        let address = String::from_utf8_lossy(port.address).into_owned();
        let path = PathBuf::from(&address);
        let file = view.as_ref().map(|view| view.metadata(&path));
        let dead = match &file {
            Some(Ok(file)) => !elsewhere && holders.is_listened_on(file) == Some(false),
            Some(Err(error)) => error.kind() == ErrorKind::NotFound,
            None => false,
        };
        AwaitedPort {
            too_long: port.address.len() > diagnostic_ports::LONGEST_ADDRESS,
            listeners: file.and_then(Result::ok).map(|file| holders.listeners(&file)).unwrap_or_default(),
            dead,
            host: view.as_ref().map_or_else(|| path.clone(), |view| view.shown(&path)),
            address,
        }
    };
    ports.map(port).collect()
}
