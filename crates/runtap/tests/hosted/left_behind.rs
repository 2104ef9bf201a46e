//! Wrapped commands of many processes, and the remaining processes when the wrapper or its keeper is killed;
//! applications, and the remaining processes when the runner is killed or stops them.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use runtap_testkit::{eventually, run};
use rustix::process::{Pid, Signal, kill_process, test_kill_process};

use crate::servers::runtap;

/// Starts a server in its own process group, as a shell does.
pub(crate) fn start(command: Command) -> Child {
    use std::os::unix::process::CommandExt as _;
    let mut command = if is_interrupt_ignored() { with_default_interrupt(&command) } else { command };
    command.process_group(0).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    command.spawn().expect("it can be started")
}

/// Returns whether SIGINT is ignored: background processes of a script inherit that, and then a program without a
/// handler is not terminated by it.
fn is_interrupt_ignored() -> bool {
    let status = fs::read_to_string("/proc/self/status").expect("it can be read");
    let mask = status.lines().find_map(|line| line.strip_prefix("SigIgn:")).expect("it is there");
    let bit = 1 << (Signal::INT.as_raw() - 1);
    u64::from_str_radix(mask.trim(), 16).expect("a mask") & bit != 0
}

fn with_default_interrupt(command: &Command) -> Command {
    let mut wrapped = Command::new("env");
    wrapped.arg("--default-signal=INT").arg(command.get_program()).args(command.get_args());
    for (name, value) in command.get_envs() {
        match value {
            Some(value) => wrapped.env(name, value),
            None => wrapped.env_remove(name),
        };
    }
    if let Some(folder) = command.get_current_dir() {
        wrapped.current_dir(folder);
    }
    wrapped
}

/// Waits until a process has exited. It may stay a zombie if its parent is the first process of a container.
pub(crate) fn is_gone(what: &str, pid: Pid) {
    let has_ended = || {
        let stat = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
        stat.rsplit_once(") ").is_some_and(|(_, state)| state.starts_with('Z'))
    };
    eventually(what, || (test_kill_process(pid).is_err() || has_ended()).then_some(()));
}

/// Returns the process id that a test or a command has written.
pub(crate) fn written(file: &Path) -> Pid {
    eventually("the test has begun", || {
        let text = fs::read_to_string(file).ok()?;
        text.strip_suffix('\n').and_then(|text| text.parse().ok()).and_then(Pid::from_raw)
    })
}

fn parent(pid: Pid) -> Pid {
    let status = fs::read_to_string(format!("/proc/{pid}/status")).expect("it runs");
    let parent = status.lines().find_map(|line| line.strip_prefix("PPid:")).expect("it has a parent");
    Pid::from_raw(parent.trim().parse().expect("a number")).expect("a process")
}

/// A module that wraps a command.
pub(crate) struct Wrapped {
    folder: PathBuf,
}

impl Wrapped {
    /// Creates a module that wraps a shell, its child, an orphaned daemon with its own session, and an orphan in the
    /// group. Each writes its process id and nothing else, so none exits because of a broken pipe. Finally the shell
    /// runs `last`.
    pub(crate) fn new(folder: &Path, last: &str) -> Self {
        let script = format!(
            "cd '{}'; (setsid sh -c 'echo $$ > daemon; exec sleep 300' > /dev/null 2>&1 &); (sh -c 'echo $$ > orphan; exec \
             sleep 300' &); sh -c 'trap \"\" TERM; echo $$ > child; sleep 300; sleep 300' & echo 'running 1 test'; while ! [ \
             -s daemon -a -s orphan -a -s child ]; do sleep 0.01; done; echo $$ > shell; {last}",
            folder.display(),
        );
        let module = folder.join("wrapped");
        let words = [
            "mtp",
            "host",
            "--from",
            "libtest",
            "--write-module",
            module.to_str().expect("the path is UTF-8"),
        ];
        run(runtap(words.into_iter().chain(["--", "sh", "-c", &script]))).expect_code(0);
        Self { folder: folder.to_owned() }
    }

    pub(crate) fn path(&self) -> PathBuf {
        self.folder.join("wrapped")
    }

    /// Waits until all processes run: those of the command, with the shell last; the keeper; the wrapper.
    pub(crate) fn processes(&self) -> Processes {
        let file = |name| self.folder.join(name);
        let shell = written(&file("shell"));
        let command = ["daemon", "orphan", "child"].map(|name| written(&file(name)));
        let keeper = parent(shell);
        let processes = Processes { shell, command, keeper, wrapper: parent(keeper) };
        // For the next run.
        for name in ["shell", "daemon", "orphan", "child"] {
            fs::remove_file(file(name)).expect("it was written");
        }
        processes
    }
}

pub(crate) struct Processes {
    shell: Pid,
    /// The daemon first.
    command: [Pid; 3],
    keeper: Pid,
    wrapper: Pid,
}

impl Processes {
    pub(crate) fn kill_wrapper(&self) {
        kill_process(self.wrapper, Signal::KILL).expect("it runs");
    }

    pub(crate) fn are_gone(&self) {
        is_gone("the shell has ended", self.shell);
        for (pid, what) in self.command.into_iter().zip(["the daemon", "the orphan", "the child"]) {
            is_gone(&format!("{what} has ended"), pid);
        }
        is_gone("the keeper has ended", self.keeper);
        is_gone("the wrapper has ended", self.wrapper);
    }
}

pub(crate) fn a_wrapper_that_is_killed() {
    let folder = tempfile::tempdir().expect("a folder");
    let wrapped = Wrapped::new(folder.path(), "wait; sleep 300");
    // Afterwards the tests are listed, to find the one that terminated the process; the command never lists any.
    let limit = ["test", "--start-timeout", "20s"].map(Path::new);
    let mut server = start(runtap(limit.into_iter().chain([wrapped.path().as_path()])));
    let processes = wrapped.processes();
    processes.kill_wrapper();
    assert_eq!(server.wait().expect("it is our child").code(), Some(137), "the application was killed");
    processes.are_gone();
}

pub(crate) fn a_keeper_that_is_killed() {
    let folder = tempfile::tempdir().expect("a folder");
    let wrapped = Wrapped::new(folder.path(), "wait; sleep 300");
    let mut server = start(runtap([Path::new("test"), &wrapped.path()]));
    let processes = wrapped.processes();
    kill_process(processes.keeper, Signal::KILL).expect("it runs");
    assert_eq!(server.wait().expect("it is our child").code(), Some(1), "the command has no end");
    let [daemon, orphan, child] = processes.command;
    // Only the keeper knew the daemon, which is not in the group.
    kill_process(daemon, Signal::KILL).expect("it runs");
    for pid in [orphan, child, processes.shell] {
        is_gone("the group has ended", pid);
    }
}

pub(crate) fn a_command_that_ends_by_itself_may_leave_a_daemon() {
    let folder = tempfile::tempdir().expect("a folder");
    let wrapped = Wrapped::new(
        folder.path(),
        "echo 'test a ... ok'; echo; echo 'test result: ok. 1 passed; 0 failed; 0 ignored; 0 measured; 0 filtered out; finished in 0.00s'",
    );
    let told = run(runtap([Path::new("test"), &wrapped.path()]));
    assert!(told.expect_code(0).text().contains("1 passed"), "{told}");
    let [daemon, orphan, child] =
        ["daemon", "orphan", "child"].map(|name| written(&folder.path().join(name)));
    kill_process(daemon, Signal::KILL).expect("it runs");
    for pid in [orphan, child] {
        is_gone("the group has ended", pid);
    }
}

/// An application that never connects, with a daemon: orphaned, with an empty environment, in its own session. Both
/// write their process ids.
struct SilentApplication {
    folder: tempfile::TempDir,
}

impl SilentApplication {
    /// Creates it; `first` runs before anything else.
    fn new(first: &str) -> Self {
        let folder = tempfile::tempdir().expect("a folder");
        let script = format!(
            "#!/bin/sh\n{first}\ncd '{}'\n(setsid env -i /bin/sh -c 'echo $$ > daemon; exec /bin/sleep 300' > /dev/null 2>&1 \
             &)\nwhile ! [ -s daemon ]; do sleep 0.01; done\necho $$ > application\nsleep 300 & wait\nsleep 300\n",
            folder.path().display(),
        );
        let silent = Self { folder };
        fs::write(silent.path(), script).expect("it can be written");
        fs::set_permissions(silent.path(), fs::Permissions::from_mode(0o755))
            .expect("this user owns the file");
        silent
    }

    fn path(&self) -> PathBuf {
        self.folder.path().join("silent")
    }

    /// Returns the application and the daemon, as soon as both run.
    fn processes(&self) -> [Pid; 2] {
        ["application", "daemon"].map(|name| written(&self.folder.path().join(name)))
    }
}

fn are_gone([application, daemon]: [Pid; 2]) {
    is_gone("the application has ended", application);
    is_gone("the daemon has ended", daemon);
}

pub(crate) fn a_runner_that_is_killed() {
    let silent = SilentApplication::new("trap '' INT TERM");
    let mut runner = start(runtap([Path::new("test"), &silent.path()]));
    let processes = silent.processes();
    runner.kill().expect("it runs");
    runner.wait().expect("it is our child");
    are_gone(processes);
}

pub(crate) fn an_application_that_is_ended() {
    // The application exits on the signal, or has to be killed.
    for first in ["trap 'exit 3' INT", "trap '' INT"] {
        let silent = SilentApplication::new(first);
        let limits = ["test", "--timeout", "5s", "--grace", "1s"].map(Path::new);
        let mut runner = start(runtap(limits.into_iter().chain([silent.path().as_path()])));
        let processes = silent.processes();
        assert_eq!(runner.wait().expect("it is our child").code(), Some(3), "{first}");
        are_gone(processes);
    }
}

pub(crate) fn an_application_that_ends_by_itself_may_leave_a_daemon() {
    let silent = SilentApplication::new("");
    let text = fs::read_to_string(silent.path()).expect("it was written");
    fs::write(silent.path(), text.replace("sleep 300 & wait\nsleep 300\n", "exit 0\n"))
        .expect("it can be written");
    let mut runner = start(runtap([Path::new("test"), &silent.path()]));
    let [application, daemon] = silent.processes();
    runner.wait().expect("it is our child");
    is_gone("the application has ended", application);
    kill_process(daemon, Signal::KILL).expect("it runs");
}
