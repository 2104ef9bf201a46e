//! Excessive numbers of names in a directory and of symbolic links. Existing sockets are found, and incomplete searches are
//! reported.

use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Path, PathBuf};

use runtap_discover::Reason;
use runtap_transport::SocketState;
use runtap_transport::naming::SocketName;

use crate::fake::{Fake, FakeProcess};

/// Creates names of one file in a directory, with this process id.
fn crowd(folder: &Path, pid: u32, number: u64) {
    fs::create_dir_all(folder).unwrap();
    let name = |key| folder.join(SocketName::runtime(pid, key).to_string());
    Fake::socket_at(name(0));
    for key in 1..number {
        fs::hard_link(name(0), name(key)).unwrap();
    }
}

impl Fake {
    /// Gives a process its own clock. `ahead` is the readable offset in seconds, if any.
    fn clock_of(&self, pid: &str, ahead: Option<i64>) {
        let folder = self.path(format!("proc/{pid}"));
        for name in ["time", "time_for_children"] {
            let _ = fs::remove_file(folder.join("ns").join(name));
            symlink(format!("time:[{pid}]"), folder.join("ns").join(name)).unwrap();
        }
        if let Some(ahead) = ahead {
            let text = format!("monotonic           0         0\nboottime    {ahead}         0\n");
            fs::write(folder.join("timens_offsets"), text).unwrap();
        }
    }
}

/// A hundred processes with equal ids, each in its own PID namespace, refer to one directory through forty links of two thousand
/// parts each. Nothing is examined twice, and no name through that path.
#[test]
fn a_long_path_is_resolved_once_for_all_names() {
    let fake = Fake::new();
    let folder = fake.path("own");
    crowd(&folder, 1, 1000);
    fs::create_dir(folder.join("d")).unwrap();
    let link = |n: u32| folder.join(format!("link{n}"));
    for n in 0..39 {
        let next = if n == 38 { PathBuf::from(".") } else { link(n + 1).file_name().unwrap().into() };
        symlink(PathBuf::from("d/../".repeat(800)).join(next), link(n)).unwrap();
    }
    for pid in 100..200 {
        let mut process = FakeProcess::new(pid, 900).tmpdir(&link(0));
        (process.ns_pid, process.pid_ns) = (1, "pid:[2]");
        fake.add(&process);
        fake.clock_of(&pid.to_string(), None);
    }
    let facts = fake.system().managed_facts().processes;
    assert_eq!(facts.len(), 100);
    assert_eq!(facts[0].sockets.len(), 1000);
}

#[test]
fn another_clock_does_not_hide_a_socket_among_many() {
    let fake = Fake::new();
    fake.clock_of("self", Some(50));
    let temp = fake.path("tmp");
    crowd(&temp, 77, 60_000);
    fs::set_permissions(&temp, fs::Permissions::from_mode(0o1777)).unwrap();
    for (pid, ahead) in [(42, Some(1050)), (43, None)] {
        let mut process = FakeProcess::new(pid, 90_000).tmpdir(&temp);
        process.threads = &["dotnet", ".NET EventPipe", ".NET Finalizer"];
        fake.add(&process);
        fake.clock_of(&pid.to_string(), ahead);
    }
    fake.socket("tmp", 42, 190_000);
    let found = fake.system().process(42).unwrap();
    let own: Vec<_> = found.sockets.iter().map(|socket| (socket.name.key, socket.state)).collect();
    assert_eq!(own, [(190_000, SocketState::Matching)]);
    assert_eq!(fake.all().iter().map(|process| process.pid).collect::<Vec<_>>(), [42]);
    // If its clock is not readable, its socket may be among the names that were not checked.
    let error = fake.system().process(43).unwrap_err();
    assert_eq!(error.reason, Reason::Crowded { directory: temp });
    assert_eq!(error.reason.code().name(), "tmp-crowded");
    let told = error.looked_at.iter().any(|step| step.contains("not all of them were checked"));
    assert!(told, "{:?}", error.looked_at);
}

/// A socket that is bound in the name of another clock belongs to the process with that clock.
#[test]
fn bound_sockets_are_compared_by_the_process_s_own_clock() {
    let fake = Fake::new();
    fake.clock_of("self", Some(0));
    fake.add(&FakeProcess::new(42, 90_000).tmpdir(&fake.path("own")));
    fake.clock_of("42", Some(-100));
    let own = fake.socket("elsewhere", 42, 80_000);
    fake.bound(&own);
    // By this process's clock it would match.
    fake.bound(&fake.socket("decoy", 42, 90_000));
    let found = fake.system().process(42).unwrap();
    assert_eq!(found.sockets.iter().map(|socket| &socket.path).collect::<Vec<_>>(), [&own]);
}

/// A process whose `/tmp` is behind forty links of two thousand parts each, and has thousands of directories with Java's counters.
/// The path is resolved once; resolving it for each would take minutes.
#[test]
fn a_long_path_to_counters_is_resolved_once() {
    let fake = Fake::new();
    let mut process = FakeProcess::new(43, 901);
    (process.uid, process.ns_pid) = (rustix::process::getuid().as_raw(), 6);
    (process.mount, process.pid_ns) = ("mnt:[2]", "pid:[2]");
    fake.add(&process);
    let root = fake.path("proc/43/root");
    let counters = root.join("own");
    fs::create_dir_all(counters.join("hsperfdata_a")).unwrap();
    fs::create_dir(root.join("d")).unwrap();
    fs::write(counters.join("hsperfdata_a/6"), "").unwrap();
    for n in 0..9_000 {
        fs::create_dir(counters.join(format!("hsperfdata_{n}"))).unwrap();
    }
    for n in 0..38 {
        let next = if n == 37 { "own".to_owned() } else { format!("link{}", n + 1) };
        symlink(PathBuf::from("d/../".repeat(800)).join(next), root.join(format!("link{n}"))).unwrap();
    }
    symlink("link0", root.join("tmp")).unwrap();
    let found = fake.all();
    // The order of directories of one user is unknown; it is enough that the search terminates.
    assert!(found.len() <= 1, "{found:?}");
}
