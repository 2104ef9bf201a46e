//! Another user tries to take over root's real runtimes, which keep connecting to their port until they exit and obey
//! any listener there. So the port's name is never free: not between a tool and its guard, not after a tool was killed,
//! not while `resume` replaces it, and not afterwards.

use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::os::unix::net::UnixListener;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

use runtap_discover::{Startup, System};
use runtap_testkit::{Program, RealRuntime, Running, Signal, Skip, eventually};
use rustix::process::{Pid, kill_process};
use tempfile::TempDir;

use crate::attack_handover::{check_unchanged, guard_in, state};
use crate::attacker::{NOBODY, Squatter};
use crate::common::{RemoveOnDrop, all_have_ended, folder, port_of_those_with, runtap, shell, trace_of};
use crate::real_attack_ports::StopOnDrop;
use crate::real_doctor::idle;
use crate::real_doctor_rights::{NOBODY as SETPRIV, can_run};

on_the_newest_runtime!(
    a_runtime_outlives_its_tool_and_its_guard,
    a_killed_tool_is_replaced_by_resume,
    a_killed_tool_at_a_named_port_is_replaced,
    a_port_behind_a_link_of_another_user_is_rejected,
    root_does_not_follow_an_exchanged_folder,
);

/// Creates a folder like `/tmp`.
fn shared_folder() -> Result<TempDir, Skip> {
    if !rustix::process::geteuid().is_root() {
        return Err(Skip::because("only root can run programs as another user"));
    }
    let folder = folder();
    fs::set_permissions(folder.path(), fs::Permissions::from_mode(0o1777)).unwrap();
    Ok(folder)
}

/// Kills all processes with this text in their environment, also if the test fails.
struct KillOnDrop<'a>(&'a Path);

impl Drop for KillOnDrop<'_> {
    fn drop(&mut self) {
        for pid in System::current().started_with(self.0.as_os_str().as_encoded_bytes(), |_| true) {
            let _ = kill_process(Pid::from_raw(pid.try_into().unwrap()).unwrap(), Signal::KILL);
        }
    }
}

/// The runtime keeps connecting while the tool exits, the guard takes over, the guard is killed, and `resume` finds
/// nothing to do.
fn a_runtime_outlives_its_tool_and_its_guard(runtime: &RealRuntime) -> Result<(), Skip> {
    let place = shared_folder()?;
    let end = KillOnDrop(place.path());
    let spin = runtime.program("spin", &["600", "20000"])?.command();
    let words = std::iter::once(spin.get_program()).chain(spin.get_args());
    let mut launched = shell("\"$@\" & exit 0", words);
    launched.envs(spin.get_envs().filter_map(|(name, value)| Some((name, value?))));
    launched.env("TMPDIR", place.path());
    let file = place.path().join("x.nettrace");
    let tracing = Running::start(trace_of(["--duration", "1s", "-o", file.to_str().unwrap()], &launched));
    let port = port_of_those_with(place.path());
    let _left = RemoveOnDrop(port.clone());
    let before = state(&port);
    let squatter = Squatter::at(&port);
    let finished = tracing.wait();
    finished.expect_code(0);
    check_unchanged(&port, before);
    kill_process(guard_in(&finished.stderr), Signal::KILL).unwrap();
    check_unchanged(&port, before);
    let spinning = System::current().started_with(port.as_os_str().as_encoded_bytes(), |_| true);
    assert_eq!(spinning.len(), 1);
    // The program is running, and is queried by its default socket.
    runtap(["resume", &spinning[0].to_string()]).expect_code(0);
    check_unchanged(&port, before);
    squatter.never_succeeded();
    drop(end);
    all_have_ended(place.path());
    Ok(())
}

/// `kill -9`, then `resume`: it recognizes the folder as runtap's, and starts a guard for the children, which removes
/// the folder.
fn a_killed_tool_is_replaced_by_resume(runtime: &RealRuntime) -> Result<(), Skip> {
    let place = shared_folder()?;
    let _end = KillOnDrop(place.path());
    let children = runtime.program("children", &["0.3"])?.command();
    let words = std::iter::once(children.get_program()).chain(children.get_args());
    let mut launched = shell("kill -9 $PPID; exec \"$@\"", words);
    launched.envs(children.get_envs().filter_map(|(name, value)| Some((name, value?))));
    launched.env("TMPDIR", place.path());
    let file = place.path().join("x.nettrace");
    let tracing = Running::start(trace_of(["--children", "-o", file.to_str().unwrap()], &launched));
    assert_eq!(tracing.wait().code(), None);
    let port = port_of_those_with(place.path());
    let _left = RemoveOnDrop(port.clone());
    let before = state(&port);
    let squatter = Squatter::at(&port);
    let system = System::current();
    let waiting = eventually("the first process waits", || {
        let holders = system.started_with(port.as_os_str().as_encoded_bytes(), |_| true);
        holders.into_iter().find(|pid| system.startup(*pid) == Startup::Waiting)
    });
    check_unchanged(&port, before);
    let resumed = runtap(["resume", &waiting.to_string()]);
    resumed.expect_code(0).says(&format!("Resumed process {waiting}.")).says("stays in the background");
    let (_, _, mode, owner) = state(&port);
    assert_eq!((mode & 0o7777, owner), (0o666, 0));
    all_have_ended(place.path());
    eventually("the end of the guard", || (!port.parent().unwrap().exists()).then_some(()));
    squatter.never_succeeded();
    Ok(())
}

/// Starts a program that is suspended until a tool listens on this port.
fn waiting(runtime: &RealRuntime, temp: &Path, port: &Path, who: &[&str]) -> Result<Program, Skip> {
    let launch = idle(runtime)?.env("TMPDIR", temp).env("DOTNET_DiagnosticPorts", port);
    let program = launch.wrapped_by(who).spawn_unready();
    let pid = program.id().to_string();
    eventually("the suspended runtime", || (runtap(["info", "-p", &pid]).code() == Some(0)).then_some(()));
    Ok(program)
}

/// Root's tool has listened in a shared folder, and was killed. `resume` replaces its socket in one step, and leaves
/// its own.
fn a_killed_tool_at_a_named_port_is_replaced(runtime: &RealRuntime) -> Result<(), Skip> {
    let place = shared_folder()?;
    let port = place.path().join("my.port");
    let tool = UnixListener::bind(&port).unwrap();
    let stale = state(&port);
    let program = waiting(runtime, place.path(), &port, &["env"])?;
    drop(tool);
    let squatter = Squatter::at(&port);
    let resumed = runtap(["resume", &program.id().to_string()]);
    resumed.expect_code(0).says("Resumed process").says("such as /run/NAME");
    let left = state(&port);
    assert!((left.0, left.1) != (stale.0, stale.1) && left.3 == 0, "{left:?}");
    check_unchanged(&port, left);
    squatter.never_succeeded();

    // The socket for another user's program is given to that user.
    can_run(&SETPRIV, runtime)?;
    let port = place.path().join("theirs.port");
    let program = waiting(runtime, place.path(), &port, &SETPRIV)?;
    runtap(["resume", &program.id().to_string()]).expect_code(0).says("Resumed process");
    assert_eq!(state(&port).3, NOBODY);
    Ok(())
}

/// Stale sockets of root in a folder that every user can enter, and links of user `nobody` that lead there.
struct LinkedSockets {
    place: TempDir,
    sockets: [PathBuf; 2],
    theirs: PathBuf,
}

impl LinkedSockets {
    fn new() -> Result<Self, Skip> {
        let place = shared_folder()?;
        let private = place.path().join("runtap-0123456789abcdef");
        fs::create_dir(&private).unwrap();
        fs::set_permissions(&private, fs::Permissions::from_mode(0o711)).unwrap();
        let sockets = ["port", "runtap-1.socket"].map(|name| private.join(name));
        for socket in &sockets {
            drop(UnixListener::bind(socket).unwrap());
            fs::set_permissions(socket, fs::Permissions::from_mode(0o600)).unwrap();
        }
        let theirs = place.path().join("theirs");
        fs::create_dir(&theirs).unwrap();
        let link = theirs.join("runtap-0000000000000000");
        symlink(&private, &link).unwrap();
        for of_nobody in [&theirs, &link] {
            chown(of_nobody);
        }
        Ok(Self { place, sockets, theirs })
    }

    fn states(&self) -> [(u64, u64, u32, u32); 2] {
        [state(&self.sockets[0]), state(&self.sockets[1])]
    }
}

fn chown(path: &Path) {
    let (nobody, flags) = (rustix::fs::Uid::from_raw(NOBODY), rustix::fs::AtFlags::SYMLINK_NOFOLLOW);
    rustix::fs::chownat(rustix::fs::CWD, path, Some(nobody), None, flags).unwrap();
}

/// Whether the program belongs to root or to user `nobody`: the link's target can change before a guard checks it.
fn a_port_behind_a_link_of_another_user_is_rejected(runtime: &RealRuntime) -> Result<(), Skip> {
    can_run(&SETPRIV, runtime)?;
    let trap = LinkedSockets::new()?;
    let before = trap.states();
    for (who, why) in [(&["env"][..], "belongs to another user"), (&SETPRIV[..], "must resume it")] {
        for socket in &trap.sockets {
            let port = trap.theirs.join("runtap-0000000000000000").join(socket.file_name().unwrap());
            let program = waiting(runtime, trap.place.path(), &port, who)?;
            let resumed = runtap(["resume", &program.id().to_string(), "--duration", "1s"]);
            resumed.expect_code(4).says(port.to_str().unwrap()).says(why);
            assert!(!resumed.stderr.contains("background"), "{resumed}");
            assert_eq!(trap.states(), before, "{}", port.display());
        }
    }
    Ok(())
}

/// The link is repeatedly exchanged with a folder of user `nobody`, while root resumes its own program.
fn root_does_not_follow_an_exchanged_folder(runtime: &RealRuntime) -> Result<(), Skip> {
    let trap = LinkedSockets::new()?;
    let before = trap.states();
    let (link, real) =
        (trap.theirs.join("runtap-0000000000000000"), trap.theirs.join("runtap-1111111111111111"));
    fs::create_dir(&real).unwrap();
    chown(&real);
    // The program keeps waiting for the second port, which cannot be created.
    let ports = format!("{};{}", link.join("port").display(), trap.theirs.join("none/x").display());
    let program = waiting(runtime, trap.place.path(), ports.as_ref(), &["env"])?;
    let pid = program.id().to_string();
    let over = AtomicBool::new(false);
    thread::scope(|scope| {
        // Also if this test fails: the scope waits for its threads.
        let _stop = StopOnDrop(&over);
        scope.spawn(|| {
            while !over.load(Ordering::Relaxed) {
                let flags = rustix::fs::RenameFlags::EXCHANGE;
                let _ = rustix::fs::renameat_with(rustix::fs::CWD, &link, rustix::fs::CWD, &real, flags);
            }
        });
        for _ in 0..16 {
            runtap(["resume", "-p", &pid, "--duration", "100ms"]);
            assert_eq!(trap.states(), before);
        }
    });
    Ok(())
}
