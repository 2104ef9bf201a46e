//! A selected process: a .NET process with the client that connects to it, or a Java program.

use std::path::Path;

use runtap_diag::ports::{Port, Runtime};
use runtap_diag::{Client, Error};
use runtap_discover::{Java, Process, ProcessKind};
use runtap_transport::Endpoint;

use crate::jvm::JvmTarget;

/// A selected process of either kind.
#[derive(Debug)]
pub enum ManagedTarget {
    /// A .NET process, or the process behind a port.
    Dotnet(Box<ResolvedTarget>),
    /// A Java program.
    Jvm(JvmTarget),
}

impl ManagedTarget {
    /// Returns the .NET process.
    ///
    /// # Errors
    /// Returns an error if it is a Java program.
    pub fn into_dotnet(self) -> Result<ResolvedTarget, crate::Error> {
        match self {
            Self::Dotnet(target) => Ok(*target),
            Self::Jvm(target) => Err(crate::Error::Java(target)),
        }
    }

    /// Separates .NET processes and Java programs.
    pub fn split(targets: Vec<Self>) -> (Vec<ResolvedTarget>, Vec<JvmTarget>) {
        let (mut dotnet, mut jvms) = (Vec::new(), Vec::new());
        for target in targets {
            match target {
                Self::Dotnet(target) => dotnet.push(*target),
                Self::Jvm(target) => jvms.push(target),
            }
        }
        (dotnet, jvms)
    }

    /// Returns the process. `None` for a bare port.
    pub fn process(&self) -> Option<&Process> {
        match self {
            Self::Dotnet(target) => target.process.as_ref(),
            Self::Jvm(target) => Some(&target.process),
        }
    }
}

impl From<ResolvedTarget> for ManagedTarget {
    fn from(target: ResolvedTarget) -> Self {
        Self::Dotnet(Box::new(target))
    }
}

/// A selected .NET process and the client that connects to it.
#[derive(Debug)]
pub struct ResolvedTarget {
    /// Sends commands to the process.
    pub client: Client,
    /// What discovery knows about the process. `None` for a bare port.
    pub process: Option<Process>,
    /// The name that selected it. `None` if it was selected in another way.
    name: Option<String>,
    /// The process id on a remote machine.
    remote: Option<u32>,
    /// The runtime, if it connected to a port. It may be suspended until it is resumed over that port.
    runtime: Option<Runtime>,
    /// The port to which the runtime connected. Closed on drop.
    _port: Option<Port>,
}

impl ResolvedTarget {
    /// Creates a target from a client and what is known about its process.
    pub fn new(client: Client, process: Option<Process>) -> Self {
        Self { client, process, name: None, remote: None, runtime: None, _port: None }
    }

    /// Creates a target for the runtime that listens on this socket.
    pub fn at_port(path: &Path) -> Self {
        Self::new(Client::new(Endpoint::local(path)), None)
    }

    /// Creates a target for a runtime that connected to a port which the caller owns.
    pub fn connected(runtime: Runtime) -> Self {
        let subject = Self::new(runtime.client(), None);
        Self { runtime: Some(runtime), ..subject }
    }

    /// Creates a target for a runtime that connected to a port which the target then owns.
    pub(crate) fn of_port(port: Port, runtime: Runtime, process: Option<Process>) -> Self {
        Self { process, _port: Some(port), ..Self::connected(runtime) }
    }

    pub(crate) fn on_another_machine(self, pid: u32) -> Self {
        Self { remote: Some(pid), ..self }
    }

    pub(crate) fn chosen_by(self, name: &str) -> Self {
        Self { name: Some(name.to_owned()), ..self }
    }

    /// Returns the name that selected the process, and the process, so that messages can state which process is about to be changed.
    pub fn chosen_name(&self) -> Option<(&str, &Process)> {
        self.name.as_deref().zip(self.process.as_ref())
    }

    /// Returns the runtime if it connected to a port.
    pub fn runtime(&self) -> Option<&Runtime> {
        self.runtime.as_ref()
    }

    /// Whether the process is on another machine, so that nothing but its answers can be seen here.
    pub fn is_remote(&self) -> bool {
        self.remote.is_some()
    }

    /// Returns the process id in this process's PID namespace. `None` for a remote process.
    pub fn pid(&self) -> Option<u32> {
        let connected = || self.runtime.as_ref().and_then(|runtime| runtime.peer().pid);
        self.process.as_ref().map(|process| process.pid).or_else(connected)
    }

    fn any_pid(&self) -> Option<u64> {
        let own = || self.runtime.as_ref().map(Runtime::process_id);
        self.pid().or(self.remote).map(u64::from).or_else(own)
    }

    /// Returns the number that file names use to tell processes apart. 0 if unknown.
    pub fn number(&self) -> u64 {
        self.any_pid().unwrap_or(0)
    }

    /// Returns the process id in this process's PID namespace, and the one in the process's own namespace if known.
    ///
    /// # Errors
    /// Fails only for a bare port, if nothing answers there or the process cannot be seen from here.
    pub async fn pids(&self) -> Result<(u32, Option<u32>), Error> {
        if let Some(process) = &self.process {
            return Ok((process.pid, Some(process.ns_pid)));
        }
        let pid = self.client.process_id().await?;
        let info = self.client.process_info().await.ok();
        Ok((pid, info.and_then(|info| u32::try_from(info.process_id).ok())))
    }

    /// Whether the runtime connected to a port and has since exited.
    pub fn has_ended(&self) -> bool {
        self.runtime.as_ref().is_some_and(Runtime::has_ended)
    }

    /// Returns the name of the target for messages.
    pub fn label(&self) -> String {
        if self.is_remote() {
            return self.client.endpoint().to_string();
        }
        match self.any_pid() {
            Some(pid) => format!("process {pid}"),
            None => format!("the process behind {}", self.client.endpoint()),
        }
    }
}

/// Returns the usual name of a process without querying it: the entry assembly or main class, or else the kernel's name.
pub fn local_name(process: &Process) -> String {
    if process.kind == ProcessKind::Dotnet {
        return name_of(&process.command_line, &process.comm);
    }
    let main = process.java.as_ref().and_then(Java::main);
    main.map_or_else(|| process.comm.clone(), str::to_owned)
}

/// Returns the name of a .NET program according to its command line, or else the kernel's name.
pub fn name_of(command_line: &[String], comm: &str) -> String {
    let file_stem = |path: &str| {
        let file = path.rsplit(['/', std::path::MAIN_SEPARATOR]).next().unwrap_or(path);
        file.strip_suffix(".dll").unwrap_or(file).to_owned()
    };
    match command_line.first().map(|program| file_stem(program)).as_deref() {
        Some("dotnet") => {
            let is_assembly =
                |arg: &&String| Path::new(arg).extension().is_some_and(|e| e.eq_ignore_ascii_case("dll"));
            let assembly = command_line.iter().skip(1).find(is_assembly);
            assembly.map_or_else(|| "dotnet".to_owned(), |path| file_stem(path))
        }
        Some(host) if !host.is_empty() => host.to_owned(),
        _ => comm.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_program_is_named_after_its_assembly() {
        let name = |words: &[&str]| {
            let words: Vec<String> = words.iter().map(|word| (*word).to_owned()).collect();
            name_of(&words, "comm")
        };
        assert_eq!(name(&["dotnet", "/srv/web.dll", "--urls", "x.dll"]), "web");
        assert_eq!(name(&["/usr/bin/dotnet", "exec", "--depsfile", "a.json", "My.App.DLL"]), "My.App.DLL");
        assert_eq!(name(&["dotnet", "--info"]), "dotnet");
        assert_eq!(name(&["/srv/worker/worker", "--verbose"]), "worker");
        // A process that is not readable, and one with an empty name.
        assert_eq!(name(&[]), "comm");
        assert_eq!(name(&[""]), "comm");
    }

    #[test]
    fn without_a_process_it_is_named_after_its_port() {
        let subject = ResolvedTarget::at_port(Path::new("/run/x"));
        assert_eq!((subject.pid(), subject.number()), (None, 0));
        assert!(subject.label().starts_with("the process behind "), "{}", subject.label());
    }
}
