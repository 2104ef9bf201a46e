//! A process that has just been started is given time to start its runtime; other processes are not waited for.

#![cfg(target_os = "linux")]

use std::fs;
use std::os::unix::fs::{MetadataExt, symlink};
use std::os::unix::net::UnixListener;
use std::path::Path;
use std::time::Duration;

use runtap_discover::{Reason, System};
use runtap_target::doctor::settled;
use runtap_transport::naming::SocketName;
use tokio::time::{Instant, sleep};

const PID: u32 = 42;
const START: u64 = 900;
const RUNTIME: &str = "7f0000000000-7f0000001000 r-xp 0 08:01 1 /opt/dotnet/libcoreclr.so\n";

/// A process with only a main thread.
fn lay_out(root: &Path, maps: &str, uptime: &str) -> System {
    let process = root.join(format!("proc/{PID}"));
    for folder in [process.join(format!("task/{PID}")), root.join("tmp")] {
        fs::create_dir_all(folder).unwrap();
    }
    for of in [&process, &root.join("proc/self")] {
        fs::create_dir_all(of.join("ns")).unwrap();
        for (name, namespace) in [("mnt", "mnt:[1]"), ("pid", "pid:[1]"), ("time", "time:[1]")] {
            symlink(namespace, of.join("ns").join(name)).unwrap();
        }
    }
    symlink("/", process.join("root")).unwrap();
    let environ = format!("TMPDIR={}\0", root.join("tmp").display());
    let stat = format!("{PID} (dotnet) S 1{} {START} 0 0\n", " 0".repeat(17));
    // Owned by the user who runs the test: for another user's process, rights would be examined.
    let uid = fs::metadata(root).unwrap().uid();
    let users = format!("{uid}\t{uid}\t{uid}\t{uid}");
    let status = format!("Name:\tdotnet\nState:\tS (x)\nTgid:\t{PID}\nUid:\t{users}\nNSpid:\t{PID}\n");
    let files =
        [("stat", &*stat), ("status", &status), ("environ", &environ), ("maps", maps), ("cmdline", "x\0")];
    for (name, text) in files {
        fs::write(process.join(name), text).unwrap();
    }
    fs::write(process.join(format!("task/{PID}/comm")), "dotnet\n").unwrap();
    fs::write(root.join("proc/uptime"), uptime).unwrap();
    System::at(root, uid)
}

#[tokio::test(start_paused = true)]
async fn a_starting_runtime_is_waited_for() {
    let root = tempfile::tempdir().unwrap();
    let system = lay_out(root.path(), "", "9.50 1.00\n");
    assert_eq!(Reason::all(&system.facts(PID)), [Reason::NotDotnet]);
    let comes_up = async {
        sleep(Duration::from_millis(300)).await;
        fs::write(root.path().join(format!("proc/{PID}/maps")), RUNTIME).unwrap();
        assert_eq!(Reason::all(&system.facts(PID)), [Reason::Starting]);
        sleep(Duration::from_millis(300)).await;
        let name = SocketName::runtime(PID, START).to_string();
        UnixListener::bind(root.path().join("tmp").join(name)).unwrap();
    };
    let (facts, ()) = tokio::join!(settled(&system, PID), comes_up);
    let facts = facts.unwrap();
    assert!(facts.endpoint().is_some(), "{facts:#?}");
}

/// Returns how long a process that does not change is waited for.
async fn waited(maps: &str, uptime: &str) -> Duration {
    let root = tempfile::tempdir().unwrap();
    let system = lay_out(root.path(), maps, uptime);
    let start = Instant::now();
    settled(&system, PID).await.unwrap();
    start.elapsed()
}

/// With a paused clock, which advances only during sleeps, so the number of polls is tested.
#[tokio::test(start_paused = true)]
async fn waiting_for_a_runtime_is_limited() {
    assert_eq!(waited("", "20.00 1.00\n").await, Duration::ZERO, "an old process without a runtime");
    assert_eq!(waited(RUNTIME, "20.00 1.00\n").await, Duration::ZERO, "an old runtime without a server");
    for maps in ["", RUNTIME] {
        let waited = waited(maps, "9.50 1.00\n").await;
        assert!((Duration::from_secs(3)..Duration::from_secs(4)).contains(&waited), "{waited:?}");
    }
}

/// A runtime deletes its socket before its process exits. This is not reported as a problem.
#[tokio::test(start_paused = true)]
async fn an_exiting_process_is_not_reported_as_one_without_a_socket() {
    let root = tempfile::tempdir().unwrap();
    let system = lay_out(root.path(), RUNTIME, "20.00 1.00\n");
    let socket = root.path().join("tmp").join(SocketName::runtime(PID, START).to_string());
    fs::create_dir_all(root.path().join("proc/net")).unwrap();
    let table = format!(
        "Num RefCount Protocol Flags Type St Inode Path\n0: 00000002 00000000 00010000 0001 01 7 {}\n",
        socket.display()
    );
    fs::write(root.path().join("proc/net/unix"), table).unwrap();
    assert_eq!(Reason::all(&system.facts(PID)), [Reason::SocketDeleted { sockets: vec![socket] }]);
    let ends = async {
        sleep(Duration::from_millis(200)).await;
        fs::remove_dir_all(root.path().join(format!("proc/{PID}"))).unwrap();
    };
    let (facts, ()) = tokio::join!(settled(&system, PID), ends);
    let facts = facts.unwrap();
    assert_eq!(Reason::all(&facts), [Reason::NoSuchProcess]);

    let root = tempfile::tempdir().unwrap();
    let system = lay_out(root.path(), RUNTIME, "20.00 1.00\n");
    fs::create_dir_all(root.path().join("proc/net")).unwrap();
    let socket = root.path().join("tmp").join(SocketName::runtime(PID, START).to_string());
    let table = format!("Num\n0: 00000002 00000000 00010000 0001 01 7 {}\n", socket.display());
    fs::write(root.path().join("proc/net/unix"), table).unwrap();
    let start = Instant::now();
    settled(&system, PID).await.unwrap();
    assert_eq!(start.elapsed(), Duration::from_millis(500), "one that stays is told after a moment");
}
