//! Running processes and what their runtimes report.

use runtap_model::order;

use crate::doctor::Answer;
use runtap_diag::ProcessInfo;
use runtap_discover::{Java, Options, Process, ProcessKind, ReasonCode, Startup, System, Usage};
use runtap_os::{in_a_thread, is_root, my_uid};
use runtap_transport::remote::RemoteProcess;

use crate::named::{DEADLINE, query_all};
use crate::resolved::local_name;

/// The managed processes that a listing shows.
#[derive(Debug)]
pub struct Listing {
    /// The listed processes: those of the current user, or of all users.
    pub processes: Vec<Process>,
    /// The number of processes of other users that are not listed.
    pub of_others: usize,
}

impl Listing {
    /// Searches for running processes. Blocks for a time that the processes can influence.
    pub fn now(all_users: bool) -> Self {
        let mut processes = runtap_discover::processes(Options::default().all_users(true));
        let all = processes.len();
        if !all_users && !is_root() {
            processes.retain(|process| process.uid == my_uid());
        }
        let of_others = all.saturating_sub(processes.len());
        Self { processes, of_others }
    }
}

/// A process and what its runtime reported.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct ProcessStatus {
    /// The process id in this process's PID namespace.
    pub pid: u32,
    /// The runtime in the process.
    pub kind: ProcessKind,
    /// The reported entry assembly, or else the local name of the process.
    pub name: String,
    /// The arguments, program first.
    pub command_line: String,
    /// The version of the runtime.
    pub runtime_version: Option<String>,
    /// The processor architecture that the runtime was compiled for.
    pub arch: Option<String>,
    /// The name of the user, or the number if the user has no name.
    pub user: String,
    /// The id of the container, if any.
    pub container: Option<String>,
    /// Whether the runtime is suspended at startup. `None` if unknown.
    pub suspended: Option<bool>,
    /// Whether the runtime answers.
    pub reachable: bool,
    /// Why the runtime does not answer.
    pub reason: Option<ReasonCode>,
    /// The endpoint that was queried.
    pub socket: Option<String>,
    /// The start time, as in [`Process::start_time`]. `None` for a remote process.
    pub start_time: Option<u64>,
    /// Other names that select the process.
    aliases: [String; 2],
}

impl ProcessStatus {
    /// Describes a process that has not been queried.
    pub fn unqueried(process: &Process) -> Self {
        Self {
            pid: process.pid,
            kind: process.kind,
            name: local_name(process),
            command_line: process.command_line.join(" "),
            runtime_version: process.java.as_ref().and_then(Java::version).map(str::to_owned),
            arch: None,
            user: process.user.clone(),
            container: process.container.clone(),
            suspended: None,
            reachable: false,
            reason: None,
            socket: process.endpoint().map(|endpoint| endpoint.to_string()),
            start_time: Some(process.start_time),
            aliases: [process.comm.clone(), local_name(process)],
        }
    }

    /// Describes a process listed by a remote router.
    pub fn remote(listed: &RemoteProcess, address: String) -> Self {
        let known = |text: &str| Some(text.to_owned()).filter(|text| !text.is_empty());
        Self {
            pid: listed.pid,
            kind: ProcessKind::Dotnet,
            name: listed.name.clone(),
            command_line: listed.command_line.clone(),
            runtime_version: known(&listed.runtime_version),
            arch: known(&listed.arch),
            user: listed.user.clone(),
            container: None,
            suspended: listed.suspended,
            reachable: true,
            reason: None,
            socket: Some(address),
            start_time: None,
            aliases: Default::default(),
        }
    }

    /// Queries the processes and returns them ordered by name and process id. All runtimes are queried at the same time, so that a
    /// busy one does not delay the others.
    pub async fn all(processes: Vec<Process>) -> Vec<Self> {
        let (dotnet, others): (Vec<_>, Vec<_>) =
            processes.into_iter().partition(|process| process.kind == ProcessKind::Dotnet);
        let mut seen: Vec<Self> = others.iter().map(Self::unqueried).collect();
        let mut unreached = Vec::new();
        for (process, answer) in dotnet.iter().zip(query_all(&dotnet, DEADLINE).await) {
            let mut one = Self::unqueried(process);
            match answer {
                Answer::Answered(info) => {
                    one.reachable = true;
                    // .NET Core 3 does not support the command.
                    if let Some(info) = info {
                        one.suspended = is_suspended(process, &info);
                        one.describe(*info);
                    }
                    seen.push(one);
                }
                Answer::NotQueried => unreached.push((one, Answer::TimedOut)),
                answer => unreached.push((one, answer)),
            }
        }
        seen.extend(with_reasons(unreached).await);
        sort(&mut seen);
        seen
    }

    fn describe(&mut self, info: ProcessInfo) {
        if let Some(name) = info.entry_assembly.filter(|name| !name.is_empty()) {
            self.name = name;
        }
        self.arch = Some(info.arch);
        self.runtime_version = info.runtime_version;
    }

    /// Returns what the process uses now. `None` if unknown.
    pub fn usage(&self) -> Option<Usage> {
        System::current().usage(self.pid, self.start_time?)
    }

    /// Whether the process has this name or process id.
    pub fn has_name(&self, wanted: &str) -> bool {
        self.name == wanted
            || self.aliases.iter().any(|alias| alias == wanted)
            || self.pid.to_string() == wanted
    }
}

/// Sorts by name, then by process id.
pub(crate) fn sort(seen: &mut [ProcessStatus]) {
    order::sort_by(seen, |a, b| (&a.name, a.pid).cmp(&(&b.name, b.pid)));
}

/// Adds the reasons why processes cannot be reached. Runs after all queries, so that it delays none of them.
async fn with_reasons(unreached: Vec<(ProcessStatus, Answer)>) -> impl Iterator<Item = ProcessStatus> {
    let asked: Vec<(u32, Answer)> =
        unreached.iter().map(|(seen, answer)| (seen.pid, answer.clone())).collect();
    // The processes control how long this takes. If no thread can be started, no reasons are known.
    let looked = in_a_thread(move || crate::doctor::reasons(&System::current(), asked)).await;
    let mut reasons = looked.unwrap_or_default().into_iter();
    unreached.into_iter().filter_map(move |(mut seen, answer)| {
        seen.reason = reasons.next().flatten();
        let is_foreign = matches!(answer, Answer::WrongPeer(_));
        // The process exited meanwhile, or is not a runtime: another process created a socket with its name.
        let is_none = seen.reason == Some(ReasonCode::NoSuchProcess)
            || is_foreign && seen.reason == Some(ReasonCode::NotDotnet);
        (!is_none).then_some(seen)
    })
}

/// Returns whether a runtime is suspended at startup, or `None` if unknown. No command reports this, but a suspended runtime reports
/// only the host as its command line, without the arguments that the process has, and it has not created all of its threads.
pub fn is_suspended(process: &Process, info: &ProcessInfo) -> Option<bool> {
    let host = process.exe.as_deref().is_some_and(|exe| exe.as_os_str() == info.command_line.as_str());
    let host_alone = host || process.command_line.first() == Some(&info.command_line);
    if !host_alone && process.command_line.len() > 1 {
        return Some(false);
    }
    match runtap_discover::startup(process.pid) {
        Startup::Done => Some(false),
        Startup::Waiting => Some(true),
        _ => None,
    }
}
