//! The socket transport: connects with retries, and only to a server of the current user.

#[cfg_attr(unix, path = "pipe/unix.rs")]
#[cfg_attr(windows, path = "pipe/windows.rs")]
mod system;

use std::io::{self, Read as _, Write as _};
use std::path::Path;
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

use runtap_mtp_proto::host::{Connection, Reply};

pub(crate) use self::system::Stream;
use super::{ReplyLimit, path_text};
use crate::HostError;

/// The pause before the second attempt; it doubles up to [`MAX_PAUSE`].
const MIN_PAUSE: Duration = Duration::from_millis(1);
const MAX_PAUSE: Duration = Duration::from_millis(50);

#[derive(Debug)]
pub(crate) struct Pipe {
    stream: Stream,
    limit: ReplyLimit,
}

impl Pipe {
    pub(super) fn connect(path: &Path, timeout: Duration) -> Result<Self, HostError> {
        let stream = connect_with_retry(path, timeout, &mut || false)?;
        Ok(Self { stream, limit: ReplyLimit::NONE })
    }

    pub(super) fn exchange(&mut self, frame: &[u8], connection: &mut Connection) -> Result<Reply, HostError> {
        // In one operation: MTP 1.8 crashes if the length word arrives in parts.
        let deadline = self.limit.deadline();
        self.stream.write_all(frame).map_err(lost)?;
        let mut buffer = [0; 4096];
        loop {
            if let Some(left) = deadline.left().map_err(lost)? {
                self.stream.set_read_timeout(Some(left)).map_err(lost)?;
            }
            let count = match self.stream.read(&mut buffer) {
                Ok(0) => {
                    connection.handle_eof()?;
                    return Err(HostError::Gone);
                }
                Ok(count) => count,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                Err(error) => return Err(lost(error)),
            };
            if let Some(reply) = connection.handle_bytes(buffer.get(..count).unwrap_or_default())? {
                return Ok(reply);
            }
        }
    }

    /// Sets the time limit for replies.
    pub(super) fn set_limit(&mut self, limit: ReplyLimit) -> Result<(), HostError> {
        self.limit = limit;
        // Reset the time limit of the last exchange.
        self.stream.set_read_timeout(None).map_err(lost)
    }

    pub(super) fn is_gone(&self) -> bool {
        system::is_gone(&self.stream)
    }
}

fn lost(error: io::Error) -> HostError {
    HostError::Lost(Arc::new(error))
}

/// Connects, and retries for up to `timeout` while no server listens, unless `is_over` returns true.
pub(crate) fn connect_with_retry(
    path: &Path,
    timeout: Duration,
    is_over: &mut dyn FnMut() -> bool,
) -> Result<Stream, HostError> {
    let started = Instant::now();
    let mut pause = MIN_PAUSE;
    loop {
        let error = match system::connect(path) {
            Ok(stream) => return system::check(&stream, path).map(|()| stream),
            Err(error) => error,
        };
        let is_absent = matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::ConnectionRefused);
        // The backlog is full.
        let is_busy = error.kind() == io::ErrorKind::WouldBlock;
        let waited = started.elapsed();
        if !(is_absent || is_busy) || waited >= timeout || is_over() {
            return Err(HostError::Connect { server: path_text(path), waited, error: Arc::new(error) });
        }
        thread::sleep(pause.min(timeout.saturating_sub(waited)));
        pause = (pause * 2).min(MAX_PAUSE);
    }
}
