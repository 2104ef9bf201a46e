//! What is answered: from the runtime to the client, byte for byte, to the end.
//!
//! The bytes are looked at until it is clear what follows: after a reply that nothing follows both connections are closed,
//! because some runtimes leave theirs open then. What the client sends after its request means nothing to a runtime, which
//! would reset the connection for it: it is taken and dropped, and only the end of it passes.

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
use super::notice::Teller;

/// What is read at a time: what a Unix socket holds at most is about three times that.
const CHUNK: usize = 64 << 10;
/// How often it is looked whether a client that has ended sending is still there.
const LOOK: Duration = Duration::from_millis(100);
/// How long it may take to stop a session whose client is gone.
const STOPPING: Duration = Duration::from_secs(10);

/// What has passed.
#[derive(Debug, Default)]
pub(crate) struct Carried {
    /// Bytes from the runtime.
    pub(crate) bytes: u64,
    /// What the runtime refused.
    pub(crate) error: Option<ErrorReply>,
    /// The session that was started.
    session: Option<SessionId>,
}

/// What is to come.
#[derive(Debug, PartialEq, Eq)]
enum Ahead {
    /// It is not known yet.
    Reply,
    /// Bytes to the end of the connection.
    Rest,
    /// Nothing.
    Nothing,
}

/// Passes on what the runtime answers, until it has said everything, or one side is gone. `on_reply` is called once, when
/// the runtime is free for the next client; `stop`
/// for a session whose client is gone: it says whether that was stopped. A client that may be gone, and still waits for the reply,
/// is [abandoned](Stage::Abandoned).
pub(crate) async fn pump(
    (client, progress): (Link, &Progress),
    runtime: Link,
    mut tap: Tap,
    limits: &Limits,
    teller: &Teller,
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
        // It may have gone, too. What it has asked for may never be answered, and of a session no more bytes may come.
        let ended = Instant::now();
        loop {
            let (is_gone, is_unanswered) = (from_client.is_gone(), replied.get().is_none());
            let is_over = match session.get() {
                Some(_) => is_gone,
                // A session that still begins is known by its reply only.
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
            sleep(LOOK).await;
        }
    };
    let downward = async {
        let mut carried = Carried::default();
        let mut on_reply = Some(on_reply);
        let mut ahead = Ahead::Reply;
        let mut buffer = vec![0; CHUNK];
        while ahead != Ahead::Nothing {
            let n = match from_runtime.read(&mut buffer).await {
                // What it has said counts.
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
            teller.sent_to_client(n);
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

/// What these bytes say of what follows.
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
        // Whatever it is, it is the client's to understand.
        Some(_) => Ahead::Rest,
    }
}

/// Writes everything, as long as some of it is taken now and then.
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

/// Takes what comes until nothing more does.
async fn discard(from: &mut (impl AsyncRead + Unpin)) {
    let mut buffer = [0; 64];
    while matches!(from.read(&mut buffer).await, Ok(n) if n > 0) {}
}

fn is_closed(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::ConnectionReset | io::ErrorKind::BrokenPipe)
}
