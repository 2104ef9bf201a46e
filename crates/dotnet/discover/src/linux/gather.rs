//! Gathers the [`Facts`] about one process from `/proc`. What can't be read is left out; nothing is judged.

use std::ffi::OsStr;
use std::io::{self, Read, Seek, SeekFrom};
use std::path::{Path, PathBuf};

use runtap_os::objfile::{ReadCache, elf};
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

/// What a search knows about a process before its runtime is examined.
pub(super) struct FoundProcess {
    pub status: Status,
    pub start_time: u64,
    pub comm: String,
    pub other_mount: bool,
    pub other_pid: bool,
    pub environment: io::Result<Environment>,
    pub sockets: Vec<Socket>,
    pub deleted: Vec<PathBuf>,
    /// Whether its own socket may be among entries of its temporary directory that were not checked.
    pub crowded: bool,
    pub user: String,
}

impl FoundProcess {
    /// Whether the process runs and has a socket that can be connected to.
    pub(super) fn is_reachable(&self, pid: u32) -> bool {
        let usable = |socket: &Socket| socket.may_be_its_own() && !self.deleted.contains(&socket.path);
        !matches!(state(&self.status, pid), ProcessState::Thread { .. } | ProcessState::Ended)
            && self.sockets.iter().any(usable)
    }
}

impl System {
    /// Gathers the facts about a process that was found.
    pub(super) fn gather(&self, dir: &ProcDir, pid: u32, found: FoundProcess, probe: RuntimeProbe) -> Facts {
        let FoundProcess { status, environment, sockets, .. } = found;
        let RuntimeProbe { runtime, names, exe } = probe;
        let environment = environment.ok();
        let view = self.file_view_of(dir.clone()).ok();
        let temp = match (&environment, &view) {
            (_, Some(view)) if runtime == Runtime::Jvm => Some(temp_of(view, None)),
            (Some(environment), Some(view)) => Some(temp_of(view, environment.tmpdir.as_deref())),
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
            java: None,
            label: security::label(dir),
            policy: self.policy(),
            viewer: self.viewer(),
        }
    }

    /// Returns the facts about a process that does not exist or is not a process.
    pub(super) fn facts_of_none(&self, pid: u32, state: ProcessState) -> Facts {
        Facts { pid, state, policy: self.policy(), viewer: self.viewer(), ..Facts::default() }
    }

    /// Returns the clock ticks since boot. In user space, a tick is a hundredth of a second on every Linux.
    pub(super) fn uptime(&self) -> Option<u64> {
        let text = linux::read(&self.proc_root().join("uptime")).ok()?;
        let (seconds, rest) = str::from_utf8(&text).ok()?.split_once('.')?;
        Some(seconds.parse::<u64>().ok()? * 100 + rest.get(..2)?.parse::<u64>().ok()?)
    }
}

/// The signs of a runtime in a process.
#[derive(Debug)]
pub(super) struct RuntimeProbe {
    pub runtime: Runtime,
    /// The names of the threads.
    pub(super) names: Vec<String>,
    exe: Option<PathBuf>,
}

/// The number of bytes of a memory map that are read for a single process: a quarter of a million file mappings.
pub(super) const MAX_PER_PROCESS: u64 = 32 << 20;
/// The number of bytes of memory maps that are read in a scan of all processes. Reading that much takes a second.
pub(super) const MAX_TOTAL: u64 = 32 << 20;
/// The number of bytes that are read for each process even if the budget is used up. Enough for small programs.
const MIN: u64 = 16 << 10;
/// The number of bytes that are read of each executable even if the budget is used up. Enough for ordinary programs.
const MIN_OF_EXECUTABLE: u64 = 256 << 10;
/// Reading a thread's name takes as long as reading this many bytes of a memory map.
const THREAD: u64 = 512;
/// The number of thread names that are read for each process in any case. A runtime's threads are among the first.
const MIN_THREADS: usize = 64;

impl RuntimeProbe {
    /// Probes a process and subtracts what is read from `budget`.
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

    /// Whether no sign of a runtime was found, but not everything was read.
    pub(super) fn is_unread(&self) -> bool {
        self.runtime == Runtime::Unread { likely: false }
    }
}

/// Returns the progress of the startup of a process's runtime.
pub(super) fn startup(dir: &ProcDir) -> Startup {
    // Usually one thread name is enough, and reading the memory map takes long.
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
    if !matches!(found, Runtime::None | Runtime::SingleFile | Runtime::Jvm) {
        return found;
    }
    let names = ["DotNetRuntimeInfo", "DotNetRuntimeDebugHeader"];
    let exports = dir.open_executable().map_or(Some([false; 2]), |exe| exports_of(&exe, names, budget));
    match exports {
        Some([true, _]) => Runtime::SingleFile,
        Some([_, true]) => Runtime::NativeAot,
        // Known signs outweigh the parts that were not read.
        _ if found == Runtime::Jvm => found,
        None => Runtime::Unread { likely },
        Some(_) if is_truncated => Runtime::Unread { likely },
        Some(_) => found,
    }
}

/// Returns which of these names an executable exports, or `None` if the budget does not suffice. Bytes beyond [`MIN_OF_EXECUTABLE`]
/// are subtracted from `budget`.
fn exports_of<R: Read + Seek>(exe: R, names: [&str; 2], budget: &mut u64) -> Option<[bool; 2]> {
    let most = budget.saturating_add(MIN_OF_EXECUTABLE);
    let mut exe = Limited { inner: exe, left: most, is_over: false };
    let exports = elf::exports(&ReadCache::new(&mut exe), names);
    let read = most.saturating_sub(exe.left);
    *budget = budget.saturating_sub(read.saturating_sub(MIN_OF_EXECUTABLE));
    match exports {
        Err(_) if exe.is_over => None,
        exports => Some(exports.unwrap_or_default()),
    }
}

/// A reader that fails after a number of bytes.
struct Limited<R> {
    inner: R,
    left: u64,
    is_over: bool,
}

impl<R: Read> Read for Limited<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let most = usize::try_from(self.left).unwrap_or(usize::MAX).min(buffer.len());
        if most < buffer.len() {
            self.is_over = true;
            return Err(io::Error::other("the file is longer than the limit"));
        }
        let n = self.inner.read(buffer)?;
        self.left = self.left.saturating_sub(n.try_into().unwrap_or(u64::MAX));
        Ok(n)
    }
}

impl<R: Seek> Seek for Limited<R> {
    fn seek(&mut self, to: SeekFrom) -> io::Result<u64> {
        self.inner.seek(to)
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

fn temp_of(view: &FileView, tmpdir: Option<&OsStr>) -> TempDir {
    let told = temp_dir(tmpdir);
    let path = view.absolute(&told).unwrap_or(told);
    let state = match view.rights() {
        Some(rights) => temp_state(view.folder(&path.join("x")), &rights),
        None => TempState::Unknown,
    };
    TempDir { state, host: view.shown(&path), path }
}

/// Returns whether a process can create a socket in a directory.
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

/// Whether the mode of a file grants a process all of these rights (`rwx` as in one octal digit). Access control lists are ignored.
pub(super) fn permits(file: &Stat, status: &Status, rights: u32) -> bool {
    let mode = file.st_mode;
    if status.capabilities.overrides_modes() {
        // Execution requires that at least one execute bit is set, even with all capabilities.
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

/// Looks for the helper beside the runtime's library, or beside a single-file program, where it is optional.
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

    /// An executable with the maximum number of sections, of which the last one has the names: about 8 MiB.
    fn slow_executable() -> Vec<u8> {
        const SECTIONS: u16 = 65_279;
        let names = [b"DotNetRuntimeInfo\0".to_vec(), b"a\0".repeat(2 << 20)].concat();
        let mut bytes = b"\x7fELF\x02\x01\x01".to_vec();
        bytes.resize(64, 0);
        bytes[40] = 64;
        bytes[58] = 64;
        bytes[60..62].copy_from_slice(&SECTIONS.to_le_bytes());
        bytes.resize(64 + 64 * (usize::from(SECTIONS) - 1), 0);
        let mut last = [0; 64];
        (last[4], last[8]) = (3, 2);
        last[24..32].copy_from_slice(&u64::to_le_bytes(64 * (u64::from(SECTIONS) + 1)));
        last[32..40].copy_from_slice(&u64::to_le_bytes(4 << 20));
        [bytes, last.to_vec(), names].concat()
    }

    #[test]
    fn large_executables_use_up_the_budget_of_their_user() {
        let (slow, ordinary) = (slow_executable(), std::env::current_exe().unwrap());
        let names = ["DotNetRuntimeInfo", "DotNetRuntimeDebugHeader"];
        let read = |budget: &mut u64| exports_of(io::Cursor::new(&slow), names, budget);
        let mut budget = MAX_TOTAL / 4;
        assert_eq!(read(&mut budget), Some([true, false]));
        assert!(budget < 1 << 20, "{budget} bytes are left");
        let left = budget;
        for _ in 0..300 {
            assert_eq!(read(&mut budget), None);
        }
        assert!(budget <= left);
        // Ordinary executables do not count, and are read even if the budget is used up.
        let mut budget = 0;
        assert_eq!(exports_of(fs::File::open(ordinary).unwrap(), names, &mut budget), Some([false; 2]));
    }

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
        assert!(!permits(&set(0o666), &process(uid + 1, 0, &[], 1 << 1), 1), "no user may execute it");
    }
}
