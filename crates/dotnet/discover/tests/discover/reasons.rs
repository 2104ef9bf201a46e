//! Reasons why a process can't be reached, on a fake system, for cases that do not occur on a kernel without security modules or for
//! a test that is not root.

use std::fs;
use std::io::Write;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::Path;
use std::thread;

use runtap_discover::{Facts, Fix, ProcessState, Reason, ReasonCode, Runtime, Startup, System, TempState};

use rustix::fs::{CWD, FileType, Mode, mknodat};

use crate::fake::{Fake, FakeProcess, RUNTIME};

const NO_RUNTIME: &str = "7f00-7f01 r-xp 0 08:01 1 /usr/lib/libc.so.6\n";

impl Fake {
    fn facts(&self, pid: u32) -> Facts {
        self.system().facts(pid)
    }

    fn codes(&self, pid: u32) -> Vec<&'static str> {
        Reason::all(&self.facts(pid)).iter().map(|reason| reason.code().name()).collect()
    }
}

#[test]
fn ids_that_are_not_processes() {
    let fake = Fake::new();
    assert_eq!(fake.reason(9), Reason::NoSuchProcess);

    let folder = fake.add(&FakeProcess::new(77, 900));
    fs::write(folder.join("status"), "State:\tS\nTgid:\t42\nUid:\t0\t0\t0\t0\nNSpid:\t77\n").unwrap();
    fake.socket("tmp", 77, 900);
    assert_eq!(fake.facts(77).state, ProcessState::Thread { tgid: 42 });
    assert_eq!(fake.codes(77), ["no-such-process"]);

    let mut process = FakeProcess::new(78, 900);
    process.state = 'Z';
    fake.add(&process);
    assert_eq!(fake.reason(78), Reason::Ended);
}

#[test]
fn other_programs_and_old_runtimes() {
    let fake = Fake::new();
    let mut process = FakeProcess::new(10, 900);
    (process.maps, process.threads) = (NO_RUNTIME, &["x"]);
    fake.add(&process);
    assert_eq!(fake.reason(10), Reason::NotDotnet);
    assert!(!fake.facts(10).is_dotnet());

    let mut process = FakeProcess::new(11, 900);
    (process.maps, process.threads) = ("7f00-7f01 r-xp 0 08:01 1 /jdk/lib/server/libjvm.so\n", &["java"]);
    fake.add(&process);
    assert_eq!(fake.reason(11), Reason::Jvm { pid: 11 });
    assert_eq!((fake.codes(11), fake.reason(11).fix()), (vec!["not-dotnet"], Fix::TraceJvm { pid: 11 }));
    assert!(!fake.facts(11).is_dotnet());

    let mut process = FakeProcess::new(20, 900);
    process.maps = "7f00-7f01 r-xp 0 08:01 1 /opt/Microsoft.NETCore.App/2.1.30/libcoreclr.so\n";
    fake.add(&process);
    assert_eq!(fake.reason(20), Reason::TooOld { runtime: ".NET Core 2.1.30".to_owned() });

    let mut process = FakeProcess::new(30, 900);
    process.maps = NO_RUNTIME;
    let folder = fake.add(&process);
    fs::remove_file(folder.join("exe")).unwrap();
    symlink("/usr/bin/mono-sgen", folder.join("exe")).unwrap();
    assert_eq!(fake.reason(30), Reason::TooOld { runtime: "Mono".to_owned() });
}

fn words(reason: &Reason) -> String {
    let Fix::Text(text) = reason.fix() else { panic!("it is not in words: {reason:?}") };
    text.into_owned()
}

#[test]
fn all_obstacles_are_reported() {
    let fake = Fake::new();
    let mut process = FakeProcess::new(10, 900).tmpdir(&fake.path("gone"));
    process.environ.extend(b"COMPlus_EnableDiagnostics=0\0");
    fake.add(&process);
    assert_eq!(fake.codes(10), ["diagnostics-disabled", "other-tmpdir"]);
    let reason = fake.reason(10);
    assert!(reason.to_string().contains("COMPlus_EnableDiagnostics=0"), "{reason}");
    assert!(words(&reason).contains("env -u COMPlus_EnableDiagnostics"), "{reason:?}");

    // A usable socket outweighs all obstacles.
    let other = fake.socket("gone", 10, 900);
    assert_eq!(fake.codes(10), [] as [&str; 0]);
    assert_eq!(fake.facts(10).endpoint().unwrap().path(), Some(other.as_path()));
}

#[test]
fn sockets_that_are_stale_or_gone() {
    let fake = Fake::new();
    fake.add(&FakeProcess::new(12, 900));
    let stale = fake.socket("tmp", 12, 800);
    assert_eq!(fake.reason(12), Reason::StaleSocket { sockets: vec![stale] });

    fake.add(&FakeProcess::new(22, 900));
    let deleted = fake.socket("tmp", 22, 900);
    fake.bound(&deleted);
    assert_eq!(fake.codes(22), [] as [&str; 0]);
    fs::remove_file(&deleted).unwrap();
    assert_eq!(fake.reason(22), Reason::SocketDeleted { sockets: vec![deleted] });

    // Its server thread exists, and the kernel's table belongs to another network namespace.
    let mut process = FakeProcess::new(32, 900);
    process.threads = &["dotnet", ".NET EventPipe", ".NET Finalizer"];
    fake.add(&process);
    assert_eq!(fake.codes(32), ["stale-socket"]);
}

/// A runtime starts during the search: its socket is newer than the list of sockets, and its server thread is seen.
#[test]
fn a_socket_created_during_the_search_is_not_reported_as_deleted() {
    for is_survey in [false, true] {
        let fake = Fake::new();
        let mut process = FakeProcess::new(52, 900);
        process.threads = &["dotnet", ".NET EventPipe", ".NET Finalizer"];
        let maps = fake.add(&process).join("maps");
        fs::remove_file(&maps).unwrap();
        mknodat(CWD, &maps, FileType::Fifo, Mode::RUSR | Mode::WUSR, 0).unwrap();
        let facts = thread::scope(|scope| {
            scope.spawn(|| {
                // The search opens the memory map after the lists of sockets.
                let mut pipe = fs::OpenOptions::new().write(true).open(&maps).unwrap();
                fake.socket("tmp", 52, 900);
                pipe.write_all(RUNTIME.as_bytes()).unwrap();
            });
            if is_survey { fake.system().managed_facts().processes.remove(0) } else { fake.facts(52) }
        });
        assert_eq!(Reason::all(&facts), [], "{facts:#?}");
        assert!(facts.endpoint().is_some(), "{facts:#?}");
    }
}

#[test]
fn a_runtime_without_a_server() {
    let fake = Fake::new();
    fs::write(fake.path("proc/uptime"), "10.50 3.00\n").unwrap();
    let mut process = FakeProcess::new(13, 900);
    process.threads = &["dotnet"];
    fake.add(&process);
    assert_eq!((fake.facts(13).age, fake.facts(13).startup), (Some(150), Startup::Waiting));
    assert_eq!(fake.reason(13), Reason::Starting);
    fs::write(fake.path("proc/uptime"), "100.00 3.00\n").unwrap();
    assert_eq!(fake.reason(13), Reason::NoServer { aot: false });

    // Young, but it already runs its program.
    fake.add(&FakeProcess::new(23, 9_900));
    assert_eq!(fake.reason(23), Reason::NoServer { aot: false });
}

#[test]
fn unusable_temporary_directories() {
    let fake = Fake::new();
    fake.add(&FakeProcess::new(15, 900).tmpdir(&fake.path("gone")));
    assert_eq!(fake.reason(15), Reason::NoTmpdir { directory: fake.path("gone"), elsewhere: false });
    // A file is not a directory.
    fake.add(&FakeProcess::new(25, 900).tmpdir(&fake.path("etc/passwd")));
    assert_eq!(fake.codes(25), ["other-tmpdir"]);
    // User 1000 is not permitted to write here.
    fake.add(&FakeProcess::new(35, 900).tmpdir(Path::new("/proc")));
    assert_eq!(fake.reason(35), Reason::TmpReadOnly { directory: "/proc".into(), mounted: false });
}

/// A socket's path has at most 107 bytes.
#[test]
fn a_temporary_directory_that_is_too_long() {
    let fake = Fake::new();
    let long = fake.path("d".repeat(121 - fake.path("").as_os_str().len()));
    fs::create_dir(&long).unwrap();
    fs::set_permissions(&long, fs::Permissions::from_mode(0o777)).unwrap();
    fake.add(&FakeProcess::new(15, 900).tmpdir(&long));
    assert_eq!(fake.reason(15), Reason::LongTmpdir { directory: long, longest: 107 - 32 });
    let text = fake.reason(15).to_string();
    assert!(text.contains("121 bytes") && text.contains("107 bytes"), "{text}");
    assert!(words(&fake.reason(15)).contains("at most 75 bytes"));
}

/// Any user has all capabilities in their own user namespace, but not over files of others.
#[test]
fn a_temporary_directory_of_a_process_with_capabilities_of_its_own_namespace() {
    let fake = Fake::new();
    let directory = fake.path("private");
    fs::create_dir(&directory).unwrap();
    fs::set_permissions(&directory, fs::Permissions::from_mode(0o700)).unwrap();
    let mut process = FakeProcess::new(45, 900).tmpdir(&directory);
    process.uid = rustix::process::geteuid().as_raw() + 1;
    process.status = "Gid:\t4000000\t4000000\t4000000\t4000000\nCapEff:\t1ffffffffff\n";
    let folder = fake.add(&process);
    assert_eq!(fake.facts(45).temp.unwrap().state, TempState::Fine);
    fs::remove_file(folder.join("ns/user")).unwrap();
    symlink("user:[9]", folder.join("ns/user")).unwrap();
    assert_eq!(fake.facts(45).temp.unwrap().state, TempState::NotWritable);
    assert_eq!(fake.reason(45), Reason::TmpReadOnly { directory, mounted: false });
}

/// Unreadable files are represented by missing ones.
#[test]
fn processes_that_are_not_accessible() {
    let fake = Fake::new();
    let mut process = FakeProcess::new(16, 900);
    process.uid = 33;
    let folder = fake.add(&process);
    fs::remove_file(folder.join("environ")).unwrap();
    fs::remove_file(folder.join("maps")).unwrap();
    assert_eq!(fake.reason(16), Reason::OtherUser { uid: 33, user: "33".to_owned() });
    // All users can read the names of its threads.
    assert_eq!(fake.facts(16).runtime, Runtime::Hidden { likely: true });
    assert!(fake.facts(16).is_dotnet());

    let mut process = FakeProcess::new(26, 900);
    process.pid_ns = "pid:[2]";
    let folder = fake.add(&process);
    fs::remove_file(folder.join("environ")).unwrap();
    assert_eq!(fake.reason(26), Reason::OtherNamespace { namespaces: vec!["pid"] });

    let folder = fake.add(&FakeProcess::new(36, 900));
    fs::remove_file(folder.join("maps")).unwrap();
    assert_eq!(fake.reason(36), Reason::Denied { label: None, capable: false });
    assert!(words(&fake.reason(36)).contains("SYS_PTRACE"));

    // With full access rights, only a security module can be the cause; it has set a label.
    fs::create_dir_all(folder.join("attr")).unwrap();
    fs::write(folder.join("attr/current"), "docker-default (enforce)\n").unwrap();
    fs::write(fake.path("proc/self/status"), "State:\tR\nTgid:\t1\nUid:\t0\t0\t0\t0\nCapEff:\t1ffffffffff\n")
        .unwrap();
    let reason = Reason::all(&System::at(fake.dir.path(), 0).facts(36)).remove(0);
    assert_eq!(reason, Reason::Denied { label: Some("docker-default (enforce)".to_owned()), capable: true });
    assert_eq!(reason.code(), ReasonCode::Lsm);
    assert!(reason.to_string().contains("docker-default (enforce)"), "{reason}");
}

#[test]
fn steps_of_the_search_are_reported() {
    let fake = Fake::new();
    fake.add(&FakeProcess::new(13, 900));
    let stale = fake.socket("tmp", 13, 800);
    let error = fake.system().process(13).unwrap_err();
    let steps = error.looked_at.join("\n");
    for part in [
        "memory map: /opt/dotnet/libcoreclr.so",
        "environment:",
        "temporary directory",
        &format!("{}: stale", stale.display()),
    ] {
        assert!(steps.contains(part), "{part} is not in {steps}");
    }
}
