//! Runs programs under Wine in a separate prefix, with a time limit.

use std::ffi::OsString;
use std::fs::{self, File};
use std::io::{BufRead as _, BufReader, Read, Write as _};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::mpsc;
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, bail};

/// Maximum duration of a program that is waited for; the first one also sets up the prefix.
const PATIENCE: Duration = Duration::from_mins(2);
const LOOK: Duration = Duration::from_millis(20);
/// An environment variable of the processes that the trials examine.
pub(super) const MARK: (&str, &str) = ("RUNTAP_TRIAL", "grün ✓");

/// The token for routing over TCP.
pub(super) const TOKEN: (&str, &str) = ("RUNTAP_TOKEN", "0123456789abcdef-0123456789abcdef");

/// Wine with a separate prefix. Programs in it are stopped on drop.
pub(super) struct Wine {
    program: PathBuf,
    server: PathBuf,
    folder: PathBuf,
    /// Number of programs that were run to completion.
    runs: AtomicU32,
}

/// The output and exit code of a program.
#[derive(Debug)]
pub(super) struct Said {
    pub(super) code: Option<i32>,
    pub(super) out: String,
    pub(super) err: String,
}

/// A running program, which is killed on drop.
pub(super) struct Running {
    child: Child,
    /// Closing it signals the end to some programs.
    stdin: Option<ChildStdin>,
    /// Its output on both streams.
    lines: Option<mpsc::Receiver<String>>,
}

impl Wine {
    pub(super) fn new(program: PathBuf, server: PathBuf, folder: PathBuf) -> Self {
        Self { program, server, folder, runs: AtomicU32::new(0) }
    }

    /// Creates the prefix, and an empty folder for the files of programs.
    pub(super) fn prepare(&self) -> Result<()> {
        self.end();
        let files = self.files();
        if files.exists() {
            fs::remove_dir_all(&files).with_context(|| format!("cannot remove {}", files.display()))?;
        }
        for folder in [files, self.prefix()] {
            fs::create_dir_all(&folder).with_context(|| format!("cannot create {}", folder.display()))?;
        }
        // By default the server exits when idle, which resets the connection of a program that starts at that moment.
        let mut server = self.server();
        let status = server.arg("-p").status().context("cannot start wineserver")?;
        if !status.success() {
            bail!("wineserver exited with {status}");
        }
        let said = self.wait(self.command("wineboot").arg("-i"))?;
        if said.code != Some(0) {
            bail!("wineboot exited with {:?}: {}", said.code, said.err);
        }
        Ok(())
    }

    /// Returns the folder for the files of programs.
    pub(super) fn files(&self) -> PathBuf {
        self.folder.join("files")
    }

    pub(super) fn version(&self) -> String {
        let said = self.wait(Command::new(&self.program).arg("--version"));
        said.map_or_else(|_| "Wine".to_owned(), |said| said.out.trim().to_owned())
    }

    /// Runs `runtap WORDS…` to completion.
    pub(super) fn runtap(&self, words: &[&str]) -> Result<Said> {
        self.wait(self.command("../runtap.exe").args(words))
    }

    /// Like [`runtap`](Self::runtap), with Wine's trace of calls of a kind.
    pub(super) fn traced(&self, kind: &str, words: &[&str]) -> Result<Said> {
        self.wait(self.command("../runtap.exe").args(words).env("WINEDEBUG", format!("trace+{kind}")))
    }

    /// Like [`runtap`](Self::runtap); a failure is an error.
    pub(super) fn works(&self, words: &[&str]) -> Result<Said> {
        let said = self.runtap(words)?;
        if said.code != Some(0) {
            bail!("`runtap {}` exited with {:?}: {}", words.join(" "), said.code, said.err.trim());
        }
        Ok(said)
    }

    /// Starts a program and returns what follows `word` in the first line of output that contains it.
    pub(super) fn start(&self, program: &str, words: &[&str], word: &str) -> Result<(Running, String)> {
        let mut command = self.command(program);
        command
            .args(words)
            .env(MARK.0, MARK.1)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        let mut child = command.spawn().with_context(|| format!("cannot start {program}"))?;
        let (out, err, stdin) = (child.stdout.take(), child.stderr.take(), child.stdin.take());
        let (tell, lines) = mpsc::channel();
        listen(out, tell.clone());
        listen(err, tell);
        let running = Running { child, stdin, lines: Some(lines) };
        let rest = running.says(word).with_context(|| format!("{program} {}", words.join(" ")))?;
        Ok((running, rest))
    }

    /// Starts `runtap` without waiting.
    pub(super) fn begin(&self, words: &[&str]) -> Result<Running> {
        let mut command = self.command("../runtap.exe");
        let child =
            command.args(words).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).spawn();
        Ok(Running { child: child.context("cannot start runtap.exe")?, stdin: None, lines: None })
    }

    /// Starts `runtap` in a console, which Wine creates from the terminal of `script`.
    pub(super) fn at_console(&self, words: &[&str]) -> Result<Running> {
        // Without `exec`, some shells keep running and are killed by Ctrl-C.
        let line = format!("exec {} ../runtap.exe {}", self.program.display(), words.join(" "));
        let mut command = self.prepared(Path::new("script"));
        command.args(["-qec", &line, "/dev/null"]);
        let child = command.stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::null()).spawn();
        let mut child = child.context("cannot start script (of Debian's bsdutils)")?;
        let stdin = child.stdin.take();
        Ok(Running { child, stdin, lines: None })
    }

    /// Returns variables with which cargo runs programs for Windows through Wine.
    pub(super) fn variables(&self) -> [(&'static str, OsString); 4] {
        [
            ("WINEPREFIX", self.prefix().into()),
            ("WINEDEBUG", "-all".into()),
            ("WINEDLLOVERRIDES", "mscoree,mshtml=".into()),
            // The folder of a library that replaces one of newer Windows versions.
            ("WINEPATH", self.folder.as_os_str().to_owned()),
        ]
    }

    pub(super) fn program(&self) -> &Path {
        &self.program
    }

    fn command(&self, program: &str) -> Command {
        let mut command = self.prepared(&self.program);
        command.arg(program);
        command
    }

    /// Runs a program to completion. Its output goes to files, because Wine's services would keep pipes open.
    fn wait(&self, command: &mut Command) -> Result<Said> {
        let number = self.runs.fetch_add(1, Ordering::Relaxed);
        let [out, err] = ["out", "err"].map(|what| self.folder.join(format!("said.{number}.{what}")));
        command.stdin(Stdio::null()).stdout(File::create(&out)?).stderr(File::create(&err)?);
        let mut running = Running { child: command.spawn()?, stdin: None, lines: None };
        let code = running.ended(PATIENCE)?;
        let text = |path: &Path| -> Result<String> {
            let text = String::from_utf8_lossy(&fs::read(path)?).replace("\r\n", "\n");
            fs::remove_file(path)?;
            Ok(text)
        };
        Ok(Said { code, out: text(&out)?, err: text(&err)? })
    }

    fn prepared(&self, program: &Path) -> Command {
        let mut command = Command::new(program);
        command.current_dir(self.files());
        // No windows, and no questions about optional components.
        command.envs(self.variables()).env(TOKEN.0, TOKEN.1).env_remove("DISPLAY");
        command
    }

    /// Stops all programs in the prefix, and nothing else.
    fn end(&self) {
        if self.prefix().is_dir() {
            // Fails if no server is running.
            let _ = self.server().arg("-k").status();
        }
    }

    fn server(&self) -> Command {
        let mut command = Command::new(&self.server);
        command.env("WINEPREFIX", self.prefix());
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        command
    }

    fn prefix(&self) -> PathBuf {
        self.folder.join("prefix")
    }
}

/// Forwards the lines of a stream.
fn listen(stream: Option<impl Read + Send + 'static>, tell: mpsc::Sender<String>) {
    thread::spawn(move || {
        for line in BufReader::new(stream?).lines() {
            tell.send(line.ok()?).ok()?;
        }
        Some(())
    });
}

impl Drop for Wine {
    fn drop(&mut self) {
        self.end();
    }
}

impl Running {
    /// Returns what follows `word` in the next line of output that contains it.
    pub(super) fn says(&self, word: &str) -> Result<String> {
        let (until, mut said) = (Instant::now() + PATIENCE, Vec::new());
        let lines = self.lines.as_ref().context("the output of the program is not read")?;
        while let Ok(line) = lines.recv_timeout(until.saturating_duration_since(Instant::now())) {
            if let Some((_, rest)) = line.split_once(word) {
                return Ok(rest.trim().to_owned());
            }
            said.push(line);
        }
        bail!("it did not print `{word}`, but: {}", said.join("; "));
    }

    /// Types keys in its console.
    pub(super) fn type_in(&mut self, keys: &[u8]) -> Result<()> {
        Ok(self.stdin.as_mut().context("it has no console")?.write_all(keys)?)
    }

    /// Returns whether it is running.
    pub(super) fn runs(&mut self) -> Result<bool> {
        Ok(self.child.try_wait()?.is_none())
    }

    /// Waits for it to exit and returns its exit code. It is killed after the time limit.
    pub(super) fn ended(&mut self, limit: Duration) -> Result<Option<i32>> {
        let until = Instant::now() + limit;
        loop {
            if let Some(status) = self.child.try_wait()? {
                return Ok(status.code());
            }
            if Instant::now() > until {
                bail!("it did not exit within {} s", limit.as_secs());
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
        // Fails if it has exited.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
