//! A chosen process, and how to talk to it.

use std::path::Path;

use runtap_diag::ports::{Port, Runtime};
use runtap_diag::{Client, Error};
use runtap_discover::{Java, Kind, Process};
use runtap_transport::Endpoint;

/// A process that was chosen, and how to talk to it.
#[derive(Debug)]
pub struct Subject {
    /// Asks it.
    pub client: Client,
    /// What discovery knows of it; nothing for a bare port.
    pub process: Option<Process>,
    /// The name that it was chosen by, if it was.
    name: Option<String>,
    /// Its process id on another machine.
    remote: Option<u32>,
    /// It has dialled in, and may be suspended until it is resumed over the same port.
    runtime: Option<Runtime>,
    /// Where it has dialled in: closed when this is dropped.
    _port: Option<Port>,
}

impl Subject {
    /// Whoever answers there, and what is known of the process.
    pub fn new(client: Client, process: Option<Process>) -> Self {
        Self { client, process, name: None, remote: None, runtime: None, _port: None }
    }

    /// Whoever listens on this socket.
    pub fn at_port(path: &Path) -> Self {
        Self::new(Client::new(Endpoint::local(path)), None)
    }

    /// A runtime that has dialled in, on a port that somebody else keeps.
    pub fn dialled_in(runtime: Runtime) -> Self {
        let subject = Self::new(runtime.client(), None);
        Self { runtime: Some(runtime), ..subject }
    }

    /// A runtime that has dialled in, on a port that goes with it.
    pub(crate) fn of_port(port: Port, runtime: Runtime, process: Option<Process>) -> Self {
        Self { process, _port: Some(port), ..Self::dialled_in(runtime) }
    }

    pub(crate) fn on_another_machine(self, pid: u32) -> Self {
        Self { remote: Some(pid), ..self }
    }

    pub(crate) fn chosen_by(self, name: &str) -> Self {
        Self { name: Some(name.to_owned()), ..self }
    }

    /// The name that it was chosen by, and the process that is meant by it: to say which one is going to be changed.
    pub fn chosen_name(&self) -> Option<(&str, &Process)> {
        self.name.as_deref().zip(self.process.as_ref())
    }

    /// The runtime that has dialled in.
    pub fn runtime(&self) -> Option<&Runtime> {
        self.runtime.as_ref()
    }

    /// Whether it is on another machine: nothing of it can be seen here but what it says.
    pub fn is_remote(&self) -> bool {
        self.remote.is_some()
    }

    /// Its process id for us; none for one of another machine.
    pub fn pid(&self) -> Option<u32> {
        let dialled = || self.runtime.as_ref().and_then(|runtime| runtime.peer().pid);
        self.process.as_ref().map(|process| process.pid).or_else(dialled)
    }

    fn any_pid(&self) -> Option<u64> {
        let own = || self.runtime.as_ref().map(Runtime::process_id);
        self.pid().or(self.remote).map(u64::from).or_else(own)
    }

    /// The id that names have to tell it apart; 0 where none is known.
    pub fn number(&self) -> u64 {
        self.any_pid().unwrap_or(0)
    }

    /// Its id in our pid namespace, and in its own where that is known.
    ///
    /// # Errors
    /// Only for a bare port: nobody answers there, or the process can't be seen from here.
    pub async fn pids(&self) -> Result<(u32, Option<u32>), Error> {
        if let Some(process) = &self.process {
            return Ok((process.pid, Some(process.ns_pid)));
        }
        let pid = self.client.process_id().await?;
        let info = self.client.process_info().await.ok();
        Ok((pid, info.and_then(|info| u32::try_from(info.process_id).ok())))
    }

    /// Whether it has dialled in, and is gone.
    pub fn has_ended(&self) -> bool {
        self.runtime.as_ref().is_some_and(Runtime::has_ended)
    }

    /// How messages call it.
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

/// The name that people know a process by, before it was asked: its entry assembly or main class, else the process's own.
pub fn local_name(process: &Process) -> String {
    if process.kind == Kind::Dotnet {
        return name_of(&process.command_line, &process.comm);
    }
    let main = process.java.as_ref().and_then(Java::main);
    main.map_or_else(|| process.comm.clone(), str::to_owned)
}

/// The name of a .NET program by its command line, else the kernel's.
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
    fn a_program_is_called_as_its_assembly() {
        let name = |words: &[&str]| {
            let words: Vec<String> = words.iter().map(|word| (*word).to_owned()).collect();
            name_of(&words, "comm")
        };
        assert_eq!(name(&["dotnet", "/srv/web.dll", "--urls", "x.dll"]), "web");
        assert_eq!(name(&["/usr/bin/dotnet", "exec", "--depsfile", "a.json", "My.App.DLL"]), "My.App.DLL");
        assert_eq!(name(&["dotnet", "--info"]), "dotnet");
        assert_eq!(name(&["/srv/worker/worker", "--verbose"]), "worker");
        // What can't be looked into, and what names itself nothing.
        assert_eq!(name(&[]), "comm");
        assert_eq!(name(&[""]), "comm");
    }

    #[test]
    fn without_a_process_it_is_called_by_its_port() {
        let subject = Subject::at_port(Path::new("/run/x"));
        assert_eq!((subject.pid(), subject.number()), (None, 0));
        assert!(subject.label().starts_with("the process behind "), "{}", subject.label());
    }
}
