//! What a command prints, until its end, or until shortly after the command's own: a daemon that it has left behind may keep
//! the stream open for ever.

use std::io::{self, PipeReader, Read as _};
use std::sync::mpsc::{self, Receiver, RecvTimeoutError};
use std::thread;
use std::time::{Duration, Instant};

/// How often it is looked whether the command has ended.
const TICK: Duration = Duration::from_millis(50);
/// How long an open stream is read after that.
const LINGER: Duration = Duration::from_secs(1);
/// So many pieces wait: a command is not read faster than its results are told.
const PIECES: usize = 16;

#[derive(Debug)]
pub(crate) struct Pieces {
    pieces: Receiver<io::Result<Vec<u8>>>,
}

impl Pieces {
    pub(crate) fn of(mut stream: PipeReader) -> io::Result<Self> {
        let (send, pieces) = mpsc::sync_channel(PIECES);
        // It may stay in its last read: it ends with the process.
        thread::Builder::new().name("mtp-wrap-read".into()).spawn(move || {
            let mut buffer = vec![0; 64 << 10];
            loop {
                let piece = match stream.read(&mut buffer) {
                    Ok(0) => return,
                    Ok(count) => Ok(buffer.get(..count).unwrap_or_default().to_vec()),
                    Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                    Err(error) => Err(error),
                };
                let is_over = piece.is_err();
                if send.send(piece).is_err() || is_over {
                    return;
                }
            }
        })?;
        Ok(Self { pieces })
    }

    /// The next piece; `None` after the last.
    pub(crate) fn next(&self, has_ended: impl Fn() -> bool) -> Option<io::Result<Vec<u8>>> {
        let mut until = None;
        loop {
            match self.pieces.recv_timeout(TICK) {
                Ok(piece) => return Some(piece),
                Err(RecvTimeoutError::Disconnected) => return None,
                Err(RecvTimeoutError::Timeout) => {}
            }
            let now = Instant::now();
            if until.is_none() && has_ended() {
                until = Some(now + LINGER);
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
    fn a_stream_that_stays_open_is_read_until_after_the_end() {
        let (reader, mut writer) = io::pipe().unwrap();
        let pieces = Pieces::of(reader).unwrap();
        writer.write_all(b"one").unwrap();
        assert_eq!(pieces.next(|| true).unwrap().unwrap(), b"one");
        assert!(pieces.next(|| true).is_none(), "nobody writes, and nobody closes it");
        drop(writer);
        assert!(pieces.next(|| false).is_none());
    }
}
