//! Programs under Wine: in a prefix of our own, with a time limit, and gone when we are done.

use std::fs;
use std::io::{BufRead as _, BufReader, Read as _};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::mpsc;
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, bail};

/// How long a program may take that is waited for; the first one of a prefix sets that up.
const PATIENCE: Duration = Duration::from_mins(2);
const LOOK: Duration = Duration::from_millis(20);
/// A variable of the processes that the trials look at.
pub(super) const MARK: (&str, &str) = ("RUNTAP_TRIAL", "grün ✓");

/// Wine with a prefix of its own. What runs in it ends when this is dropped.
pub(super) struct Wine {
    program: PathBuf,
    server: PathBuf,
    folder: PathBuf,
}

/// What a program said, and how it ended.
#[derive(Debug)]
pub(super) struct Said {
    pub(super) code: Option<i32>,
    pub(super) out: String,
    pub(super) err: String,
}

/// A program that runs. It is killed when this is dropped.
pub(super) struct Running {
    child: Child,
    /// Its end is what some are told by.
    _stdin: Option<ChildStdin>,
}

impl Wine {
    pub(super) fn new(program: PathBuf, server: PathBuf, folder: PathBuf) -> Self {
        Self { program, server, folder }
    }

    /// Makes the prefix, and an empty folder for what the programs write.
    pub(super) fn prepare(&self) -> Result<()> {
        self.end();
        let files = self.files();
        if files.exists() {
            fs::remove_dir_all(&files).with_context(|| format!("cannot remove {}", files.display()))?;
        }
        fs::create_dir_all(&files).with_context(|| format!("cannot create {}", files.display()))?;
        let said = wait(self.command("wineboot").arg("-i"))?;
        if said.code != Some(0) {
            bail!("wineboot ended with {:?}: {}", said.code, said.err);
        }
        Ok(())
    }

    /// Where the programs write.
    pub(super) fn files(&self) -> PathBuf {
        self.folder.join("files")
    }

    pub(super) fn version(&self) -> String {
        let said = wait(Command::new(&self.program).arg("--version"));
        said.map_or_else(|_| "Wine".to_owned(), |said| said.out.trim().to_owned())
    }

    /// `runtap WORDS…`, to its end.
    pub(super) fn runtap(&self, words: &[&str]) -> Result<Said> {
        wait(self.command("../runtap.exe").args(words))
    }

    /// The same, which has to work.
    pub(super) fn works(&self, words: &[&str]) -> Result<Said> {
        let said = self.runtap(words)?;
        if said.code != Some(0) {
            bail!("`runtap {}` ended with {:?}: {}", words.join(" "), said.code, said.err.trim());
        }
        Ok(said)
    }

    /// Starts a program, and gives the first line of its stdout that begins with `word`.
    pub(super) fn start(&self, program: &str, words: &[&str], word: &str) -> Result<(Running, String)> {
        let mut command = self.command(program);
        command
            .args(words)
            .env(MARK.0, MARK.1)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null());
        let mut child = command.spawn().with_context(|| format!("cannot start {program}"))?;
        let (out, stdin) = (child.stdout.take(), child.stdin.take());
        let running = Running { child, _stdin: stdin };
        let (tell, lines) = mpsc::channel();
        thread::spawn(move || {
            for line in BufReader::new(out.into_iter().next()?).lines() {
                tell.send(line.ok()?).ok()?;
            }
            Some(())
        });
        let until = Instant::now() + PATIENCE;
        while let Ok(line) = lines.recv_timeout(until.saturating_duration_since(Instant::now())) {
            if let Some(rest) = line.trim_end().strip_prefix(word) {
                return Ok((running, rest.trim().to_owned()));
            }
        }
        bail!("`{program} {}` does not say `{word}`", words.join(" "));
    }

    /// Starts `runtap`, and waits for nothing.
    pub(super) fn begin(&self, words: &[&str]) -> Result<Running> {
        let mut command = self.command("../runtap.exe");
        let child =
            command.args(words).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).spawn();
        Ok(Running { child: child.context("cannot start runtap.exe")?, _stdin: None })
    }

    fn command(&self, program: &str) -> Command {
        let mut command = Command::new(&self.program);
        command.arg(program).current_dir(self.files());
        // No window, and no questions about parts that are not needed.
        command.env("WINEPREFIX", self.folder.join("prefix")).env("WINEDEBUG", "-all");
        command.env("WINEDLLOVERRIDES", "mscoree,mshtml=").env_remove("DISPLAY");
        command
    }

    /// Ends whatever runs in the prefix, and nothing else.
    fn end(&self) {
        let prefix = self.folder.join("prefix");
        if !Path::new(&prefix).is_dir() {
            return;
        }
        let mut command = Command::new(&self.server);
        // Without one there is nothing to end.
        let _ = command.arg("-k").env("WINEPREFIX", prefix).stderr(Stdio::null()).status();
    }
}

/// Runs a program to its end.
fn wait(command: &mut Command) -> Result<Said> {
    let mut child = command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn()?;
    let read = |pipe: Option<Box<dyn std::io::Read + Send>>| {
        thread::spawn(move || {
            let mut bytes = Vec::new();
            if let Some(mut pipe) = pipe {
                // What could be read is what there is.
                let _ = pipe.read_to_end(&mut bytes);
            }
            String::from_utf8_lossy(&bytes).replace("\r\n", "\n")
        })
    };
    let out = read(child.stdout.take().map(|pipe| Box::new(pipe) as _));
    let err = read(child.stderr.take().map(|pipe| Box::new(pipe) as _));
    let mut running = Running { child, _stdin: None };
    let code = running.ended(PATIENCE)?;
    let text = |thread: thread::JoinHandle<String>| thread.join().unwrap_or_default();
    Ok(Said { code, out: text(out), err: text(err) })
}

impl Drop for Wine {
    fn drop(&mut self) {
        self.end();
    }
}

impl Running {
    /// Waits for its end, and gives its exit code; it is killed when that takes too long.
    pub(super) fn ended(&mut self, limit: Duration) -> Result<Option<i32>> {
        let until = Instant::now() + limit;
        loop {
            if let Some(status) = self.child.try_wait()? {
                return Ok(status.code());
            }
            if Instant::now() > until {
                bail!("it has not ended within {} s", limit.as_secs());
            }
            thread::sleep(LOOK);
        }
    }

    pub(super) fn kill(mut self) -> Result<()> {
        self.child.kill()?;
        self.child.wait()?;
        Ok(())
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        // It may have ended.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
