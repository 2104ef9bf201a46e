//! Helpers of the end-to-end tests: the program under test, and its targets. Makes no judgements.

use std::ffi::OsStr;
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard};

use runtap_discover::System;
use runtap_testkit::{Finished, Launch, Program, RealRuntime, Running, Skip, eventually, run};
use serde_json::Value;
use tempfile::TempDir;

/// Every verb that sends a request to one process.
pub(crate) const VERBS: [&[&str]; 18] = [
    &["info"],
    &["env"],
    &["stack"],
    &["doctor"],
    &["set-env"],
    &["resume"],
    &["dump"],
    &["profiler", "attach"],
    &["profiler", "startup"],
    &["perfmap", "enable"],
    &["perfmap", "disable"],
    &["startup-hook"],
    &["trace"],
    &["tail"],
    &["counters", "monitor"],
    &["counters", "collect"],
    &["heap"],
    &["top"],
];

/// Returns `runtap` with these arguments, as a script would run it.
pub(crate) fn command<I: IntoIterator<Item: AsRef<OsStr>>>(arguments: I) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_runtap"));
    command.args(arguments);
    for name in ["NO_COLOR", "CLICOLOR", "CLICOLOR_FORCE"] {
        command.env_remove(name);
    }
    // The history of tests and the agent for JVMs are stored in the tests' own directory.
    command.env("XDG_STATE_HOME", env!("CARGO_TARGET_TMPDIR"));
    command.env("XDG_CACHE_HOME", env!("CARGO_TARGET_TMPDIR"));
    command
}

/// Runs `runtap` with these arguments until it exits.
#[track_caller]
pub(crate) fn runtap<I: IntoIterator<Item: AsRef<OsStr>>>(arguments: I) -> Finished {
    run(command(arguments))
}

/// Runs `runtap`, which has to succeed, and parses its JSON.
#[track_caller]
pub(crate) fn json<I: IntoIterator<Item: AsRef<OsStr>>>(arguments: I) -> Value {
    runtap(arguments).expect_code(0).json()
}

/// Returns the JSON of `runtap events --count` for a file, with this exit code.
#[track_caller]
pub(crate) fn counts(file: &Path, code: i32) -> Value {
    let file = file.to_str().expect("the path is UTF-8");
    let document = runtap(["events", file, "--count", "--format", "json"]).expect_code(code).json();
    assert_eq!(document["schema"], "runtap.counts/1");
    document
}

/// Returns the number of events of a kind that `events --count` found.
pub(crate) fn count_of(counts: &Value, provider: &str, id: u32) -> u64 {
    let rows = counts["counts"].as_array().expect("counts is a list").iter();
    let rows = rows.filter(|row| row["provider"] == provider && row["id"] == id);
    rows.map(|row| row["n"].as_u64().expect("n is a number")).sum()
}

/// Returns the rows of `runtap ps`, by default for the current temporary directory.
#[track_caller]
pub(crate) fn ps(mut command: Command) -> Vec<Value> {
    command.args(["--format", "json"]);
    let document = run(command).expect_code(0).json();
    assert_eq!(document["schema"], "runtap.ps/1");
    document["processes"].as_array().expect("processes is a list").clone()
}

/// Returns the row of `runtap ps` for a process, once it answers: `ps` waits only for a moment, and on a busy machine
/// the process may need longer.
#[track_caller]
pub(crate) fn ps_row(pid: u32) -> Value {
    ps_row_of(|| command(["ps"]), pid)
}

/// Like [`ps_row`], with a given `runtap ps`.
#[track_caller]
pub(crate) fn ps_row_of(ps: impl Fn() -> Command, pid: u32) -> Value {
    let row = || Some(ps_row_now(ps(), pid)).filter(|row| row["reason"] != "busy");
    eventually("its answer to ps", row)
}

/// Returns the current row of a process.
#[track_caller]
pub(crate) fn ps_row_now(command: Command, pid: u32) -> Value {
    let rows = ps(command);
    let row = rows.iter().find(|row| row["pid"] == pid);
    row.unwrap_or_else(|| panic!("process {pid} is not among {rows:#?}")).clone()
}

/// A running program of the shared folder, with its own temporary directory.
pub(crate) struct Target {
    pub(crate) program: Program,
    pub(crate) temp: TempDir,
}

impl Target {
    /// Starts a program and waits until it is ready.
    pub(crate) fn start(launch: Launch) -> Self {
        let temp = folder();
        let program = launch.env("TMPDIR", temp.path()).spawn();
        Self { program, temp }
    }

    /// Starts a program that will be suspended at startup.
    pub(crate) fn start_unready(launch: Launch) -> Self {
        let temp = folder();
        let program = launch.env("TMPDIR", temp.path()).spawn_unready();
        Self { program, temp }
    }

    /// Starts a program that is suspended at startup until a command arrives on its own port.
    pub(crate) fn suspended(launch: Launch) -> Self {
        let temp = folder();
        let launch = launch.env("TMPDIR", temp.path()).env("DOTNET_DefaultDiagnosticPortSuspend", "1");
        let target = Self { program: launch.spawn_unready(), temp };
        eventually("the suspended runtime", || {
            (runtap(["info", "-p", &target.p()]).code() == Some(0)).then_some(())
        });
        target
    }

    /// Resumes a suspended program with `--stdin`, and waits until it exits.
    #[track_caller]
    pub(crate) fn resume_to_its_end(mut self) {
        runtap(["resume", &self.p()]).expect_code(0);
        self.program.wait_for("ready");
        self.still_answers();
        self.program.begin();
        self.program.wait_for("done");
        assert!(self.program.wait().success());
    }

    /// Returns the process id.
    pub(crate) fn pid(&self) -> u32 {
        self.program.id()
    }

    /// Returns the process id as an argument.
    pub(crate) fn p(&self) -> String {
        self.pid().to_string()
    }

    /// Returns the diagnostic socket.
    #[track_caller]
    pub(crate) fn socket(&self) -> PathBuf {
        socket_in(self.temp.path(), self.program.own_pid())
    }

    /// Checks that the target was not harmed: its runtime answers.
    #[track_caller]
    pub(crate) fn still_answers(&self) {
        let info = json(["info", "-p", &self.p(), "--format", "json"]);
        assert_eq!((&info["pid"], &info["suspended"]), (&Value::from(self.pid()), &Value::from(false)));
    }
}

/// Returns the diagnostic socket of a process in a folder.
#[track_caller]
pub(crate) fn socket_in(folder: &Path, pid: u32) -> PathBuf {
    let entries = fs::read_dir(folder).expect("the target's temporary directory is there");
    let mut paths = entries.map(|entry| entry.expect("an entry").path());
    let ours = format!("dotnet-diagnostic-{pid}-");
    let found =
        paths.find(|path| path.file_name().is_some_and(|name| name.to_string_lossy().starts_with(&ours)));
    found.expect("the target has a diagnostics socket")
}

/// A running `runtap trace`.
pub(crate) struct Recording {
    pub(crate) runtap: Running,
    pub(crate) file: PathBuf,
}

impl Recording {
    /// Starts `runtap trace -p PID -o FILE --format json` with more arguments.
    #[track_caller]
    pub(crate) fn start(target: &Target, file: PathBuf, more: &[&str]) -> Self {
        let mut command = command(["trace", "-p", &target.p(), "--format", "json", "-o"]);
        command.arg(&file).args(more);
        Self { runtap: Running::start(command), file }
    }

    /// Waits for the exit with this code; returns the summary and the file.
    #[track_caller]
    pub(crate) fn finish(self, code: i32) -> (Value, PathBuf) {
        (self.runtap.wait().expect_code(code).json(), self.file)
    }

    /// Waits until the file has this number of bytes: by then the session runs and signals are handled.
    #[track_caller]
    pub(crate) fn wait_for_bytes(&self, bytes: u64) {
        eventually("bytes in the recording", || {
            fs::metadata(&self.file).is_ok_and(|meta| meta.len() >= bytes).then_some(())
        });
    }
}

/// Returns `runtap trace` with these options on a command that it starts.
pub(crate) fn trace_of<'a>(options: impl IntoIterator<Item = &'a str>, launched: &Command) -> Command {
    let mut command = command(["trace"]);
    command.env_remove("DOTNET_DiagnosticPorts");
    command.args(options).arg("--").arg(launched.get_program()).args(launched.get_args());
    for (name, value) in launched.get_envs() {
        match value {
            Some(value) => command.env(name, value),
            None => command.env_remove(name),
        };
    }
    // In its own group: on a terminal these tests may be in the foreground, and signals would count as typed.
    command.process_group(0);
    command
}

/// Returns the command `sh -c SCRIPT`, where `"$@"` are these words.
pub(crate) fn shell<'a>(script: &str, words: impl IntoIterator<Item = &'a OsStr>) -> Command {
    let mut command = Command::new("sh");
    command.args(["-c", script, "sh"]).args(words);
    command
}

/// Waits until all processes with `text` in their environment have exited, which a suspended process does not.
#[track_caller]
pub(crate) fn all_have_ended(text: &Path) {
    let text = text.to_str().expect("the path is UTF-8");
    eventually("the end of every process", || {
        System::current().started_with(text.as_bytes(), |_| true).is_empty().then_some(())
    });
}

/// Returns the port that a `runtap trace -- COMMAND` has created, from the environment of programs that contains
/// `text`.
#[track_caller]
pub(crate) fn port_of_those_with(text: &Path) -> PathBuf {
    let text = text.to_str().expect("the path is UTF-8");
    let port = |pid: u32| {
        let environment = fs::read(format!("/proc/{pid}/environ")).ok()?;
        let mut variables = environment.split(|byte| *byte == 0);
        let ports = variables.find_map(|variable| variable.strip_prefix(b"DOTNET_DiagnosticPorts="))?;
        // The created port follows those that were set before.
        let port = ports.split(|byte| *byte == b';').next_back()?.strip_suffix(b",suspend,connect")?;
        Some(PathBuf::from(OsStr::from_bytes(port)))
    };
    eventually("a process with the port in its environment", || {
        System::current().started_with(text.as_bytes(), |_| true).into_iter().find_map(port)
    })
}

/// Removes the remains of a killed tool's port after the test.
pub(crate) struct RemoveOnDrop(pub(crate) PathBuf);

impl Drop for RemoveOnDrop {
    fn drop(&mut self) {
        // Usually it has been removed already.
        let _ = fs::remove_file(&self.0);
        let _ = self.0.parent().map(fs::remove_dir);
    }
}

/// Creates a world-readable folder: otherwise root's tool would put its port elsewhere.
pub(crate) fn folder() -> TempDir {
    let folder = tempfile::Builder::new().prefix("runtap-e2e-").tempdir().expect("a temporary folder");
    fs::set_permissions(folder.path(), fs::Permissions::from_mode(0o755)).expect("this user owns the folder");
    folder
}

/// Returns a unique name.
pub(crate) fn unique(what: &str) -> String {
    static NUMBER: AtomicU32 = AtomicU32::new(0);
    format!("{what}-{}-{}", std::process::id(), NUMBER.fetch_add(1, Ordering::Relaxed))
}

/// Tests that measure shares of time run alone. Under nextest each test is a process and its configuration ensures
/// that; this lock is for `cargo test`, where all tests are threads of one process.
static MACHINE: RwLock<()> = RwLock::new(());

/// Held by a test that can run in parallel with others.
pub(crate) fn beside_others() -> RwLockReadGuard<'static, ()> {
    MACHINE.read().unwrap_or_else(PoisonError::into_inner)
}

/// Held by a test that measures shares of time and must run alone.
pub(crate) fn alone() -> RwLockWriteGuard<'static, ()> {
    MACHINE.write().unwrap_or_else(PoisonError::into_inner)
}

/// Runs a test on this version of .NET, or on the newest; skips it if there is none.
pub(crate) fn on(major: Option<u8>, test: impl FnOnce(&RealRuntime) -> Result<(), Skip>) {
    let _machine = beside_others();
    run_on(major, test);
}

/// Like [`on`], but runs alone.
pub(crate) fn alone_on(major: u8, test: impl FnOnce(&RealRuntime) -> Result<(), Skip>) {
    let _machine = alone();
    run_on(Some(major), test);
}

fn run_on(major: Option<u8>, test: impl FnOnce(&RealRuntime) -> Result<(), Skip>) {
    let runtime = major.map_or_else(RealRuntime::newest, RealRuntime::available);
    if let Err(skip) = runtime.and_then(|runtime| test(&runtime)) {
        skip.report();
    }
}

/// Defines three tests from a function that takes a runtime: on .NET 8, 9 and 10.
macro_rules! on_each_runtime {
    ($($test:ident),+ $(,)?) => {$(
        mod $test {
            #[test]
            fn net8() {
                crate::common::on(Some(8), super::$test);
            }

            #[test]
            fn net9() {
                crate::common::on(Some(9), super::$test);
            }

            #[test]
            fn net10() {
                crate::common::on(Some(10), super::$test);
            }
        }
    )+};
}

/// Defines a test from a function that takes a runtime: on the newest one.
macro_rules! on_the_newest_runtime {
    ($($test:ident),+ $(,)?) => {$(
        mod $test {
            #[test]
            fn newest() {
                crate::common::on(None, super::$test);
            }
        }
    )+};
}
