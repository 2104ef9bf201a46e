//! Finds Java virtual machines by their performance counters.

use std::fs;
use std::path::Path;

use runtap_discover::{Options, Process, ProcessKind, System};
use runtap_testkit::{Skip, require};

use crate::fake::{Fake, FakeProcess};

/// The memory map of a virtual machine.
const COUNTERS_42: &str = "7f0000000000-7f0000008000 rw-s 00000000 08:01 7   /tmp/hsperfdata_ann/42\n";
const COUNTERS_6: &str = "7f0000000000-7f0000008000 rw-s 00000000 00:31 7   /tmp/hsperfdata_b/6\n";

/// A file with one counter.
fn counters(command: &str) -> Vec<u8> {
    let name = "sun.rt.javaCommand";
    let word = |number: usize| u32::try_from(number).unwrap().to_be_bytes();
    let value = 20 + name.len() + 1;
    let length = value + command.len() + 1;
    let header = [&[0xca, 0xfe, 0xc0, 0xc0, 0, 2, 0, 1][..], &[0; 16], &word(32), &word(1)].concat();
    let entry = [word(length), word(20), word(command.len() + 1), *b"B\0\x05\x01", word(value)].concat();
    [&header[..], &entry, name.as_bytes(), &[0], command.as_bytes(), &[0]].concat()
}

#[test]
fn java_machines_are_found_by_their_counters() {
    let fake = Fake::new();
    let uid = rustix::process::getuid().as_raw();
    let mut java = FakeProcess::new(42, 900);
    (java.uid, java.maps) = (uid, COUNTERS_42);
    fake.add(&java);
    let mut inside = FakeProcess::new(43, 901);
    (inside.uid, inside.ns_pid, inside.mount, inside.pid_ns) = (uid, 6, "mnt:[2]", "pid:[2]");
    inside.maps = COUNTERS_6;
    fake.add(&inside);
    for file in [
        "tmp/hsperfdata_ann/42",
        "tmp/hsperfdata_ann/99",
        "tmp/hsperfdata_ann/x",
        "proc/43/root/tmp/hsperfdata_b/6",
    ] {
        fs::create_dir_all(fake.path(file).parent().unwrap()).unwrap();
        fs::write(fake.path(file), "").unwrap();
    }
    let all = System::at(fake.dir.path(), uid).processes(Options::default());
    assert_eq!(
        all.iter().map(|p| (p.pid, p.kind)).collect::<Vec<_>>(),
        [(42, ProcessKind::Jvm), (43, ProcessKind::Jvm)]
    );
    // Nothing has been written yet. Later its command is known, unless the file was replaced by a pipe.
    assert_eq!(all[0].java, Some(runtap_discover::Java::default()));
    fs::write(fake.path("tmp/hsperfdata_ann/42"), counters("shop.Main --port 80")).unwrap();
    fs::remove_file(fake.path("proc/43/root/tmp/hsperfdata_b/6")).unwrap();
    rustix::fs::mkfifoat(rustix::fs::CWD, fake.path("proc/43/root/tmp/hsperfdata_b/6"), 0o600.into())
        .unwrap();
    let all = System::at(fake.dir.path(), uid).processes(Options::default());
    let said = |p: &Process| p.java.as_ref().and_then(|java| java.main().map(str::to_owned));
    assert_eq!(
        all.iter().map(|p| (p.pid, said(p))).collect::<Vec<_>>(),
        [(42, Some("shop.Main".to_owned()))]
    );
    fs::remove_file(fake.path("proc/43/root/tmp/hsperfdata_b/6")).unwrap();
    fs::write(fake.path("proc/43/root/tmp/hsperfdata_b/6"), "").unwrap();
    // Another user's process got the process id of a terminated machine.
    fs::write(
        fake.path("proc/42/status"),
        format!("Tgid:\t42\nUid:\t{0}\t{0}\t{0}\t{0}\nNSpid:\t42\n", uid + 1),
    )
    .unwrap();
    let all = System::at(fake.dir.path(), uid).processes(Options::default().all_users(true));
    assert_eq!(all.iter().map(|p| p.pid).collect::<Vec<_>>(), [43]);
}

/// With `-XX:-UsePerfData`, a machine is recognized by its memory map. Only processes that may be machines are checked.
#[test]
fn java_machines_without_counters_are_found_by_their_library() {
    let library = "7f0000000000-7f0000008000 r-xp 00000000 08:01 7   /jdk/lib/server/libjvm.so\n";
    let fake = Fake::new();
    let uid = rustix::process::getuid().as_raw();
    let home = fake.path("jdk-17");
    fs::create_dir_all(home.join("bin")).unwrap();
    fs::write(home.join("release"), "IMPLEMENTOR=\"x\"\nJAVA_VERSION=\"17.0.15\"\n").unwrap();
    let add = |pid: u32, exe: &Path, maps, command: &str| {
        let mut process = FakeProcess::new(pid, 900);
        (process.uid, process.maps) = (uid, maps);
        let folder = fake.add(&process);
        fs::remove_file(folder.join("exe")).unwrap();
        std::os::unix::fs::symlink(exe, folder.join("exe")).unwrap();
        fs::write(folder.join("cmdline"), command.replace(' ', "\0") + "\0").unwrap();
    };
    add(42, &home.join("bin/java"), library, "java -XX:-UsePerfData -cp x shop.Main --port 80");
    // A custom launcher with an attach socket, and one that is not recognized.
    add(43, Path::new("/opt/shop/shop"), library, "shop -x");
    add(44, Path::new("/opt/shop/shop"), library, "shop -x");
    // Not a machine, despite its name.
    add(45, Path::new("/usr/bin/java"), "7f0-7f8 r-xp 0 08:01 7   /usr/lib/libc.so.6\n", "java shop.Main");
    fs::write(fake.path("tmp/.java_pid43"), "").unwrap();
    fs::write(fake.path("tmp/.java_pid45x"), "").unwrap();
    let all = System::at(fake.dir.path(), uid).processes(Options::default());
    assert_eq!(
        all.iter().map(|p| (p.pid, p.kind)).collect::<Vec<_>>(),
        [(42, ProcessKind::Jvm), (43, ProcessKind::Jvm)]
    );
    let java = all[0].java.as_ref().unwrap();
    assert_eq!((java.main(), java.version()), (Some("shop.Main"), Some("17.0.15")));
    assert_eq!(java.command, "shop.Main --port 80");
    assert_eq!((java.vendor.as_str(), java.home.as_str()), ("x", home.to_str().unwrap()));
    assert!(!java.has_counters);
    // By its process id, a machine is found in any program, without a guess about the program's arguments.
    let system = System::at(fake.dir.path(), uid);
    assert_eq!(system.jvm(42).as_ref(), Some(&all[0]));
    let other = system.jvm(44).unwrap();
    assert_eq!((other.kind, other.java.unwrap().main()), (ProcessKind::Jvm, None));
    assert_eq!((system.jvm(45), system.jvm(46)), (None, None));
    let facts = system.managed_facts().processes;
    assert_eq!(facts.iter().map(|facts| facts.pid).collect::<Vec<_>>(), [42, 43, 44]);
    assert_eq!(facts[0].java, all[0].java);
    assert!(facts.iter().all(|facts| facts.is_jvm() && !facts.is_dotnet()));
    let java = all[1].java.as_ref().unwrap();
    assert_eq!((java.main(), java.version()), (None, None));
    // Instead of a version file there may be a pipe, which would block, or a link to another user's file.
    fs::remove_file(home.join("release")).unwrap();
    rustix::fs::mkfifoat(rustix::fs::CWD, home.join("release"), 0o600.into()).unwrap();
    let version = || {
        let all = System::at(fake.dir.path(), uid).processes(Options::default());
        all[0].java.as_ref().unwrap().version().map(str::to_owned)
    };
    assert_eq!(version(), None);
    fs::remove_file(home.join("release")).unwrap();
    fs::write(fake.path("secret"), "JAVA_VERSION=\"1\"\n").unwrap();
    std::os::unix::fs::symlink(fake.path("secret"), home.join("release")).unwrap();
    assert_eq!(version(), None);
    let mut others = Options::default();
    others.jvm = false;
    assert_eq!(System::at(fake.dir.path(), uid).processes(others), []);
}

/// A memory map may be endless, so no more is read than the user's budget.
#[test]
fn endless_memory_maps_are_not_read_completely() {
    let fake = Fake::new();
    let uid = rustix::process::getuid().as_raw();
    let mut line = "7f0000000000-7f0000008000 r-xp 00000000 08:01 7   /x".repeat(100);
    line.push('\n');
    let maps = line.repeat(8 << 10) + "7f0-7f8 r-xp 00000000 08:01 7   /jdk/lib/server/libjvm.so\n";
    let mut process = FakeProcess::new(50, 900);
    process.uid = uid;
    let folder = fake.add(&process);
    fs::write(folder.join("maps"), &maps).unwrap();
    fs::remove_file(folder.join("exe")).unwrap();
    std::os::unix::fs::symlink("/usr/bin/java", folder.join("exe")).unwrap();
    assert_eq!(System::at(fake.dir.path(), uid).processes(Options::default()), []);
}

/// A container may share `/tmp` while its machines have their own process ids, which belong to other processes here.
#[test]
fn counters_of_another_namespace_are_not_attributed_to_an_equal_id_here() {
    let fake = Fake::new();
    let uid = rustix::process::getuid().as_raw();
    let process = |pid, maps| {
        let mut process = FakeProcess::new(pid, 900);
        (process.uid, process.maps) = (uid, maps);
        process
    };
    // The first process of the host, a machine without counters, one whose file was replaced, and the owner of the file.
    let hsperfdata = fake.path("tmp/hsperfdata_b");
    fs::create_dir_all(&hsperfdata).unwrap();
    fake.add(&process(6, "7f0000000000-7f0000008000 r-xp 00000000 08:01 7   /usr/lib/systemd/systemd\n"));
    let libjvm = "7f0000000000-7f0000008000 r-xp 00000000 08:01 7   /jdk/lib/server/libjvm.so\n";
    fake.add(&process(7, libjvm));
    let deleted = "7f0000000000-7f0000008000 rw-s 00000000 08:01 7   /tmp/hsperfdata_b/8 (deleted)\n";
    fake.add(&process(8, deleted));
    let mut inside = process(43, COUNTERS_6);
    (inside.ns_pid, inside.pid_ns) = (6, "pid:[2]");
    fake.add(&inside);
    let found = || {
        let all = System::at(fake.dir.path(), uid).processes(Options::default());
        all.iter().map(|p| (p.pid, p.ns_pid)).collect::<Vec<_>>()
    };
    assert_eq!(found(), []);
    for number in [6, 7, 8] {
        fs::write(hsperfdata.join(number.to_string()), counters("shop.Main")).unwrap();
    }
    assert_eq!(found(), [(43, 6)]);
    // A process whose memory map is not readable may be a machine.
    fs::write(fake.path("proc/7/maps"), "").unwrap();
    assert_eq!(found(), [(7, 7), (43, 6)]);
}

fn root() -> Result<(), Skip> {
    let root = rustix::process::geteuid().is_root();
    root.then_some(()).ok_or_else(|| Skip::because("only root can give files to other users"))
}

/// Any user who can write to `/tmp` can create any number of directories of counters and of files in them.
#[test]
fn the_number_of_counters_read_is_limited() {
    require!(root());
    let fake = Fake::new();
    let mut java = FakeProcess::new(42, 900);
    (java.uid, java.maps) = (7, COUNTERS_42);
    fake.add(&java);
    let owned = |file: &Path, user| std::os::unix::fs::chown(file, Some(user), Some(user)).unwrap();
    // Five directories of another user before and after the machine's own, each with a file of its id.
    for (folder, user) in [("a", 8), ("b", 8), ("c", 8), ("d", 8), ("own", 7), ("z", 8)] {
        let folder = fake.path("tmp").join(format!("hsperfdata_{folder}"));
        fs::create_dir_all(&folder).unwrap();
        fs::write(folder.join("42"), "").unwrap();
        owned(&folder, user);
        owned(&folder.join("42"), user);
    }
    let first = fake.path("tmp/hsperfdata_a/42");
    for n in 1_000_000..1_002_000 {
        fs::hard_link(&first, first.with_file_name(n.to_string())).unwrap();
    }
    let find = || System::at(fake.dir.path(), 0).processes(Options::default());
    assert_eq!(find().iter().map(|p| (p.pid, p.kind)).collect::<Vec<_>>(), [(42, ProcessKind::Jvm)]);
    // A file in the directory of another user is ignored, and vice versa.
    fs::rename(fake.path("tmp/hsperfdata_own/42"), fake.path("tmp/hsperfdata_z/42")).unwrap();
    fs::rename(fake.path("tmp/hsperfdata_b/42"), fake.path("tmp/hsperfdata_own/42")).unwrap();
    assert_eq!(find(), []);
}
