//! Runs the program as a child process.

use std::io::{self, BufRead, BufReader};
use std::process::{Child, ChildStdout, Command, Stdio};

use crate::{Error, native};

/// A child process that runs [`serve`](crate::serve). Terminated on drop.
#[derive(Debug)]
pub struct Program {
    child: Child,
    lines: io::Lines<BufReader<ChildStdout>>,
    pid: u32,
}

impl Program {
    /// Starts the program with a command that calls [`serve`](crate::serve) for its standard output, and waits until tools can
    /// attach to it.
    ///
    /// # Errors
    /// [`Error::NotSpawned`] if there is no process, [`Error::NotStarted`] if it exited at once.
    pub fn start(mut command: Command) -> Result<Self, Error> {
        native::prepare(&mut command);
        let mut child = command
            // The program would wait for another tool.
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

    /// Returns the process id.
    pub fn pid(&self) -> u32 {
        self.pid
    }

    /// Stops the program, and returns its report on what it did, as JSON.
    ///
    /// # Errors
    /// Returns an error if there is no report.
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
    /// Also stops the program if the recording failed.
    fn drop(&mut self) {
        if let Ok(None) = self.child.try_wait() {
            self.terminate();
            // The program handles the signal at once.
            let _ = self.child.wait();
        }
    }
}
