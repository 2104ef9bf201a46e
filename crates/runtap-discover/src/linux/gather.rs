//! Gathers the [`Facts`] of one process from `/proc`. Whatever can't be read is left out; nothing is judged.

use std::io;
use std::path::{Path, PathBuf};

use runtap_objfile::{ReadCache, elf};
use runtap_transport::linux::{self, ProcDir, Status};
use runtap_transport::naming::temp_dir;
use runtap_transport::{Folder, Socket};
use rustix::fs::{FileType, Stat, StatVfsMountFlags};

use super::environment::Environment;
use super::facts::{Createdump, Facts, ProcessState, TempDir, TempState};
use super::proc_files::ProcFiles as _;
use super::runtime::{self, Mapped, Runtime};
use super::security;
use super::{FileView, System};
use crate::Startup;

/// What a search knows of a process before it looks closer.
pub(super) struct Found {
    pub status: Status,
    pub start_time: u64,
    pub comm: String,
    pub other_mount: bool,
    pub other_pid: bool,
    pub environment: io::Result<Environment>,
    pub sockets: Vec<Socket>,
    pub deleted: Vec<PathBuf>,
    /// There are more names in its temporary directory than were looked at, and its own is not known.
    pub crowded: bool,
    pub user: String,
}

impl Found {
    /// Whether it is a living process with a socket that can be dialled.
    pub(super) fn is_reachable(&self, pid: u32) -> bool {
        let usable = |socket: &Socket| socket.may_be_its_own() && !self.deleted.contains(&socket.path);
        !matches!(state(&self.status, pid), ProcessState::Thread { .. } | ProcessState::Ended)
            && self.sockets.iter().any(usable)
    }
}

impl System {
    /// Looks closer at a process that was found; what is missing can't be seen.
    pub(super) fn gather(&self, dir: &ProcDir, pid: u32, found: Found, probe: RuntimeProbe) -> Facts {
        let Found { status, environment, sockets, .. } = found;
        let RuntimeProbe { runtime, names, exe } = probe;
        let environment = environment.ok();
        let view = self.file_view_of(dir.clone()).ok();
        let temp = match (&environment, &view) {
            (Some(environment), Some(view)) => Some(temp_of(view, environment)),
            _ => None,
        };
        Facts {
            pid,
            ns_pid: status.ns_pid,
            state: state(&status, pid),
            comm: found.comm,
            command_line: dir.command_line(),
            start_time: found.start_time,
            age: self.uptime().and_then(|now| now.checked_sub(found.start_time)),
            uid: status.uid,
            user: found.user,
            file_uid: status.uids[3],
            capabilities: status.capabilities,
            other_mount_namespace: found.other_mount,
            other_pid_namespace: found.other_pid,
            other_root: view.as_ref().is_some_and(FileView::is_foreign),
            container: dir.container().filter(|_| found.other_mount || found.other_pid),
            hidden: environment.is_none() || view.is_none() || matches!(runtime, Runtime::Hidden { .. }),
            startup: runtime::startup(&runtime, &names),
            serves: runtime::serves(&runtime, &names),
            deleted: found.deleted,
            crowded: found.crowded,
            sockets,
            temp,
            createdump: createdump(view.as_ref(), &runtime, exe.as_deref()),
            exe,
            environment,
            runtime,
            label: security::label(dir),
            policy: self.policy(),
            viewer: self.viewer(),
        }
    }

    /// The facts of what is not there, or is no process.
    pub(super) fn facts_of_none(&self, pid: u32, state: ProcessState) -> Facts {
        Facts { pid, state, policy: self.policy(), viewer: self.viewer(), ..Facts::default() }
    }

    /// Clock ticks since boot: hundredths of a second on every Linux, for programs.
    fn uptime(&self) -> Option<u64> {
        let text = linux::read(&self.proc_root().join("uptime")).ok()?;
        let (seconds, rest) = str::from_utf8(&text).ok()?.split_once('.')?;
        Some(seconds.parse::<u64>().ok()? * 100 + rest.get(..2)?.parse::<u64>().ok()?)
    }
}

/// The signs of a runtime in a process.
#[derive(Debug)]
pub(super) struct RuntimeProbe {
    pub runtime: Runtime,
    /// Names of its threads.
    pub(super) names: Vec<String>,
    exe: Option<PathBuf>,
}

/// Bytes that are read of memory maps: of one process that is asked for, a quarter of a million mappings of files.
pub(super) const MAX_PER_PROCESS: u64 = 32 << 20;
/// Of all: a second.
pub(super) const MAX_TOTAL: u64 = 32 << 20;
/// Of each, whatever was read of others: what small programs have.
const MIN: u64 = 16 << 10;
/// A thread's name takes as long as so many bytes of a memory map.
const THREAD: u64 = 512;
/// Names of threads that are read of each: those of a runtime are among the first.
const MIN_THREADS: usize = 64;

impl RuntimeProbe {
    /// Takes what it reads from `budget`.
    pub(super) fn look(dir: &ProcDir, budget: &mut u64) -> Self {
        let most = usize::try_from(*budget / THREAD).unwrap_or(usize::MAX).max(MIN_THREADS);
        let names = dir.thread_names(None, most);
        *budget = budget.saturating_sub(THREAD.saturating_mul(names.len().try_into().unwrap_or(u64::MAX)));
        Self::with(dir, names, budget)
    }

    fn with(dir: &ProcDir, names: Vec<String>, budget: &mut u64) -> Self {
        let exe = dir.exe();
        Self { runtime: runtime(dir, exe.as_deref(), &names, budget), names, exe }
    }

    /// Nothing speaks for a runtime, though not all was looked at.
    pub(super) fn is_unread(&self) -> bool {
        self.runtime == Runtime::Unread { likely: false }
    }
}

/// How far the runtime of a process has come.
pub(super) fn startup(dir: &ProcDir) -> Startup {
    // One name is enough mostly, and the memory map is long.
    let most = usize::try_from(MAX_PER_PROCESS / THREAD).unwrap_or(usize::MAX);
    let names = dir.thread_names(Some(runtime::FINALIZER), most);
    if names.last().is_some_and(|name| name == runtime::FINALIZER) {
        return Startup::Done;
    }
    let RuntimeProbe { runtime, names, .. } = RuntimeProbe::with(dir, names, &mut { MAX_PER_PROCESS });
    runtime::startup(&runtime, &names)
}

fn runtime(dir: &ProcDir, exe: Option<&Path>, threads: &[String], budget: &mut u64) -> Runtime {
    let likely = runtime::named_like_dotnet(threads);
    let mut mapped = Mapped::default();
    let read = dir.lines("maps", (*budget).max(MIN), |line| {
        mapped.add(line);
        mapped.library.is_some()
    });
    let Ok((n, is_truncated)) = read else { return Runtime::Hidden { likely } };
    *budget = budget.saturating_sub(n);
    let found = mapped.runtime(exe);
    if !matches!(found, Runtime::None | Runtime::SingleFile) {
        return found;
    }
    let names = ["DotNetRuntimeInfo", "DotNetRuntimeDebugHeader"];
    let exports =
        dir.open_executable().ok().map(|exe| elf::exports(&ReadCache::new(&exe), names).unwrap_or_default());
    match exports {
        Some([true, _]) => Runtime::SingleFile,
        Some([_, true]) => Runtime::NativeAot,
        _ if is_truncated => Runtime::Unread { likely },
        _ => found,
    }
}

pub(super) fn state(status: &Status, pid: u32) -> ProcessState {
    match status.state {
        _ if status.tgid != pid => ProcessState::Thread { tgid: status.tgid },
        'Z' | 'X' | 'x' => ProcessState::Ended,
        'T' => ProcessState::Stopped,
        't' => ProcessState::Traced { by: status.tracer },
        _ => ProcessState::Running,
    }
}

fn temp_of(view: &FileView, environment: &Environment) -> TempDir {
    let told = temp_dir(environment.tmpdir.as_deref());
    let path = view.absolute(&told).unwrap_or(told);
    let state = match view.rights() {
        Some(rights) => temp_state(view.folder(&path.join("x")), &rights),
        None => TempState::Unknown,
    };
    TempDir { state, host: view.shown(&path), path }
}

/// Whether a process can make a socket in a folder.
pub(super) fn temp_state(folder: io::Result<Folder>, status: &Status) -> TempState {
    let stat = folder.and_then(|folder| Ok((rustix::fs::fstat(&folder)?, rustix::fs::fstatvfs(&folder))));
    match stat {
        Ok((_, Ok(system))) if system.f_flag.contains(StatVfsMountFlags::RDONLY) => TempState::ReadOnly,
        Ok((stat, _)) if !permits(&stat, status, 0o3) => TempState::NotWritable,
        Ok(_) => TempState::Fine,
        Err(error) => match error.kind() {
            io::ErrorKind::NotFound | io::ErrorKind::NotADirectory => TempState::Missing,
            _ => TempState::Unknown,
        },
    }
}

/// Whether the mode of a file gives a process all of these rights (`rwx` as in one octal digit). Access lists are not
/// looked at.
pub(super) fn permits(file: &Stat, status: &Status, rights: u32) -> bool {
    let mode = file.st_mode;
    if status.capabilities.overrides_modes() {
        // Even then somebody has to be allowed to execute a file.
        let is_folder = FileType::from_raw_mode(mode) == FileType::Directory;
        return is_folder || rights & 1 == 0 || mode & 0o111 != 0;
    }
    let digit = if status.effective_uid == file.st_uid {
        mode >> 6
    } else if status.effective_gid == file.st_gid || status.groups.contains(&file.st_gid) {
        mode >> 3
    } else {
        mode
    };
    digit & rights == rights
}

/// Beside the runtime's library, or beside a single-file program, where it need not be.
fn createdump(view: Option<&FileView>, runtime: &Runtime, exe: Option<&Path>) -> Createdump {
    let (beside, needed) = match runtime {
        Runtime::NativeAot => return Createdump::Unsupported,
        Runtime::CoreClr { library } => (Some(library.as_path()), true),
        Runtime::SingleFile => (exe, false),
        _ => (None, false),
    };
    let (Some(view), Some(folder)) = (view, beside.and_then(Path::parent)) else {
        return Createdump::Unknown;
    };
    let path = folder.join("createdump");
    match view.is_executable(&path) {
        Ok(true) => Createdump::Ready(path),
        Ok(false) => Createdump::NotExecutable(path),
        Err(error) if error.kind() == io::ErrorKind::NotFound && needed => Createdump::Missing(path),
        Err(_) => Createdump::Unknown,
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;
    use crate::Capabilities;

    #[test]
    fn modes_for_owner_group_and_others() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("x");
        fs::write(&path, "").unwrap();
        let me = rustix::fs::stat(&path).unwrap();
        let process = |uid, gid, groups: &[u32], capabilities| Status {
            effective_uid: uid,
            effective_gid: gid,
            groups: groups.to_vec(),
            capabilities: Capabilities(capabilities),
            ..Status::default()
        };
        let (uid, gid) = (me.st_uid, me.st_gid);
        let set = |mode| {
            use std::os::unix::fs::PermissionsExt;
            fs::set_permissions(&path, fs::Permissions::from_mode(mode)).unwrap();
            rustix::fs::stat(&path).unwrap()
        };
        for (mode, expected) in
            [(0o100, [true, false, false]), (0o010, [false, true, false]), (0o001, [false, false, true])]
        {
            let meta = set(mode);
            let owner = process(uid, gid, &[], 0);
            let member = process(uid + 1, gid + 1, &[5, gid], 0);
            let other = process(uid + 1, gid + 1, &[], 0);
            assert_eq!([&owner, &member, &other].map(|who| permits(&meta, who, 1)), expected, "{mode:o}");
            assert!(permits(&meta, &process(uid + 1, gid + 1, &[], 1 << 1), 1), "one that overrides modes");
        }
        assert!(!permits(&set(0o666), &process(uid + 1, 0, &[], 1 << 1), 1), "nobody may execute it");
    }
}
