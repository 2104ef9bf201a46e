//! Serves one client: its request, the connection to the runtime, and the answer.

use std::io;
use std::mem;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use runtap_diag_proto::{Advertise, ErrorReply, HEADER_LEN, Hresult, Request, SessionId};
use runtap_model::units::Seconds;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::sync::watch;
use tokio::task::{AbortHandle, JoinSet};
use tokio::time::{Instant, sleep, timeout};
use uuid::Uuid;

use super::back::RuntimeAddress;
use super::client_pool::{Progress, Stage};
use super::in_use::InUse;
use super::limits::Limits;
use super::link::Link;
use super::notice::{Notice, NoticeReporter};
use super::pump::{pump, write};
use super::request::{self, ForwardableRequest, ReceivedRequest};
use super::runtime_registry::{NoConnection, RuntimeRegistry};

/// The pause between attempts to reach a runtime.
const PAUSE: Duration = Duration::from_millis(250);

/// The source of connections to the runtime.
#[derive(Debug, Clone)]
pub(crate) enum Supply {
    Connect(Arc<RuntimeAddress>),
    Registry(Arc<RuntimeRegistry>),
    /// Selected per client with [`Relay::to`].
    Nowhere,
}

/// Forwards the requests of clients to a runtime. Cheap to clone.
#[derive(Debug, Clone)]
pub struct Relay {
    supply: Supply,
    limits: Limits,
    reporter: NoticeReporter,
    closing: watch::Sender<bool>,
    clients: Arc<Mutex<JoinSet<()>>>,
}

impl Relay {
    pub(crate) fn new(supply: Supply, limits: Limits, reporter: NoticeReporter) -> Self {
        Self { supply, limits, reporter, closing: watch::Sender::new(false), clients: Arc::default() }
    }

    /// Returns a relay for another runtime that listens.
    pub(crate) fn to(&self, runtime: RuntimeAddress) -> Self {
        Self { supply: Supply::Connect(Arc::new(runtime)), ..self.clone() }
    }

    pub(crate) fn limits(&self) -> &Limits {
        &self.limits
    }

    pub(crate) fn reporter(&self) -> &NoticeReporter {
        &self.reporter
    }

    /// Waits until this runtime is ready for the next request. Returns `false` if it is gone.
    pub(crate) async fn is_ready(&self, runtime: Uuid) -> bool {
        match &self.supply {
            Supply::Connect(address) => {
                let answer = address.identify(self.limits.connect).await;
                answer.is_ok_and(|advertise| advertise.runtime_cookie == runtime)
            }
            Supply::Registry(registry) => registry.is_idle(runtime).await,
            Supply::Nowhere => false,
        }
    }

    /// Serves a client on a task that ends with the router.
    pub(crate) fn spawn(&self, client: impl Future<Output = ()> + Send + 'static) -> AbortHandle {
        let mut clients = self.clients.lock().unwrap_or_else(PoisonError::into_inner);
        while clients.try_join_next().is_some() {}
        clients.spawn(client)
    }

    /// Disconnects clients that have not sent a request or wait for the runtime. Other clients may finish within a time limit.
    pub(crate) async fn close(&self) {
        self.closing.send_replace(true);
        let mut clients = mem::take(&mut *self.clients.lock().unwrap_or_else(PoisonError::into_inner));
        let _ = timeout(self.limits.shut_down, async { while clients.join_next().await.is_some() {} }).await;
        clients.shutdown().await;
    }

    /// Returns the identity of the runtime that listens. Retries until it answers.
    pub(crate) async fn identify_patiently(&self) -> Advertise {
        let Supply::Connect(address) = &self.supply else { return std::future::pending().await };
        loop {
            if let Ok(advertise) = address.identify(self.limits.connect).await {
                self.reporter.report(&Notice::Runtime { process_id: advertise.process_id });
                return advertise;
            }
            sleep(PAUSE).await;
        }
    }

    /// Serves a client until the end. `free` is called when the next one can be served.
    pub(crate) async fn serve(
        &self,
        mut client: Link,
        who: &str,
        runtime: Option<Uuid>,
        progress: &Progress,
        free: impl FnOnce(),
    ) {
        let mut closing = self.closing.subscribe();
        let reading = timeout(self.limits.request, request::read(&mut client));
        let question = tokio::select! {
            question = reading => question.unwrap_or(ReceivedRequest::Silent),
            _ = closing.wait_for(|closing| *closing) => ReceivedRequest::Silent,
        };
        progress.is_now(Stage::Asked);
        match question {
            ReceivedRequest::Silent => self.reporter.silent(),
            ReceivedRequest::Refused(answer, why) => {
                self.reporter.report(&Notice::Refused { who: who.to_owned(), why });
                self.answer(client, &answer).await;
            }
            ReceivedRequest::Request(question) => {
                let command = question.request.command();
                let began = Instant::now();
                let connecting = self.connect(runtime);
                let connection = tokio::select! {
                    connection = connecting => connection,
                    _ = closing.wait_for(|closing| *closing) => Err("the router is stopping".to_owned()),
                };
                let (link, in_use) = match connection {
                    Ok(connection) => connection,
                    Err(why) => {
                        self.reporter.report(&Notice::NotReached {
                            who: who.to_owned(),
                            command,
                            why: why.clone(),
                        });
                        let error = ErrorReply {
                            hresult: Hresult::E_FAIL,
                            message: Some(format!("runtap router: {why}")),
                        };
                        return self.answer(client, &error.to_bytes().unwrap_or_default()).await;
                    }
                };
                let carried = tokio::select! {
                    carried = self.carry((client, progress), link, in_use.as_ref(), *question, free) => carried,
                    () = displaced(in_use.as_ref()) => {
                        Err(io::Error::other("the runtime was disconnected because the limit of connected runtimes is reached"))
                    }
                };
                drop(in_use);
                let who = who.to_owned();
                self.reporter.report(&match carried {
                    Ok(carried) => Notice::Carried {
                        who,
                        command,
                        error: carried.error,
                        bytes: carried.bytes,
                        took: began.elapsed(),
                    },
                    Err(error) => Notice::Broken { who, command, why: error.to_string() },
                });
            }
        }
    }

    async fn connect(&self, runtime: Option<Uuid>) -> Result<(Link, Option<InUse>), String> {
        match &self.supply {
            Supply::Connect(address) => {
                let link = address.connect(self.limits.connect).await.map_err(|error| error.to_string())?;
                Ok((link, None))
            }
            Supply::Nowhere => Err("there is no runtime".to_owned()),
            Supply::Registry(registry) => {
                let taken = registry.take(runtime).await.map_err(|why| match why {
                    NoConnection::Full => {
                        format!("the runtime is busy, and {} clients are already waiting", self.limits.queue)
                    }
                    NoConnection::TooLong => format!(
                        "no connection to the runtime became available within {}: the runtime has not \
                         connected, or is busy",
                        Seconds(self.limits.wait)
                    ),
                    NoConnection::Gone => "the runtime has disconnected".to_owned(),
                })?;
                Ok((taken.0, Some(taken.1)))
            }
        }
    }

    async fn carry(
        &self,
        client: (Link, &Progress),
        mut runtime: Link,
        in_use: Option<&InUse>,
        question: ForwardableRequest,
        free: impl FnOnce(),
    ) -> io::Result<super::pump::Carried> {
        let ForwardableRequest { piece, tap, .. } = question;
        let bytes = piece.bytes();
        write(&mut runtime, bytes, Some(self.limits.stalled)).await?;
        self.reporter.forwarded(bytes.len());
        let stop = async |id| self.stop(in_use.map(InUse::cookie), id).await.is_some();
        let on_reply = || {
            in_use.into_iter().for_each(InUse::is_answered);
            free();
        };
        pump(client, runtime, tap, &self.limits, &self.reporter, on_reply, stop).await
    }

    /// Stops a session without a client over another connection. `None` if there is no connection or no answer.
    async fn stop(&self, runtime: Option<Uuid>, session: SessionId) -> Option<()> {
        let (mut link, _in_use) = self.connect(runtime).await.ok()?;
        let request = Request::StopTracing(session).to_bytes().ok()?;
        write(&mut link, &request, Some(self.limits.stalled)).await.ok()?;
        // Whatever the answer is, the session is over.
        link.read_exact(&mut [0; HEADER_LEN]).await.ok()?;
        Some(())
    }

    /// Sends an answer of the router itself.
    async fn answer(&self, mut client: Link, answer: &[u8]) {
        // A client that is gone needs no answer.
        if write(&mut client, answer, Some(self.limits.stalled)).await.is_ok() {
            self.reporter.sent_to_client(answer.len());
            let _ = client.shutdown().await;
        }
    }
}

/// Waits until the runtime of a connection has lost its place.
async fn displaced(in_use: Option<&InUse>) {
    match in_use {
        Some(in_use) => in_use.displaced().await,
        None => std::future::pending().await,
    }
}
