//! Process operations of a scripted host: output, children, signals, exit.

use std::io::{self, Write};
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::os::unix::process::CommandExt as _;
use std::process::{Command, Stdio};
use std::time::Duration;

use rustix::process::{Signal, getpid, kill_process};
use tokio::signal::unix::{Signal as Signals, SignalKind, signal};

use super::ScriptError;
use super::words::Arguments;

/// Prints, ignoring errors if the output is closed.
pub(super) fn print(mut out: impl Write, bytes: &[u8]) {
    let _ = out.write_all(bytes).and_then(|()| out.flush());
}

/// `flood stdout|stderr SIZE`: prints numbered lines of this total size, such as `100MB`.
pub(super) fn flood(words: &mut Arguments) -> Result<(), ScriptError> {
    let stream = words.need("stdout or stderr")?;
    let size = size(&words.need("a size")?)?;
    let mut out: Box<dyn Write> = match stream.as_str() {
        "stdout" => Box::new(io::stdout().lock()),
        "stderr" => Box::new(io::stderr().lock()),
        other => return Err(format!("{other}: stdout or stderr").into()),
    };
    let mut written = 0;
    let mut number = 0_u64;
    while written < size {
        let mut piece = String::new();
        while piece.len() < 64 << 10 {
            number += 1;
            piece.extend([&format!("{number:>12} "), "what a program prints in a loop without an end\n"]);
        }
        written += piece.len();
        print(&mut out, piece.as_bytes());
    }
    Ok(())
}

fn size(text: &str) -> Result<usize, ScriptError> {
    let (number, factor) = match text.strip_suffix("MB").map(|number| (number, 1_000_000)) {
        Some(of) => of,
        None => (text.strip_suffix("kB").unwrap_or(text), if text.ends_with("kB") { 1000 } else { 1 }),
    };
    let number: usize = number
        .parse()
        .map_err(|_no_number| format!("invalid size '{text}': expected a number such as 100MB"))?;
    Ok(number * factor)
}

/// `fork [holds=stdout|pipe|nothing] [for=5s] [escapes]`: starts a process that outlives its parent and keeps one of
/// its descriptors. With `escapes`, it has a session of its own and an empty environment.
pub(super) fn fork(words: &mut Arguments, pipe: Option<&UnixStream>) -> Result<(), ScriptError> {
    let duration = super::duration(&words.get("for").unwrap_or_else(|| "5s".to_owned()))?;
    let holds = words.get("holds").unwrap_or_else(|| "nothing".to_owned());
    let mut command = Command::new("/bin/sleep");
    command.arg(duration.as_secs_f64().to_string());
    command.stdin(Stdio::null()).stderr(Stdio::null());
    match holds.as_str() {
        "stdout" => {}
        "nothing" => drop(command.stdout(Stdio::null())),
        "pipe" => {
            let pipe = pipe.ok_or("there is no connection yet")?.try_clone()?;
            command.stdin(OwnedFd::from(pipe)).stdout(Stdio::null());
        }
        other => return Err(format!("holds={other}: stdout, pipe or nothing").into()),
    }
    if words.flag("escapes") {
        command.env_clear().process_group(0);
    }
    // Intentionally not waited for.
    drop(command.spawn()?);
    Ok(())
}

/// `kill SIGNAL`: sends a signal to this process.
pub(super) fn kill(name: &str) -> Result<(), ScriptError> {
    let signal = signal_by_name(name)?;
    // Delivery is asynchronous, and a handler of the standard library may receive the first one.
    for _ in 0..100 {
        kill_process(getpid(), signal).map_err(io::Error::from)?;
        std::thread::sleep(Duration::from_millis(10));
    }
    Err(format!("{name} does not end it").into())
}

fn signal_by_name(name: &str) -> Result<Signal, ScriptError> {
    Ok(match name {
        "SIGKILL" => Signal::KILL,
        "SIGABRT" => Signal::ABORT,
        "SIGSEGV" => Signal::SEGV,
        "SIGTERM" => Signal::TERM,
        "SIGINT" => Signal::INT,
        other => return Err(format!("unknown signal '{other}'").into()),
    })
}

/// The interrupts (SIGINT) that this process ignores.
#[derive(Debug)]
pub(super) struct IgnoredInterrupts {
    runtime: tokio::runtime::Runtime,
    interrupts: Signals,
}

impl IgnoredInterrupts {
    /// Ignores SIGINT.
    pub(super) fn new() -> io::Result<Self> {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
        let guard = runtime.enter();
        let interrupts = signal(SignalKind::interrupt())?;
        drop(guard);
        Ok(Self { runtime, interrupts })
    }

    /// Waits for a signal.
    pub(super) fn wait(&mut self) {
        self.runtime.block_on(self.interrupts.recv());
    }
}
