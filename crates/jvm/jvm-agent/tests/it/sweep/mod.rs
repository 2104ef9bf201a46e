//! The agent under stress: repeated attaching, killed HQs, hundreds of threads and a slow HQ.
//!
//! A tenth of each sweep is part of the tests. `cargo xtask sweep jvm` runs all and prints the results, which are in
//! docs/reliability.md.

#![expect(clippy::print_stdout, reason = "how much was tried is what the sweep is read for")]

mod attach;
mod crowds;
mod killed;
mod speed;

use std::fs;
use std::io::{BufRead as _, BufReader, Write as _};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};

use runtap_jvm_attach::codec::Request;
use runtap_jvm_attach::{AttachError, Client, Jvm, Timeouts};
use runtap_testkit::{Jdk, Skip};

use crate::common::{library, programs};

/// The part of a sweep to run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Part {
    /// The part in the tests.
    Tenth,
    /// All, on demand.
    Whole,
}

impl Part {
    /// Returns the number of repetitions in this part.
    fn of(self, all: usize) -> usize {
        match self {
            Self::Tenth => (all / 10).max(1),
            Self::Whole => all,
        }
    }

    /// Returns the JDKs: one for a test run.
    fn jdks(self) -> Result<Vec<Jdk>, Skip> {
        let mut jdks = Jdk::all()?;
        match self {
            Self::Tenth => Ok(jdks.split_off(jdks.len() - 1)),
            Self::Whole => {
                jdks.retain(|jdk| [17, 25].contains(&jdk.major()));
                Ok(jdks)
            }
        }
    }
}

/// A test program in a JVM, which is controlled by lines, and attached to.
struct Attached {
    child: Child,
    input: ChildStdin,
    output: BufReader<ChildStdout>,
    client: Client,
    runtime: tokio::runtime::Runtime,
}

impl Attached {
    /// Starts it and waits for the line `ready`; returns the rest of that line.
    fn start(jdk: &Jdk, options: &[&str], arguments: &[&str]) -> Result<(Self, String), Skip> {
        let mut java = jdk.java();
        if jdk.major() >= 21 {
            java.arg("-XX:+EnableDynamicAgentLoading");
        }
        java.args(options).arg("-cp").arg(programs()?).args(arguments);
        Ok(Self::spawn(java))
    }

    fn spawn(mut java: Command) -> (Self, String) {
        let mut child = java.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
        let input = child.stdin.take().unwrap();
        let mut output = BufReader::new(child.stdout.take().unwrap());
        let ready = line(&mut output, "ready");
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        let jvm = Jvm::examine(child.id()).unwrap();
        let client = runtime.block_on(Client::attach(jvm, Timeouts::default())).unwrap();
        (Self { child, input, output, client, runtime }, ready)
    }

    fn pid(&self) -> u32 {
        self.child.id()
    }

    /// Loads the agent, or makes it detach.
    fn load(&self, options: &str) -> Result<(), AttachError> {
        self.runtime.block_on(self.client.load(&library(), options))
    }

    /// Returns the JVM's answer to a `jcmd` command.
    fn command(&self, command: &str) -> String {
        let reply = self.runtime.block_on(self.client.execute(&Request::jcmd(command.as_ref())));
        String::from_utf8(reply.unwrap()).unwrap()
    }

    /// Writes a line and waits for a line that starts with `word`; returns the numbers after it.
    fn ask(&mut self, word: &str) -> Vec<u64> {
        writeln!(self.input, "{word}").unwrap();
        let answer = line(&mut self.output, word);
        answer.split_whitespace().map(|number| number.parse().unwrap()).collect()
    }

    /// Returns the names of its threads as the kernel has them.
    fn threads(&self) -> Vec<String> {
        let tasks = fs::read_dir(format!("/proc/{}/task", self.pid())).unwrap().flatten();
        let names = tasks.filter_map(|task| fs::read_to_string(task.path().join("comm")).ok());
        names.map(|name| name.trim_end().to_owned()).collect()
    }

    fn has_agent_threads(&self) -> bool {
        self.threads().iter().any(|name| name.starts_with("runtap-"))
    }

    /// Returns the number of open files and sockets.
    fn files(&self) -> usize {
        fs::read_dir(format!("/proc/{}/fd", self.pid())).unwrap().count()
    }

    /// Returns the resident memory, in KiB.
    fn resident(&self) -> u64 {
        let status = fs::read_to_string(format!("/proc/{}/status", self.pid())).unwrap();
        let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).unwrap();
        line.trim().trim_end_matches(" kB").parse().unwrap()
    }

    /// Closes its input and checks that it exits successfully, with `done`.
    fn end(mut self) {
        drop(self.input);
        line(&mut self.output, "done");
        assert!(self.child.wait().unwrap().success());
    }
}

/// Returns the rest of the next line that starts with a word.
fn line(output: &mut BufReader<ChildStdout>, word: &str) -> String {
    loop {
        let mut line = String::new();
        assert!(output.read_line(&mut line).unwrap() > 0, "the program has ended without {word:?}");
        if let Some(rest) = line.strip_prefix(word) {
            return rest.trim().to_owned();
        }
    }
}

/// A generator of the same numbers in each run (xorshift64).
struct Dice(u64);

impl Dice {
    fn below(&mut self, end: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0 % end
    }
}
