//! An HTTP server on a loopback port for one application: each request has one frame, and so has each response
//! (docs/design/test-http.md). One thread serves all connections, so that silent or slow connections do not delay
//! others.
//!
//! Any local process can connect to the port, so no body is read before the token has been verified. The only property
//! of the protocol that is used here is the maximum size of a frame.

mod request;
mod token;

use std::collections::{BTreeSet, VecDeque};
use std::ffi::OsString;
use std::fmt;
use std::io;
use std::net::{Ipv4Addr, SocketAddr};
use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Notify;
use tokio::task::AbortHandle;

use self::token::Token;
use crate::budget::Budget;

/// The maximum number of connections with the token: an application has one for each of its processes.
const MAX_CONNECTIONS: usize = 256;
/// The maximum number of connections that have not presented the token. Beyond it, the oldest one is closed.
const MAX_UNVERIFIED: usize = 256;
/// The time in which a connection must present the token.
const TOKEN_TIMEOUT: Duration = Duration::from_secs(10);
/// The time in which data that a process sent just before its exit is still read.
const DRAIN_TIMEOUT: Duration = Duration::from_millis(100);
/// The maximum size of a request's header in bytes. Real headers have 250 bytes.
const MAX_HEAD_SIZE: usize = 16 << 10;
/// The maximum number of headers. Real requests have four.
const MAX_HEADERS: usize = 32;

/// A handler of the frames in requests.
pub(crate) trait Answer: Send + Sync + 'static {
    /// Returns the response to a frame, or `None` if the frame is invalid; the connection is then closed.
    fn answer(&self, connection: u64, frame: &[u8]) -> Option<Vec<u8>>;
    /// Handles a request that timed out while waiting for memory.
    fn exhausted(&self);
    /// Handles the end of a connection.
    fn closed(&self, connection: u64);
}

/// An HTTP server. Dropping it closes all connections.
#[derive(Debug)]
pub(crate) struct Http {
    address: SocketAddr,
    server: Arc<Server>,
    serving: Option<JoinHandle<()>>,
}

/// The state that all connections share.
struct Server {
    token: Token,
    /// The maximum size of a frame with its length word, in bytes.
    max_frame_size: u64,
    /// The memory budget of incomplete requests.
    budget: Budget,
    answer: Box<dyn Answer>,
    open: Mutex<Connections>,
    stop: Notify,
}

impl fmt::Debug for Server {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Server").field("token", &self.token).field("open", &self.open).finish_non_exhaustive()
    }
}

/// The open connections.
#[derive(Debug, Default)]
struct Connections {
    /// The connections that have not presented the token, the oldest first.
    unverified: VecDeque<Unverified>,
    verified: BTreeSet<u64>,
    /// When the application exited. Later connections are not from its processes.
    ended: Option<Instant>,
}

/// A connection that has not presented the token.
#[derive(Debug)]
struct Unverified {
    number: u64,
    since: Instant,
    serving: AbortHandle,
}

impl Http {
    /// Starts listening. The token is written to `file`; a frame has at most `max_frame_size` bytes.
    pub(crate) fn listen(
        file: PathBuf,
        max_frame_size: u64,
        budget: Budget,
        answer: impl Answer,
    ) -> io::Result<Self> {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
        let listener = runtime.block_on(TcpListener::bind((Ipv4Addr::LOCALHOST, 0)))?;
        let address = listener.local_addr()?;
        let server = Arc::new(Server {
            token: Token::new(file)?,
            max_frame_size,
            budget,
            answer: Box::new(answer),
            open: Mutex::default(),
            stop: Notify::new(),
        });
        let own = Arc::clone(&server);
        let serving = thread::Builder::new().name("mtp-http".into()).spawn(move || {
            runtime.block_on(async {
                tokio::select! {
                    () = own.accept(listener) => {}
                    () = own.stop.notified() => {}
                }
            });
            // This closes all connections.
            drop(runtime);
        })?;
        Ok(Self { address, server, serving: Some(serving) })
    }

    /// Returns the platform's options with the address of the server.
    pub(crate) fn arguments(&self) -> Vec<OsString> {
        let mut token = OsString::from("@");
        token.push(self.server.token.file());
        let endpoint = format!("http://{}/", self.address);
        let options = ["--dotnet-test-transport", "http", "--dotnet-test-http-endpoint", &endpoint];
        options.into_iter().map(OsString::from).chain([token]).collect()
    }

    /// Records the exit of the application.
    pub(crate) fn has_ended(&self) {
        self.server.open().ended = Some(Instant::now());
    }

    /// Returns whether no connection is open. Connections without the token count only for [`DRAIN_TIMEOUT`], and only
    /// if they were opened within that time after the application's exit.
    pub(crate) fn is_idle(&self) -> bool {
        let open = self.server.open();
        let counts_until = open.ended.map(|ended| ended + DRAIN_TIMEOUT);
        let may_be_its = |last: &Unverified| {
            last.since.elapsed() < DRAIN_TIMEOUT && counts_until.is_none_or(|until| last.since < until)
        };
        open.verified.is_empty() && !open.unverified.iter().any(may_be_its)
    }

    /// Closes all connections and stops listening.
    pub(crate) fn shut(&mut self) {
        let Some(serving) = self.serving.take() else { return };
        self.server.stop.notify_one();
        // The thread returns nothing.
        let _ = serving.join();
    }
}

impl Drop for Http {
    fn drop(&mut self) {
        self.shut();
    }
}

impl Server {
    fn open(&self) -> MutexGuard<'_, Connections> {
        self.open.lock().unwrap_or_else(PoisonError::into_inner)
    }

    async fn accept(self: &Arc<Self>, listener: TcpListener) {
        for number in 0.. {
            match listener.accept().await {
                Ok((stream, _)) => self.start(number, stream),
                // Probably too many open files; some will be closed.
                Err(_) => tokio::time::sleep(Duration::from_millis(10)).await,
            }
            // Let open connections be served during a flood of new ones.
            tokio::task::yield_now().await;
        }
    }

    fn start(self: &Arc<Self>, number: u64, stream: TcpStream) {
        let guard = OpenGuard { server: Arc::clone(self), number };
        let serving = tokio::spawn(serve(guard, stream));
        let mut open = self.open();
        open.unverified.push_back(Unverified {
            number,
            since: Instant::now(),
            serving: serving.abort_handle(),
        });
        if open.unverified.len() > MAX_UNVERIFIED
            && let Some(oldest) = open.unverified.pop_front()
        {
            oldest.serving.abort();
        }
    }

    /// Records that a connection presented the token. Returns `false` if there are too many connections.
    fn verify(&self, number: u64) -> bool {
        let mut open = self.open();
        if open.verified.contains(&number) {
            return true;
        }
        if open.verified.len() >= MAX_CONNECTIONS {
            return false;
        }
        open.unverified.retain(|unverified| unverified.number != number);
        open.verified.insert(number)
    }
}

/// Removes a connection from the list when its task ends, even after a panic.
struct OpenGuard {
    server: Arc<Server>,
    number: u64,
}

impl Drop for OpenGuard {
    fn drop(&mut self) {
        let mut open = self.server.open();
        open.unverified.retain(|unverified| unverified.number != self.number);
        let was_proven = open.verified.remove(&self.number);
        drop(open);
        if was_proven {
            self.server.answer.closed(self.number);
        }
    }
}

/// Serves one connection until its end.
async fn serve(guard: OpenGuard, stream: TcpStream) {
    // Requests and responses are small and alternate, so delaying packets has no benefit.
    let _ = stream.set_nodelay(true);
    let (server, number) = (&guard.server, guard.number);
    let service = service_fn(|request| request::respond(server, number, request));
    // A process may be silent for as long as a test runs; only connections without the token have a time limit.
    let connection = http1::Builder::new()
        .header_read_timeout(None)
        // A process may have exited when its last request is read. The request is still answered.
        .half_close(true)
        .max_buf_size(MAX_HEAD_SIZE)
        .max_headers(MAX_HEADERS)
        .serve_connection(TokioIo::new(stream), service);
    let late = async {
        tokio::time::sleep(TOKEN_TIMEOUT).await;
        if server.open().verified.contains(&number) {
            std::future::pending::<()>().await;
        }
    };
    tokio::select! {
        // Errors concern only the client.
        _ = connection => {}
        () = late => {}
    }
}

#[cfg(test)]
mod tests;
