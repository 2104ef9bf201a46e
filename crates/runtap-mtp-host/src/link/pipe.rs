//! The socket: dialled until it is there, used only if its server is of our own user.

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
use super::shown;
use crate::HostError;

/// The pause before the second attempt; it doubles up to [`LONGEST`].
const SHORTEST: Duration = Duration::from_millis(1);
const LONGEST: Duration = Duration::from_millis(50);

#[derive(Debug)]
pub(crate) struct Pipe(Stream);

impl Pipe {
    pub(super) fn connect(path: &Path, patience: Duration) -> Result<Self, HostError> {
        dial(path, patience, &mut || false).map(Self)
    }

    pub(super) fn exchange(&mut self, frame: &[u8], connection: &mut Connection) -> Result<Reply, HostError> {
        // In one go: MTP 1.8 dies of a length that arrives in parts.
        self.0.write_all(frame).map_err(lost)?;
        let mut buffer = [0; 4096];
        loop {
            let count = match self.0.read(&mut buffer) {
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

    /// How long a reply may take; `None`: for ever.
    pub(super) fn set_patience(&self, patience: Option<Duration>) -> Result<(), HostError> {
        self.0.set_read_timeout(patience).map_err(lost)
    }

    pub(super) fn is_gone(&self) -> bool {
        system::is_gone(&self.0)
    }
}

fn lost(error: io::Error) -> HostError {
    HostError::Lost(Arc::new(error))
}

/// Dials until somebody listens, for as long as `patience`, or until `is_over`.
pub(crate) fn dial(
    path: &Path,
    patience: Duration,
    is_over: &mut dyn FnMut() -> bool,
) -> Result<Stream, HostError> {
    let started = Instant::now();
    let mut pause = SHORTEST;
    loop {
        let error = match system::connect(path) {
            Ok(stream) => return system::check(&stream, path).map(|()| stream),
            Err(error) => error,
        };
        let is_absent = matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::ConnectionRefused);
        // A full backlog.
        let is_busy = error.kind() == io::ErrorKind::WouldBlock;
        let waited = started.elapsed();
        if !(is_absent || is_busy) || waited >= patience || is_over() {
            return Err(HostError::Connect { server: shown(path), waited, error: Arc::new(error) });
        }
        thread::sleep(pause.min(patience.saturating_sub(waited)));
        pause = (pause * 2).min(LONGEST);
    }
}
