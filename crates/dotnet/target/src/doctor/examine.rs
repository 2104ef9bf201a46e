//! The gathering: what the system shows of a process, whether its runtime answers, and who keeps it from that. Refuses to
//! judge, and to connect to a tool's port: it would be taken for a runtime.

use std::ffi::OsString;
use std::io::{self, ErrorKind};
use std::path::PathBuf;
use std::time::Duration;

use runtap_diag::{Error, ports};
use runtap_diag_proto::diagnostic_ports::{self, DiagnosticPort, Warning};
use runtap_discover::{Clients, Code, Facts, Holder, Holders, ProcessState, Reason, Startup, System};
use runtap_os::{allow_many_files, in_a_thread};
use tokio::task::JoinSet;

use crate::doctor::answer::{Answer, DEADLINE, ask};
use crate::doctor::{Finding, Severity};

/// How long, and how often, a process is looked at that has a runtime and no server yet. It takes hundredths of a second
/// on a machine that has nothing else to do.
const STARTUP_PAUSE: Duration = Duration::from_millis(20);
const STARTUP_LOOKS: usize = 150;
/// How often a process is looked at whose socket was just deleted: by itself, it may be, because it ends.
const ENDING_LOOKS: usize = 25;
/// The age, in hundredths of a second, up to which a process may still load a runtime.
const LOADING: u64 = 200;

/// A port that a runtime was told to dial, and to wait for.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct AwaitedPort {
    /// As it stands in the variable.
    pub address: String,
    /// What it is called from here.
    pub host: PathBuf,
    /// Whether it is too long for the runtime ever to reach it.
    pub too_long: bool,
    /// Who listens there, as far as we may see.
    pub listeners: Vec<Holder>,
    /// Whether it is certain that nobody listens there.
    pub dead: bool,
}

/// Everything that is known of a process.
#[derive(Debug, Clone, Default)]
#[non_exhaustive]
pub struct Examination {
    /// What the system shows.
    pub facts: Facts,
    /// Whether its runtime answers.
    pub answer: Answer,
    /// Who is connected to it. Looked at only if it does not answer.
    pub clients: Clients,
    /// The ports that it waits for.
    pub awaited: Vec<AwaitedPort>,
    /// What is wrong with the value that these come from.
    pub warnings: Vec<Warning>,
    /// The debugger that holds it.
    pub tracer: Option<Holder>,
}

/// Examines one process. One that is only starting is given a moment. How long it takes to look at it is for the process to
/// choose, so that is done on threads of their own.
///
/// # Errors
/// There is no thread.
pub async fn examine(system: &System, pid: u32) -> io::Result<Examination> {
    let facts = settled(system, pid).await?;
    let answer = ask(facts.endpoint(), DEADLINE).await;
    let system = system.clone();
    in_a_thread(move || complete(&system, &system.holders(), facts, answer)).await
}

/// What the system shows of a process, once its runtime had the time to come up, or to go: for a program that was started in
/// the same breath, and one that is ending. Waits only for a young one, 3 s at most, and for one without its socket's file,
/// half a second.
///
/// # Errors
/// There is no thread.
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

/// Whether a runtime without a server, or a process without a runtime, may just need another moment.
fn may_come_up(facts: &Facts) -> bool {
    match Reason::all(facts)[..] {
        [Reason::Starting] => true,
        [Reason::NotDotnet] => facts.age.is_some_and(|age| age < LOADING),
        _ => false,
    }
}

/// Whether it listens and has no file for its socket: a runtime deletes that before its process ends.
fn may_be_ending(facts: &Facts) -> bool {
    facts.endpoint().is_none() && !facts.deleted.is_empty()
}

/// Asks the runtimes of these processes who they are, all at the same time: a busy one costs the others nothing.
pub async fn ask_all(all: Vec<Facts>) -> Vec<(Facts, Answer)> {
    // Each may have many sockets that look like its own.
    allow_many_files();
    let mut asking = JoinSet::new();
    for facts in all {
        asking.spawn(async move {
            let answer = ask(facts.endpoint(), DEADLINE).await;
            (facts, answer)
        });
    }
    asking.join_all().await
}

/// Looks at processes that were asked: what keeps those that did not answer. What they have in common is looked at once.
pub fn examine_asked(system: &System, asked: Vec<(Facts, Answer)>) -> Vec<Examination> {
    let holders = system.holders();
    asked.into_iter().map(|(facts, answer)| complete(system, &holders, facts, answer)).collect()
}

/// Why processes that were asked already can't be reached, each in one word and without looking closer. What they have in
/// common is looked at once: somebody may have made hundreds of them, and as many names in the folder of sockets.
pub fn reasons(system: &System, asked: Vec<(u32, Answer)>) -> Vec<Option<Code>> {
    let pids: Vec<u32> = asked.iter().map(|(pid, _)| *pid).collect();
    let examine = |(facts, (_, answer))| Examination { facts, answer, ..Examination::default() };
    let examinations = system.facts_of(&pids).into_iter().zip(asked).map(examine);
    examinations.map(|examination| examination.diagnose().reason()).collect()
}

/// Why a process could not be reached that was asked something else: the look that a mere error message lacks. `None`
/// where nothing is found, or the process is not known by its id.
pub fn explain(system: &System, error: &Error) -> Option<Finding> {
    let pid = error.unanswered()?.process_id()?;
    let facts = system.facts(pid);
    let findings = complete(system, &system.holders(), facts, Answer::of_error(error)).diagnose().findings;
    findings.into_iter().find(|finding| finding.severity == Severity::Error)
}

/// What keeps a process from answering anything at all, as far as one look shows: it is stopped. Nothing of it is looked at
/// that could take long.
pub fn stopped(system: &System, pid: u32) -> Option<Finding> {
    if !system.is_stopped(pid) {
        return None;
    }
    let mut facts = Facts::default();
    (facts.pid, facts.state, facts.startup) = (pid, ProcessState::Stopped, Startup::Done);
    Some(complete(system, &system.holders(), facts, Answer::NotAsked).busy())
}

/// Why a process can't write dumps, as far as that shows from outside: a runtime that refuses gives no reason.
pub fn no_dumps(system: &System, pid: u32) -> Option<Finding> {
    let examination = Examination { facts: system.facts(pid), ..Examination::default() };
    examination.dumps().into_iter().next()
}

/// For what a process waits at its start that no command over its own port gives it: a port of its environment that it
/// can't reach, or on which nobody listens. `None` where that is not certain.
pub fn stuck_at_startup(system: &System, pid: u32) -> Option<Finding> {
    if system.startup(pid) != Startup::Waiting {
        return None;
    }
    let examination = complete(system, &system.holders(), system.facts(pid), Answer::NotAsked);
    let lost = examination.awaited.iter().any(|port| port.too_long || port.dead);
    examination.suspended().filter(|_| lost)
}

fn complete(system: &System, holders: &Holders, facts: Facts, answer: Answer) -> Examination {
    let clients = if answer == Answer::Silent { holders.clients(facts.pid) } else { Clients::default() };
    let value = facts.environment.as_ref().and_then(|environment| environment.ports.clone());
    let value = value.map(OsString::into_encoded_bytes).unwrap_or_default();
    let awaited =
        if facts.startup == Startup::Done { Vec::new() } else { awaited(system, holders, &facts, &value) };
    let tracer = match facts.state {
        ProcessState::Traced { by } => Some(system.holder(by)),
        _ => None,
    };
    Examination { facts, answer, clients, awaited, warnings: diagnostic_ports::lint(&value), tracer }
}

fn awaited(system: &System, holders: &Holders, facts: &Facts, value: &[u8]) -> Vec<AwaitedPort> {
    let view = system.file_view(facts.pid).ok();
    // Sockets of the process may be in a namespace of their own.
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
