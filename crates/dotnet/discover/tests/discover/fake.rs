//! A fake system: a `/proc`, a `/tmp` and users below a temporary directory.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};

use runtap_discover::{Options, Process, Reason, System};
use runtap_transport::naming::SocketName;
use rustix::fs::{AtFlags, CWD, FileType, Mode, Timespec, Timestamps};
use tempfile::TempDir;

pub(crate) const RUNTIME: &str = "7f0000000000-7f0000001000 r-xp 0 08:01 1 /opt/dotnet/libcoreclr.so\n";

/// A fake system below a temporary directory.
pub(crate) struct Fake {
    pub(crate) dir: TempDir,
}

pub(crate) struct FakeProcess {
    pub(crate) pid: u32,
    pub(crate) ns_pid: u32,
    pub(crate) start: u64,
    pub(crate) uid: u32,
    pub(crate) mount: &'static str,
    pub(crate) pid_ns: &'static str,
    pub(crate) environ: Vec<u8>,
    pub(crate) maps: &'static str,
    /// The names of its threads.
    pub(crate) threads: &'static [&'static str],
    /// Additional lines of its `status`.
    pub(crate) status: &'static str,
    pub(crate) state: char,
}

impl FakeProcess {
    pub(crate) fn new(pid: u32, start: u64) -> Self {
        Self {
            pid,
            ns_pid: pid,
            start,
            uid: 1000,
            mount: "mnt:[1]",
            pid_ns: "pid:[1]",
            environ: Vec::new(),
            maps: RUNTIME,
            threads: &["dotnet", ".NET Finalizer"],
            status: "",
            state: 'S',
        }
    }

    pub(crate) fn tmpdir(mut self, dir: &Path) -> Self {
        self.environ = format!("A=b\0TMPDIR={}\0", dir.display()).into_bytes();
        self
    }
}

impl Fake {
    pub(crate) fn new() -> Self {
        let dir = tempfile::tempdir().unwrap();
        let fake = Self { dir };
        for folder in ["proc/self", "proc/net", "tmp", "etc"] {
            fs::create_dir_all(fake.path(folder)).unwrap();
        }
        fs::write(fake.path("etc/passwd"), "root:x:0:0::/:\nann:x:1000:1000::/:\n").unwrap();
        fs::write(fake.path("proc/net/unix"), "Num RefCount Protocol Flags Type St Inode Path\n").unwrap();
        fake.namespaces("self", "mnt:[1]", "pid:[1]");
        fake
    }

    pub(crate) fn path(&self, below: impl AsRef<Path>) -> PathBuf {
        self.dir.path().join(below)
    }

    pub(crate) fn namespaces(&self, pid: &str, mount: &str, pid_ns: &str) {
        let folder = self.path(format!("proc/{pid}/ns"));
        fs::create_dir_all(&folder).unwrap();
        let names = ["mnt", "pid", "time", "time_for_children", "user"];
        let targets = [mount, pid_ns, "time:[1]", "time:[1]", "user:[1]"];
        for (name, target) in names.into_iter().zip(targets) {
            symlink(target, folder.join(name)).unwrap();
        }
    }

    pub(crate) fn add(&self, process: &FakeProcess) -> PathBuf {
        let FakeProcess { pid, ns_pid, start, uid, .. } = process;
        let folder = self.path(format!("proc/{pid}"));
        fs::create_dir_all(&folder).unwrap();
        let stat = format!("{pid} (.NET (x) y) {} 1{} {start} 0 0\n", process.state, " 0".repeat(17));
        fs::write(folder.join("stat"), stat).unwrap();
        let status = format!(
            "Name:\tx\nState:\t{} (x)\nTgid:\t{pid}\nUid:\t{uid}\t{uid}\t{uid}\t{uid}\nNSpid:\t{pid}\t{ns_pid}\n{}",
            process.state, process.status
        );
        fs::write(folder.join("status"), status).unwrap();
        fs::write(folder.join("cmdline"), "dotnet\0app dll\0\0").unwrap();
        fs::write(folder.join("environ"), &process.environ).unwrap();
        fs::write(folder.join("maps"), process.maps).unwrap();
        fs::write(folder.join("cgroup"), format!("0::/docker/{}\n", "ab".repeat(32))).unwrap();
        symlink("/opt/dotnet/dotnet", folder.join("exe")).unwrap();
        for (n, name) in process.threads.iter().enumerate() {
            let task = folder.join(format!("task/{}", *pid + u32::try_from(n).unwrap()));
            fs::create_dir_all(&task).unwrap();
            fs::write(task.join("comm"), format!("{name}\n")).unwrap();
        }
        if process.mount == "mnt:[1]" {
            symlink("/", folder.join("root")).unwrap();
        }
        self.namespaces(&pid.to_string(), process.mount, process.pid_ns);
        folder
    }

    /// Creates a socket without a listener: the search never connects.
    pub(crate) fn socket(&self, folder: impl AsRef<Path>, pid: u32, key: u64) -> PathBuf {
        Self::socket_at(self.path(folder).join(SocketName::runtime(pid, key).to_string()))
    }

    pub(crate) fn socket_at(path: PathBuf) -> PathBuf {
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        rustix::fs::mknodat(CWD, &path, FileType::Socket, Mode::RUSR | Mode::WUSR, 0).unwrap();
        path
    }

    /// Sets the modification time of a file in seconds since 1970.
    pub(crate) fn set_modified(path: &Path, seconds: i64) {
        let time = Timespec { tv_sec: seconds, tv_nsec: 0 };
        let times = Timestamps { last_access: time, last_modification: time };
        rustix::fs::utimensat(CWD, path, &times, AtFlags::SYMLINK_NOFOLLOW).unwrap();
    }

    pub(crate) fn bound(&self, path: &Path) {
        let table = self.path("proc/net/unix");
        let line = format!("00: 00000002 00000000 00010000 0001 01 26613 {}\n", path.display());
        fs::write(&table, fs::read_to_string(&table).unwrap() + &line).unwrap();
    }

    pub(crate) fn system(&self) -> System {
        System::at(self.dir.path(), 1000)
    }

    pub(crate) fn all(&self) -> Vec<Process> {
        self.system().processes(Options::default())
    }

    pub(crate) fn reason(&self, pid: u32) -> Reason {
        let error = self.system().process(pid).unwrap_err();
        assert_eq!(error.pid, pid);
        error.reason
    }
}
