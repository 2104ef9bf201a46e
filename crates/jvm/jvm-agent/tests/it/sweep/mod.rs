//! The agent under stress: attached and left again and again, HQs that are killed, hundreds of threads and a slow HQ.
//!
//! A tenth of each is among the tests. `cargo xtask sweep jvm` runs the whole, prints what it has seen, and
//! docs/reliability.md has the results.

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

/// How much of a sweep is run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Part {
    /// With the other tests.
    Tenth,
    /// On demand.
    Whole,
}

impl Part {
    /// So many of them.
    fn of(self, all: usize) -> usize {
        match self {
            Self::Tenth => (all / 10).max(1),
            Self::Whole => all,
        }
    }

    /// The JDKs: one for a test run.
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

fn said(test: Result<(), Skip>) {
    if let Err(skip) = test {
        skip.report();
    }
}

/// A program of ours in a JVM, which is asked by lines, and attached to.
struct Attached {
    child: Child,
    input: ChildStdin,
    output: BufReader<ChildStdout>,
    client: Client,
    runtime: tokio::runtime::Runtime,
}

impl Attached {
    /// Starts it and waits for the line `ready`; gives what is behind it.
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

    /// Loads the agent, or tells it to leave.
    fn load(&self, options: &str) -> Result<(), AttachError> {
        self.runtime.block_on(self.client.load(&library(), options))
    }

    /// What the JVM says to a command of `jcmd`.
    fn command(&self, command: &str) -> String {
        let reply = self.runtime.block_on(self.client.execute(&Request::jcmd(command.as_ref())));
        String::from_utf8(reply.unwrap()).unwrap()
    }

    /// Writes a line and waits for one that begins with `word`; gives the numbers behind it.
    fn ask(&mut self, word: &str) -> Vec<u64> {
        writeln!(self.input, "{word}").unwrap();
        let answer = line(&mut self.output, word);
        answer.split_whitespace().map(|number| number.parse().unwrap()).collect()
    }

    /// Names of its threads, as the kernel has them.
    fn threads(&self) -> Vec<String> {
        let tasks = fs::read_dir(format!("/proc/{}/task", self.pid())).unwrap().flatten();
        let names = tasks.filter_map(|task| fs::read_to_string(task.path().join("comm")).ok());
        names.map(|name| name.trim_end().to_owned()).collect()
    }

    fn has_agent_threads(&self) -> bool {
        self.threads().iter().any(|name| name.starts_with("runtap-"))
    }

    /// Open files and sockets.
    fn files(&self) -> usize {
        fs::read_dir(format!("/proc/{}/fd", self.pid())).unwrap().count()
    }

    /// Resident memory, in KiB.
    fn resident(&self) -> u64 {
        let status = fs::read_to_string(format!("/proc/{}/status", self.pid())).unwrap();
        let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).unwrap();
        line.trim().trim_end_matches(" kB").parse().unwrap()
    }

    /// Closes its input; it ends well, and says `done`.
    fn end(mut self) {
        drop(self.input);
        line(&mut self.output, "done");
        assert!(self.child.wait().unwrap().success());
    }
}

/// The next line that begins with a word: what is behind it.
fn line(output: &mut BufReader<ChildStdout>, word: &str) -> String {
    loop {
        let mut line = String::new();
        assert!(output.read_line(&mut line).unwrap() > 0, "the program has ended without {word:?}");
        if let Some(rest) = line.strip_prefix(word) {
            return rest.trim().to_owned();
        }
    }
}

/// Numbers that are the same in each run (xorshift64).
struct Dice(u64);

impl Dice {
    fn below(&mut self, end: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0 % end
    }
}
