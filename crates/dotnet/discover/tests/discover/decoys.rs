//! Decoy names created by other users: the process's own socket is tried first, whatever the others look like.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};

use runtap_discover::Process;
use runtap_transport::SocketState;
use runtap_transport::naming::SocketName;

use crate::fake::{Fake, FakeProcess};

const START: u64 = 900;

/// The socket to which `ps` and a search for one process connect first.
fn first(fake: &Fake) -> PathBuf {
    let path_of = |process: &Process| process.endpoint().unwrap().path().unwrap().to_owned();
    let all = fake.all();
    assert_eq!(all.len(), 1, "{all:?}");
    let first = path_of(&all[0]);
    assert_eq!(path_of(&fake.system().process(42).unwrap()), first);
    first
}

/// Newer sockets with its name in other directories, which have listeners according to the kernel's table.
fn surround(fake: &Fake, pid: u32) {
    for number in 0..20 {
        let decoy = fake.socket(format!("decoys/{number}"), pid, START);
        Fake::set_modified(&decoy, 5000 + number);
        fake.bound(&decoy);
    }
}

#[test]
fn its_own_directory_comes_first_regardless_of_times() {
    let fake = Fake::new();
    fake.add(&FakeProcess::new(42, START));
    let own = fake.socket("tmp", 42, START);
    Fake::set_modified(&own, 1000);
    surround(&fake, 42);
    assert_eq!(first(&fake), own);
}

#[test]
fn its_own_tmpdir_comes_before_this_process_s() {
    let fake = Fake::new();
    fake.add(&FakeProcess::new(42, START).tmpdir(&fake.path("snap/tmp")));
    let own = fake.socket("snap/tmp", 42, START);
    Fake::set_modified(&own, 1000);
    // One name in this process's directory is enough to be found first.
    let decoy = fake.socket("tmp", 42, START);
    Fake::set_modified(&decoy, 2000);
    assert_eq!(first(&fake), own);
    fake.bound(&own);
    surround(&fake, 42);
    assert_eq!(first(&fake), own);
}

#[test]
fn a_containers_own_directory_comes_first() {
    let fake = Fake::new();
    let mut inside = FakeProcess::new(42, START);
    (inside.ns_pid, inside.mount, inside.pid_ns) = (1, "mnt:[2]", "pid:[2]");
    fake.add(&inside);
    let own = fake.socket("proc/42/root/tmp", 1, START);
    Fake::set_modified(&own, 1000);
    // By the process id in this process's namespace.
    let decoy = fake.socket("tmp", 42, START);
    Fake::set_modified(&decoy, 2000);
    surround(&fake, 42);
    assert_eq!(first(&fake), own);
}

/// Its mount namespace is this process's, its root is not.
#[test]
fn a_process_with_its_own_root_is_searched_there() {
    let fake = Fake::new();
    let folder = fake.add(&FakeProcess::new(42, START).tmpdir(Path::new("/var/tmp")));
    fs::remove_file(folder.join("root")).unwrap();
    symlink(fake.path("jail"), folder.join("root")).unwrap();
    fake.socket("jail/var/tmp", 42, START);
    // The table has the path as its owner wrote it.
    fake.bound(Path::new("/var/tmp/dotnet-diagnostic-42-900-socket"));
    assert_eq!(first(&fake), folder.join("root/var/tmp/dotnet-diagnostic-42-900-socket"));
}

/// A file with a second name is used where the process created it.
#[test]
fn a_file_by_two_names_is_one() {
    let fake = Fake::new();
    fake.add(&FakeProcess::new(42, START).tmpdir(&fake.path("own")));
    let own = fake.socket("own", 42, START);
    let ours = fake.path("tmp").join(own.file_name().unwrap());
    fs::hard_link(&own, &ours).unwrap();
    let process = fake.all().remove(0);
    assert_eq!(process.sockets.len(), 1);
    assert_eq!(process.sockets[0].path, ours);
}

#[test]
fn what_is_no_socket_is_not_counted() {
    let fake = Fake::new();
    fake.add(&FakeProcess::new(42, START));
    let name = SocketName::runtime(42, START).to_string();
    fs::write(fake.path("tmp").join(&name), "").unwrap();
    assert_eq!(fake.all(), []);
    for (number, make) in [
        |path: &Path| fs::write(path, "").unwrap(),
        |path: &Path| fs::create_dir(path).unwrap(),
        |path: &Path| symlink("/etc/passwd", path).unwrap(),
    ]
    .into_iter()
    .enumerate()
    {
        let folder = fake.path(format!("decoys/{number}"));
        fs::create_dir_all(&folder).unwrap();
        make(&folder.join(&name));
        fake.bound(&folder.join(&name));
    }
    assert_eq!(fake.all(), []);
    // Its directory can't be derived from its environment.
    let own = fake.socket("elsewhere", 42, START);
    fake.bound(&own);
    assert_eq!(first(&fake), own);
    assert_eq!(fake.system().facts(42).sockets.len(), 1);
}

/// If keys can't be compared, any name in its directory may be its own, and bound ones come first.
#[test]
fn bound_sockets_come_before_other_names() {
    let fake = Fake::new();
    let folder = fake.add(&FakeProcess::new(42, START));
    fs::remove_file(folder.join("ns/time")).unwrap();
    symlink("time:[9]", folder.join("ns/time")).unwrap();
    // By its own clock it started earlier; this process's listing finds both.
    let own = fake.socket("tmp", 42, START);
    Fake::set_modified(&own, 1000);
    fake.bound(&own);
    for key in 0..20 {
        Fake::set_modified(&fake.socket("tmp", 42, key), 2000);
    }
    assert_eq!(first(&fake), own);
    assert!(fake.all()[0].sockets.iter().all(|socket| socket.state == SocketState::Unknown));
}
