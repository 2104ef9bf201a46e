//! Between an application and its server: one connection of ours for each of the application's, frame by frame.
//!
//! ```text
//!  application ──▶ our data socket    ══▶ the server's
//!  application ──▶ our control socket ══▶ the one that the server has named in its reply to a handshake
//! ```
//!
//! Either side's end is the other's: what was left of a frame is passed on, and both connections are closed.

use std::ffi::OsStr;
use std::io::{self, ErrorKind, Write as _};
use std::net::Shutdown;
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use crate::{Pipe as Socket, socket_in};
use runtap_mtp_proto::server::Pipe;
use runtap_mtp_proto::{Frame, HandshakeKey, Limits, Message, MessageId};
use runtap_transcript::{Direction, Journal, More};
use runtap_transport::LocalStream;
use runtap_transport::naming::port_address;

use super::log::{ConnectionLog, more};
use super::pieces::{Piece, Pieces, read_to_end};
use super::tap::socket_path;

/// `dotnet test` starts an application before its socket is there.
const PATIENCE: Duration = Duration::from_secs(30);
const PAUSE: Duration = Duration::from_millis(5);
/// A server has one control pipe; more of them than these are not recorded.
const MOST_CONTROLS: usize = 8;

/// Passes on what an application and its server say.
#[derive(Debug)]
pub(crate) struct Relay {
    journal: Arc<Journal>,
    scratch: PathBuf,
    controls: Mutex<Vec<(String, Socket)>>,
    closing: AtomicBool,
}

/// How one direction has ended.
struct End {
    leftover: usize,
    error: Option<String>,
}

impl Relay {
    pub(crate) fn new(journal: Arc<Journal>, scratch: PathBuf) -> Self {
        Self { journal, scratch, controls: Mutex::default(), closing: AtomicBool::new(false) }
    }

    /// Passes one connection of the application on to the server, until either ends it.
    pub(crate) fn serve(self: &Arc<Self>, host: &LocalStream, server: &Path, pipe: Pipe) {
        let log = ConnectionLog::open(&self.journal, pipe);
        let server = match self.dial(server) {
            Ok(server) => server,
            Err(error) => {
                let error = format!("{}: {error}", server.display());
                return log.close(Some(Direction::FromServer), 0, Some(error));
            }
        };
        // Who has ended it: the first one.
        let first = Mutex::new(None);
        let end = |direction, end: End| {
            first.lock().unwrap_or_else(PoisonError::into_inner).get_or_insert((direction, end));
            for stream in [host, &server] {
                // One that has gone is shut already.
                let _ = stream.shutdown(Shutdown::Both);
            }
        };
        thread::scope(|scope| {
            let back = || end(Direction::FromServer, self.pass(&server, host, Direction::FromServer, &log));
            let there = || end(Direction::FromClient, self.pass(host, &server, Direction::FromClient, &log));
            match thread::Builder::new().name("mtp-back".into()).spawn_scoped(scope, back) {
                Ok(_) => there(),
                // Without a thread for the replies there is nothing to be passed on.
                Err(error) => end(Direction::FromServer, End { leftover: 0, error: Some(error.to_string()) }),
            }
        });
        let first = first.into_inner().unwrap_or_else(PoisonError::into_inner);
        let (side, end) = first.unzip();
        let (leftover, error) = end.map_or((0, None), |end| (end.leftover, end.error));
        log.close(side, leftover, error);
    }

    /// A server that is not there yet is not waited for any more.
    pub(crate) fn stop_dialling(&self) {
        self.closing.store(true, Ordering::SeqCst);
    }

    /// Control connections that are open at `deadline` are closed.
    pub(crate) fn close(&self, deadline: Instant) {
        self.stop_dialling();
        let controls = std::mem::take(&mut *self.controls());
        for (_, mut socket) in controls {
            socket.close(deadline);
        }
    }

    fn controls(&self) -> MutexGuard<'_, Vec<(String, Socket)>> {
        self.controls.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn dial(&self, server: &Path) -> io::Result<LocalStream> {
        let since = Instant::now();
        loop {
            match LocalStream::connect(server) {
                Err(error)
                    if matches!(error.kind(), ErrorKind::NotFound | ErrorKind::ConnectionRefused)
                        && since.elapsed() < PATIENCE
                        && !self.closing.load(Ordering::SeqCst) =>
                {
                    thread::sleep(PAUSE);
                }
                connected => return connected,
            }
        }
    }

    /// Passes one direction on until its end, or until nobody takes it.
    fn pass(
        self: &Arc<Self>,
        from: &LocalStream,
        mut to: &LocalStream,
        direction: Direction,
        log: &ConnectionLog,
    ) -> End {
        let (mut pieces, mut is_taken) = (Pieces::default(), true);
        let mut error = read_to_end(from, |bytes| {
            for piece in pieces.feed(bytes) {
                let out = match piece {
                    Piece::Frame(frame) => self.frame(frame, direction, log),
                    Piece::Bytes(bytes) => {
                        log.fragment(direction, &bytes, "bytes");
                        bytes
                    }
                };
                // What nobody takes is recorded all the same.
                is_taken = is_taken && to.write_all(&out).is_ok();
            }
            if is_taken { ControlFlow::Continue(()) } else { ControlFlow::Break(()) }
        });
        let leftover = pieces.leftover();
        if !leftover.is_empty() {
            log.fragment(direction, &leftover, "part");
            // The other side may have gone.
            let _ = to.write_all(&leftover);
        }
        if let Some(wrong) = pieces.error() {
            error.get_or_insert_with(|| wrong.to_string());
        }
        End { leftover: leftover.len(), error }
    }

    /// Writes a frame down, and gives what is passed on in its place.
    fn frame(self: &Arc<Self>, bytes: Vec<u8>, direction: Direction, log: &ConnectionLog) -> Vec<u8> {
        let renamed = match (direction, log.pipe) {
            (Direction::FromServer, Pipe::Data) => self.with_our_control(&bytes),
            _ => None,
        };
        let (ours, said) = renamed.unzip();
        log.frame(direction, &bytes, said.unwrap_or_default());
        ours.unwrap_or(bytes)
    }

    /// The reply to a handshake with our control socket in the place of the server's; `None` for all other frames.
    fn with_our_control(self: &Arc<Self>, bytes: &[u8]) -> Option<(Vec<u8>, More)> {
        let (frame, _) = Frame::parse(bytes, Limits::default()).ok()?;
        if frame.id != MessageId::HANDSHAKE {
            return None;
        }
        let Ok(Message::Handshake(mut handshake)) = Message::decode(&frame, Limits::default()) else {
            return None;
        };
        let theirs = handshake.server_control_pipe()?.to_owned();
        let ours = match self.control(&theirs) {
            Ok(ours) => ours,
            // Then the application dials the server's, and we do not hear what is said there.
            Err(error) => {
                return Some((bytes.to_vec(), more([("control_not_recorded", error.to_string().into())])));
            }
        };
        let shown = port_address(&ours).to_str()?;
        handshake.set(HandshakeKey::SERVER_CONTROL_PIPE, shown);
        let said = more([("control_passed_on_as", shown.into())]);
        Some((Message::Handshake(handshake).to_frame().ok()?, said))
    }

    /// The socket of ours for a control pipe of the server's.
    fn control(self: &Arc<Self>, theirs: &str) -> io::Result<PathBuf> {
        let mut controls = self.controls();
        if let Some((_, socket)) = controls.iter().find(|(known, _)| known == theirs) {
            return Ok(socket.path().to_owned());
        }
        if controls.len() >= MOST_CONTROLS || self.closing.load(Ordering::SeqCst) {
            return Err(io::Error::other("there are too many control pipes"));
        }
        let path = socket_in(&self.scratch, &format!("c{}", controls.len()));
        let server = socket_path(OsStr::new(theirs));
        let own = Arc::clone(self);
        let socket =
            Socket::listen(path.clone(), move |_, stream| own.serve(&stream, &server, Pipe::Control))?;
        controls.push((theirs.to_owned(), socket));
        Ok(path)
    }
}
