//! Programs with known answers: they print `pid N`, `ready`, at the end `truth {JSON}` and `done`.

use std::env;
use std::ffi::{OsStr, OsString};
use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, ChildStdout, Command, ExitStatus, Stdio};

use serde_json::Value;

use crate::tool::ends_within;
use crate::{HARD_LIMIT, RealRuntime};

/// A program that is about to be started.
#[derive(Debug)]
pub struct Launch {
    runtime: RealRuntime,
    assembly: PathBuf,
    arguments: Vec<OsString>,
    /// With a value to set, without one to remove.
    variables: Vec<(OsString, Option<OsString>)>,
    wrapper: Vec<OsString>,
    current_dir: Option<PathBuf>,
}

impl Launch {
    pub(crate) fn new(runtime: &RealRuntime, assembly: PathBuf, arguments: &[&str]) -> Self {
        Self {
            runtime: runtime.clone(),
            assembly,
            arguments: arguments.iter().map(OsString::from).collect(),
            variables: Vec::new(),
            wrapper: Vec::new(),
            current_dir: None,
        }
    }

    /// With a variable in its environment.
    #[must_use]
    pub fn env(mut self, name: impl AsRef<OsStr>, value: impl AsRef<OsStr>) -> Self {
        self.variables.push((name.as_ref().to_owned(), Some(value.as_ref().to_owned())));
        self
    }

    /// Without a variable that it would inherit.
    #[must_use]
    pub fn without_env(mut self, name: impl AsRef<OsStr>) -> Self {
        self.variables.push((name.as_ref().to_owned(), None));
        self
    }

    /// In this working directory.
    #[must_use]
    pub fn in_folder(mut self, folder: impl Into<PathBuf>) -> Self {
        self.current_dir = Some(folder.into());
        self
    }

    /// As a copy in `folder` under another name, by which runtap can find it among others of its kind.
    ///
    /// # Panics
    /// When it can't be copied.
    #[must_use]
    pub fn called(mut self, name: &str, folder: &Path) -> Self {
        for extension in ["dll", "runtimeconfig.json"] {
            let copy = folder.join(format!("{name}.{extension}"));
            // A copy of a read-only file is read-only, and can't be written again but by root.
            let _ = fs::remove_file(&copy);
            let copied = fs::copy(self.assembly.with_extension(extension), &copy);
            copied.unwrap_or_else(|error| panic!("cannot copy to {}: {error}", copy.display()));
        }
        self.assembly = folder.join(format!("{name}.dll"));
        self
    }

    /// Started by another command, which gets the whole command line as its last arguments: `["unshare", "-pf"]`.
    #[must_use]
    pub fn wrapped_by(mut self, wrapper: &[&str]) -> Self {
        self.wrapper = wrapper.iter().map(OsString::from).collect();
        self
    }

    /// The path of its assembly.
    pub fn assembly(&self) -> &Path {
        &self.assembly
    }

    /// What is going to be run.
    pub fn command(&self) -> Command {
        let mut words = self.wrapper.clone();
        words.push(self.runtime.root().join("dotnet").into());
        words.push(self.assembly.clone().into());
        words.extend(self.arguments.iter().cloned());
        let mut command = Command::new(&words[0]);
        command.args(&words[1..]).envs(self.runtime.variables());
        for (name, value) in &self.variables {
            match value {
                Some(value) => command.env(name, value),
                None => command.env_remove(name),
            };
        }
        if let Some(folder) = &self.current_dir {
            command.current_dir(folder);
        }
        command
    }

    /// Starts it and waits until it says `ready`.
    ///
    /// # Panics
    /// When it can't be started, or ends before that.
    pub fn spawn(self) -> Program {
        let mut command = self.command();
        command.stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut program = Program::start(command);
        program.wait_for("ready");
        program
    }

    /// Starts it and does not wait: for one that is going to be suspended.
    ///
    /// # Panics
    /// When it can't be started.
    pub fn spawn_unready(self) -> Program {
        let mut command = self.command();
        command.stdin(Stdio::piped()).stdout(Stdio::piped());
        Program::start(command)
    }
}

/// A program that runs. Killed when it is dropped; the files that it leaves then are removed.
#[derive(Debug)]
pub struct Program {
    child: Child,
    stdin: Option<ChildStdin>,
    stdout: BufReader<ChildStdout>,
    /// What it printed so far, line by line.
    lines: Vec<String>,
    /// What a killed runtime leaves behind.
    remains: Vec<PathBuf>,
}

impl Program {
    /// Runs any program that speaks the same way. Its standard input and output must be pipes.
    ///
    /// # Panics
    /// When it can't be started.
    pub fn start(mut command: Command) -> Self {
        let mut child = command.spawn().unwrap_or_else(|error| panic!("cannot start {command:?}: {error}"));
        let stdin = child.stdin.take();
        let stdout = BufReader::new(child.stdout.take().expect("standard output is a pipe"));
        let remains = remains(&command, child.id());
        Self { child, stdin, stdout, lines: Vec::new(), remains }
    }

    /// The process id of what was started: of the wrapper, if there is one.
    pub fn id(&self) -> u32 {
        self.child.id()
    }

    /// The process id that the program printed: in its own pid namespace.
    ///
    /// # Panics
    /// When it has not said it yet.
    pub fn own_pid(&self) -> u32 {
        let pid = self.lines.iter().find_map(|line| line.strip_prefix("pid "));
        pid.and_then(|pid| pid.trim().parse().ok()).expect("the program has said its pid")
    }

    /// What it printed so far.
    pub fn lines(&self) -> &[String] {
        &self.lines
    }

    /// Reads until a line that begins with `start`, and gives the rest of it.
    ///
    /// # Panics
    /// When the program ends before that.
    pub fn wait_for(&mut self, start: &str) -> String {
        loop {
            let mut line = String::new();
            let n = self.stdout.read_line(&mut line).expect("the program's output is text");
            assert!(n > 0, "the program ended without {start:?}; it printed {:?}", self.lines);
            let line = line.trim_end_matches(['\n', '\r']).to_owned();
            let rest = line.strip_prefix(start).map(str::to_owned);
            self.lines.push(line);
            if let Some(rest) = rest {
                return rest;
            }
        }
    }

    /// Has a program that was started with `--stdin` begin its work.
    ///
    /// # Panics
    /// When it does not read any more.
    pub fn begin(&mut self) {
        let stdin = self.stdin.as_mut().expect("standard input is a pipe");
        stdin.write_all(b"\n").and_then(|()| stdin.flush()).expect("the program reads its input");
    }

    /// Waits for the line `truth {JSON}`.
    ///
    /// # Panics
    /// When the program ends before that, or it is no JSON.
    pub fn truth(&mut self) -> Value {
        serde_json::from_str(&self.wait_for("truth ")).expect("the truth is JSON")
    }

    /// Closes its input and waits for its end.
    ///
    /// # Panics
    /// When it has not ended within [`HARD_LIMIT`].
    pub fn wait(&mut self) -> ExitStatus {
        self.stdin = None;
        assert!(
            ends_within(&self.child, HARD_LIMIT),
            "the program has not ended; it printed {:?}",
            self.lines
        );
        self.child.wait().expect("the program is our child")
    }

    /// Kills it (SIGKILL) and waits for its end.
    ///
    /// # Panics
    /// When that can't be done.
    pub fn kill(&mut self) {
        self.child.kill().and_then(|()| self.child.wait()).expect("the program is our child");
    }
}

impl Drop for Program {
    fn drop(&mut self) {
        // It may have ended by itself.
        let _ = self.child.kill();
        let _ = self.child.wait();
        for file in &self.remains {
            let _ = fs::remove_file(file);
        }
    }
}

/// What a runtime with this pid leaves: the socket and the debugger's pipes of .NET, and what is always in `/tmp`: its maps for
/// perf, what the shared profiler writes, the socket of a JVM.
fn remains(command: &Command, pid: u32) -> Vec<PathBuf> {
    let given =
        command.get_envs().find(|(name, _)| *name == "TMPDIR").map(|(_, value)| value.map(OsStr::to_owned));
    let temp = given.unwrap_or_else(|| env::var_os("TMPDIR")).filter(|folder| !folder.is_empty());
    let temp = temp.map_or_else(|| PathBuf::from("/tmp"), PathBuf::from);
    let mut files = [
        format!("perf-{pid}.map"),
        format!("perfinfo-{pid}.map"),
        format!("demo-profiler-{pid}.txt"),
        format!(".java_pid{pid}"),
        format!("jit-{pid}.dump"),
    ]
    .map(|name| Path::new("/tmp").join(name))
    .to_vec();
    files.push(temp.join(format!("jit-{pid}.dump")));
    if let Some(key) = start_time(pid) {
        files.push(temp.join(format!("dotnet-diagnostic-{pid}-{key}-socket")));
        files.extend(["in", "out"].map(|end| temp.join(format!("clr-debug-pipe-{pid}-{key}-{end}"))));
    }
    files
}

/// The 22nd field of `/proc/PID/stat`, by which a runtime names its files. Read here, so that tests of decoders need no
/// crate that looks for processes.
fn start_time(pid: u32) -> Option<u64> {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    // A program's name may hold blanks and parentheses.
    let (_, fields) = stat.rsplit_once(')')?;
    fields.split_whitespace().nth(19)?.parse().ok()
}
