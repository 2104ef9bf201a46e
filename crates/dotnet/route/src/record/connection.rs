//! One connection that passes through: two pumps, one for each direction, that only share the [`Tap`].
//!
//! Neither waits for the other: a tool that does not read its stream holds up the stream and nothing else.

use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use runtap_diag_proto::tap::{Piece, PieceKind, Side, Tap};
use runtap_transport::{BorrowedDescriptor, ConnectError, Descriptor, Peer, Stream, lend};

use super::log::ConnectionLog;
use super::silent::Leave;
use super::{Event, Phase, Shared, Way};

/// Bytes read at a time: as many as a socket holds.
const READ: usize = 256 * 1024;
/// How long a peer is dialled whose queue is full.
const CONNECT: Duration = Duration::from_secs(30);
/// How a runtime dials a port on which nobody listens.
const FIRST_PAUSE: Duration = Duration::from_millis(10);
const LONGEST_PAUSE: Duration = Duration::from_millis(500);

/// What a transcript says of a connection that has made room for another one.
const CROWDED: &str = "disconnected by the recorder: it had sent no whole request, and others came";
const CROWDED_TOOL: &str = "disconnected by the recorder: the tool did not listen yet, and others came";

/// How often it is looked whether a side that has ended sending is still there.
const LOOK: Duration = Duration::from_millis(50);

/// How one side has ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum End {
    /// It sends nothing more, and still listens.
    Half,
    /// It is gone.
    Gone,
}

/// What both directions share.
struct Passage {
    tap: Mutex<Tap>,
    log: Mutex<ConnectionLog>,
}

/// Passes one connection on to its end.
pub(super) async fn pass(shared: Shared, log: ConnectionLog, near: Stream, peer: Peer, leave: Leave) {
    let name = log.name().to_owned();
    (shared.reporter)(Event::Opened { conn: &name, peer });
    let is_port = matches!(shared.way, Way::ToTool(_));
    let passage =
        Passage { tap: Mutex::new(if is_port { Tap::for_port() } else { Tap::new() }), log: Mutex::new(log) };
    let mut phase = shared.phase.clone();
    let ended = tokio::select! {
        ended = passage.run(&shared, &name, near, leave) => ended,
        _ = phase.wait_for(|phase| *phase == Phase::Broken) => Err("the recording was ended".to_owned()),
    };
    let stream = lock(&passage.log).finish(ended.err());
    if let Some(error) = shared.journal.take_failure() {
        (shared.reporter)(Event::NotWritten(&error));
    }
    (shared.reporter)(Event::Closed { conn: &name, stream });
}

impl Passage {
    async fn run(&self, shared: &Shared, name: &str, near: Stream, mut leave: Leave) -> Result<(), String> {
        let unreachable = |error: ConnectError| {
            (shared.reporter)(Event::Unreachable { conn: name, error: &error });
            error.to_string()
        };
        match &shared.way {
            Way::ToTool(tool) => {
                // As the runtime would do itself; it hangs up when it has enough of it.
                let mut pause = FIRST_PAUSE;
                let dialling = async {
                    loop {
                        match tool.connect(CONNECT).await {
                            Ok(far) => return Ok(far),
                            Err(_not_yet) if !near.is_hung_up() => tokio::time::sleep(pause).await,
                            Err(error) => return Err(unreachable(error)),
                        }
                        pause = pause.saturating_mul(5).checked_div(4).unwrap_or(pause).min(LONGEST_PAUSE);
                    }
                };
                let far = tokio::select! {
                    far = dialling => far?,
                    Ok(()) = &mut leave => return Err(CROWDED_TOOL.to_owned()),
                };
                drop(leave);
                self.both(&far, &near, false).await;
            }
            Way::ToRuntime(runtime) => {
                let request = tokio::select! {
                    request = self.request(&near) => request,
                    Ok(()) = &mut leave => return Err(CROWDED.to_owned()),
                };
                let Some((pieces, descriptors, ended)) = request else { return Ok(()) };
                drop(leave);
                let far = runtime.connect(CONNECT).await.map_err(unreachable)?;
                // A runtime that is gone shows in what it says: it may have answered before.
                let _gone = write(&far, &pieces, &descriptors).await;
                if ended {
                    let _gone = far.end_sending();
                }
                self.both(&near, &far, ended).await;
            }
        }
        Ok(())
    }

    /// What the tool says first, when it is whole, and whether it has ended sending with that. `None`: it is gone, and
    /// has said nothing that a runtime could hear.
    async fn request(&self, client: &Stream) -> Option<(Vec<Piece>, Vec<Descriptor>, bool)> {
        // Nobody who says nothing has a buffer. What is wrong with one that is broken, it says when it is read.
        let _ = client.readable().await;
        let mut buffer = vec![0; READ];
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

    /// Both directions to their ends, or until one side is gone: then nothing reaches it any more.
    async fn both(&self, client: &Stream, runtime: &Stream, client_ended: bool) {
        let upward = self.pump(Side::Client, client, runtime);
        let downward = self.pump(Side::Runtime, runtime, client);
        tokio::pin!(upward, downward);
        let (mut up, mut down) = (client_ended.then_some(End::Half), None);
        let mut looks = tokio::time::interval(LOOK);
        while up.is_none() || down.is_none() {
            tokio::select! {
                end = &mut upward, if up.is_none() => up = Some(end),
                end = &mut downward, if down.is_none() => down = Some(end),
                // One that has ended sending may go away, which nothing tells that is read from it.
                _ = looks.tick(), if up.is_some() || down.is_some() => {
                    let ended = if up.is_some() { client } else { runtime };
                    if ended.is_hung_up() {
                        break;
                    }
                }
            }
            if [up, down].contains(&Some(End::Gone)) {
                break;
            }
        }
    }

    /// Passes on what one side says, to its end.
    async fn pump(&self, from: Side, source: &Stream, sink: &Stream) -> End {
        let mut buffer = vec![0; READ];
        let mut held = Vec::new();
        loop {
            let received = self.receive(from, source, &mut buffer).await;
            let (n, descriptors) = match received {
                Ok(received) => received,
                Err(error) => {
                    // What is held back of it was said.
                    let pieces = self.take(from, &[], &held);
                    let _gone = write(sink, &pieces, &held).await;
                    lock(&self.log).end(from, true, Some(error));
                    return End::Gone;
                }
            };
            held.extend(descriptors);
            let pieces = self.take(from, buffer.get(..n).unwrap_or_default(), &held);
            if n == 0 {
                // Whoever has closed altogether also hears nothing any more; one that we have told the end to
                // looks the same, and has nothing to hear.
                let gone = source.is_hung_up();
                lock(&self.log).end(from, gone, None);
                let passed = write(sink, &pieces, &held).await;
                return match passed.and_then(|()| sink.end_sending()) {
                    Ok(()) if !gone => End::Half,
                    _ => End::Gone,
                };
            }
            if write(sink, &pieces, &held).await.is_err() {
                // A runtime may have answered before it was gone: that is heard in the other direction. To a tool that
                // is gone nothing can be said any more.
                return if from == Side::Client { End::Half } else { End::Gone };
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
        // Only a tool has descriptors to pass on, but nobody's are lost.
        let received = source.receive(buffer).await;
        lock(&self.log).received(from);
        received
    }

    /// Takes what a side has said, nothing at its end; writes down what passes, and gives that.
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

/// Which of these pieces the descriptors go with.
fn carrier(pieces: &[Piece]) -> usize {
    pieces.iter().position(|piece| piece.kind == PieceKind::Descriptor).unwrap_or(0)
}

/// Writes each piece in one go.
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
