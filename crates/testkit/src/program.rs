//! Test programs with known results: they print `pid N`, `ready`, and at the end `truth {JSON}` and `done`.

use std::env;
use std::ffi::{OsStr, OsString};
use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, ChildStdout, Command, ExitStatus, Stdio};

use serde_json::Value;

use crate::tool::ends_within;
use crate::{HARD_LIMIT, RealRuntime};

/// A program to be started.
#[derive(Debug)]
pub struct Launch {
    runtime: RealRuntime,
    assembly: PathBuf,
    arguments: Vec<OsString>,
    /// A value to set, or `None` to remove the variable.
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

    /// Sets an environment variable.
    #[must_use]
    pub fn env(mut self, name: impl AsRef<OsStr>, value: impl AsRef<OsStr>) -> Self {
        self.variables.push((name.as_ref().to_owned(), Some(value.as_ref().to_owned())));
        self
    }

    /// Removes an inherited environment variable.
    #[must_use]
    pub fn without_env(mut self, name: impl AsRef<OsStr>) -> Self {
        self.variables.push((name.as_ref().to_owned(), None));
        self
    }

    /// Sets the working directory.
    #[must_use]
    pub fn in_folder(mut self, folder: impl Into<PathBuf>) -> Self {
        self.current_dir = Some(folder.into());
        self
    }

    /// Copies the program into `folder` under another name, by which runtap can distinguish it from others.
    ///
    /// # Panics
    /// If copying fails.
    #[must_use]
    pub fn called(mut self, name: &str, folder: &Path) -> Self {
        for extension in ["dll", "runtimeconfig.json"] {
            let copy = folder.join(format!("{name}.{extension}"));
            // A copy of a read-only file is read-only, and only root could overwrite it.
            let _ = fs::remove_file(&copy);
            let copied = fs::copy(self.assembly.with_extension(extension), &copy);
            copied.unwrap_or_else(|error| panic!("cannot copy to {}: {error}", copy.display()));
        }
        self.assembly = folder.join(format!("{name}.dll"));
        self
    }

    /// Starts the program through another command, which gets the whole command line as its last arguments:
    /// `["unshare", "-pf"]`.
    #[must_use]
    pub fn wrapped_by(mut self, wrapper: &[&str]) -> Self {
        self.wrapper = wrapper.iter().map(OsString::from).collect();
        self
    }

    /// Returns the path of its assembly.
    pub fn assembly(&self) -> &Path {
        &self.assembly
    }

    /// Returns the command to be run.
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

    /// Starts the program and waits until it prints `ready`.
    ///
    /// # Panics
    /// If starting fails, or the program exits before.
    pub fn spawn(self) -> Program {
        let mut command = self.command();
        command.stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut program = Program::start(command);
        program.wait_for("ready");
        program
    }

    /// Starts the program without waiting, for example because it will be suspended.
    ///
    /// # Panics
    /// If starting fails.
    pub fn spawn_unready(self) -> Program {
        let mut command = self.command();
        command.stdin(Stdio::piped()).stdout(Stdio::piped());
        Program::start(command)
    }
}

/// A running program. On drop it is killed, and files that it leaves are removed.
#[derive(Debug)]
pub struct Program {
    child: Child,
    stdin: Option<ChildStdin>,
    stdout: BufReader<ChildStdout>,
    /// Lines of output so far.
    lines: Vec<String>,
    /// Files that a killed runtime leaves.
    remains: Vec<PathBuf>,
}

impl Program {
    /// Runs any program with this kind of output. Its standard input and output must be pipes.
    ///
    /// # Panics
    /// If starting fails.
    pub fn start(mut command: Command) -> Self {
        let mut child = command.spawn().unwrap_or_else(|error| panic!("cannot start {command:?}: {error}"));
        let stdin = child.stdin.take();
        let stdout = BufReader::new(child.stdout.take().expect("standard output is a pipe"));
        let remains = remains(&command, child.id());
        Self { child, stdin, stdout, lines: Vec::new(), remains }
    }

    /// Returns the process id of the started command, or of the wrapper.
    pub fn id(&self) -> u32 {
        self.child.id()
    }

    /// Returns the process id that the program printed, in its own pid namespace.
    ///
    /// # Panics
    /// If the program has not printed it yet.
    pub fn own_pid(&self) -> u32 {
        let pid = self.lines.iter().find_map(|line| line.strip_prefix("pid "));
        pid.and_then(|pid| pid.trim().parse().ok()).expect("the program has said its pid")
    }

    /// Returns the lines of output so far.
    pub fn lines(&self) -> &[String] {
        &self.lines
    }

    /// Reads until a line that starts with `start` and returns the rest of that line.
    ///
    /// # Panics
    /// If the program exits before.
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

    /// Makes a program that was started with `--stdin` start its work.
    ///
    /// # Panics
    /// If the program has closed its input.
    pub fn begin(&mut self) {
        let stdin = self.stdin.as_mut().expect("standard input is a pipe");
        stdin.write_all(b"\n").and_then(|()| stdin.flush()).expect("the program reads its input");
    }

    /// Waits for the line `truth {JSON}` and returns the JSON.
    ///
    /// # Panics
    /// If the program exits before, or prints invalid JSON.
    pub fn truth(&mut self) -> Value {
        serde_json::from_str(&self.wait_for("truth ")).expect("the truth is JSON")
    }

    /// Closes the input of the program and waits for it to exit.
    ///
    /// # Panics
    /// If the program does not exit within [`HARD_LIMIT`].
    pub fn wait(&mut self) -> ExitStatus {
        self.stdin = None;
        assert!(
            ends_within(&self.child, HARD_LIMIT),
            "the program has not ended; it printed {:?}",
            self.lines
        );
        self.child.wait().expect("the program is our child")
    }

    /// Kills the program (SIGKILL) and waits for it to exit.
    ///
    /// # Panics
    /// If that fails.
    pub fn kill(&mut self) {
        self.child.kill().and_then(|()| self.child.wait()).expect("the program is our child");
    }
}

impl Drop for Program {
    fn drop(&mut self) {
        // Fails if it has exited.
        let _ = self.child.kill();
        let _ = self.child.wait();
        for file in &self.remains {
            let _ = fs::remove_file(file);
        }
    }
}

/// Returns the files that a runtime with this pid leaves: the diagnostic socket and debugger pipes of .NET, and files
/// that are always in `/tmp`: perf maps, output of the shared profiler, and the socket of a JVM.
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

/// Returns the 22nd field of `/proc/PID/stat`, which runtimes use in file names. Read here so that tests of decoders
/// need no crate that searches for processes.
fn start_time(pid: u32) -> Option<u64> {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    // The name of a program may contain blanks and parentheses.
    let (_, fields) = stat.rsplit_once(')')?;
    fields.split_whitespace().nth(19)?.parse().ok()
}
