//! The reaper process.
//!
//! A command that exits on its own may leave a daemon running in a session of the daemon's own. All processes of a
//! command are killed if the command is being stopped, which a byte on the socket announces, or if the program that
//! started the reaper has exited. On Linux the reaper is a subreaper: orphaned processes become children of the reaper,
//! whatever their group or session, and the reaper kills its children until there are none. On other systems the reaper
//! kills its process group.

use std::ffi::OsString;
use std::io;
use std::os::fd::{AsFd as _, OwnedFd};
use std::os::unix::net::UnixStream as StdStream;
use std::process::{Command, Stdio};
use std::time::Duration;

use rustix::io::Errno;
use rustix::net::RecvFlags;
use rustix::process::{Pid, Signal, WaitOptions, getpid, kill_process_group, wait};
use tokio::io::AsyncReadExt as _;
use tokio::net::UnixStream;
use tokio::signal::unix::{SignalKind, signal};
use tokio::time::{Instant, sleep};

/// Interval between searches for remaining processes.
const POLL_INTERVAL: Duration = Duration::from_millis(5);
/// Time after which remaining processes are given up: they belong to another user, or the kernel does not release them.
const KILL_TIMEOUT: Duration = Duration::from_secs(5);

/// Runs a command and kills its remaining processes when it is done. Standard input is the socket to the program. With
/// `leaves_group`, the process group of a command that exits on its own is left running.
///
/// # Errors
/// If standard input is not a socket, or signal handlers cannot be installed. A command that cannot be started is
/// reported on the socket.
pub fn run_reaper(command_line: &[OsString], leaves_group: bool) -> io::Result<()> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let outcome = runtime.block_on(run(command_line))?;
    // The group belongs to the reaper unless it was started manually.
    let ends_group = outcome == CommandEnd::Killed || !leaves_group;
    if ends_group && rustix::process::getpgrp() == getpid() {
        let _ = kill_process_group(getpid(), Signal::KILL);
    }
    Ok(())
}

/// How the command ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum CommandEnd {
    /// The command exited on its own, or could not be started.
    Exited,
    /// The command and its processes were killed.
    Killed,
}

async fn run(command_line: &[OsString]) -> io::Result<CommandEnd> {
    let socket: OwnedFd = io::stdin().as_fd().try_clone_to_owned()?;
    let socket = StdStream::from(socket);
    socket.set_nonblocking(true)?;
    let mut socket = UnixStream::from_std(socket)?;
    // These signals are for the command, which is in this group. The reaper must outlive it.
    let kinds = [SignalKind::interrupt(), SignalKind::terminate(), SignalKind::hangup(), SignalKind::quit()];
    let _ignored = kinds.into_iter().map(signal).collect::<io::Result<Vec<_>>>()?;
    let mut child_exits = signal(SignalKind::child())?;
    #[cfg(target_os = "linux")]
    rustix::process::set_child_subreaper(Some(getpid()))?;

    let Some((program, arguments)) = command_line.split_first() else {
        return Err(io::ErrorKind::InvalidInput.into());
    };
    // The loop below waits for all children by process id.
    let started = Command::new(program).args(arguments).stdin(Stdio::null()).spawn();
    let errno = match &started {
        Ok(_) => 0,
        Err(error) => error.raw_os_error().unwrap_or(Errno::IO.raw_os_error()),
    };
    let mut is_connected = report(&socket, errno);
    let Ok(command) = started else { return Ok(CommandEnd::Exited) };
    let command = Pid::from_child(&command);
    is_connected &= report(&socket, command.as_raw_nonzero().get());

    let new_deadline = || Some(Instant::now() + KILL_TIMEOUT);
    let mut kill_deadline = if is_connected { None } else { new_deadline() };
    let (mut has_ended, mut is_stopping) = (false, false);
    loop {
        let is_alone = loop {
            match wait(WaitOptions::NOHANG) {
                Ok(Some((pid, status))) if pid == command => {
                    has_ended = true;
                    report(&socket, status.as_raw());
                }
                Ok(Some(_)) | Err(Errno::INTR) => {}
                Ok(None) => break false,
                Err(_) => break true,
            }
        };
        match kill_deadline {
            Some(deadline) if is_alone || Instant::now() > deadline => {
                // Even after the time-out: kill processes started since the last search.
                kill_children();
                return Ok(CommandEnd::Killed);
            }
            Some(_) => {
                kill_children();
                tokio::select! {
                    _ = child_exits.recv() => {}
                    () = sleep(POLL_INTERVAL) => {}
                }
            }
            None if has_ended && !is_stopping && !has_pending_input(&socket) => {
                return Ok(CommandEnd::Exited);
            }
            None if has_ended => kill_deadline = new_deadline(),
            None => {
                let mut byte = [0];
                tokio::select! {
                    _ = child_exits.recv() => {}
                    read = socket.read(&mut byte) => match read {
                        Ok(1) => is_stopping = true,
                        _ => kill_deadline = new_deadline(),
                    }
                }
            }
        }
    }
}

/// Returns whether a byte or the end of the stream is pending. Queries the kernel, because tokio's state may be older
/// than the exit of the command.
fn has_pending_input(socket: &UnixStream) -> bool {
    let mut byte = [0_u8];
    rustix::net::recv(socket, &mut byte[..], RecvFlags::PEEK | RecvFlags::DONTWAIT) != Err(Errno::AGAIN)
}

/// Reports a number; returns whether the program is still connected. Writes directly: the few bytes always fit, and
/// tokio may not know yet that the socket is writable.
fn report(socket: &UnixStream, number: i32) -> bool {
    rustix::io::write(socket, &number.to_ne_bytes()).is_ok()
}

/// Sends SIGKILL to all children of this process. Their children then become children of this process.
#[cfg(target_os = "linux")]
fn kill_children() {
    let own = getpid().as_raw_nonzero().get();
    for entry in std::fs::read_dir("/proc").into_iter().flatten().flatten() {
        let name = entry.file_name();
        let pid = name.to_str().and_then(|name| name.parse().ok()).and_then(Pid::from_raw);
        let Some(pid) = pid else { continue };
        // The process may have exited meanwhile.
        let Ok(stat) = std::fs::read(entry.path().join("stat")) else { continue };
        if parent(&stat) == Some(own) {
            // The process id cannot be reused before it is waited for.
            let _ = rustix::process::kill_process(pid, Signal::KILL);
        }
    }
}

/// Kills the process group, because descendants outside of it are unknown.
#[cfg(not(target_os = "linux"))]
fn kill_children() {
    if rustix::process::getpgrp() == getpid() {
        let _ = kill_process_group(getpid(), Signal::KILL);
    }
}

/// Parses the parent from `/proc/PID/stat`: the second field after the name, which is in parentheses and may contain
/// any characters.
#[cfg(any(target_os = "linux", test))]
fn parent(stat: &[u8]) -> Option<i32> {
    let name = stat.iter().rposition(|byte| *byte == b')')?;
    let text = std::str::from_utf8(stat.get(name + 1..)?).ok()?;
    text.split_ascii_whitespace().nth(1)?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::parent;

    #[test]
    fn the_name_may_contain_parentheses_and_fields() {
        assert_eq!(parent(b"12 (sleep) S 34 12 12 0"), Some(34));
        assert_eq!(parent(b"12 (a) S 1 (b) R 7 12"), Some(7));
        assert_eq!(parent(b"12 (\xFF) R 7 12"), Some(7));
        assert_eq!(parent(b"12 (sleep"), None);
        assert_eq!(parent(b"12 (sleep) S"), None);
    }
}
