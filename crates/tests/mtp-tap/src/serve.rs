//! The server's part, where there is none: answers as `runtap test` does, and writes down what both say.

use std::io::Write as _;
use std::ops::ControlFlow;
use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use runtap_mtp::server_settings;
use runtap_mtp_proto::server::{Application, Mode, Output, Pipe};
use runtap_transcript::More;
use runtap_transport::LocalStream;

use crate::direction::Direction;
use crate::journal::{Journal, Name};
use crate::pieces::{Piece, Pieces, read_to_end};
use crate::tally::Tally;

/// Answers all connections of one application.
#[derive(Debug)]
pub(crate) struct Answering {
    journal: Arc<Journal>,
    state: Mutex<(Application, Tally)>,
}

impl Answering {
    pub(crate) fn new(mode: Mode, journal: Arc<Journal>, control: &Path) -> Self {
        let settings = server_settings(mode, Some(control));
        Self { journal, state: Mutex::new((Application::new(settings), Tally::default())) }
    }

    /// What was heard, once the application has ended and all connections are closed.
    pub(crate) fn finish(&self, code: Option<i32>) -> Tally {
        self.with(|application| ((), application.handle_exit(code)));
        self.state().1.clone()
    }

    fn state(&self) -> MutexGuard<'_, (Application, Tally)> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Asks the machine, and counts what it says.
    fn with<T>(&self, ask: impl FnOnce(&mut Application) -> (T, Output)) -> (T, Output) {
        let mut state = self.state();
        let (application, tally) = &mut *state;
        let (value, output) = ask(application);
        tally.take(&output);
        (value, output)
    }

    /// Serves one connection until its end.
    pub(crate) fn serve(&self, stream: &LocalStream, pipe: Pipe) {
        let name = self.journal.open(pipe);
        let (mut connection, _) = self.with(|application| (application.connect(pipe), Output::default()));
        let (mut pieces, mut side) = (Pieces::default(), Direction::FromHost);
        let error = read_to_end(stream, |bytes| {
            self.heard(&mut pieces, bytes, &name);
            let (closes, output) = self.with(|application| {
                let output = application.handle_bytes(&mut connection, bytes);
                (output.close, output)
            });
            let written = self.say(stream, &output.transmit, &name);
            if closes || !written {
                side = if written { Direction::FromServer } else { Direction::FromHost };
                return ControlFlow::Break(());
            }
            ControlFlow::Continue(())
        });
        let leftover = pieces.leftover();
        if !leftover.is_empty() {
            self.journal.bytes(&name, Direction::FromHost, &leftover, "part");
        }
        self.with(|application| ((), application.handle_close(&mut connection)));
        let error = error.or_else(|| pieces.error().map(ToString::to_string));
        self.journal.close(&name, Some(side), leftover.len(), error);
    }

    fn heard(&self, pieces: &mut Pieces, bytes: &[u8], name: &Name) {
        for piece in pieces.feed(bytes) {
            match piece {
                Piece::Frame(frame) => {
                    self.journal.frame(name, Direction::FromHost, &frame, More::new());
                }
                Piece::Bytes(bytes) => self.journal.bytes(name, Direction::FromHost, &bytes, "bytes"),
            }
        }
    }

    /// Whether it was taken.
    fn say(&self, mut stream: &LocalStream, replies: &[u8], name: &Name) -> bool {
        for piece in Pieces::default().feed(replies) {
            if let Piece::Frame(frame) = piece {
                self.journal.frame(name, Direction::FromServer, &frame, More::new());
            }
        }
        replies.is_empty() || stream.write_all(replies).is_ok()
    }
}
