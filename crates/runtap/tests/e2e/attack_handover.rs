//! Another user tries to take the name of root's port, to which root's programs keep connecting until they exit: when
//! the tool exits, when its guard takes over, and when the guard exits. No runtime is needed, since only the name
//! matters.

use std::fs;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::Path;
use std::process::Command;
use std::thread::sleep;
use std::time::Duration;

use runtap_testkit::{Running, Signal, Skip, eventually, run};
use rustix::process::{Pid, kill_process};
use tempfile::TempDir;

use crate::attacker::Squatter;
use crate::common::{RemoveOnDrop, command, folder, port_of_those_with, runtap, shell, trace_of};
use crate::hostile_ports::{RESUME, connect_as_runtime, request};

/// Creates a folder like `/tmp`; `None` if no other user is available.
fn shared_folder() -> Option<TempDir> {
    if !rustix::process::geteuid().is_root() {
        Skip::because("only root can run programs as another user").report();
        return None;
    }
    let folder = folder();
    fs::set_permissions(folder.path(), fs::Permissions::from_mode(0o1777)).unwrap();
    Some(folder)
}

/// Returns device, inode, mode and owner of a socket's file.
pub(crate) fn state(port: &Path) -> (u64, u64, u32, u32) {
    let meta = fs::symlink_metadata(port).unwrap();
    (meta.dev(), meta.ino(), meta.mode(), meta.uid())
}

/// Checks that the file stays unchanged for some time.
#[track_caller]
pub(crate) fn check_unchanged(port: &Path, before: (u64, u64, u32, u32)) {
    for _ in 0..100 {
        assert_eq!(state(port), before);
        sleep(Duration::from_millis(10));
    }
}

/// Parses the id of the background process from the messages.
pub(crate) fn guard_in(stderr: &str) -> Pid {
    let guard =
        stderr.split_once("; process ").and_then(|(_, rest)| rest.split_once(" stays in the background"));
    Pid::from_raw(guard.unwrap_or_else(|| panic!("{stderr}")).0.parse().unwrap()).unwrap()
}

/// Returns the command in a mount namespace in which every user can write to `/run`, so that the port is in the
/// temporary folder.
fn without_run(traced: &Command) -> Command {
    let mut wrapped = Command::new("unshare");
    wrapped.args(["--mount", "sh", "-c", "mount -t tmpfs -o mode=1777 none /run && exec \"$@\"", "sh"]);
    wrapped.arg(traced.get_program()).args(traced.get_args());
    wrapped.envs(traced.get_envs().filter_map(|(name, value)| Some((name, value?))));
    wrapped
}

/// Returns a command that exits while a child of it keeps running until the file `end` exists or the folder is gone.
fn command_with_orphan(place: &Path) -> Command {
    let script = "(until [ -e \"$1/end\" -o ! -e \"$1\" ]; do sleep 0.02; done) & until [ -e \"$1/go\" ]; do sleep 0.02; done";
    let mut launched = shell(script, [place.as_os_str()]);
    launched.env("TMPDIR", place);
    trace_of(["--dial-in", "0.1s", "-o", place.join("x.nettrace").to_str().unwrap()], &launched)
}

#[test]
fn a_guard_takes_over_the_port_without_a_gap() {
    for in_temporary_folder in [false, true] {
        let Some(place) = shared_folder() else { return };
        let traced = command_with_orphan(place.path());
        let tracing = Running::start(if in_temporary_folder { without_run(&traced) } else { traced });
        let port = port_of_those_with(place.path());
        assert_eq!(port.starts_with(place.path()), in_temporary_folder);
        let before = state(&port);
        assert_eq!((before.2 & 0o7777, before.3), (0o666, 0));
        let squatter = Squatter::at(&port);
        fs::write(place.path().join("go"), "").unwrap();
        tracing.wait().says("stays in the background");
        check_unchanged(&port, before);
        // The port is served: a process that connects is told to resume.
        let asked = request(&mut connect_as_runtime(&port, 7));
        assert_eq!(asked.map(|(set, number, _)| (set, number)), Some(RESUME));
        fs::write(place.path().join("end"), "").unwrap();
        eventually("the end of the guard", || (!port.parent().unwrap().exists()).then_some(()));
        sleep(Duration::from_millis(200));
        squatter.never_succeeded();
    }
}

/// A killed guard leaves a socket that other users cannot replace.
#[test]
fn a_killed_guard_leaves_a_name_that_others_cannot_take() {
    let Some(place) = shared_folder() else { return };
    let tracing = Running::start(without_run(&command_with_orphan(place.path())));
    let port = port_of_those_with(place.path());
    let _left = RemoveOnDrop(port.clone());
    let before = state(&port);
    let squatter = Squatter::at(&port);
    fs::write(place.path().join("go"), "").unwrap();
    let finished = tracing.wait();
    kill_process(guard_in(&finished.stderr), Signal::KILL).unwrap();
    check_unchanged(&port, before);
    squatter.never_succeeded();
    fs::write(place.path().join("end"), "").unwrap();
}

/// Root names a port in a shared folder: a warning is printed, root keeps the name, and the next tool takes it over
/// without a gap.
#[test]
fn a_named_port_in_a_shared_folder_remains_roots() {
    let Some(place) = shared_folder() else { return };
    let port = place.path().join("my.port");
    let listen = format!("{},listen", port.display());
    let mut squatter = None;
    let mut last = None;
    for round in 0..10 {
        let (verb, mode, code): (&[&str], _, _) = match round % 3 {
            0 => (&["info"], 0o600, 130),
            1 => (&["resume", "--duration", "60"], 0o666, 130),
            _ => (&["trace", "-o", "x.nettrace"], 0o600, 130),
        };
        let mut waiting = command(verb);
        waiting.args(["--diagnostic-port", &listen]).current_dir(place.path());
        let waiting = Running::start(waiting);
        let taken = eventually("the socket", || {
            let state = port.exists().then(|| state(&port))?;
            (Some(state) != last).then_some(state)
        });
        assert_eq!((taken.2 & 0o7777, taken.3), (mode, 0));
        squatter.get_or_insert_with(|| Squatter::at(&port));
        waiting.signal(Signal::INT);
        let told = waiting.wait();
        told.expect_code(code).says(port.to_str().unwrap()).says("such as /run/NAME");
        check_unchanged(&port, taken);
        last = Some(taken);
    }
    squatter.unwrap().never_succeeded();
}

/// In a folder to which only root can write, no warning is printed and no file is left.
#[test]
fn a_named_port_in_a_private_folder_is_removed() {
    let folder = folder();
    let port = folder.path().join("my.port");
    let told =
        runtap(["resume", "--diagnostic-port", &format!("{},listen", port.display()), "--duration", "0.2"]);
    told.expect_code(3);
    assert!(!told.stderr.contains("a listener there controls"), "{told}");
    assert!(!port.exists());
}

/// A folder of another user, and a link of that user in the path to root's folder.
#[test]
fn a_named_port_is_not_reached_by_links_of_other_users() {
    let Some(place) = shared_folder() else { return };
    let private = place.path().join("private");
    fs::create_dir(&private).unwrap();
    fs::set_permissions(&private, fs::Permissions::from_mode(0o700)).unwrap();
    let daemon = private.join("daemon.sock");
    drop(std::os::unix::net::UnixListener::bind(&daemon).unwrap());
    let before = state(&daemon);
    let link = place.path().join("link");
    std::os::unix::fs::symlink(&private, &link).unwrap();
    let nobody = Some(rustix::fs::Uid::from_raw(crate::attacker::NOBODY));
    let flags = rustix::fs::AtFlags::SYMLINK_NOFOLLOW;
    rustix::fs::chownat(rustix::fs::CWD, &link, nobody, None, flags).unwrap();
    let listen = format!("{}/daemon.sock,listen", link.display());
    for verb in [&["info"][..], &["resume", "--duration", "0.2"], &["trace"]] {
        let mut waiting = command(verb);
        waiting.args(["--diagnostic-port", &listen]).current_dir(place.path());
        run(waiting).expect_code(1).says("belongs to another user");
        assert_eq!(state(&daemon), before, "{verb:?}");
    }
}
