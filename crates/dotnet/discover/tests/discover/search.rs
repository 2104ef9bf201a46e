//! The search for processes, on a fake system and on the real one.

use std::collections::BTreeSet;
use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::os::unix::net::UnixListener;
use std::path::Path;

use runtap_discover::{Options, Process, ProcessKind, System};
use runtap_transport::SocketState;
use runtap_transport::naming::SocketName;

use crate::fake::{Fake, FakeProcess};

fn only(mut processes: Vec<Process>) -> Process {
    assert_eq!(processes.len(), 1, "{processes:?}");
    processes.remove(0)
}

#[test]
fn a_process_is_described() {
    let fake = Fake::new();
    fake.add(&FakeProcess::new(42, 900));
    fake.add(&FakeProcess::new(43, 901));
    let socket = fake.socket("tmp", 42, 900);
    let process = only(fake.all());
    assert_eq!(fake.system().process(42).unwrap(), process);
    assert_eq!((process.pid, process.ns_pid, process.start_time), (42, 42, 900));
    assert_eq!((process.uid, process.user.as_str()), (1000, "ann"));
    assert_eq!(process.kind, ProcessKind::Dotnet);
    assert_eq!(process.comm, ".NET (x) y");
    assert_eq!(process.exe.as_deref(), Some(Path::new("/opt/dotnet/dotnet")));
    assert_eq!(process.command_line, ["dotnet", "app dll", ""]);
    assert_eq!(process.container, None);
    assert_eq!(process.endpoint().unwrap().path(), Some(socket.as_path()));
    assert_eq!(process.sockets[0].state, SocketState::Matching);
}

#[test]
fn stale_sockets_and_unused_pids_are_not_processes() {
    let fake = Fake::new();
    fake.add(&FakeProcess::new(42, 900));
    fake.socket("tmp", 42, 899);
    fake.socket("tmp", 4711, 900);
    assert_eq!(fake.all(), []);

    // The right one is found among stale ones with one process id, whatever their age.
    let right = fake.socket("tmp", 42, 900);
    fake.socket("tmp", 42, 901);
    let process = only(fake.all());
    assert_eq!(process.endpoint().unwrap().path(), Some(right.as_path()));
    assert_eq!(process.stale_sockets().count(), 2);
}

#[test]
fn another_tmpdir_is_found_by_the_kernels_table_and_by_the_environment() {
    let fake = Fake::new();
    fake.add(&FakeProcess::new(42, 900).tmpdir(&fake.path("other/tmp/")));
    let socket = fake.socket("other/tmp", 42, 900);
    assert_eq!(fake.all(), [], "not listening");
    assert_eq!(fake.system().process(42).unwrap().sockets[0].path, socket);

    fake.bound(&socket);
    assert_eq!(only(fake.all()).sockets[0].path, socket);
    // Without the table, the environment is read.
    fs::remove_file(fake.path("proc/net/unix")).unwrap();
    assert_eq!(only(fake.all()).sockets[0].path, socket);
}

/// The runtime truncates the path of its socket to the maximum length.
#[test]
fn a_truncated_name_is_found_by_the_kernels_table_and_by_the_environment() {
    // With a complete process id, and without any.
    for length in [75, 94] {
        let fake = Fake::new();
        let long = fake.path("d".repeat(length - fake.path("").as_os_str().len()));
        assert_eq!(long.as_os_str().len(), length);
        fake.add(&FakeProcess::new(31442, 230_100).tmpdir(&long));
        fake.add(&FakeProcess::new(7, 900));
        let name = "dotnet-diagnostic-31442-230100-socket";
        let socket = Fake::socket_at(long.join(name.get(..107 - length - 1).unwrap()));
        fs::set_permissions(&long, fs::Permissions::from_mode(0o777)).unwrap();
        assert_eq!(fake.all(), [], "not listening");
        assert_eq!(fake.system().process(31442).unwrap().sockets[0].path, socket);

        fake.bound(&socket);
        assert_eq!(only(fake.all()).endpoint().unwrap().path(), Some(socket.as_path()));
        let reached = fake.system().facts(31442);
        assert_eq!(runtap_discover::Reason::all(&reached), []);
        fs::remove_file(&socket).unwrap();
        assert_eq!(fake.reason(31442).code().name(), "other-tmpdir");
    }
}

#[test]
fn a_relative_tmpdir_is_below_the_working_directory() {
    let fake = Fake::new();
    fake.add(&FakeProcess::new(42, 900).tmpdir(Path::new("rel")));
    fake.socket("proc/42/cwd/rel", 42, 900);
    fake.bound(Path::new("rel/dotnet-diagnostic-42-900-socket"));
    let expected = fake.path("proc/42/cwd/rel/dotnet-diagnostic-42-900-socket");
    assert_eq!(only(fake.all()).sockets[0].path, expected);
    assert_eq!(fake.system().process(42).unwrap().sockets[0].path, expected);
}

#[test]
fn a_container_is_searched_through_its_root() {
    let fake = Fake::new();
    let mut inside = FakeProcess::new(42, 900);
    (inside.ns_pid, inside.mount, inside.pid_ns) = (1, "mnt:[2]", "pid:[2]");
    fake.add(&inside);
    // A second process of the container, and one outside whose id equals the inner one.
    let mut second = FakeProcess::new(43, 950);
    (second.ns_pid, second.mount, second.pid_ns) = (7, "mnt:[2]", "pid:[2]");
    fake.add(&second);
    fake.add(&FakeProcess::new(1, 5));
    fake.socket("proc/42/root/tmp", 1, 900);
    fake.socket("proc/42/root/tmp", 7, 950);
    symlink("../42/root", fake.path("proc/43/root")).unwrap();

    let all = fake.all();
    assert_eq!(all.iter().map(|p| (p.pid, p.ns_pid)).collect::<Vec<_>>(), [(42, 1), (43, 7)]);
    for (process, name) in all.iter().zip(["1-900", "7-950"]) {
        let expected = fake.path(format!("proc/{}/root/tmp/dotnet-diagnostic-{name}-socket", process.pid));
        assert_eq!(process.sockets[0].path, expected);
        assert!(process.other_mount_namespace && process.other_pid_namespace);
        assert_eq!(process.container, Some("ab".repeat(32)));
    }
    assert_eq!(fake.system().process(42).unwrap(), all[0]);
}

#[test]
fn a_container_may_have_its_own_tmpdir_or_share_it() {
    let fake = Fake::new();
    let mut inside = FakeProcess::new(42, 900).tmpdir(Path::new("/var/tmp"));
    (inside.ns_pid, inside.mount, inside.pid_ns) = (1, "mnt:[2]", "pid:[2]");
    fake.add(&inside);
    fake.socket("proc/42/root/var/tmp", 1, 900);
    let mut sharing = FakeProcess::new(50, 990);
    (sharing.ns_pid, sharing.pid_ns) = (3, "pid:[2]");
    fake.add(&sharing);
    let shared = fake.socket("tmp", 3, 990);
    fake.bound(&shared);
    let all = fake.all();
    assert_eq!(all.iter().map(|p| p.pid).collect::<Vec<_>>(), [42, 50]);
    assert_eq!(all[1].sockets[0].path, shared);
}

#[test]
fn keys_of_another_time_namespace_cannot_be_compared() {
    let fake = Fake::new();
    let mut inside = FakeProcess::new(42, 900);
    (inside.ns_pid, inside.mount, inside.pid_ns) = (1, "mnt:[2]", "pid:[2]");
    let folder = fake.add(&inside);
    fs::remove_file(folder.join("ns/time")).unwrap();
    symlink("time:[9]", folder.join("ns/time")).unwrap();
    fake.socket("proc/42/root/tmp", 1, 12);
    assert_eq!(only(fake.all()).sockets[0].state, SocketState::Unknown);
}

#[test]
fn a_routers_socket_does_not_make_a_process_a_runtime() {
    let fake = Fake::new();
    fake.add(&FakeProcess::new(42, 900));
    let own = fake.socket("tmp", 42, 900);
    let router = Fake::socket_at(fake.path("tmp/dotnet-diagnostic-dsrouter-42-1763000000-socket"));
    Fake::set_modified(&own, 1000);
    Fake::set_modified(&router, 2000);
    let process = only(fake.all());
    let sockets: Vec<_> = process.sockets.iter().map(|it| (&it.path, it.state)).collect();
    assert_eq!(sockets, [(&own, SocketState::Matching), (&router, SocketState::Router)]);
    assert_eq!(process.endpoint().unwrap().path(), Some(own.as_path()));
    // It does not make a process a runtime.
    fs::remove_file(own).unwrap();
    assert_eq!(fake.all(), []);
}

#[test]
fn other_users_are_listed_on_request_only() {
    let fake = Fake::new();
    let mut other = FakeProcess::new(42, 900);
    other.uid = 33;
    fake.add(&other);
    fake.socket("tmp", 42, 900);
    assert_eq!(fake.all(), []);
    let process = only(fake.system().processes(Options::default().all_users(true)));
    assert_eq!(process.user, "33");
    assert_eq!(only(System::at(fake.dir.path(), 0).processes(Options::default())).pid, 42);
}

/// Hundreds of processes with very long environments must not cost more than a few of them.
#[test]
fn environments_of_all_processes_together_are_bounded() {
    let fake = Fake::new();
    let folder = fake.path("own");
    for pid in 10..30 {
        let environ = fake.add(&FakeProcess::new(pid, 900).tmpdir(&folder)).join("environ");
        fs::File::options().write(true).open(environ).unwrap().set_len(7 << 20).unwrap();
        fake.socket("own", pid, 900);
    }
    let facts = fake.system().managed_facts().processes;
    assert_eq!(facts.len(), 20);
    let cut = facts.iter().filter(|facts| facts.environment.as_ref().unwrap().is_truncated).count();
    assert!((5..15).contains(&cut), "{cut} of 20");
    assert!(facts.last().unwrap().steps().iter().any(|step| step.contains("only the first part was read")));
    // Environments of ordinary size are still read.
    assert!(facts.iter().all(|facts| facts.sockets.len() == 1));
    // A single environment is read completely.
    assert!(!fake.system().facts(29).environment.unwrap().is_truncated);
}

/// Through different paths, as the processes refer to it, and with more entries than are kept.
#[test]
fn a_crowded_folder_hides_no_socket_under_any_path() {
    let fake = Fake::new();
    fs::create_dir_all(fake.path("own/a")).unwrap();
    for (pid, path) in [(10, "own"), (11, "own/a/.."), (12, "own/a/../a/.."), (13, "own/.")] {
        fake.add(&FakeProcess::new(pid, 900).tmpdir(&fake.path(path)));
        fake.socket("own", pid, 900);
    }
    let bound: Vec<_> =
        (0..60_000).map(|key| fake.path("own").join(SocketName::runtime(77, key).to_string())).collect();
    let first = bound.first().unwrap();
    fs::write(first, "").unwrap();
    for other in &bound[1..] {
        fs::hard_link(first, other).unwrap();
    }
    let facts = fake.system().managed_facts().processes;
    assert_eq!(
        facts.iter().map(|facts| (facts.pid, facts.sockets.len())).collect::<Vec<_>>(),
        [(10, 1), (11, 1), (12, 1), (13, 1)]
    );
}

#[test]
fn thousands_of_stale_sockets() {
    let dir = tempfile::tempdir().unwrap();
    // Every id that a process has, many that a thread may have, and some that are unused.
    let entries = fs::read_dir("/proc").unwrap().flatten();
    let pids: BTreeSet<u32> = entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok()).collect();
    let pids: BTreeSet<u32> = pids.into_iter().chain(1..1500).chain(4_000_000..4_001_000).collect();
    for pid in pids {
        fs::write(dir.path().join(SocketName::runtime(pid, 1).to_string()), "").unwrap();
    }
    let system = System::current().with_temp_dir(dir.path());
    let me = std::process::id();
    // Another test of this process may have a live socket elsewhere.
    let found = |system: &System| {
        let here = |p: &Process| p.pid == me && p.endpoint().unwrap().path().unwrap().starts_with(dir.path());
        system.processes(Options::default()).into_iter().filter(here).collect::<Vec<_>>()
    };
    assert_eq!(found(&system), []);
    assert!(
        // Java processes of other tests have no socket.
        system
            .processes(Options::default())
            .iter()
            .all(|p| p.sockets.first().is_none_or(|s| s.name.key != 1)),
        "a stale socket passes for a process"
    );

    let name = SocketName::runtime(me, system.start_time(me).unwrap());
    let path = dir.path().join(name.to_string());
    let _listener = UnixListener::bind(&path).unwrap();
    let process = only(found(&system));
    assert_eq!(process.endpoint().unwrap().path(), Some(path.as_path()));
    assert!(!process.other_mount_namespace && !process.other_pid_namespace);
    assert_eq!(process.uid, rustix::process::getuid().as_raw());
    assert_eq!(process.exe.as_deref(), std::env::current_exe().ok().as_deref());
}

#[test]
fn a_live_socket_is_found_in_any_directory_of_the_real_system() {
    let dir = tempfile::tempdir().unwrap();
    let me = std::process::id();
    let name = SocketName::runtime(me, System::current().start_time(me).unwrap());
    let path = dir.path().join("deep").join(name.to_string());
    fs::create_dir(path.parent().unwrap()).unwrap();
    let _listener = UnixListener::bind(&path).unwrap();
    // TMPDIR is not that directory, but the kernel's table lists it. Other tests of this process may have sockets with this name
    // elsewhere.
    // may have sockets of the same name elsewhere.
    let empty = tempfile::tempdir().unwrap();
    let system = System::current().with_temp_dir(empty.path());
    let process = system.process(me).unwrap();
    assert_eq!(process.sockets[0].state, SocketState::Matching);
    assert_eq!(process.sockets[0].name, name);
    assert!(runtap_discover::process(me).is_ok());
}

#[test]
fn threads_of_another_pid_namespace_have_two_ids() {
    let fake = Fake::new();
    let mut inside = FakeProcess::new(42, 900);
    (inside.ns_pid, inside.pid_ns) = (1, "pid:[2]");
    for (process, tids) in [(inside, [(42, 1), (45, 4)]), (FakeProcess::new(60, 900), [(60, 60), (61, 61)])] {
        let folder = fake.add(&process);
        for (tid, ns_tid) in tids {
            let task = folder.join(format!("task/{tid}"));
            fs::create_dir_all(&task).unwrap();
            fs::write(task.join("comm"), format!("name {tid}\n")).unwrap();
            let status = format!("Tgid:\t{}\nUid:\t0\t0\t0\t0\nNSpid:\t{tid}\t{ns_tid}\n", process.pid);
            fs::write(task.join("status"), status).unwrap();
        }
        let threads = fake.system().threads(process.pid).unwrap();
        let seen: Vec<_> = threads.iter().map(|t| (t.tid, t.ns_tid, t.name.clone())).collect();
        assert_eq!(seen, tids.map(|(tid, ns_tid)| (tid, ns_tid, format!("name {tid}"))));
    }
}

#[test]
fn threads_have_names() {
    let (tell, told) = std::sync::mpsc::channel::<()>();
    let thread = std::thread::Builder::new().name("named (1) x".to_owned());
    let thread = thread.spawn(move || told.recv()).unwrap();
    let find = || {
        let threads = runtap_discover::threads(std::process::id()).unwrap();
        threads.into_iter().find(|thread| thread.name == "named (1) x")
    };
    // A thread sets its name a moment after it was created.
    let named = loop {
        match find() {
            Some(thread) => break thread,
            None => std::thread::yield_now(),
        }
    };
    let main = runtap_discover::threads(std::process::id()).unwrap()[0].tid;
    assert_eq!(main, std::process::id());
    assert!(named.tid > 0 && named.tid != main);
    assert_eq!(named.ns_tid, named.tid);
    drop(tell);
    thread.join().unwrap().unwrap_err();
    assert!(runtap_discover::threads(u32::MAX).is_err());
}
