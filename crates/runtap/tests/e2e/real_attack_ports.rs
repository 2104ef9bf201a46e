//! `resume` by root for programs of another user that use root's own sockets as their ports: no file of root is
//! replaced, opened to others or deleted, and no process of runtap stays for them.

use std::fs;
use std::os::unix::fs::{MetadataExt, PermissionsExt, symlink};
use std::os::unix::net::UnixListener;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

use runtap_discover::System;
use runtap_testkit::{Finished, Program, RealRuntime, Skip, eventually};

use crate::common::runtap;
use crate::real_doctor::idle;
use crate::real_doctor_rights::{NOBODY, ProgramCopy, can_run};

on_the_newest_runtime!(
    stale_sockets_of_root_stay_as_they_are,
    live_sockets_of_root_are_not_opened_to_others,
    an_exchanged_folder_is_not_followed,
    a_users_own_port_is_served_without_a_guard,
);

/// A program of user `nobody` that is suspended until a tool listens on this port.
struct WaitingProgram {
    program: Program,
}

impl WaitingProgram {
    fn start(runtime: &RealRuntime, place: &ProgramCopy, port: &Path) -> Result<Self, Skip> {
        Self::start_as(&NOBODY, runtime, place, port)
    }

    fn start_as(
        user: &[&str],
        runtime: &RealRuntime,
        place: &ProgramCopy,
        port: &Path,
    ) -> Result<Self, Skip> {
        can_run(user, runtime)?;
        let launch = idle(runtime)?.env("TMPDIR", place.path()).env("DOTNET_DiagnosticPorts", port);
        let program = launch.wrapped_by(user).spawn_unready();
        let pid = program.id().to_string();
        eventually("the suspended runtime", || {
            (runtap(["info", "-p", &pid]).code() == Some(0)).then_some(())
        });
        Ok(Self { program })
    }

    fn resume(&self) -> Finished {
        runtap(["resume", "-p", &self.program.id().to_string(), "--duration", "2s"])
    }
}

/// Returns the attributes of a file that must not change.
fn state(path: &Path) -> (u64, u32, u32) {
    let meta = fs::symlink_metadata(path).unwrap();
    (meta.ino(), meta.mode(), meta.uid())
}

fn stale(path: &Path) -> (u64, u32, u32) {
    drop(UnixListener::bind(path).unwrap());
    state(path)
}

fn stale_sockets_of_root_stay_as_they_are(runtime: &RealRuntime) -> Result<(), Skip> {
    let place = ProgramCopy::new()?;
    let private = place.private();
    let shared = place.path().join("shared");
    fs::create_dir(&shared).unwrap();
    fs::set_permissions(&shared, fs::Permissions::from_mode(0o1777)).unwrap();
    symlink(&private, shared.join("link")).unwrap();
    let readable = place.path().join("runtap-0123456789abcdef");
    fs::create_dir(&readable).unwrap();
    for (port, file) in [
        // Inaccessible for them, directly and by their own link; in a folder to which they cannot write; in a
        // world-writable one.
        (private.join("daemon.sock"), private.join("daemon.sock")),
        (shared.join("link/daemon.sock"), private.join("daemon.sock")),
        (readable.join("port"), readable.join("port")),
        (shared.join("daemon.sock"), shared.join("daemon.sock")),
    ] {
        if !file.exists() {
            stale(&file);
        }
        let before = state(&file);
        let waiting = WaitingProgram::start(runtime, &place, &port)?;
        waiting.resume().expect_code(4).says("must resume it");
        assert_eq!(state(&file), before, "{}", port.display());
        no_guard_for(&port);
    }
    // If there is no socket yet, none is created.
    let none = readable.join("none.sock");
    // Every user has all capabilities in an own user namespace.
    let namespace = [&NOBODY[..], &["unshare", "--user", "--map-root-user"]].concat();
    for user in [&NOBODY[..], &namespace] {
        let waiting = WaitingProgram::start_as(user, runtime, &place, &none)?;
        waiting.resume().expect_code(4);
        assert!(!none.exists());
    }
    Ok(())
}

fn live_sockets_of_root_are_not_opened_to_others(runtime: &RealRuntime) -> Result<(), Skip> {
    let place = ProgramCopy::new()?;
    let shared = place.path().join("shared");
    fs::create_dir(&shared).unwrap();
    fs::set_permissions(&shared, fs::Permissions::from_mode(0o1777)).unwrap();
    let file = shared.join("daemon.sock");
    let _daemon = UnixListener::bind(&file).unwrap();
    fs::set_permissions(&file, fs::Permissions::from_mode(0o600)).unwrap();
    let before = state(&file);
    // A hard link to it, which every user can create on a kernel without protected_hardlinks.
    let theirs = place.path().join("theirs");
    fs::create_dir(&theirs).unwrap();
    let nobody = rustix::fs::Uid::from_raw(65_534);
    rustix::fs::chown(&theirs, Some(nobody), None).unwrap();
    let link = theirs.join("port.sock");
    fs::hard_link(&file, &link).unwrap();
    for port in [&file, &link] {
        let waiting = WaitingProgram::start(runtime, &place, port)?;
        let resumed = waiting.resume();
        assert!([Some(1), Some(4)].contains(&resumed.code()), "{resumed}");
        assert_eq!(state(&file), before, "{resumed}");
        assert!(port.exists());
    }
    Ok(())
}

/// The path to the port contains a link that is repeatedly exchanged while root resumes.
fn an_exchanged_folder_is_not_followed(runtime: &RealRuntime) -> Result<(), Skip> {
    let place = ProgramCopy::new()?;
    let private = place.private();
    let daemon = private.join("daemon.sock");
    let _daemon = UnixListener::bind(&daemon).unwrap();
    fs::set_permissions(&daemon, fs::Permissions::from_mode(0o600)).unwrap();
    let gone = private.join("gone.sock");
    stale(&gone);
    let before = (state(&daemon), state(&gone));
    let theirs = place.path().join("theirs");
    fs::create_dir(&theirs).unwrap();
    rustix::fs::chown(&theirs, Some(rustix::fs::Uid::from_raw(65_534)), None).unwrap();
    let (one, other) = (theirs.join("a"), theirs.join("b"));
    let folder = theirs.join("folder");
    fs::create_dir(&folder).unwrap();
    rustix::fs::chown(&folder, Some(rustix::fs::Uid::from_raw(65_534)), None).unwrap();
    symlink(&private, &one).unwrap();
    symlink(&folder, &other).unwrap();
    let stop = AtomicBool::new(false);
    thread::scope(|scope| -> Result<(), Skip> {
        // Also if this test fails: the scope waits for its threads.
        let _stop = StopOnDrop(&stop);
        scope.spawn(|| {
            while !stop.load(Ordering::Relaxed) {
                // The exchange ends in either state.
                let flags = rustix::fs::RenameFlags::EXCHANGE;
                let _ = rustix::fs::renameat_with(rustix::fs::CWD, &one, rustix::fs::CWD, &other, flags);
            }
        });
        for name in ["daemon.sock", "gone.sock"] {
            // The program keeps waiting for the second port, which cannot be created.
            let ports = format!("{};{}", one.join(name).display(), theirs.join("none/x").display());
            let waiting = WaitingProgram::start(runtime, &place, ports.as_ref())?;
            let pid = waiting.program.id().to_string();
            for _ in 0..8 {
                runtap(["resume", "-p", &pid, "--duration", "100ms"]);
                assert_eq!((state(&daemon), state(&gone)), before);
            }
        }
        Ok(())
    })
}

/// Stops a thread when its test ends or fails.
pub(crate) struct StopOnDrop<'a>(pub(crate) &'a AtomicBool);

impl Drop for StopOnDrop<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

/// The legitimate case: their own port, in their own folder.
fn a_users_own_port_is_served_without_a_guard(runtime: &RealRuntime) -> Result<(), Skip> {
    let place = ProgramCopy::new()?;
    let theirs = place.path().join("theirs");
    fs::create_dir(&theirs).unwrap();
    rustix::fs::chown(&theirs, Some(rustix::fs::Uid::from_raw(65_534)), None).unwrap();
    // Named like a folder of runtap, which alone does not start a guard.
    let theirs = theirs.join("runtap-0123456789abcdef");
    fs::create_dir(&theirs).unwrap();
    rustix::fs::chown(&theirs, Some(rustix::fs::Uid::from_raw(65_534)), None).unwrap();
    let port = theirs.join("port");
    let waiting = WaitingProgram::start(runtime, &place, &port)?;
    waiting.resume().expect_code(0).says("Resumed process");
    assert!(!port.exists());
    no_guard_for(&port);
    let left: Vec<PathBuf> = fs::read_dir(&theirs).unwrap().map(|entry| entry.unwrap().path()).collect();
    assert!(left.is_empty(), "{left:?}");
    Ok(())
}

/// Checks that no process of runtap listens for them in the background.
fn no_guard_for(port: &Path) {
    let pids = fs::read_dir("/proc").unwrap().flatten();
    for pid in pids.filter_map(|entry| entry.file_name().to_str()?.parse::<u32>().ok()) {
        let line = System::current().holder(pid).command_line;
        let guards =
            line.iter().any(|word| word == "guard-port") && line.iter().any(|word| Path::new(word) == port);
        assert!(!guards, "process {pid}: {line:?}");
    }
}
