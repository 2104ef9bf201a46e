//! The program in a process of its own, as somebody sees it who starts it as a target.

use std::io::{self, BufRead, BufReader};
use std::process::{Child, ChildStdout, Command, Stdio};

use crate::{Error, native};

/// A process that runs [`serve`](crate::serve). It ends when this is dropped.
#[derive(Debug)]
pub struct Program {
    child: Child,
    lines: io::Lines<BufReader<ChildStdout>>,
    pid: u32,
}

impl Program {
    /// Starts it with a command that calls [`serve`](crate::serve) for its stdout, and waits until it can be tapped.
    ///
    /// # Errors
    /// [`Error::NotSpawned`] without a process, [`Error::NotStarted`] for one that ended at once.
    pub fn start(mut command: Command) -> Result<Self, Error> {
        native::prepare(&mut command);
        let mut child = command
            // It would wait for a tool that is not ours.
            .env_remove("DOTNET_DiagnosticPorts")
            .stdin(native::stdin())
            .stdout(Stdio::piped())
            .spawn()
            .map_err(Error::NotSpawned)?;
        let pid = child.id();
        let stdout = child.stdout.take().ok_or(Error::NoOutput)?;
        let mut program = Self { child, lines: BufReader::new(stdout).lines(), pid };
        if program.line_that_starts_with("ready")?.is_none() {
            program.child.wait()?;
            return Err(Error::NotStarted);
        }
        Ok(program)
    }

    /// Its process id.
    pub fn pid(&self) -> u32 {
        self.pid
    }

    /// Ends it and returns its own account of what it did, as JSON.
    ///
    /// # Errors
    /// It gave none.
    pub fn end(mut self) -> Result<String, Error> {
        self.terminate();
        let truth = self.line_that_starts_with("truth")?;
        self.child.wait()?;
        truth.ok_or(Error::NoTruth)
    }

    fn line_that_starts_with(&mut self, start: &str) -> io::Result<Option<String>> {
        for line in self.lines.by_ref() {
            if let Some(rest) = line?.strip_prefix(start) {
                return Ok(Some(rest.trim().to_owned()));
            }
        }
        Ok(None)
    }

    fn terminate(&mut self) {
        native::terminate(&mut self.child);
    }
}

impl Drop for Program {
    /// Also when the recording failed: nothing of ours stays behind.
    fn drop(&mut self) {
        if let Ok(None) = self.child.try_wait() {
            self.terminate();
            // It answers the signal at once.
            let _ = self.child.wait();
        }
    }
}
