//! Programs that run to an end: the one under test, and those that judge what it made. Each has a hard limit, against
//! hangs only; at the limit it is killed and what it said is shown. Refuses to: judge exit codes by itself.

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

/// How long anything may take before it counts as hung.
pub const HARD_LIMIT: Duration = Duration::from_mins(2);

/// Runs a command without input to its end.
///
/// # Panics
/// When it can't be started, or has not ended within [`HARD_LIMIT`].
#[track_caller]
pub fn run(command: Command) -> Finished {
    Running::start(command).wait()
}

/// A program of this machine that helps who asks for that; each does, while not each knows its version.
///
/// # Errors
/// It is not there.
pub fn installed(name: &str) -> Result<Command, Skip> {
    match Command::new(name).arg("--help").output() {
        Ok(output) if output.status.success() => Ok(Command::new(name)),
        _ => Err(Skip::because(format!("{name} is not here"))),
    }
}

/// A command that runs. Killed when it is dropped.
#[derive(Debug)]
pub struct Running {
    what: String,
    child: Child,
    stdout: Option<Collected>,
    stderr: Option<Collected>,
}

impl Running {
    /// Starts it, without input. Its output is kept.
    ///
    /// # Panics
    /// When it can't be started.
    #[track_caller]
    pub fn start(mut command: Command) -> Self {
        command.stdin(Stdio::null()).stdout(Stdio::piped());
        Self::start_as_it_is(command)
    }

    /// Starts it with the input and output that it was given: what goes to a pipe of ours is kept.
    ///
    /// # Panics
    /// When it can't be started.
    #[track_caller]
    pub fn start_as_it_is(mut command: Command) -> Self {
        command.stderr(Stdio::piped());
        let what = format!("{command:?}");
        let mut child = command.spawn().unwrap_or_else(|error| panic!("cannot start {what}: {error}"));
        let stdout = child.stdout.take().map(Collected::of);
        let stderr = child.stderr.take().map(Collected::of);
        Self { what, child, stdout, stderr }
    }

    /// What it has written to its standard error by now.
    pub fn stderr_so_far(&self) -> String {
        let bytes = self.stderr.as_ref().map(Collected::so_far).unwrap_or_default();
        String::from_utf8_lossy(&bytes).into_owned()
    }

    /// Its process id.
    pub fn id(&self) -> u32 {
        self.child.id()
    }

    /// Sends it a signal.
    ///
    /// # Panics
    /// When it has been waited for already.
    pub fn signal(&self, signal: Signal) {
        kill_process(Pid::from_child(&self.child), signal).expect("the child was not waited for yet");
    }

    /// Whether it has ended.
    ///
    /// # Panics
    /// When that can't be asked.
    pub fn has_ended(&mut self) -> bool {
        self.child.try_wait().expect("the child can be waited for").is_some()
    }

    /// Waits for its end.
    ///
    /// # Panics
    /// When it has not ended within [`HARD_LIMIT`].
    #[track_caller]
    pub fn wait(self) -> Finished {
        self.wait_within(HARD_LIMIT)
    }

    /// Waits for its end, for what takes longer than anything in a run of the tests may.
    ///
    /// # Panics
    /// When it has not ended within `limit`.
    #[track_caller]
    pub fn wait_within(mut self, limit: Duration) -> Finished {
        let in_time = ends_within(&self.child, limit);
        if !in_time {
            let _ = self.child.kill();
        }
        let status = self.child.wait().expect("the child can be waited for");
        // What it has started may live on and hold the pipes: then there is no end to wait for.
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
        // It may have ended, and have been waited for.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// What came out of a pipe.
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
                    // A pipe that breaks has given all that it had.
                    Ok(0) | Err(_) => break,
                    Ok(n) => into.lock().expect("nobody panics with it").extend_from_slice(&chunk[..n]),
                }
            }
        });
        Self { bytes, reader }
    }

    /// Waits until all who write have closed it.
    fn all(self) -> Vec<u8> {
        self.reader.join().expect("reading does not panic");
        std::mem::take(&mut self.bytes.lock().expect("nobody panics with it"))
    }

    fn so_far(&self) -> Vec<u8> {
        self.bytes.lock().expect("nobody panics with it").clone()
    }
}

/// Waits for the end of a child, without taking its status.
pub(crate) fn ends_within(child: &Child, limit: Duration) -> bool {
    let pidfd = match pidfd_open(Pid::from_child(child), PidfdFlags::empty()) {
        Ok(pidfd) => pidfd,
        // It was asked for already, and had ended.
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

/// A command that has ended.
#[derive(Debug, Clone)]
pub struct Finished {
    what: String,
    /// How it ended.
    pub status: ExitStatus,
    /// What it wrote to its standard output.
    pub stdout: Vec<u8>,
    /// What it wrote to its standard error.
    pub stderr: String,
}

impl Finished {
    /// The exit code; `None` after a signal.
    pub fn code(&self) -> Option<i32> {
        self.status.code()
    }

    /// Goes on if it ended with this code.
    ///
    /// # Panics
    /// When it did not; all that it said is shown.
    #[track_caller]
    pub fn expect_code(&self, code: i32) -> &Self {
        assert!(self.status.code() == Some(code), "expected exit code {code}: {self}");
        self
    }

    /// Its standard output as text.
    ///
    /// # Panics
    /// When it is no UTF-8.
    #[track_caller]
    pub fn text(&self) -> &str {
        std::str::from_utf8(&self.stdout).unwrap_or_else(|error| panic!("{error}: {self}"))
    }

    /// Its standard output as one JSON document.
    ///
    /// # Panics
    /// When it is none.
    #[track_caller]
    pub fn json(&self) -> Value {
        serde_json::from_slice(&self.stdout)
            .unwrap_or_else(|error| panic!("no JSON document ({error}): {self}"))
    }

    /// Goes on if its standard error has this text.
    ///
    /// # Panics
    /// When it has not.
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

/// Asks again and again until there is an answer: for what another process does in its own time.
///
/// # Panics
/// When there is none within [`HARD_LIMIT`].
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
