//! Discovery on Windows. Every runtime has a named pipe with its process id in the name. Pipes are listed as the files of a
//! directory; where that is not supported (Wine), the pipe of every listed process is looked up.
//!
//! Source: "Naming and Location Conventions" of the specification.

use std::fs;
use std::io;
use std::path::Path;

use runtap_os::windows::pipe;
use runtap_os::windows::process::{self, Entry};
use runtap_os::{my_uid, uid_of};
use runtap_transport::naming::{SocketKind, SocketName, owner_of_pipe, windows_pipe, windows_router_pipe};
use runtap_transport::{Socket, SocketState};

use crate::{NotFound, Options, Process, ProcessKind, Reason};

/// The directory of all pipes.
const PIPES: &str = r"\\.\pipe\";

/// Returns the .NET processes, ordered by process id.
pub(super) fn processes(options: Options) -> Vec<Process> {
    let listed = process::list().unwrap_or_default();
    let name = |pid: u32| listed.iter().find(|entry| entry.pid == pid).map(|entry| &*entry.name);
    let pids = match pipes() {
        Ok(pipes) => of_names(pipes.into_iter()),
        Err(_not_listed) => listed.iter().map(|entry| entry.pid).filter(|pid| has_pipe(*pid)).collect(),
    };
    let mut found: Vec<Process> = pids.into_iter().map(|pid| describe(pid, name(pid))).collect();
    found.retain(|process| options.all_users || process.uid == my_uid());
    found
}

/// Returns the .NET process `pid`.
pub(super) fn process(pid: u32) -> Result<Process, NotFound> {
    let entry = process::list().unwrap_or_default().into_iter().find(|entry| entry.pid == pid);
    if has_pipe(pid) {
        return Ok(describe(pid, entry.as_ref().map(|entry| &*entry.name)));
    }
    let looked_at = vec![format!("{PIPES}{}: not there", windows_pipe(pid))];
    let reason = if entry.is_some() { Reason::NotDotnet } else { Reason::NoSuchProcess };
    Err(NotFound { pid, reason, looked_at })
}

/// Describes what is missing in a list of processes here.
pub(super) fn blind_spot() -> Option<String> {
    let error = pipes().err()?;
    Some(format!(
        "the pipes of this system can't be listed ({error}): the pipe of each process was looked up by its id, and those \
         of unlisted processes were not found"
    ))
}

/// Returns a process and its descendants.
pub(super) fn tree(root: u32) -> Vec<u32> {
    let listed = process::list().unwrap_or_default();
    below(root, &listed, |pid| process::start_time(pid).ok())
}

/// Finds descendants. As process ids are reused, a process that is older than its parent is not its child.
fn below(root: u32, listed: &[Entry], since: impl Fn(u32) -> Option<u64>) -> Vec<u32> {
    let mut tree = vec![root];
    let mut at = 0;
    while let Some(parent) = tree.get(at).copied() {
        let began = since(parent);
        let is_child =
            |entry: &&Entry| entry.parent == parent && entry.pid != parent && since(entry.pid) >= began;
        for child in listed.iter().filter(is_child) {
            if !tree.contains(&child.pid) {
                tree.push(child.pid);
            }
        }
        at += 1;
    }
    tree
}

fn pipes() -> io::Result<Vec<String>> {
    let mut names = Vec::new();
    for pipe in fs::read_dir(PIPES)? {
        names.extend(pipe?.file_name().into_string());
    }
    Ok(names)
}

fn has_pipe(pid: u32) -> bool {
    !sockets(pid).is_empty()
}

/// Returns the pipes with the process id: a runtime's and a router's.
fn sockets(pid: u32) -> Vec<Socket> {
    let router = SocketName { pid, key: 0, kind: SocketKind::Router };
    // A pipe vanishes with its process, so it is never stale.
    let both = [
        (windows_pipe(pid), SocketName::runtime(pid, 0), SocketState::Matching),
        (windows_router_pipe(pid), router, SocketState::Router),
    ];
    let there = |(name, socket, state)| {
        let path = Path::new(PIPES).join(name);
        pipe::exists(path.as_os_str()).then(|| Socket::new(path, socket, state))
    };
    both.into_iter().filter_map(there).collect()
}

fn of_names(names: impl Iterator<Item = String>) -> Vec<u32> {
    let mut pids: Vec<u32> = names.filter_map(|name| owner_of_pipe(&name)).collect();
    pids.sort_unstable();
    pids.dedup();
    pids
}

/// Describes a process. The command line of another process is not read, because it is in that process's memory.
fn describe(pid: u32, name: Option<&str>) -> Process {
    let exe = process::program(pid).ok();
    let uid = uid_of(pid);
    let ours = || std::env::var("USERNAME").unwrap_or_else(|_| "ours".to_owned());
    let file = name.unwrap_or_default();
    Process {
        pid,
        ns_pid: pid,
        kind: ProcessKind::Dotnet,
        start_time: process::start_time(pid).unwrap_or(0),
        uid,
        user: if uid == my_uid() { ours() } else { "another".to_owned() },
        comm: file.strip_suffix(".exe").unwrap_or(file).to_owned(),
        command_line: Vec::new(),
        exe,
        java: None,
        sockets: sockets(pid),
        other_mount_namespace: false,
        other_pid_namespace: false,
        container: None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn processes_by_the_names_of_pipes() {
        let names = [
            "dotnet-diagnostic-42",
            "dotnet-diagnostic-dsrouter-9",
            "lsass",
            "dotnet-diagnostic-7",
            "dotnet-diagnostic-",
            "dotnet-diagnostic-42",
        ];
        assert_eq!(of_names(names.into_iter().map(str::to_owned)), [7, 9, 42]);
    }

    #[test]
    fn a_process_older_than_its_parent_is_not_a_child() {
        let entry = |pid, parent| Entry { pid, parent, name: String::new() };
        let listed = [entry(4, 0), entry(8, 4), entry(12, 8), entry(16, 8), entry(20, 20)];
        let since = |pid| Some(if pid == 16 { 1 } else { u64::from(pid) });
        assert_eq!(below(8, &listed, since), [8, 12]);
        assert_eq!(below(20, &listed, since), [20]);
    }

    #[test]
    fn this_process_has_no_pipe() {
        let told = process(std::process::id()).unwrap_err();
        assert_eq!(told.reason, Reason::NotDotnet);
    }
}
