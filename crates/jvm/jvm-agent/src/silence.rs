//! Detection of an HQ machine that no longer responds: one that was switched off, or whose network failed, closes no
//! connection.
//!
//! Owns: querying the kernel for unacknowledged data, and the time limit. A slow or stopped HQ is not silent: its kernel
//! acknowledges data, or reports that there is no room. Does not close connections.

#![expect(unsafe_code, reason = "the standard library does not expose the state of a TCP connection")]

use std::io;
use std::net::TcpStream;
use std::os::fd::AsRawFd as _;
use std::time::{Duration, Instant};

/// The number of keep-alive probes of an idle connection that may stay unanswered.
const PROBES: u32 = 3;

/// The kernel's state of a connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct ConnectionState {
    /// Whether sent data is not acknowledged yet.
    waits: bool,
    /// The time since the last acknowledgement.
    heard: Duration,
}

/// Watches a connection for silence.
#[derive(Debug)]
pub(crate) struct Silence {
    most: Duration,
    /// When the current wait for an acknowledgement started.
    since: Option<Instant>,
}

impl Silence {
    pub(crate) fn new(most: Duration) -> Self {
        Self { most, since: None }
    }

    /// Returns whether the silence has lasted too long. Call this periodically.
    pub(crate) fn is_over(&mut self, socket: &TcpStream) -> bool {
        // If the kernel gives no state, silence is unknown, and only the kernel's own limits apply.
        state(socket).is_ok_and(|state| self.judge(state, Instant::now()))
    }

    fn judge(&mut self, state: ConnectionState, now: Instant) -> bool {
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

fn state(socket: &TcpStream) -> io::Result<ConnectionState> {
    // SAFETY: a structure of integers, for which zeros are valid values.
    let mut info: libc::tcp_info = unsafe { std::mem::zeroed() };
    let mut length = libc::socklen_t::try_from(size_of_val(&info)).unwrap_or(0);
    // SAFETY: the kernel writes at most `length` bytes; older kernels write fewer bytes and return the number.
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
    Ok(ConnectionState { waits, heard: Duration::from_millis(info.tcpi_last_ack_recv.into()) })
}

/// Enables keep-alive probes: the kernel closes an idle connection if the other machine does not respond for `most`.
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
        // SAFETY: the option is an integer of this size, which lives longer than the call.
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
            let state = ConnectionState { waits, heard: Duration::from_secs(heard) };
            silence.judge(state, begin + Duration::from_secs(seconds))
        };
        // After a long idle time, data is sent: the silence before that does not count.
        assert!(!at(100, false, 100) && !at(101, true, 101) && !at(130, true, 130));
        assert!(at(131, true, 131));
        // An acknowledgement, even if other data waits for one immediately afterwards.
        assert!(!at(132, true, 1) && !at(160, true, 29));
        assert!(at(161, true, 30));
        assert!(!at(162, false, 0) && !at(300, true, 138));
    }

    /// A peer that is present but reads nothing is not silent, although nothing more fits into the connection.
    #[test]
    fn who_does_not_read_is_there() {
        let listener = TcpListener::bind(("127.0.0.1", 0)).unwrap();
        let mut socket = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        keep_alive(&socket, Duration::from_secs(30)).unwrap();
        let (_hq, _) = listener.accept().unwrap();
        socket.set_nonblocking(true).unwrap();
        let bytes = vec![0; 1 << 20];
        while socket.write(&bytes).is_ok() {}
        // Without acknowledgements of the peer's kernel, some data would stay unacknowledged.
        runtap_testkit::eventually("all that was sent is acknowledged", || {
            let state = state(&socket).unwrap();
            (!state.waits).then_some(())
        });
    }
}
