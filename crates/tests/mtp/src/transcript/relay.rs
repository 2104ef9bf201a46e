//! The proxy between an application and its server. It has one connection to the server for each connection of the application,
//! and forwards frame by frame.
//!
//! ```text
//!  application ──▶ recorded data socket    ══▶ the server's data socket
//!  application ──▶ recorded control socket ══▶ the control socket named in the server's reply to a handshake
//! ```
//!
//! When either side closes, the remainder of its last frame is forwarded, and both connections are closed.

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

use super::frame_splitter::{FrameSplitter, Segment, read_to_end};
use super::log::{ConnectionLog, more};
use super::tap::socket_path;

/// The time-out for connecting to a server: `dotnet test` starts an application before its socket exists.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(30);
const RETRY_INTERVAL: Duration = Duration::from_millis(5);
/// The maximum number of recorded control pipes; servers have one.
const MAX_CONTROLS: usize = 8;

/// Forwards and records the messages of an application and its server.
#[derive(Debug)]
pub(crate) struct Relay {
    journal: Arc<Journal>,
    scratch: PathBuf,
    controls: Mutex<Vec<(String, Socket)>>,
    closing: AtomicBool,
}

/// The end of one direction.
struct DirectionEnd {
    leftover: usize,
    error: Option<String>,
}

impl Relay {
    pub(crate) fn new(journal: Arc<Journal>, scratch: PathBuf) -> Self {
        Self { journal, scratch, controls: Mutex::default(), closing: AtomicBool::new(false) }
    }

    /// Forwards one connection of the application to the server, until either side closes it.
    pub(crate) fn serve(self: &Arc<Self>, host: &LocalStream, server: &Path, pipe: Pipe) {
        let log = ConnectionLog::open(&self.journal, pipe);
        let server = match self.connect(server) {
            Ok(server) => server,
            Err(error) => {
                let error = format!("{}: {error}", server.display());
                return log.close(Some(Direction::FromServer), 0, Some(error));
            }
        };
        // The direction that ended first.
        let first = Mutex::new(None);
        let end = |direction, end: DirectionEnd| {
            first.lock().unwrap_or_else(PoisonError::into_inner).get_or_insert((direction, end));
            for stream in [host, &server] {
                // The stream may be shut down already.
                let _ = stream.shutdown(Shutdown::Both);
            }
        };
        thread::scope(|scope| {
            let back = || end(Direction::FromServer, self.pass(&server, host, Direction::FromServer, &log));
            let there = || end(Direction::FromClient, self.pass(host, &server, Direction::FromClient, &log));
            match thread::Builder::new().name("mtp-back".into()).spawn_scoped(scope, back) {
                Ok(_) => there(),
                // Without a thread for the replies, the connection cannot be forwarded.
                Err(error) => {
                    end(Direction::FromServer, DirectionEnd { leftover: 0, error: Some(error.to_string()) });
                }
            }
        });
        let first = first.into_inner().unwrap_or_else(PoisonError::into_inner);
        let (side, end) = first.unzip();
        let (leftover, error) = end.map_or((0, None), |end| (end.leftover, end.error));
        log.close(side, leftover, error);
    }

    /// Stops waiting for servers that do not listen yet.
    pub(crate) fn stop_connecting(&self) {
        self.closing.store(true, Ordering::SeqCst);
    }

    /// Closes the control connections that are still open at `deadline`.
    pub(crate) fn close(&self, deadline: Instant) {
        self.stop_connecting();
        let controls = std::mem::take(&mut *self.controls());
        for (_, mut socket) in controls {
            socket.close(deadline);
        }
    }

    fn controls(&self) -> MutexGuard<'_, Vec<(String, Socket)>> {
        self.controls.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn connect(&self, server: &Path) -> io::Result<LocalStream> {
        let since = Instant::now();
        loop {
            match LocalStream::connect(server) {
                Err(error)
                    if matches!(error.kind(), ErrorKind::NotFound | ErrorKind::ConnectionRefused)
                        && since.elapsed() < CONNECT_TIMEOUT
                        && !self.closing.load(Ordering::SeqCst) =>
                {
                    thread::sleep(RETRY_INTERVAL);
                }
                connected => return connected,
            }
        }
    }

    /// Forwards one direction until its end, or until the other side stops reading.
    fn pass(
        self: &Arc<Self>,
        from: &LocalStream,
        mut to: &LocalStream,
        direction: Direction,
        log: &ConnectionLog,
    ) -> DirectionEnd {
        let (mut splitter, mut is_read) = (FrameSplitter::default(), true);
        let mut error = read_to_end(from, |bytes| {
            for segment in splitter.feed(bytes) {
                let out = match segment {
                    Segment::Frame(frame) => self.frame(frame, direction, log),
                    Segment::Bytes(bytes) => {
                        log.fragment(direction, &bytes, "bytes");
                        bytes
                    }
                };
                // Bytes are recorded even if the other side has stopped reading.
                is_read = is_read && to.write_all(&out).is_ok();
            }
            if is_read { ControlFlow::Continue(()) } else { ControlFlow::Break(()) }
        });
        let leftover = splitter.leftover();
        if !leftover.is_empty() {
            log.fragment(direction, &leftover, "part");
            // The other side may have closed.
            let _ = to.write_all(&leftover);
        }
        if let Some(wrong) = splitter.error() {
            error.get_or_insert_with(|| wrong.to_string());
        }
        DirectionEnd { leftover: leftover.len(), error }
    }

    /// Records a frame, and returns the bytes to forward.
    fn frame(self: &Arc<Self>, bytes: Vec<u8>, direction: Direction, log: &ConnectionLog) -> Vec<u8> {
        let renamed = match (direction, log.pipe) {
            (Direction::FromServer, Pipe::Data) => self.with_recorded_control(&bytes),
            _ => None,
        };
        let (recorded, keys) = renamed.unzip();
        log.frame(direction, &bytes, keys.unwrap_or_default());
        recorded.unwrap_or(bytes)
    }

    /// Returns the reply to a handshake with the recorded control socket in place of the server's; `None` for all other frames.
    fn with_recorded_control(self: &Arc<Self>, bytes: &[u8]) -> Option<(Vec<u8>, More)> {
        let (frame, _) = Frame::parse(bytes, Limits::default()).ok()?;
        if frame.id != MessageId::HANDSHAKE {
            return None;
        }
        let Ok(Message::Handshake(mut handshake)) = Message::decode(&frame, Limits::default()) else {
            return None;
        };
        let server_name = handshake.server_control_pipe()?.to_owned();
        let recorded = match self.control(&server_name) {
            Ok(recorded) => recorded,
            // The application then connects to the server's control pipe, which is not recorded.
            Err(error) => {
                return Some((bytes.to_vec(), more([("control_not_recorded", error.to_string().into())])));
            }
        };
        let shown = port_address(&recorded).to_str()?;
        handshake.set(HandshakeKey::SERVER_CONTROL_PIPE, shown);
        let keys = more([("control_passed_on_as", shown.into())]);
        Some((Message::Handshake(handshake).to_frame().ok()?, keys))
    }

    /// Returns the recorded socket for a control pipe of the server.
    fn control(self: &Arc<Self>, server_name: &str) -> io::Result<PathBuf> {
        let mut controls = self.controls();
        if let Some((_, socket)) = controls.iter().find(|(known, _)| known == server_name) {
            return Ok(socket.path().to_owned());
        }
        if controls.len() >= MAX_CONTROLS || self.closing.load(Ordering::SeqCst) {
            return Err(io::Error::other("there are too many control pipes"));
        }
        let path = socket_in(&self.scratch, &format!("c{}", controls.len()));
        let server = socket_path(OsStr::new(server_name));
        let own = Arc::clone(self);
        let socket =
            Socket::listen(path.clone(), move |_, stream| own.serve(&stream, &server, Pipe::Control))?;
        controls.push((server_name.to_owned(), socket));
        Ok(path)
    }
}
