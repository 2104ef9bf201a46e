//! Processes whose inspection takes arbitrarily long: `/proc/PID/environ` of one is a pipe without a writer. Meanwhile,
//! programs at runtap's ports are served, and signals and `--duration` are handled. Requires root.

use std::fs::{self, File, OpenOptions};
use std::os::fd::OwnedFd;
use std::os::unix::fs::OpenOptionsExt;
use std::os::unix::net::UnixListener;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use runtap_discover::System;
use runtap_testkit::{Program, RealRuntime, Running, Signal, Skip, eventually, run};
use runtap_transport::naming::SocketName;
use rustix::fs::{Mode, OFlags};
use tempfile::TempDir;

use crate::common::{all_have_ended, command, folder, runtap, shell, trace_of};
use crate::real_doctor::idle;

on_the_newest_runtime!(
    resume_ends_with_its_time,
    resume_hears_signals,
    the_host_of_a_port_serves_while_a_search_for_processes_hangs,
    the_guard_serves_while_a_search_for_processes_hangs,
    a_tree_is_recorded_while_a_search_for_processes_hangs,
    verbs_that_look_hear_signals,
);

/// A process whose folder in `/proc` is replaced for commands started by [`Self::shown_to`]: a runtime that is
/// suspended at startup, with a socket in `temp`.
struct SlowProcess {
    child: Child,
    folder: TempDir,
    _socket: UnixListener,
}

impl SlowProcess {
    fn new(temp: &Path) -> Result<Self, Skip> {
        if !rustix::process::geteuid().is_root() {
            return Err(Skip::because("only root can mount something in /proc"));
        }
        let child = Command::new("cat").stdin(Stdio::piped()).stdout(Stdio::null()).spawn().unwrap();
        let pid = child.id();
        let (real, folder) = (PathBuf::from(format!("/proc/{pid}")), folder());
        let write = |name: &str, text: &[u8]| fs::write(folder.path().join(name), text).unwrap();
        for name in ["stat", "status", "cmdline"] {
            write(name, &fs::read(real.join(name)).unwrap());
        }
        write("maps", b"7f00-7f01 r-xp 00000000 08:01 42                /n/libcoreclr.so\n");
        fs::create_dir_all(folder.path().join(format!("task/{pid}"))).unwrap();
        write(&format!("task/{pid}/comm"), b"app\n");
        let pipe = folder.path().join("environ");
        rustix::fs::mknodat(rustix::fs::CWD, &pipe, rustix::fs::FileType::Fifo, Mode::RUSR, 0).unwrap();
        let name = SocketName::runtime(pid, System::current().start_time(pid).unwrap());
        let socket = UnixListener::bind(temp.join(name.to_string())).unwrap();
        Ok(Self { child, folder, _socket: socket })
    }

    /// Returns the command in a namespace with the replaced folder.
    fn shown_to(&self, command: &Command) -> Command {
        let mut apart = Command::new("unshare");
        let script = "mount --bind \"$1\" \"/proc/$2\"; shift 2; exec \"$@\"";
        apart.args(["--mount", "sh", "-ec", script, "sh"]);
        apart.arg(self.folder.path()).arg(self.child.id().to_string());
        apart.arg(command.get_program()).args(command.get_args());
        for (name, value) in command.get_envs() {
            match value {
                Some(value) => apart.env(name, value),
                None => apart.env_remove(name),
            };
        }
        apart
    }

    /// From now on the process can be inspected quickly, also by waiting readers.
    fn unblock(&self, stuck: File) {
        let pipe = self.folder.path().join("environ");
        fs::remove_file(&pipe).unwrap();
        fs::write(&pipe, b"").unwrap();
        drop(stuck);
    }

    /// Waits until a reader opens the pipe, which then blocks until the returned file is dropped.
    fn wait_for_reader(&self) -> File {
        let pipe = self.folder.path().join("environ");
        let flags = OFlags::NONBLOCK.bits().cast_signed();
        eventually("a look at the slow process", || {
            OpenOptions::new().write(true).custom_flags(flags).open(&pipe).ok()
        })
    }
}

impl Drop for SlowProcess {
    fn drop(&mut self) {
        // The process may have exited already.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Starts a program that waits for a port whose tool is gone.
fn waiting(runtime: &RealRuntime, folder: &Path) -> Result<Program, Skip> {
    let launch = idle(runtime)?.env("TMPDIR", folder).env("DOTNET_DiagnosticPorts", folder.join("port"));
    let program = launch.spawn_unready();
    let pid = program.id().to_string();
    eventually("the suspended runtime", || (runtap(["info", "-p", &pid]).code() == Some(0)).then_some(()));
    Ok(program)
}

fn resume(program: &Program, folder: &Path, duration: &str) -> Command {
    let mut resume = command(["resume", "-p", &program.id().to_string(), "--duration", duration]);
    resume.env("TMPDIR", folder);
    resume
}

fn resume_ends_with_its_time(runtime: &RealRuntime) -> Result<(), Skip> {
    let folder = folder();
    let slow = SlowProcess::new(folder.path())?;
    let program = waiting(runtime, folder.path())?;
    // The pipe has no writer.
    let resumed = run(slow.shown_to(&resume(&program, folder.path(), "1s")));
    resumed.expect_code(0).says(&format!("Resumed process {}.", program.id()));
    resumed.says("other processes that wait there are unknown").says("longer than 1.0 s (--duration)");
    assert!(!folder.path().join("port").exists());
    Ok(())
}

fn resume_hears_signals(runtime: &RealRuntime) -> Result<(), Skip> {
    let folder = folder();
    let slow = SlowProcess::new(folder.path())?;
    let mut program = waiting(runtime, folder.path())?;
    let resumed = Running::start(slow.shown_to(&resume(&program, folder.path(), "600")));
    let _stuck = slow.wait_for_reader();
    // A program that has connected does not wait for the inspection either.
    program.wait_for("ready");
    resumed.signal(Signal::INT);
    resumed.wait().expect_code(130).says("interrupted");
    assert!(!folder.path().join("port").exists());
    Ok(())
}

/// The command has exited, and its background process starts a runtime while the keeper looks for remaining processes.
fn the_host_of_a_port_serves_while_a_search_for_processes_hangs(runtime: &RealRuntime) -> Result<(), Skip> {
    let folder = folder();
    let slow = SlowProcess::new(folder.path())?;
    let (go, file) = (folder.path().join("go"), folder.path().join("x.nettrace"));
    let said = folder.path().join("said");
    let spin = runtime.program("spin", &["0.05", "1000"])?.command();
    let words = std::iter::once(spin.get_program()).chain(spin.get_args());
    let script = "(until [ -e \"$TMPDIR/go\" ]; do sleep 0.05; done; exec \"$@\" > \"$TMPDIR/said\") &";
    let mut launched = shell(script, words);
    launched.envs(spin.get_envs().filter_map(|(name, value)| Some((name, value?))));
    launched.env("TMPDIR", folder.path());
    let trace = trace_of(["--children", "-o", file.to_str().unwrap()], &launched);
    let tracing = Running::start(slow.shown_to(&trace));
    let stuck = slow.wait_for_reader();
    fs::write(go, b"").unwrap();
    eventually("the end of the program", || {
        fs::read_to_string(&said).ok().filter(|said| said.contains("done"))
    });
    slow.unblock(stuck);
    tracing.wait().expect_code(0);
    all_have_ended(folder.path());
    let files = fs::read_dir(folder.path()).unwrap().flatten();
    assert!(files.into_iter().any(|file| file.file_name().to_string_lossy().contains("nettrace")));
    Ok(())
}

/// The guard that stays for the port, which it gets as its stdin.
fn the_guard_serves_while_a_search_for_processes_hangs(runtime: &RealRuntime) -> Result<(), Skip> {
    let folder = folder();
    let slow = SlowProcess::new(folder.path())?;
    let port = folder.path().join("port");
    let socket = UnixListener::bind(&port).unwrap();
    let mut guard = slow.shown_to(&command(["guard-port", port.to_str().unwrap()]));
    guard.stdin(OwnedFd::from(socket)).stdout(Stdio::null());
    let guard = Running::start_as_it_is(guard);
    let stuck = slow.wait_for_reader();
    let launch = idle(runtime)?.env("TMPDIR", folder.path()).env("DOTNET_DiagnosticPorts", &port);
    let mut program = launch.spawn();
    program.begin();
    program.wait_for("done");
    assert!(program.wait().success());
    slow.unblock(stuck);
    guard.wait().expect_code(0);
    assert!(!port.exists());
    Ok(())
}

/// The slow process is a child of the recorded one.
fn a_tree_is_recorded_while_a_search_for_processes_hangs(runtime: &RealRuntime) -> Result<(), Skip> {
    let folder = folder();
    let slow = SlowProcess::new(folder.path())?;
    let stat = fs::read_to_string(slow.folder.path().join("stat")).unwrap();
    let program = idle(runtime)?.env("TMPDIR", folder.path()).spawn();
    let parent = format!(" {} ", std::process::id());
    fs::write(slow.folder.path().join("stat"), stat.replacen(&parent, &format!(" {} ", program.id()), 1))
        .unwrap();
    let file = folder.path().join("x.nettrace");
    let mut trace = command(["trace", "--children", "-p", &program.id().to_string(), "-o"]);
    trace.arg(&file).env("TMPDIR", folder.path());
    let tracing = Running::start(slow.shown_to(&trace));
    let _stuck = slow.wait_for_reader();
    tracing.signal(Signal::INT);
    tracing.wait();
    Ok(())
}

fn verbs_that_look_hear_signals(_runtime: &RealRuntime) -> Result<(), Skip> {
    let folder = folder();
    let slow = SlowProcess::new(folder.path())?;
    let pid = slow.child.id().to_string();
    for verb in [&["doctor"][..], &["doctor", &pid], &["info", "-p", &pid], &["info", "-n", "cat"]] {
        let mut looking = command(verb);
        looking.env("TMPDIR", folder.path());
        let looking = Running::start(slow.shown_to(&looking));
        let stuck = slow.wait_for_reader();
        looking.signal(Signal::INT);
        looking.wait().expect_code(130).says("interrupted");
        drop(stuck);
    }
    Ok(())
}
