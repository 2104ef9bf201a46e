//! Whether HQ's machine still answers: one that was switched off, or whose network is gone, closes no connection.
//!
//! Owns: asking the kernel what it waits for, and for how long that may be. An HQ that is slow, or stopped, is not silent: its
//! kernel acknowledges what comes, or says that there is no room. Refuses to: end anything.

#![expect(unsafe_code, reason = "the standard library does not give the state of a TCP connection")]

use std::io;
use std::net::TcpStream;
use std::os::fd::AsRawFd as _;
use std::time::{Duration, Instant};

/// Probes of an idle connection that may stay without an answer.
const PROBES: u32 = 3;

/// What the kernel says of a connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct State {
    /// Something was sent that is not acknowledged.
    waits: bool,
    /// How long ago the last acknowledgement came.
    heard: Duration,
}

/// Watches a connection.
#[derive(Debug)]
pub(crate) struct Silence {
    most: Duration,
    /// Since when nothing has come that was waited for.
    since: Option<Instant>,
}

impl Silence {
    pub(crate) fn new(most: Duration) -> Self {
        Self { most, since: None }
    }

    /// Whether it has lasted too long. To be asked now and then.
    pub(crate) fn is_over(&mut self, socket: &TcpStream) -> bool {
        // Without an answer of the kernel it is not known, and its own limits count.
        state(socket).is_ok_and(|state| self.judge(state, Instant::now()))
    }

    fn judge(&mut self, state: State, now: Instant) -> bool {
        if !state.waits {
            self.since = None;
            return false;
        }
        let heard = now.checked_sub(state.heard);
        let since = self.since.unwrap_or(now);
        let since = heard.map_or(since, |heard| heard.max(since));
        self.since = Some(since);
        now.saturating_duration_since(since) >= self.most
    }
}

fn state(socket: &TcpStream) -> io::Result<State> {
    // SAFETY: a structure of numbers, for which zeros are values.
    let mut info: libc::tcp_info = unsafe { std::mem::zeroed() };
    let mut length = libc::socklen_t::try_from(size_of_val(&info)).unwrap_or(0);
    // SAFETY: the kernel writes at most so many bytes there; an older one writes fewer, and says so.
    let result = unsafe {
        libc::getsockopt(
            socket.as_raw_fd(),
            libc::IPPROTO_TCP,
            libc::TCP_INFO,
            (&raw mut info).cast(),
            &raw mut length,
        )
    };
    if result != 0 {
        return Err(io::Error::last_os_error());
    }
    let waits = info.tcpi_unacked > 0 || info.tcpi_probes > 0;
    Ok(State { waits, heard: Duration::from_millis(info.tcpi_last_ack_recv.into()) })
}

/// Has the kernel ask the other machine when nothing is sent, and close the connection if it does not answer for so long.
pub(crate) fn keep_alive(socket: &TcpStream, most: Duration) -> io::Result<()> {
    let seconds = u32::try_from(most.as_secs()).unwrap_or(u32::MAX).clamp(2, 30_000);
    let idle = seconds / 2;
    let options = [
        (libc::SOL_SOCKET, libc::SO_KEEPALIVE, 1),
        (libc::IPPROTO_TCP, libc::TCP_KEEPIDLE, idle),
        (libc::IPPROTO_TCP, libc::TCP_KEEPINTVL, ((seconds - idle) / PROBES).max(1)),
        (libc::IPPROTO_TCP, libc::TCP_KEEPCNT, PROBES),
    ];
    for (level, option, value) in options {
        let length = libc::socklen_t::try_from(size_of_val(&value)).unwrap_or(0);
        // SAFETY: the option is a number of this size, which lives longer than the call.
        let result =
            unsafe { libc::setsockopt(socket.as_raw_fd(), level, option, (&raw const value).cast(), length) };
        if result != 0 {
            return Err(io::Error::last_os_error());
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::io::Write as _;
    use std::net::TcpListener;

    use super::*;

    #[test]
    fn silence_begins_with_what_waits_and_ends_with_an_answer() {
        let begin = Instant::now() + Duration::from_hours(1);
        let mut silence = Silence::new(Duration::from_secs(30));
        let mut at = |seconds: u64, waits, heard| {
            let state = State { waits, heard: Duration::from_secs(heard) };
            silence.judge(state, begin + Duration::from_secs(seconds))
        };
        // Idle for long, and then something is sent: that it was quiet before does not count.
        assert!(!at(100, false, 100) && !at(101, true, 101) && !at(130, true, 130));
        assert!(at(131, true, 131));
        // An answer, even if something waits again at once.
        assert!(!at(132, true, 1) && !at(160, true, 29));
        assert!(at(161, true, 30));
        assert!(!at(162, false, 0) && !at(300, true, 138));
    }

    /// Who is there and reads nothing is not silent, though nothing more fits into the connection.
    #[test]
    fn who_does_not_read_is_there() {
        let listener = TcpListener::bind(("127.0.0.1", 0)).unwrap();
        let mut socket = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        keep_alive(&socket, Duration::from_secs(30)).unwrap();
        let (_hq, _) = listener.accept().unwrap();
        socket.set_nonblocking(true).unwrap();
        let bytes = vec![0; 1 << 20];
        while socket.write(&bytes).is_ok() {}
        // Without an answer of the other kernel, something would wait for ever.
        runtap_testkit::eventually("all that was sent is acknowledged", || {
            let state = state(&socket).unwrap();
            (!state.waits).then_some(())
        });
    }
}
