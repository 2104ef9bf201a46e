//! Discovery without `/proc`, for macOS. A runtime's socket is in TMPDIR, which is a directory per user there, and its key is the
//! start time of the process in seconds since 1970.
//!
//! Processes are listed by `ps`, so everything is tested on Linux; it has never been run on macOS. Not supported: directories of
//! sandboxed application groups, and directories of other users. Source: "Naming and Location Conventions" of the specification.

pub(crate) mod process_list;

use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::fs;
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::fs::{FileTypeExt, MetadataExt};
use std::path::{Path, PathBuf};

use runtap_transport::naming::SocketName;
use runtap_transport::{Socket, SocketState};
use rustix::fs::{Mode, OFlags};

use self::process_list::Listed;
use crate::jvm::{self, Counters};
use crate::rank::{FileStatus, FoundSocket, SocketFile, rank};
use crate::{NotFound, Options, Process, ProcessKind, Reason};

/// Returns the managed processes with a socket, or with counters of a Java virtual machine, in `temp`, ordered by process id.
pub(super) fn processes(temp: &Path, uid: u32, options: Options) -> Vec<Process> {
    let folder = Folder::read(temp);
    let mut found = Vec::new();
    let mut budget = jvm::MAX_READ;
    for listed in process_list::all() {
        if !(options.all_users || uid == 0 || listed.uid == uid) {
            continue;
        }
        let sockets = folder.of(&listed);
        if sockets.iter().any(Socket::may_be_its_own) {
            found.push(describe(listed, ProcessKind::Dotnet, sockets));
        } else if options.jvm {
            let open = |name: &OsStr| open(temp, name);
            if let Some((java, _)) = folder.counters.of_process(listed.uid, listed.pid, &mut budget, open) {
                found.push(Process { java: Some(java), ..describe(listed, ProcessKind::Jvm, Vec::new()) });
            }
        }
    }
    found.sort_by_key(|process| process.pid);
    found
}

/// Returns the .NET process `pid`.
pub(super) fn process(temp: &Path, uid: u32, pid: u32) -> Result<Process, NotFound> {
    let not_found = |reason, looked_at| Err(NotFound { pid, reason, looked_at });
    let Some(listed) = listed(pid) else { return not_found(Reason::NoSuchProcess, Vec::new()) };
    let sockets = Folder::read(temp).of(&listed);
    if sockets.iter().any(Socket::may_be_its_own) {
        return Ok(describe(listed, ProcessKind::Dotnet, sockets));
    }
    let looked_at = vec![format!("{}: {} sockets with its pid", temp.display(), sockets.len())];
    if uid != 0 && listed.uid != uid {
        return not_found(Reason::OtherUser { uid: listed.uid, user: listed.user }, looked_at);
    }
    if sockets.is_empty() {
        return not_found(Reason::NotDotnet, looked_at);
    }
    not_found(
        Reason::StaleSocket { sockets: sockets.into_iter().map(|socket| socket.path).collect() },
        looked_at,
    )
}

/// Returns the start time of a process in seconds since 1970, which is the key in the name of its socket.
pub(super) fn start_time(pid: u32) -> Option<u64> {
    listed(pid).map(|listed| listed.start)
}

/// Returns the processes that have `text` in their initial environment or in their command line, which `ps` does not separate. Only
/// processes of the current user are visible; root sees all.
pub(super) fn started_with(text: &[u8], asked: impl Fn(u32) -> bool) -> Vec<u32> {
    process_list::with_environment(text)
        .into_iter()
        .filter(|pid| *pid != std::process::id() && asked(*pid))
        .collect()
}

fn listed(pid: u32) -> Option<Listed> {
    process_list::all().into_iter().find(|listed| listed.pid == pid)
}

/// The relevant entries of a temporary directory.
struct Folder {
    sockets: BTreeMap<u32, Vec<(PathBuf, SocketName)>>,
    counters: Counters,
}

impl Folder {
    fn read(temp: &Path) -> Self {
        let mut sockets: BTreeMap<u32, Vec<_>> = BTreeMap::new();
        let mut folders: Vec<OsString> = Vec::new();
        for entry in fs::read_dir(temp).into_iter().flatten().flatten() {
            let file = entry.file_name();
            let Some(text) = file.to_str() else { continue };
            if let Some(name) = SocketName::parse(text) {
                sockets.entry(name.pid).or_default().push((entry.path(), name));
            } else if text.starts_with("hsperfdata_") {
                folders.push(file);
            }
        }
        Self { sockets, counters: Counters::of(&folders, |name| open(temp, name)) }
    }

    fn of(&self, listed: &Listed) -> Vec<Socket> {
        let found = self.sockets.get(&listed.pid).cloned().unwrap_or_default();
        // Only this process's directory is readable, and the system does not report who has bound a socket.
        let found = found.into_iter().map(|(path, name)| FoundSocket {
            socket: Socket::new(path, name, SocketState::Unknown),
            in_own_dir: false,
            is_bound: false,
        });
        rank(found, Some(&|key| key == listed.start), listed.uid, look).sockets
    }
}

/// Opens a directory in another one without following symbolic links.
fn open(temp: &Path, name: &OsStr) -> io::Result<OwnedFd> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    Ok(rustix::fs::open(temp.join(name), flags, Mode::empty())?)
}

fn look(socket: &Socket) -> FileStatus {
    match fs::symlink_metadata(&socket.path) {
        Ok(meta) if meta.file_type().is_socket() => FileStatus::Socket(SocketFile {
            identity: (meta.dev(), meta.ino()),
            owner: meta.uid(),
            modified: (meta.mtime(), meta.mtime_nsec()),
        }),
        Ok(_) => FileStatus::NoSocket,
        Err(error) if error.kind() == io::ErrorKind::NotFound => FileStatus::Gone,
        Err(_) => FileStatus::Hidden,
    }
}

fn describe(listed: Listed, kind: ProcessKind, sockets: Vec<Socket>) -> Process {
    let Listed { pid, uid, user, start, command } = listed;
    // `ps` does not separate arguments, so a path with spaces is truncated.
    let command_line: Vec<String> = command.split_whitespace().map(str::to_owned).collect();
    let exe = command_line.first().map(PathBuf::from);
    let comm = exe.as_deref().and_then(Path::file_name).map(|name| name.to_string_lossy().into_owned());
    Process {
        pid,
        ns_pid: pid,
        kind,
        start_time: start,
        uid,
        user,
        comm: comm.unwrap_or_default(),
        exe,
        command_line,
        java: None,
        sockets,
        other_mount_namespace: false,
        other_pid_namespace: false,
        container: None,
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::net::UnixListener;

    use runtap_testkit::require;

    use super::*;

    /// The test process itself; its start time comes from `ps`, as on macOS.
    #[test]
    fn a_process_is_found_by_its_start() {
        require!(process_list::is_there());
        let dir = tempfile::tempdir().unwrap();
        let (me, uid) = (std::process::id(), rustix::process::geteuid().as_raw());
        let start = start_time(me).unwrap();
        let own = |processes: Vec<Process>| processes.into_iter().find(|process| process.pid == me);
        let all = || own(processes(dir.path(), uid, Options::default()));
        assert_eq!(all(), None);
        assert_eq!(process(dir.path(), uid, me).unwrap_err().reason, Reason::NotDotnet);

        let place = |key: u64| dir.path().join(SocketName::runtime(me, key).to_string());
        drop(UnixListener::bind(place(start - 1)).unwrap());
        assert_eq!(all(), None, "stale");
        let reason = process(dir.path(), uid, me).unwrap_err().reason;
        assert_eq!(reason, Reason::StaleSocket { sockets: vec![place(start - 1)] });

        drop(UnixListener::bind(place(start)).unwrap());
        let found = all().unwrap();
        assert_eq!(found, process(dir.path(), uid, me).unwrap());
        assert_eq!((found.start_time, found.uid, found.sockets.len()), (start, uid, 2));
        assert_eq!((&found.sockets[0].path, found.sockets[0].state), (&place(start), SocketState::Matching));
        assert!(!found.comm.is_empty() && !found.command_line.is_empty());
        // Another user does not see it, unless all users are requested.
        assert_eq!(own(processes(dir.path(), uid + 1, Options::default())), None);
        assert!(own(processes(dir.path(), uid + 1, Options::default().all_users(true))).is_some());
    }

    #[test]
    fn missing_processes_and_those_of_other_users() {
        require!(process_list::is_there());
        let dir = tempfile::tempdir().unwrap();
        assert_eq!(process(dir.path(), 0, u32::MAX).unwrap_err().reason, Reason::NoSuchProcess);
        let uid = rustix::process::geteuid().as_raw();
        let other = process(dir.path(), uid + 1, std::process::id()).unwrap_err().reason;
        assert!(matches!(other, Reason::OtherUser { uid: told, .. } if told == uid), "{other:?}");
    }

    #[test]
    fn java_machines_by_their_counters() {
        require!(process_list::is_there());
        let dir = tempfile::tempdir().unwrap();
        let (me, uid) = (std::process::id(), rustix::process::geteuid().as_raw());
        fs::create_dir(dir.path().join("hsperfdata_ann")).unwrap();
        fs::write(dir.path().join(format!("hsperfdata_ann/{me}")), "").unwrap();
        let found = processes(dir.path(), uid, Options::default());
        assert!(
            found.iter().any(|process| process.pid == me && process.kind == ProcessKind::Jvm),
            "{found:?}"
        );
    }
}
