//! From `-p`, `-n`, a bare word or a port to one process that can be asked.

use std::io::{self, BufRead, IsTerminal};
use std::path::PathBuf;
use std::time::Duration;

use runtap_diag::ports::Port;
use runtap_diag::{Client, Error, ProcessInfo, Timeouts, doctor};
use runtap_discover::{Kind, Options, Process, System};
use runtap_record::{Subject, allow_many_files, in_a_thread};
pub(super) use runtap_record::{local_name, name_of};
use runtap_transport::SocketState;
use runtap_transport::{Endpoint, shell};

use super::failure::{about, explain, not_reached};
use super::named::{Named, Whose};
use super::named_port::{self, Place, place};
use crate::cli::{Target, TargetOptions};
use crate::exit::{self, ExpectedError, expected, usage};
use crate::output::Output;

/// How long a runtime may take to say who it is, where several are asked.
pub(super) const DEADLINE: Duration = Duration::from_millis(250);

/// Exit codes above this say that a signal has ended us.
const INTERRUPTIONS: u8 = 128;

/// A process that was chosen, and how to talk to it.
pub(super) struct Chosen {
    /// What discovery knows of it; nothing for a bare port.
    pub(super) process: Option<Process>,
    pub(super) client: Client,
    /// The name that it was chosen by, if it was.
    name: Option<String>,
    /// Where it has dialled in: closed when this is dropped.
    _port: Option<Port>,
}

impl From<Chosen> for Subject {
    fn from(chosen: Chosen) -> Self {
        // Ports that are listened on are targets of their own.
        Self::new(chosen.client, chosen.process)
    }
}

impl Chosen {
    /// Whoever listens there.
    pub(super) fn port(path: PathBuf) -> Self {
        Self { process: None, client: Client::new(Endpoint::unix(path)), name: None, _port: None }
    }

    /// Says which process is going to be changed, and whose it is, where a name was all that was said.
    pub(super) fn tell(&self, output: Output) {
        if let (Some(name), Some(Process { pid, user, .. })) = (&self.name, &self.process) {
            output.note(format_args!("'{name}' is process {pid} of user {user}"));
        }
    }

    /// Its id in our pid namespace, and in its own where that is known.
    ///
    /// # Errors
    /// Only for a bare port: nobody answers there, or the process can't be seen from here.
    pub(super) async fn pids(&self) -> anyhow::Result<(u32, Option<u32>)> {
        if let Some(process) = &self.process {
            return Ok((process.pid, Some(process.ns_pid)));
        }
        let pid = self.client.process_id().await.map_err(explain)?;
        let info = self.client.process_info().await.ok();
        Ok((pid, info.and_then(|info| u32::try_from(info.process_id).ok())))
    }
}

/// Finds the process that the options name.
///
/// # Errors
/// Code 2 without a target, 3 when there is no such process or it has no socket we can use.
pub(super) async fn choose(target: &Target, output: Output) -> anyhow::Result<Chosen> {
    if let Some(port) = &target.options.diagnostic_port {
        return match place(port)? {
            Place::Connect(path) | Place::Either(path) => Ok(Chosen::port(path)),
            Place::Listen(path) => {
                let (port, runtime) = named_port::wait_for_one(path, output).await?;
                let pid = runtime.peer().pid;
                let process =
                    in_a_thread(move || pid.and_then(|pid| runtap_discover::process(pid).ok())).await?;
                Ok(Chosen { process, client: runtime.client(), name: None, _port: Some(port) })
            }
        };
    }
    let wanted = wanted(target, output).await?;
    let name = wanted.name();
    reach(wanted.process(output).await?, name, output)
}

/// One process, which has to answer: one that is stopped is not waited for.
fn reach(process: Process, name: Option<String>, output: Output) -> anyhow::Result<Chosen> {
    refuse_stopped(process.pid)?;
    found(process, name, output)
}

/// Refuses a process that is stopped: it would keep everybody waiting until it is given up.
pub(super) fn refuse_stopped(pid: u32) -> anyhow::Result<()> {
    doctor::stopped(&System::current(), pid).map_or(Ok(()), |finding| Err(not_reached(pid, finding)))
}

/// Also one that was started in the same breath, and is not up yet.
async fn by_pid(pid: u32) -> anyhow::Result<Result<Process, runtap_discover::NotFound>> {
    // How long it takes to look at it is for the process to choose.
    let look = || in_a_thread(move || runtap_discover::process(pid));
    match look().await? {
        Err(_) => {
            doctor::settled(&System::current(), pid).await;
            Ok(look().await?)
        }
        found => Ok(found),
    }
}

/// Finds every process that the options name: with `--all` a name may stand for several of one user.
///
/// # Errors
/// As [`choose`].
pub(super) async fn choose_all(target: &Target, all: bool, output: Output) -> anyhow::Result<Vec<Chosen>> {
    if target.options.diagnostic_port.is_some() {
        return Ok(vec![choose(target, output).await?]);
    }
    let wanted = wanted(target, output).await?;
    let name = wanted.name();
    let process = match wanted {
        Wanted::Name(name, user) => {
            let named = Named::find(&name, Whose(user.as_deref())).await?;
            named.tell_left_out(&name, output);
            if all {
                let found = |process| found(process, Some(name.clone()), output);
                return named.processes.into_iter().map(found).collect();
            }
            named.only(&name, "choose one with -p, or take them all with --all")?
        }
        other => other.process(output).await?,
    };
    Ok(vec![reach(process, name, output)?])
}

/// Does the same with each of them, one after the other: where it fails, that is told, and the others have their turn.
/// The first failure decides on the exit code.
///
/// # Errors
/// Those of a single one, and an interruption, which is meant for all.
pub(super) async fn each(
    chosen: Vec<Chosen>,
    output: Output,
    act: impl AsyncFn(Chosen, Output) -> anyhow::Result<u8>,
) -> anyhow::Result<u8> {
    let several = chosen.len() > 1;
    let output = if several { output.one_of_several() } else { output };
    let mut code = exit::OK;
    for chosen in chosen {
        let pid = chosen.process.as_ref().map(|process| process.pid);
        let own = match act(chosen, output).await {
            Err(error)
                if several && !exit::is_broken_pipe(&error) && exit::code_of(&error) <= INTERRUPTIONS =>
            {
                let hint = error.downcast_ref::<ExpectedError>().and_then(|expected| expected.hint.clone());
                output.error(&about(pid, &error), hint.as_deref());
                exit::code_of(&error)
            }
            other => other?,
        };
        if own > INTERRUPTIONS {
            return Ok(own);
        }
        if code == exit::OK {
            code = own;
        }
    }
    Ok(code)
}

/// What a process is chosen by.
enum Wanted {
    Pid(u32),
    /// And a user, if one is given.
    Name(String, Option<String>),
    /// Chosen from a list: this very one, and none that has its number later.
    Picked(Box<Process>),
}

impl Wanted {
    fn name(&self) -> Option<String> {
        match self {
            Self::Name(name, _) => Some(name.clone()),
            _ => None,
        }
    }

    async fn process(self, output: Output) -> anyhow::Result<Process> {
        match self {
            Self::Pid(pid) => by_pid(pid).await?.map_err(|error| unreachable(&error, output)),
            Self::Name(name, user) => {
                let named = Named::find(&name, Whose(user.as_deref())).await?;
                named.tell_left_out(&name, output);
                named.only(&name, "choose one with -p")
            }
            Self::Picked(process) => Ok(*process),
        }
    }
}

async fn wanted(target: &Target, output: Output) -> anyhow::Result<Wanted> {
    let TargetOptions { process_id, name, user, .. } = &target.options;
    Ok(match (process_id, name, &target.word) {
        (Some(pid), ..) => Wanted::Pid(*pid),
        (_, Some(name), _) => Wanted::Name(name.clone(), user.clone()),
        // A number is a pid, anything else a name.
        (_, _, Some(word)) => match word.parse() {
            Ok(_pid) if user.is_some() => return Err(user_without_name()),
            Ok(pid) => Wanted::Pid(pid),
            Err(_no_number) => Wanted::Name(word.clone(), user.clone()),
        },
        _ if user.is_some() => return Err(user_without_name()),
        _ => Wanted::Picked(Box::new(pick(output).await?)),
    })
}

/// `--user` beside something else than a name.
pub(super) fn user_without_name() -> anyhow::Error {
    usage("--user says whose process a name stands for: give the name with -n")
}

fn found(process: Process, name: Option<String>, output: Output) -> anyhow::Result<Chosen> {
    let Some(endpoint) = process.endpoint() else {
        let message = format!("process {} has no diagnostic socket", process.pid);
        return Err(expected(exit::NO_TARGET, message, None));
    };
    output.detail(format_args!("process {} is asked on {endpoint}", process.pid));
    let router = process.sockets.iter().find(|socket| socket.state == SocketState::Router);
    // Anybody can make a socket with that name: only for one that is called like a router it is worth a word.
    if let Some(router) = router.filter(|_| local_name(&process).contains("dsrouter")) {
        output.note(format_args!(
            "process {} is a router; the program that it stands for is asked with --diagnostic-port {}",
            process.pid,
            shell::path(&router.path)
        ));
    }
    Ok(Chosen { client: Client::new(endpoint), process: Some(process), name, _port: None })
}

/// For verbs with words of their own: without an option that names the process, the first word does. `what` has to
/// follow it.
///
/// # Errors
/// Code 2 when no word is left, or none could name a process.
pub(super) fn first_word<'a>(
    options: &TargetOptions,
    words: &'a [String],
    what: &str,
) -> anyhow::Result<(Target, &'a [String])> {
    let (word, rest) = match words {
        _ if options.any() => (None, words),
        [word, rest @ ..] if !rest.is_empty() => (Some(word.clone()), rest),
        // Which of the two it is can be guessed.
        [word] if what.contains('=') && word.contains('=') || what.contains('/') && word.contains('/') => {
            return Err(no_target());
        }
        [word] => {
            return Err(usage(format!(
                "'{word}' is taken for the process, and nothing follows it: {what} is missing"
            )));
        }
        _ => return Err(no_target()),
    };
    Ok((Target { word, options: options.clone() }, rest))
}

fn unreachable(error: &runtap_discover::NotFound, output: Output) -> anyhow::Error {
    for step in &error.looked_at {
        output.detail(format_args!("looked at {step}"));
    }
    expected(exit::NO_TARGET, error.to_string(), error.reason.fix())
}

/// Asks every process who it is, all at the same time: a busy one costs the others nothing. In the order of the list.
pub(super) async fn ask_all(
    processes: &[Process],
    limit: Duration,
) -> Vec<Result<ProcessInfo, Option<Error>>> {
    // Each may have many sockets that look like its own.
    allow_many_files();
    let asking: Vec<_> =
        processes.iter().map(|process| tokio::spawn(ask(process.endpoint(), limit))).collect();
    let mut told = Vec::with_capacity(asking.len());
    for task in asking {
        told.push(task.await.unwrap_or(Err(None)));
    }
    told
}

/// Asks a runtime who it is, for at most this time.
pub(super) async fn ask(endpoint: Option<Endpoint>, limit: Duration) -> Result<ProcessInfo, Option<Error>> {
    let client = Client::new(endpoint.ok_or(None)?).with_timeouts(Timeouts::all(limit));
    match tokio::time::timeout(limit, client.process_info()).await {
        Ok(answer) => answer.map_err(Some),
        Err(_deadline) => Err(None),
    }
}

fn no_target() -> anyhow::Error {
    let hint =
        "give a process id or a name ('runtap ps' lists them), or 'runtap demo' for a built-in program";
    expected(exit::USAGE, "no target given", hint.to_owned())
}

/// Lets the user choose on a terminal.
async fn pick(output: Output) -> anyhow::Result<Process> {
    if !io::stdin().is_terminal() || !io::stderr().is_terminal() {
        return Err(no_target());
    }
    let mut processes = in_a_thread(|| runtap_discover::processes(Options::default())).await?;
    processes.retain(|process| process.kind == Kind::Dotnet);
    if processes.is_empty() {
        return Err(expected(
            exit::NO_TARGET,
            "no .NET process is running",
            "'runtap demo' has one built in".to_owned(),
        ));
    }
    for (i, process) in processes.iter().enumerate() {
        let (n, pid, user, name) = (i + 1, process.pid, &process.user, local_name(process));
        let command_line = process.command_line.join(" ");
        output.item(format_args!("{n:>3}  {pid:>8}  {user:<10}  {name:<20} {command_line}"));
    }
    for is_last in [false, true] {
        output.ask(format_args!("which one [1-{}]?", processes.len()));
        let line = in_a_thread(|| {
            let mut line = String::new();
            io::stdin().lock().read_line(&mut line).map(|_| line)
        });
        let line = line.await??;
        let answer = line.trim();
        if answer.is_empty() {
            break;
        }
        if let Some(chosen) = picked(answer, &processes) {
            return Ok(processes.swap_remove(chosen));
        }
        let slip =
            format!("'{answer}' is not a number from 1 to {}, or a process id of the list", processes.len());
        if is_last {
            return Err(usage(slip));
        }
        output.ask(slip);
    }
    Err(no_target())
}

/// Which process of the list an answer means: its number there, or the most prominent one of its line, its process id.
fn picked(answer: &str, processes: &[Process]) -> Option<usize> {
    let number: usize = answer.parse().ok()?;
    let row = number.checked_sub(1).filter(|row| *row < processes.len());
    row.or_else(|| processes.iter().position(|process| usize::try_from(process.pid) == Ok(number)))
}
