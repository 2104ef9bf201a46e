//! A port of this machine for one application: each request is a frame, and so is its response
//! (docs/design/test-http.md). One thread for all connections; those that are silent or slow hold up nobody.
//!
//! Whoever can open a socket can reach the port, so nothing of a request is read before its token is right. Knows of the
//! protocol only how long a frame may be.

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

/// More connections with the token are turned away: an application has one for each of its processes.
const MOST: usize = 256;
/// Of more connections that have not shown the token yet, the oldest one is closed.
const MOST_UNPROVEN: usize = 256;
/// A connection that has not shown the token within this time is closed.
const UNPROVEN: Duration = Duration::from_secs(10);
/// What a process has sent just before its end may not have been looked at.
const LAST_WORDS: Duration = Duration::from_millis(100);
/// Bytes of the head of a request: real ones have 250.
const HEAD: usize = 16 << 10;
/// Real requests have four headers.
const HEADERS: usize = 32;

/// Answers the frames that come with requests.
pub(crate) trait Answer: Send + Sync + 'static {
    /// The response to this frame; `None`: it is none, and the connection is closed.
    fn answer(&self, connection: u64, frame: &[u8]) -> Option<Vec<u8>>;
    /// A request has waited for memory for too long.
    fn exhausted(&self);
    /// The connection is at its end.
    fn closed(&self, connection: u64);
}

/// A port that is listened on. Dropping it closes all connections.
#[derive(Debug)]
pub(crate) struct Http {
    address: SocketAddr,
    server: Arc<Server>,
    serving: Option<JoinHandle<()>>,
}

/// What all connections share.
struct Server {
    token: Token,
    /// Bytes that a frame may have, with its length word.
    largest: u64,
    /// For requests that are not complete.
    budget: Budget,
    answer: Box<dyn Answer>,
    open: Mutex<Open>,
    stop: Notify,
}

impl fmt::Debug for Server {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Server").field("token", &self.token).field("open", &self.open).finish_non_exhaustive()
    }
}

/// The connections.
#[derive(Debug, Default)]
struct Open {
    /// Those that have not shown the token, the oldest one first.
    unproven: VecDeque<Unproven>,
    proven: BTreeSet<u64>,
    /// When the application ended. Connections made later are not of its processes.
    ended: Option<Instant>,
}

/// A connection that has not shown the token.
#[derive(Debug)]
struct Unproven {
    number: u64,
    since: Instant,
    serving: AbortHandle,
}

impl Http {
    /// Listens at once. The token goes into `file`; a frame has at most `largest` bytes.
    pub(crate) fn listen(
        file: PathBuf,
        largest: u64,
        budget: Budget,
        answer: impl Answer,
    ) -> io::Result<Self> {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
        let listener = runtime.block_on(TcpListener::bind((Ipv4Addr::LOCALHOST, 0)))?;
        let address = listener.local_addr()?;
        let server = Arc::new(Server {
            token: Token::new(file)?,
            largest,
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
            // With it, all connections.
            drop(runtime);
        })?;
        Ok(Self { address, server, serving: Some(serving) })
    }

    /// The options of the platform that lead here.
    pub(crate) fn arguments(&self) -> Vec<OsString> {
        let mut token = OsString::from("@");
        token.push(self.server.token.file());
        let endpoint = format!("http://{}/", self.address);
        let options = ["--dotnet-test-transport", "http", "--dotnet-test-http-endpoint", &endpoint];
        options.into_iter().map(OsString::from).chain([token]).collect()
    }

    /// The application has ended.
    pub(crate) fn has_ended(&self) {
        self.server.open().ended = Some(Instant::now());
    }

    /// Whether no connection is open; those that have not shown the token count for [`LAST_WORDS`] only, and not if they came
    /// that long after the application's end.
    pub(crate) fn is_idle(&self) -> bool {
        let open = self.server.open();
        let counts_until = open.ended.map(|ended| ended + LAST_WORDS);
        let may_be_its = |last: &Unproven| {
            last.since.elapsed() < LAST_WORDS && counts_until.is_none_or(|until| last.since < until)
        };
        open.proven.is_empty() && !open.unproven.iter().any(may_be_its)
    }

    /// Closes all connections, and listens no more.
    pub(crate) fn shut(&mut self) {
        let Some(serving) = self.serving.take() else { return };
        self.server.stop.notify_one();
        // Nothing to tell but that it has ended.
        let _ = serving.join();
    }
}

impl Drop for Http {
    fn drop(&mut self) {
        self.shut();
    }
}

impl Server {
    fn open(&self) -> MutexGuard<'_, Open> {
        self.open.lock().unwrap_or_else(PoisonError::into_inner)
    }

    async fn accept(self: &Arc<Self>, listener: TcpListener) {
        for number in 0.. {
            match listener.accept().await {
                Ok((stream, _)) => self.start(number, stream),
                // Too many files: some will be closed.
                Err(_) => tokio::time::sleep(Duration::from_millis(10)).await,
            }
            // A flood of connections does not keep those that are open from being served.
            tokio::task::yield_now().await;
        }
    }

    fn start(self: &Arc<Self>, number: u64, stream: TcpStream) {
        let leaving = Leaving { server: Arc::clone(self), number };
        let serving = tokio::spawn(serve(leaving, stream));
        let mut open = self.open();
        open.unproven.push_back(Unproven { number, since: Instant::now(), serving: serving.abort_handle() });
        if open.unproven.len() > MOST_UNPROVEN
            && let Some(oldest) = open.unproven.pop_front()
        {
            oldest.serving.abort();
        }
    }

    /// The connection has shown the token. Returns whether there is room for it.
    fn prove(&self, number: u64) -> bool {
        let mut open = self.open();
        if open.proven.contains(&number) {
            return true;
        }
        if open.proven.len() >= MOST {
            return false;
        }
        open.unproven.retain(|unproven| unproven.number != number);
        open.proven.insert(number)
    }
}

/// Takes a connection off the list, whatever ends it.
struct Leaving {
    server: Arc<Server>,
    number: u64,
}

impl Drop for Leaving {
    fn drop(&mut self) {
        let mut open = self.server.open();
        open.unproven.retain(|unproven| unproven.number != self.number);
        let was_proven = open.proven.remove(&self.number);
        drop(open);
        if was_proven {
            self.server.answer.closed(self.number);
        }
    }
}

/// Serves one connection until its end.
async fn serve(leaving: Leaving, stream: TcpStream) {
    // Requests and responses are small, and wait for each other.
    let _ = stream.set_nodelay(true);
    let (server, number) = (&leaving.server, leaving.number);
    let service = service_fn(|request| request::respond(server, number, request));
    // A process may say nothing for as long as a test takes: only who is unproven has little time.
    let connection = http1::Builder::new()
        .header_read_timeout(None)
        // A process may have ended when its last request is read: that is answered all the same, and then it is over.
        .half_close(true)
        .max_buf_size(HEAD)
        .max_headers(HEADERS)
        .serve_connection(TokioIo::new(stream), service);
    let late = async {
        tokio::time::sleep(UNPROVEN).await;
        if server.open().proven.contains(&number) {
            std::future::pending::<()>().await;
        }
    };
    tokio::select! {
        // What was wrong with it concerns only who has sent it.
        _ = connection => {}
        () = late => {}
    }
}

#[cfg(test)]
mod tests;
