//! The output of a command, until its end or shortly after the command exited: a daemon that the command started may
//! keep the stream open.

use std::io::{self, PipeReader, Read as _};
use std::sync::mpsc::{self, Receiver, RecvTimeoutError};
use std::thread;
use std::time::{Duration, Instant};

/// The interval at which the exit of the command is checked.
const POLL_INTERVAL: Duration = Duration::from_millis(50);
/// The time for which an open stream is read after the exit.
const LINGER_TIMEOUT: Duration = Duration::from_secs(1);
/// The number of buffered chunks. Limits how far reading is ahead of reporting.
const MAX_CHUNKS: usize = 16;

#[derive(Debug)]
pub(crate) struct OutputChunks {
    chunks: Receiver<io::Result<Vec<u8>>>,
}

impl OutputChunks {
    pub(crate) fn new(mut stream: PipeReader) -> io::Result<Self> {
        let (send, chunks) = mpsc::sync_channel(MAX_CHUNKS);
        // The thread may block in its last read; it then ends with the process.
        thread::Builder::new().name("mtp-wrap-read".into()).spawn(move || {
            let mut buffer = vec![0; 64 << 10];
            loop {
                let chunk = match stream.read(&mut buffer) {
                    Ok(0) => return,
                    Ok(count) => Ok(buffer.get(..count).unwrap_or_default().to_vec()),
                    Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                    Err(error) => Err(error),
                };
                let is_over = chunk.is_err();
                if send.send(chunk).is_err() || is_over {
                    return;
                }
            }
        })?;
        Ok(Self { chunks })
    }

    /// Returns the next chunk, or `None` after the last one.
    pub(crate) fn next(&self, has_ended: impl Fn() -> bool) -> Option<io::Result<Vec<u8>>> {
        let mut until = None;
        loop {
            match self.chunks.recv_timeout(POLL_INTERVAL) {
                Ok(chunk) => return Some(chunk),
                Err(RecvTimeoutError::Disconnected) => return None,
                Err(RecvTimeoutError::Timeout) => {}
            }
            let now = Instant::now();
            if until.is_none() && has_ended() {
                until = Some(now + LINGER_TIMEOUT);
            }
            if until.is_some_and(|until| until <= now) {
                return None;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write as _;

    use super::*;

    #[test]
    fn a_stream_that_stays_open_is_abandoned_after_the_exit() {
        let (reader, mut writer) = io::pipe().unwrap();
        let chunks = OutputChunks::new(reader).unwrap();
        writer.write_all(b"one").unwrap();
        assert_eq!(chunks.next(|| true).unwrap().unwrap(), b"one");
        assert!(chunks.next(|| true).is_none(), "the stream is still open");
        drop(writer);
        assert!(chunks.next(|| false).is_none());
    }
}
