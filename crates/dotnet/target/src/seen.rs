//! What runs, and what each said when it was asked who it is.

use crate::doctor::Answer;
use runtap_diag::ProcessInfo;
use runtap_discover::{Code, Java, Kind, Options, Process, Startup, System};
use runtap_os::{in_a_thread, is_root, my_uid};
use runtap_transport::remote::RemoteProcess;

use crate::named::{DEADLINE, ask_all};
use crate::subject::local_name;

/// The managed processes that are shown.
#[derive(Debug)]
pub struct Listing {
    /// Those that we may reach, or of all users.
    pub processes: Vec<Process>,
    /// How many there are besides.
    pub of_others: usize,
}

impl Listing {
    /// Looks who runs. How long it takes is for the processes to choose.
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

/// A process that was asked who it is.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Seen {
    /// Process id in our pid namespace.
    pub pid: u32,
    /// What runs in it.
    pub kind: Kind,
    /// Its entry assembly, else what it is called before it was asked.
    pub name: String,
    /// The arguments, program first.
    pub command_line: String,
    /// Of the runtime.
    pub runtime_version: Option<String>,
    /// The processor that it is compiled for.
    pub arch: Option<String>,
    /// Its user, by name where there is one.
    pub user: String,
    /// The container's id, if there is one.
    pub container: Option<String>,
    /// Whether it waits at its start, where that can be seen.
    pub suspended: Option<bool>,
    /// Whether it answers.
    pub reachable: bool,
    /// Why it does not.
    pub reason: Option<Code>,
    /// Where it was asked.
    pub socket: Option<String>,
    /// Other names that it can be chosen by.
    aliases: [String; 2],
}

impl Seen {
    /// Before it is asked.
    pub fn unasked(process: &Process) -> Self {
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
            aliases: [process.comm.clone(), local_name(process)],
        }
    }

    /// What another machine's router says of a process.
    pub fn remote(listed: &RemoteProcess, address: String) -> Self {
        let known = |text: &str| Some(text.to_owned()).filter(|text| !text.is_empty());
        Self {
            pid: listed.pid,
            kind: Kind::Dotnet,
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
            aliases: Default::default(),
        }
    }

    /// What these say, by name, then by pid. Every runtime is asked at the same time: a busy one costs the others nothing.
    pub async fn all(processes: Vec<Process>) -> Vec<Self> {
        let (dotnet, others): (Vec<_>, Vec<_>) =
            processes.into_iter().partition(|process| process.kind == Kind::Dotnet);
        let mut seen: Vec<Self> = others.iter().map(Self::unasked).collect();
        let mut unreached = Vec::new();
        for (process, answer) in dotnet.iter().zip(ask_all(&dotnet, DEADLINE).await) {
            let mut one = Self::unasked(process);
            match answer {
                Answer::Answered(info) => {
                    one.reachable = true;
                    // .NET Core 3 can't say who it is.
                    if let Some(info) = info {
                        one.suspended = is_suspended(process, &info);
                        one.describe(*info);
                    }
                    seen.push(one);
                }
                Answer::NotAsked => unreached.push((one, Answer::Silent)),
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

    /// Whether it is called so, or has this process id.
    pub fn is_called(&self, wanted: &str) -> bool {
        self.name == wanted
            || self.aliases.iter().any(|alias| alias == wanted)
            || self.pid.to_string() == wanted
    }
}

/// By name, then by pid.
pub(crate) fn sort(seen: &mut [Seen]) {
    seen.sort_by(|a, b| (&a.name, a.pid).cmp(&(&b.name, b.pid)));
}

/// Why they can't be reached, in the words of the doctor. When all are asked: nobody waits for what is looked at now.
async fn with_reasons(unreached: Vec<(Seen, Answer)>) -> impl Iterator<Item = Seen> {
    let asked: Vec<(u32, Answer)> =
        unreached.iter().map(|(seen, answer)| (seen.pid, answer.clone())).collect();
    // How long that takes is for the processes to choose. Without a thread nothing is known.
    let looked = in_a_thread(move || crate::doctor::reasons(&System::current(), asked)).await;
    let mut reasons = looked.unwrap_or_default().into_iter();
    unreached.into_iter().filter_map(move |(mut seen, answer)| {
        seen.reason = reasons.next().flatten();
        let is_foreign = matches!(answer, Answer::Foreign(_));
        // It has ended while it was asked, or is no runtime: somebody else has made a socket with its name.
        let is_none =
            seen.reason == Some(Code::NoSuchProcess) || is_foreign && seen.reason == Some(Code::NotDotnet);
        (!is_none).then_some(seen)
    })
}

/// Whether the runtime waits at its start. No command asks this; but such a runtime reports the host alone as its
/// command line, without the arguments that the process has, and it has not made all its threads. `None` where that
/// can't be seen.
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
