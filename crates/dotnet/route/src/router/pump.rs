//! Forwards the answer of a runtime to the client, byte for byte.
//!
//! The data is parsed until it is known what follows. After a reply that is complete, both connections are closed, because some
//! runtimes leave theirs open. Data that the client sends after its request would make the runtime reset the connection, so it is
//! dropped, and only its end is forwarded.

use std::io;
use std::sync::OnceLock;
use std::time::{Duration, Instant};

use runtap_diag_proto::tap::{PieceKind, Side, Tap};
use runtap_diag_proto::{Command, ErrorReply, Reply, Request, SessionId};
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::time::{sleep, timeout};

use super::crowd::{Progress, Stage};
use super::half::Half;
use super::limits::Limits;
use super::link::Link;
use super::notice::NoticeReporter;

/// The number of bytes read at once. A Unix socket buffers about three times that.
const CHUNK: usize = 64 << 10;
/// Poll interval for a client that has stopped sending.
const POLL_INTERVAL: Duration = Duration::from_millis(100);
/// Time-out for stopping a session whose client is gone.
const STOPPING: Duration = Duration::from_secs(10);

/// The result of forwarding.
#[derive(Debug, Default)]
pub(crate) struct Carried {
    /// The number of bytes from the runtime.
    pub(crate) bytes: u64,
    /// The error reply of the runtime, if any.
    pub(crate) error: Option<ErrorReply>,
    /// The session that was started, if any.
    session: Option<SessionId>,
}

/// What follows.
#[derive(Debug, PartialEq, Eq)]
enum Ahead {
    /// Unknown until the reply has been parsed.
    Reply,
    /// Data until the end of the connection.
    Rest,
    /// Nothing.
    Nothing,
}

/// Forwards the answer of a runtime until it is complete or one side is gone. `on_reply` is called once, when the runtime is free
/// for the next client. `stop` is called for a session whose client is gone, and returns whether the session was stopped. A client
/// that may be gone while it waits for the reply is [abandoned](Stage::Abandoned).
pub(crate) async fn pump(
    (client, progress): (Link, &Progress),
    runtime: Link,
    mut tap: Tap,
    limits: &Limits,
    reporter: &NoticeReporter,
    on_reply: impl FnOnce(),
    stop: impl AsyncFnOnce(SessionId) -> bool,
) -> io::Result<Carried> {
    let is_session = matches!(tap.request(), Some(Request::CollectTracing { .. }));
    let (session, replied) = (OnceLock::new(), OnceLock::new());
    let (mut from_client, mut to_client) = Half::both(client);
    let (mut from_runtime, mut to_runtime) = tokio::io::split(runtime);
    let upward = async {
        discard(&mut from_client).await;
        let _ = to_runtime.shutdown().await;
        // The client may be gone. Its request may never be answered, and a session may send no more data.
        let ended = Instant::now();
        loop {
            let (is_gone, is_unanswered) = (from_client.is_gone(), replied.get().is_none());
            let is_over = match session.get() {
                Some(_) => is_gone,
                // A session that is still starting is known only by its reply.
                None => {
                    !is_session && is_gone
                        || (is_gone || is_unanswered) && ended.elapsed() > limits.unanswered
                }
            };
            if is_over {
                break;
            }
            if is_gone || is_unanswered && from_client.may_be_gone() {
                progress.is_now(Stage::Abandoned);
            }
            sleep(POLL_INTERVAL).await;
        }
    };
    let downward = async {
        let mut carried = Carried::default();
        let mut on_reply = Some(on_reply);
        let mut ahead = Ahead::Reply;
        let mut buffer = vec![0; CHUNK];
        while ahead != Ahead::Nothing {
            let n = match from_runtime.read(&mut buffer).await {
                // Data received before the error counts.
                Err(error) if is_closed(&error) => 0,
                other => other?,
            };
            if n == 0 {
                break;
            }
            let bytes = buffer.get(..n).unwrap_or_default();
            if ahead == Ahead::Reply {
                ahead = look(&mut tap, bytes, &mut carried);
                if let Some(id) = carried.session {
                    session.get_or_init(|| id);
                }
                if ahead != Ahead::Reply
                    && let Some(on_reply) = on_reply.take()
                {
                    replied.get_or_init(|| ());
                    progress.is_now(Stage::Asked);
                    on_reply();
                }
            }
            let limit = Some(limits.stalled).filter(|_| !is_session || ahead != Ahead::Rest);
            if let Err(error) = write(&mut to_client, bytes, limit).await {
                return Ok((carried, Some(error)));
            }
            reporter.sent_to_client(n);
            carried.bytes += n as u64;
        }
        to_client.shutdown().await?;
        io::Result::Ok((carried, None))
    };
    let lost = tokio::select! {
        carried = downward => match carried? {
            (carried, None) => return Ok(carried),
            (_, Some(error)) => error,
        },
        () = upward => io::ErrorKind::BrokenPipe.into(),
    };
    let Some(id) = session.get() else { return Err(lost) };
    // A runtime that stops a session sends the rest of it first.
    let stopping = async { tokio::join!(stop(*id), discard(&mut from_runtime)).0 };
    match timeout(STOPPING, stopping).await {
        Ok(true) => {
            Err(io::Error::other(format!("the client is gone ({lost}), and its session was stopped")))
        }
        _ => Err(lost),
    }
}

/// Determines what follows this data.
fn look(tap: &mut Tap, bytes: &[u8], carried: &mut Carried) -> Ahead {
    tap.handle_bytes(Side::Runtime, bytes);
    match tap.poll_transmit().map(|piece| piece.kind) {
        None => Ahead::Reply,
        Some(PieceKind::Reply(reply)) if reply.command() == Command::ERROR => {
            carried.error = ErrorReply::decode(reply.payload()).ok();
            Ahead::Nothing
        }
        Some(PieceKind::Reply(reply)) => match tap.request() {
            Some(request @ Request::CollectTracing { .. }) => {
                if let Ok(Ok(Reply::SessionStarted(id))) = reply.to_reply(request) {
                    carried.session = Some(id);
                }
                Ahead::Rest
            }
            Some(Request::ProcessEnvironment) => Ahead::Rest,
            _ => Ahead::Nothing,
        },
        // An unknown reply is left to the client.
        Some(_) => Ahead::Rest,
    }
}

/// Writes all bytes. Times out if nothing is accepted for the time `stalled`.
pub(crate) async fn write(
    to: &mut (impl AsyncWrite + Unpin),
    mut bytes: &[u8],
    stalled: Option<Duration>,
) -> io::Result<()> {
    while !bytes.is_empty() {
        let writing = to.write(bytes);
        let written = match stalled {
            Some(limit) => timeout(limit, writing).await??,
            None => writing.await?,
        };
        if written == 0 {
            return Err(io::ErrorKind::WriteZero.into());
        }
        bytes = bytes.get(written..).unwrap_or_default();
    }
    to.flush().await
}

/// Reads and drops data until the end.
async fn discard(from: &mut (impl AsyncRead + Unpin)) {
    let mut buffer = [0; 64];
    while matches!(from.read(&mut buffer).await, Ok(n) if n > 0) {}
}

fn is_closed(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::ConnectionReset | io::ErrorKind::BrokenPipe)
}
