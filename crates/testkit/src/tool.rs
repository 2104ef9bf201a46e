//! Runs programs to completion: the one under test, and those that check its results. A time limit detects hangs: the
//! program is killed and its output shown. Exit codes are checked by the tests.

use std::fmt;
use std::io::{self, Read};
use std::os::unix::process::ExitStatusExt;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::{Arc, Mutex};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::process::{Pid, PidfdFlags, Signal, kill_process, pidfd_open};
use serde_json::Value;

use crate::Skip;

/// Maximum duration before a program counts as hanging.
pub const HARD_LIMIT: Duration = Duration::from_mins(2);

/// Runs a command without input to completion.
///
/// # Panics
/// If starting fails, or the command does not exit within [`HARD_LIMIT`].
#[track_caller]
pub fn run(command: Command) -> Finished {
    Running::start(command).wait()
}

/// Returns a command for an installed program, which must support `--help`; not all support `--version`.
///
/// # Errors
/// If it is not installed.
pub fn installed(name: &str) -> Result<Command, Skip> {
    match Command::new(name).arg("--help").output() {
        Ok(output) if output.status.success() => Ok(Command::new(name)),
        _ => Err(Skip::because(format!("{name} is not here"))),
    }
}

/// A running command, which is killed on drop.
#[derive(Debug)]
pub struct Running {
    what: String,
    child: Child,
    stdout: Option<Collected>,
    stderr: Option<Collected>,
}

impl Running {
    /// Starts a command without input, and collects its output.
    ///
    /// # Panics
    /// If starting fails.
    #[track_caller]
    pub fn start(mut command: Command) -> Self {
        command.stdin(Stdio::null()).stdout(Stdio::piped());
        Self::start_as_it_is(command)
    }

    /// Starts a command with its own input and output; output to pipes is collected.
    ///
    /// # Panics
    /// If starting fails.
    #[track_caller]
    pub fn start_as_it_is(mut command: Command) -> Self {
        command.stderr(Stdio::piped());
        let what = format!("{command:?}");
        let mut child = command.spawn().unwrap_or_else(|error| panic!("cannot start {what}: {error}"));
        let stdout = child.stdout.take().map(Collected::of);
        let stderr = child.stderr.take().map(Collected::of);
        Self { what, child, stdout, stderr }
    }

    /// Returns the standard error output so far.
    pub fn stderr_so_far(&self) -> String {
        let bytes = self.stderr.as_ref().map(Collected::so_far).unwrap_or_default();
        String::from_utf8_lossy(&bytes).into_owned()
    }

    /// Returns the process id.
    pub fn id(&self) -> u32 {
        self.child.id()
    }

    /// Sends a signal.
    ///
    /// # Panics
    /// If the command was already waited for.
    pub fn signal(&self, signal: Signal) {
        kill_process(Pid::from_child(&self.child), signal).expect("the child was not waited for yet");
    }

    /// Returns whether the command has exited.
    ///
    /// # Panics
    /// If its state cannot be queried.
    pub fn has_ended(&mut self) -> bool {
        self.child.try_wait().expect("the child can be waited for").is_some()
    }

    /// Waits for the command to exit.
    ///
    /// # Panics
    /// If it does not exit within [`HARD_LIMIT`].
    #[track_caller]
    pub fn wait(self) -> Finished {
        self.wait_within(HARD_LIMIT)
    }

    /// Waits for the command to exit, with another time limit.
    ///
    /// # Panics
    /// If it does not exit within `limit`.
    #[track_caller]
    pub fn wait_within(mut self, limit: Duration) -> Finished {
        let in_time = ends_within(&self.child, limit);
        if !in_time {
            let _ = self.child.kill();
        }
        let status = self.child.wait().expect("the child can be waited for");
        // Processes that it started may keep the pipes open, so do not wait for the end of the pipes forever.
        let output = |collected: Option<Collected>| {
            collected
                .map(|collected| if in_time { collected.all() } else { collected.so_far() })
                .unwrap_or_default()
        };
        let finished = Finished {
            what: std::mem::take(&mut self.what),
            status,
            stdout: output(self.stdout.take()),
            stderr: String::from_utf8_lossy(&output(self.stderr.take())).into_owned(),
        };
        assert!(in_time, "killed, because it had not ended after {limit:?}: {finished}");
        finished
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        // Fails if it has exited and was waited for.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Output collected from a pipe.
#[derive(Debug)]
struct Collected {
    bytes: Arc<Mutex<Vec<u8>>>,
    reader: JoinHandle<()>,
}

impl Collected {
    fn of(mut pipe: impl Read + Send + 'static) -> Self {
        let bytes = Arc::<Mutex<Vec<u8>>>::default();
        let into = Arc::clone(&bytes);
        let reader = thread::spawn(move || {
            let mut chunk = [0; 4096];
            loop {
                match pipe.read(&mut chunk) {
                    Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                    // A broken pipe ends the output.
                    Ok(0) | Err(_) => break,
                    Ok(n) => into
                        .lock()
                        .expect("no thread panics while it holds the lock")
                        .extend_from_slice(&chunk[..n]),
                }
            }
        });
        Self { bytes, reader }
    }

    /// Waits until all writers have closed the pipe.
    fn all(self) -> Vec<u8> {
        self.reader.join().expect("reading does not panic");
        std::mem::take(&mut self.bytes.lock().expect("no thread panics while it holds the lock"))
    }

    fn so_far(&self) -> Vec<u8> {
        self.bytes.lock().expect("no thread panics while it holds the lock").clone()
    }
}

/// Waits for a child to exit, without consuming its status.
pub(crate) fn ends_within(child: &Child, limit: Duration) -> bool {
    let pidfd = match pidfd_open(Pid::from_child(child), PidfdFlags::empty()) {
        Ok(pidfd) => pidfd,
        // It has exited and was waited for.
        Err(rustix::io::Errno::SRCH) => return true,
        Err(error) => panic!("cannot watch a child (Linux 5.3 or later can): {}", io::Error::from(error)),
    };
    let until = Instant::now() + limit;
    loop {
        let left = until.saturating_duration_since(Instant::now());
        let left = Timespec::try_from(left).expect("the limit is short");
        match poll(&mut [PollFd::new(&pidfd, PollFlags::IN)], Some(&left)) {
            Ok(ready) => return ready > 0,
            Err(rustix::io::Errno::INTR) => {}
            Err(error) => panic!("cannot wait for a child: {}", io::Error::from(error)),
        }
    }
}

/// A completed command.
#[derive(Debug, Clone)]
pub struct Finished {
    what: String,
    /// Exit status.
    pub status: ExitStatus,
    /// Standard output.
    pub stdout: Vec<u8>,
    /// Standard error output.
    pub stderr: String,
}

impl Finished {
    /// Returns the exit code. `None` if killed by a signal.
    pub fn code(&self) -> Option<i32> {
        self.status.code()
    }

    /// Checks the exit code.
    ///
    /// # Panics
    /// If it differs; the message contains all output.
    #[track_caller]
    pub fn expect_code(&self, code: i32) -> &Self {
        assert!(self.status.code() == Some(code), "expected exit code {code}: {self}");
        self
    }

    /// Returns the standard output as text.
    ///
    /// # Panics
    /// If it is not UTF-8.
    #[track_caller]
    pub fn text(&self) -> &str {
        std::str::from_utf8(&self.stdout).unwrap_or_else(|error| panic!("{error}: {self}"))
    }

    /// Parses the standard output as a JSON document.
    ///
    /// # Panics
    /// If it is not JSON.
    #[track_caller]
    pub fn json(&self) -> Value {
        serde_json::from_slice(&self.stdout)
            .unwrap_or_else(|error| panic!("no JSON document ({error}): {self}"))
    }

    /// Checks that the standard error output contains a text.
    ///
    /// # Panics
    /// If it does not.
    #[track_caller]
    pub fn says(&self, text: &str) -> &Self {
        assert!(self.stderr.contains(text), "{text:?} was not said: {self}");
        self
    }
}

impl fmt::Display for Finished {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        const SHOWN: usize = 4000;
        let signal = self.status.signal().map(|signal| format!(" (signal {signal})")).unwrap_or_default();
        let stdout = String::from_utf8_lossy(&self.stdout[..self.stdout.len().min(SHOWN)]);
        let length = self.stdout.len();
        writeln!(f, "{}\n{}{signal}", self.what, self.status)?;
        write!(f, "--- stdout, {length} bytes\n{stdout}\n--- stderr\n{}", self.stderr)
    }
}

/// Calls `ask` repeatedly until it returns a value, for changes caused by another process.
///
/// # Panics
/// If it returns none within [`HARD_LIMIT`].
#[track_caller]
pub fn eventually<T>(what: &str, mut ask: impl FnMut() -> Option<T>) -> T {
    let until = Instant::now() + HARD_LIMIT;
    loop {
        if let Some(answer) = ask() {
            return answer;
        }
        assert!(Instant::now() < until, "{what}: not within {HARD_LIMIT:?}");
        thread::sleep(Duration::from_millis(5));
    }
}
