//! A process that is to be recorded.

use std::path::Path;

use runtap_diag::Client;
use runtap_diag::ports::Runtime;
use runtap_discover::{Kind, Process};

/// A process that is to be recorded, or at least to go on.
#[derive(Debug)]
pub struct Subject {
    pub(crate) client: Client,
    /// What discovery knows of it.
    pub(crate) process: Option<Process>,
    /// It has dialled in, and may be suspended until it is told to go on over the same port.
    pub(crate) runtime: Option<Runtime>,
}

impl Subject {
    /// Whoever answers there, and what is known of the process.
    pub fn new(client: Client, process: Option<Process>) -> Self {
        Self { client, process, runtime: None }
    }

    pub(crate) fn dialled_in(runtime: Runtime) -> Self {
        Self { client: runtime.client(), process: None, runtime: Some(runtime) }
    }

    /// Its process id for us.
    pub(crate) fn pid(&self) -> Option<u32> {
        let dialled = || self.runtime.as_ref().and_then(|runtime| runtime.peer().pid);
        self.process.as_ref().map(|process| process.pid).or_else(dialled)
    }

    fn any_pid(&self) -> Option<u64> {
        let own = || self.runtime.as_ref().map(Runtime::process_id);
        self.pid().map(u64::from).or_else(own)
    }

    /// The id that names have to tell it apart.
    pub(crate) fn number(&self) -> u64 {
        self.any_pid().unwrap_or(0)
    }

    /// Whether it has dialled in, and is gone.
    pub(crate) fn has_ended(&self) -> bool {
        self.runtime.as_ref().is_some_and(Runtime::has_ended)
    }

    /// How messages call it.
    pub(crate) fn label(&self) -> String {
        match self.any_pid() {
            Some(pid) => format!("process {pid}"),
            None => format!("the process behind {}", self.client.endpoint()),
        }
    }
}

/// The name that people know a process by, before it was asked: its entry assembly, else the process's own.
pub fn local_name(process: &Process) -> String {
    match process.kind {
        Kind::Dotnet => name_of(&process.command_line, &process.comm),
        _ => process.comm.clone(),
    }
}

/// The name of a .NET program by its command line, else the kernel's.
pub fn name_of(command_line: &[String], comm: &str) -> String {
    let file_stem = |path: &str| {
        let file = path.rsplit('/').next().unwrap_or(path);
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
