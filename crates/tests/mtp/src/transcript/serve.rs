//! A recording server for applications without one: replies as `runtap test` does, and records all messages.

use std::io::Write as _;
use std::ops::ControlFlow;
use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crate::server_settings;
use runtap_mtp_proto::server::{Application, Mode, Output, Pipe};
use runtap_transcript::{Direction, Journal, More};
use runtap_transport::LocalStream;

use super::frame_splitter::{FrameSplitter, Segment, read_to_end};
use super::log::ConnectionLog;
use super::tally::Tally;

/// Serves all connections of one application.
#[derive(Debug)]
pub(crate) struct RecordingServer {
    journal: Arc<Journal>,
    state: Mutex<(Application, Tally)>,
}

impl RecordingServer {
    pub(crate) fn new(mode: Mode, journal: Arc<Journal>, control: &Path) -> Self {
        let settings = server_settings(mode, Some(control));
        Self { journal, state: Mutex::new((Application::new(settings), Tally::default())) }
    }

    /// Returns the application's results, after it has exited and all connections are closed.
    pub(crate) fn finish(&self, code: Option<i32>) -> Tally {
        self.with(|application| ((), application.handle_exit(code)));
        self.state().1.clone()
    }

    fn state(&self) -> MutexGuard<'_, (Application, Tally)> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Runs the state machine and counts its output.
    fn with<T>(&self, ask: impl FnOnce(&mut Application) -> (T, Output)) -> (T, Output) {
        let mut state = self.state();
        let (application, tally) = &mut *state;
        let (value, output) = ask(application);
        tally.take(&output);
        (value, output)
    }

    /// Serves one connection until its end.
    pub(crate) fn serve(&self, stream: &LocalStream, pipe: Pipe) {
        let log = ConnectionLog::open(&self.journal, pipe);
        let (mut connection, _) = self.with(|application| (application.connect(pipe), Output::default()));
        let (mut splitter, mut side) = (FrameSplitter::default(), Direction::FromClient);
        let error = read_to_end(stream, |bytes| {
            record(&mut splitter, bytes, &log);
            let (closes, output) = self.with(|application| {
                let output = application.handle_bytes(&mut connection, bytes);
                (output.close, output)
            });
            let written = reply(stream, &output.transmit, &log);
            if closes || !written {
                side = if written { Direction::FromServer } else { Direction::FromClient };
                return ControlFlow::Break(());
            }
            ControlFlow::Continue(())
        });
        let leftover = splitter.leftover();
        if !leftover.is_empty() {
            log.fragment(Direction::FromClient, &leftover, "part");
        }
        self.with(|application| ((), application.handle_close(&mut connection)));
        let error = error.or_else(|| splitter.error().map(ToString::to_string));
        log.close(Some(side), leftover.len(), error);
    }
}

/// Records what an application has sent.
fn record(splitter: &mut FrameSplitter, bytes: &[u8], log: &ConnectionLog) {
    for segment in splitter.feed(bytes) {
        match segment {
            Segment::Frame(frame) => log.frame(Direction::FromClient, &frame, More::new()),
            Segment::Bytes(bytes) => log.fragment(Direction::FromClient, &bytes, "bytes"),
        }
    }
}

/// Records and sends replies; returns whether they were sent.
fn reply(mut stream: &LocalStream, replies: &[u8], log: &ConnectionLog) -> bool {
    for segment in FrameSplitter::default().feed(replies) {
        if let Segment::Frame(frame) = segment {
            log.frame(Direction::FromServer, &frame, More::new());
        }
    }
    replies.is_empty() || stream.write_all(replies).is_ok()
}
