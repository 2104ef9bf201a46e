//! The keeper itself.
//!
//! A command that ends by itself may leave a daemon in a session of its own behind; one that is stopped, which a byte on the
//! socket says before, or whose program is gone, may not. On Linux the keeper is a subreaper, so processes whose parent has
//! ended are its children, in whatever group or session they are: it ends its children until there are none. Elsewhere it
//! ends its group.

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

/// The pause before it looks again who is left.
const PAUSE: Duration = Duration::from_millis(5);
/// Who lives longer can't be ended by us: a process of another user, or one that the kernel does not let go.
const PATIENCE: Duration = Duration::from_secs(5);

/// Runs a command and ends with it. Standard input is the socket. With `leaves_group`, what is left in the process group of a
/// command that ends by itself stays.
///
/// # Errors
/// Standard input is no socket, or signals can't be listened to. A command that can't be started is reported on the socket.
pub fn keep(words: &[OsString], leaves_group: bool) -> io::Result<()> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let end = runtime.block_on(run(words))?;
    // The group is the keeper's own, unless it was started by hand.
    let ends_group = end == End::Stopped || !leaves_group;
    if ends_group && rustix::process::getpgrp() == getpid() {
        let _ = kill_process_group(getpid(), Signal::KILL);
    }
    Ok(())
}

/// How it came to its end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum End {
    /// The command has ended by itself, or was never started.
    Alone,
    /// All of it was ended.
    Stopped,
}

async fn run(words: &[OsString]) -> io::Result<End> {
    let socket: OwnedFd = io::stdin().as_fd().try_clone_to_owned()?;
    let socket = StdStream::from(socket);
    socket.set_nonblocking(true)?;
    let mut socket = UnixStream::from_std(socket)?;
    // They are for the command: it is in our group, and we have to outlive it.
    let kinds = [SignalKind::interrupt(), SignalKind::terminate(), SignalKind::hangup(), SignalKind::quit()];
    let _ours = kinds.into_iter().map(signal).collect::<io::Result<Vec<_>>>()?;
    let mut ended = signal(SignalKind::child())?;
    #[cfg(target_os = "linux")]
    rustix::process::set_child_subreaper(Some(getpid()))?;

    let Some((program, arguments)) = words.split_first() else {
        return Err(io::ErrorKind::InvalidInput.into());
    };
    // It is waited for with all the others, by its process id.
    let started = Command::new(program).args(arguments).stdin(Stdio::null()).spawn();
    let errno = match &started {
        Ok(_) => 0,
        Err(error) => error.raw_os_error().unwrap_or(Errno::IO.raw_os_error()),
    };
    let mut is_heard = tell(&socket, errno);
    let Ok(command) = started else { return Ok(End::Alone) };
    let command = Pid::from_child(&command);
    is_heard &= tell(&socket, command.as_raw_nonzero().get());

    let until_all_have_ended = || Some(Instant::now() + PATIENCE);
    let mut until = if is_heard { None } else { until_all_have_ended() };
    let (mut has_ended, mut is_stopping) = (false, false);
    loop {
        let is_alone = loop {
            match wait(WaitOptions::NOHANG) {
                Ok(Some((pid, status))) if pid == command => {
                    has_ended = true;
                    tell(&socket, status.as_raw());
                }
                Ok(Some(_)) | Err(Errno::INTR) => {}
                Ok(None) => break false,
                Err(_) => break true,
            }
        };
        match until {
            Some(until) if is_alone || Instant::now() > until => {
                // However late it is: none is left that was not told.
                end_children();
                return Ok(End::Stopped);
            }
            Some(_) => {
                end_children();
                tokio::select! {
                    _ = ended.recv() => {}
                    () = sleep(PAUSE) => {}
                }
            }
            None if has_ended && !is_stopping && !has_news(&socket) => return Ok(End::Alone),
            None if has_ended => until = until_all_have_ended(),
            None => {
                let mut byte = [0];
                tokio::select! {
                    _ = ended.recv() => {}
                    read = socket.read(&mut byte) => match read {
                        Ok(1) => is_stopping = true,
                        _ => until = until_all_have_ended(),
                    }
                }
            }
        }
    }
}

/// Whether a byte or the end of the socket has come. Asks the kernel: what the runtime knows may be older than the end of
/// the command.
fn has_news(socket: &UnixStream) -> bool {
    let mut byte = [0_u8];
    rustix::net::recv(socket, &mut byte[..], RecvFlags::PEEK | RecvFlags::DONTWAIT) != Err(Errno::AGAIN)
}

/// Whether somebody is there to hear it: so few bytes always have room. The runtime may not know yet that they have.
fn tell(socket: &UnixStream, number: i32) -> bool {
    rustix::io::write(socket, &number.to_ne_bytes()).is_ok()
}

/// Sends SIGKILL to those whose parent we are. Their children are ours then.
#[cfg(target_os = "linux")]
fn end_children() {
    let own = getpid().as_raw_nonzero().get();
    for entry in std::fs::read_dir("/proc").into_iter().flatten().flatten() {
        let name = entry.file_name();
        let pid = name.to_str().and_then(|name| name.parse().ok()).and_then(Pid::from_raw);
        let Some(pid) = pid else { continue };
        // It may have ended just now.
        let Ok(stat) = std::fs::read(entry.path().join("stat")) else { continue };
        if parent(&stat) == Some(own) {
            // Its id is its own until we wait for it.
            let _ = rustix::process::kill_process(pid, Signal::KILL);
        }
    }
}

/// Who is left is in our group, as far as can be known.
#[cfg(not(target_os = "linux"))]
fn end_children() {
    if rustix::process::getpgrp() == getpid() {
        let _ = kill_process_group(getpid(), Signal::KILL);
    }
}

/// The parent in the text of `/proc/PID/stat`: the second field after the name, which is in parentheses and may have any.
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
    fn a_name_may_look_like_what_follows_it() {
        assert_eq!(parent(b"12 (sleep) S 34 12 12 0"), Some(34));
        assert_eq!(parent(b"12 (a) S 1 (b) R 7 12"), Some(7));
        assert_eq!(parent(b"12 (\xFF) R 7 12"), Some(7));
        assert_eq!(parent(b"12 (sleep"), None);
        assert_eq!(parent(b"12 (sleep) S"), None);
    }
}
