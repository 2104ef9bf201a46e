//! A forwarded connection: two pumps, one for each direction, which only share the [`Tap`].
//!
//! The pumps are independent: a tool that does not read its stream delays only this stream.

use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use runtap_diag_proto::tap::{Piece, PieceKind, Side, Tap};
use runtap_transport::{BorrowedDescriptor, ConnectError, Descriptor, Peer, Stream, lend};

use super::log::ConnectionLog;
use super::silent::DisconnectSignal;
use super::{Event, Phase, RecordingContext, Way};

/// The size of the read buffer in bytes: the capacity of a socket.
const READ_SIZE: usize = 256 * 1024;
/// The time-out for connecting to a peer whose queue is full.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(30);
/// The first and the longest pause between attempts to connect to a tool, as a runtime does.
const FIRST_PAUSE: Duration = Duration::from_millis(10);
const LONGEST_PAUSE: Duration = Duration::from_millis(500);

/// The errors in a transcript of connections that were closed to make room.
const CLIENT_DISPLACED: &str =
    "disconnected by the recorder to make room: it had not sent a complete request";
const RUNTIME_DISPLACED: &str = "disconnected by the recorder to make room: the tool was not listening yet";

/// The interval at which a side that has stopped sending is checked for having closed.
const POLL_INTERVAL: Duration = Duration::from_millis(50);

/// The end of one side.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum DirectionEnd {
    /// The side has stopped sending but still reads.
    Half,
    /// The side has closed.
    Gone,
}

/// The state shared by both directions.
struct ForwardedConnection {
    tap: Mutex<Tap>,
    log: Mutex<ConnectionLog>,
}

/// Forwards one connection until its end.
pub(super) async fn forward(
    shared: RecordingContext,
    log: ConnectionLog,
    near: Stream,
    peer: Peer,
    leave: DisconnectSignal,
) {
    let name = log.name().to_owned();
    (shared.reporter)(Event::Opened { conn: &name, peer });
    let is_port = matches!(shared.way, Way::ToTool(_));
    let connection = ForwardedConnection {
        tap: Mutex::new(if is_port { Tap::for_port() } else { Tap::new() }),
        log: Mutex::new(log),
    };
    let mut phase = shared.phase.clone();
    let ended = tokio::select! {
        ended = connection.run(&shared, &name, near, leave) => ended,
        _ = phase.wait_for(|phase| *phase == Phase::Broken) => Err("the recording was stopped".to_owned()),
    };
    let stream = lock(&connection.log).finish(ended.err());
    if let Some(error) = shared.journal.take_failure() {
        (shared.reporter)(Event::NotWritten(&error));
    }
    (shared.reporter)(Event::Closed { conn: &name, stream });
}

impl ForwardedConnection {
    async fn run(
        &self,
        shared: &RecordingContext,
        name: &str,
        near: Stream,
        mut leave: DisconnectSignal,
    ) -> Result<(), String> {
        let unreachable = |error: ConnectError| {
            (shared.reporter)(Event::Unreachable { conn: name, error: &error });
            error.to_string()
        };
        match &shared.way {
            Way::ToTool(tool) => {
                // Retry as the runtime itself would; the runtime closes the connection when it gives up.
                let mut pause = FIRST_PAUSE;
                let connecting = async {
                    loop {
                        match tool.connect(CONNECT_TIMEOUT).await {
                            Ok(far) => return Ok(far),
                            Err(_not_yet) if !near.is_hung_up() => tokio::time::sleep(pause).await,
                            Err(error) => return Err(unreachable(error)),
                        }
                        pause = pause.saturating_mul(5).checked_div(4).unwrap_or(pause).min(LONGEST_PAUSE);
                    }
                };
                let far = tokio::select! {
                    far = connecting => far?,
                    Ok(()) = &mut leave => return Err(RUNTIME_DISPLACED.to_owned()),
                };
                drop(leave);
                self.forward_both(&far, &near, false).await;
            }
            Way::ToRuntime(runtime) => {
                let request = tokio::select! {
                    request = self.request(&near) => request,
                    Ok(()) = &mut leave => return Err(CLIENT_DISPLACED.to_owned()),
                };
                let Some((pieces, descriptors, ended)) = request else { return Ok(()) };
                drop(leave);
                let far = runtime.connect(CONNECT_TIMEOUT).await.map_err(unreachable)?;
                // The error of a closed runtime shows when reading, as it may have replied before.
                let _gone = write(&far, &pieces, &descriptors).await;
                if ended {
                    let _gone = far.end_sending();
                }
                self.forward_both(&near, &far, ended).await;
            }
        }
        Ok(())
    }

    /// Reads the tool's complete request, and whether the tool has stopped sending after it. `None` if the tool has closed
    /// without sending anything that a runtime could read.
    async fn request(&self, client: &Stream) -> Option<(Vec<Piece>, Vec<Descriptor>, bool)> {
        // Idle clients have no buffer. An error is reported by the following read.
        let _ = client.readable().await;
        let mut buffer = vec![0; READ_SIZE];
        let mut held = Vec::new();
        loop {
            let (n, descriptors) = self.receive(Side::Client, client, &mut buffer).await.unwrap_or_default();
            held.extend(descriptors);
            let pieces = self.take(Side::Client, buffer.get(..n).unwrap_or_default(), &held);
            if n == 0 {
                let gone = client.is_hung_up();
                lock(&self.log).end(Side::Client, gone, None);
                return (!gone || !pieces.is_empty()).then_some((pieces, held, true));
            }
            if !pieces.is_empty() {
                return Some((pieces, held, false));
            }
        }
    }

    /// Forwards both directions until they end or one side has closed.
    async fn forward_both(&self, client: &Stream, runtime: &Stream, client_ended: bool) {
        let upward = self.pump(Side::Client, client, runtime);
        let downward = self.pump(Side::Runtime, runtime, client);
        tokio::pin!(upward, downward);
        let (mut up, mut down) = (client_ended.then_some(DirectionEnd::Half), None);
        let mut polls = tokio::time::interval(POLL_INTERVAL);
        while up.is_none() || down.is_none() {
            tokio::select! {
                end = &mut upward, if up.is_none() => up = Some(end),
                end = &mut downward, if down.is_none() => down = Some(end),
                // The close of a side that has stopped sending is not visible to reads.
                _ = polls.tick(), if up.is_some() || down.is_some() => {
                    let ended = if up.is_some() { client } else { runtime };
                    if ended.is_hung_up() {
                        break;
                    }
                }
            }
            if [up, down].contains(&Some(DirectionEnd::Gone)) {
                break;
            }
        }
    }

    /// Forwards one direction until its end.
    async fn pump(&self, from: Side, source: &Stream, sink: &Stream) -> DirectionEnd {
        let mut buffer = vec![0; READ_SIZE];
        let mut held = Vec::new();
        loop {
            let received = self.receive(from, source, &mut buffer).await;
            let (n, descriptors) = match received {
                Ok(received) => received,
                Err(error) => {
                    // Forward incomplete data that was received before the error.
                    let pieces = self.take(from, &[], &held);
                    let _gone = write(sink, &pieces, &held).await;
                    lock(&self.log).end(from, true, Some(error));
                    return DirectionEnd::Gone;
                }
            };
            held.extend(descriptors);
            let pieces = self.take(from, buffer.get(..n).unwrap_or_default(), &held);
            if n == 0 {
                // A side that has closed also reads nothing any more. A side whose peer has ended looks the same, and has
                // nothing to read.
                let gone = source.is_hung_up();
                lock(&self.log).end(from, gone, None);
                let passed = write(sink, &pieces, &held).await;
                return match passed.and_then(|()| sink.end_sending()) {
                    Ok(()) if !gone => DirectionEnd::Half,
                    _ => DirectionEnd::Gone,
                };
            }
            if write(sink, &pieces, &held).await.is_err() {
                // A runtime may have replied before it closed, which the other direction forwards. A tool that has closed can't
                // receive anything.
                return if from == Side::Client { DirectionEnd::Half } else { DirectionEnd::Gone };
            }
            if !pieces.is_empty() {
                held.clear();
            }
        }
    }

    async fn receive(
        &self,
        from: Side,
        source: &Stream,
        buffer: &mut [u8],
    ) -> std::io::Result<(usize, Vec<Descriptor>)> {
        // Only tools send descriptors, but all are kept.
        let received = source.receive(buffer).await;
        lock(&self.log).received(from);
        received
    }

    /// Processes bytes of a side, or its end if empty; records and returns the pieces to forward.
    fn take(&self, from: Side, bytes: &[u8], descriptors: &[Descriptor]) -> Vec<Piece> {
        let mut tap = lock(&self.tap);
        if bytes.is_empty() {
            tap.handle_eof(from);
        } else {
            tap.handle_bytes(from, bytes);
        }
        let pieces: Vec<Piece> = std::iter::from_fn(|| tap.poll_transmit()).collect();
        let carrier = carrier(&pieces);
        let mut log = lock(&self.log);
        for (n, piece) in pieces.iter().enumerate() {
            let along = if n == carrier { descriptors } else { &[] };
            log.piece(piece, tap.request(), tap.error(from), along);
        }
        pieces
    }
}

/// Returns the index of the piece that carries the descriptors.
fn carrier(pieces: &[Piece]) -> usize {
    pieces.iter().position(|piece| piece.kind == PieceKind::Descriptor).unwrap_or(0)
}

/// Writes each piece in a single write.
async fn write(sink: &Stream, pieces: &[Piece], descriptors: &[Descriptor]) -> std::io::Result<()> {
    let carrier = carrier(pieces);
    for (n, piece) in pieces.iter().enumerate() {
        let along: Vec<BorrowedDescriptor<'_>> =
            if n == carrier { descriptors.iter().map(lend).collect() } else { Vec::new() };
        sink.send_all(piece.bytes(), &along).await?;
    }
    Ok(())
}

pub(super) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
