//! A client of one runtime, with time-outs and the fallback from newer to older commands.

use std::sync::Arc;
use std::time::Duration;

use runtap_diag_proto::{
    InfoForm, ProcessInfo, Reply, Request, SessionConfig, SessionForm, SessionId, Variable,
};
use runtap_transport::Endpoint;

use crate::ports::Slot;
use crate::{
    Backlog, Error, Session,
    connector::Connector,
    exchange::{Answer, Exchange, wrong_reply},
};

/// The time-outs of a client.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct Timeouts {
    /// The limit for connecting, which is immediate unless the runtime's queue of waiting clients is full. A runtime that
    /// connects to a port reconnects within milliseconds of the last command, unless it is busy. Default 5 s.
    pub connect: Duration,
    /// The limit for a complete answer. A healthy runtime needs milliseconds; a runtime that writes a dump or serves another
    /// client does not answer at all. Default 10 s.
    pub reply: Duration,
    /// The limit for progress while a session is being stopped: the longest time without a byte of the stream or of the
    /// answer. The runtime then writes all its method names, which may take minutes in total. Default 60 s.
    pub stop: Duration,
    /// The limit for a core dump. The runtime answers when the dump is written; the largest dumps take minutes. Default 1 h.
    pub dump: Duration,
    /// The limit for a profiler or a startup hook. The runtime answers when its code has run. Default 60 s.
    pub load: Duration,
}

impl Default for Timeouts {
    fn default() -> Self {
        Self {
            connect: Duration::from_secs(5),
            reply: Duration::from_secs(10),
            stop: Duration::from_mins(1),
            dump: Duration::from_hours(1),
            load: Duration::from_mins(1),
        }
    }
}

impl Timeouts {
    /// Sets all time-outs to `limit`.
    pub fn all(limit: Duration) -> Self {
        Self { connect: limit, reply: limit, stop: limit, dump: limit, load: limit }
    }

    /// Returns the limit for the answer to a request.
    fn answer(&self, request: &Request) -> Duration {
        match request {
            Request::GenerateCoreDump { .. } => self.dump,
            Request::AttachProfiler(_) | Request::ApplyStartupHook { .. } => self.load,
            Request::StopTracing(_) => self.stop,
            _ => self.reply,
        }
    }
}

/// A client of one runtime. Cheap to clone; holds no connection: each command opens its own, because an idle connection
/// would block all other clients of the runtime. (For a runtime that connects to a [port](crate::ports), a command uses
/// the connection that waits there.)
///
/// Dropping the future of a command cancels it and closes its connection.
#[derive(Debug, Clone)]
pub struct Client {
    connector: Connector,
    timeouts: Timeouts,
    backlog: Backlog,
}

impl Client {
    /// Creates a client of the runtime that listens on `endpoint`, with the default time-outs.
    pub fn new(endpoint: Endpoint) -> Self {
        Self {
            connector: Connector::Out(endpoint),
            timeouts: Timeouts::default(),
            backlog: Backlog::default(),
        }
    }

    /// Creates a client of a runtime that connects to a port.
    pub(crate) fn for_port(slot: Arc<Slot>) -> Self {
        Self { connector: Connector::In(slot), timeouts: Timeouts::default(), backlog: Backlog::default() }
    }

    /// Sets the time-outs.
    #[must_use]
    pub fn with_timeouts(mut self, timeouts: Timeouts) -> Self {
        self.timeouts = timeouts;
        self
    }

    /// Sets the buffer size of its sessions.
    #[must_use]
    pub fn with_backlog(mut self, backlog: Backlog) -> Self {
        self.backlog = backlog;
        self
    }

    pub(crate) fn backlog(&self) -> Backlog {
        self.backlog
    }

    /// Returns the endpoint of the runtime, or the port to which the runtime connects.
    pub fn endpoint(&self) -> &Endpoint {
        self.connector.endpoint()
    }

    /// Returns the time-outs.
    pub fn timeouts(&self) -> Timeouts {
        self.timeouts
    }

    /// Returns information about the process, using the newest command that the runtime supports.
    pub async fn process_info(&self) -> Result<ProcessInfo, Error> {
        for form in InfoForm::NEWEST_FIRST {
            match self.ask(Request::ProcessInfo(form)).await {
                Ok(Reply::ProcessInfo(info)) => return Ok(info),
                Err(error) if error.is_unknown_command() && form != InfoForm::ProcessInfo => {}
                other => return Err(unexpected(other, &Request::ProcessInfo(form))),
            }
        }
        // The loop returns at the oldest form.
        Err(wrong_reply(&Request::ProcessInfo(InfoForm::ProcessInfo)))
    }

    /// Returns the id of the process behind a connection to the endpoint, in the caller's pid namespace, as reported by the
    /// kernel. Sends no command.
    ///
    /// # Errors
    /// If the connection fails; [`Error::Io`] if the process is in a pid namespace that the caller cannot see.
    pub async fn process_id(&self) -> Result<u32, Error> {
        let exchange = self.connect(Request::ProcessInfo(InfoForm::ProcessInfo)).await?;
        exchange.process().map_err(|source| exchange.io(source))
    }

    /// Returns the current environment variables of the process.
    pub async fn environment(&self) -> Result<Vec<Variable>, Error> {
        let request = Request::ProcessEnvironment;
        match self.request(request.clone()).await {
            Ok(Reply::Environment(variables)) => Ok(variables),
            other => Err(unexpected(other, &request)),
        }
    }

    /// Resumes a runtime that is suspended at startup. No effect on a running one.
    pub async fn resume(&self) -> Result<(), Error> {
        self.request(Request::ResumeRuntime).await.map(drop)
    }

    /// Stops a session by its id; another program may have started it. To stop a session of this client, use
    /// [`Session::stop`], which never sends the command twice: **runtimes reuse ids at once and do not report unknown
    /// ids.** Returns only after the runtime has written everything into the session's stream.
    ///
    /// # Errors
    /// [`Error::Objection`] while the runtime is suspended at startup: it would crash later. Closing the session's
    /// connection is a safe alternative.
    pub async fn stop_session(&self, id: SessionId) -> Result<(), Error> {
        let exchange = self.connect(Request::StopTracing(id)).await?;
        exchange.complete(self.timeouts.stop).await.map(drop)
    }

    /// Starts a session with the newest command that the runtime supports. [`Session::downgrades`] lists the settings that
    /// an older command cannot carry.
    ///
    /// # Errors
    /// [`Error::Invalid`], before anything is sent, if the configuration must not be sent.
    pub async fn start_session(&self, config: &SessionConfig) -> Result<Session, Error> {
        for form in SessionForm::NEWEST_FIRST {
            match self.start_session_as(form, config).await {
                Err(error) if error.is_unknown_command() && form != SessionForm::CollectTracing => {}
                other => return other,
            }
        }
        // The loop returns at the oldest form.
        self.start_session_as(SessionForm::CollectTracing, config).await
    }

    /// Starts a session with the command of `form` only.
    ///
    /// # Errors
    /// The errors of [`start_session`](Self::start_session), and [`Error::Refused`] if the runtime does not support the command.
    pub async fn start_session_as(
        &self,
        form: SessionForm,
        config: &SessionConfig,
    ) -> Result<Session, Error> {
        let request = Request::CollectTracing { form, config: config.clone() };
        match self.exchange(request.clone()).await {
            Ok(Answer { reply: Reply::SessionStarted(id), stream, head }) => {
                Ok(Session::new(self.clone(), id, form, config.downgrades(form), stream, &head))
            }
            other => Err(unexpected(other.map(|answer| answer.reply), &request)),
        }
    }

    /// Sends any request once, without fallback. The stream of a session that it starts is discarded.
    ///
    /// # Errors
    /// [`Error::Objection`], before anything is sent, if the request would harm the target: see [`crate::preflight`].
    pub async fn request(&self, request: Request) -> Result<Reply, Error> {
        let limit = self.timeouts.answer(&request);
        self.connect_checked(request).await?.complete(limit).await.map(|answer| answer.reply)
    }

    /// Sends a harmless request.
    async fn ask(&self, request: Request) -> Result<Reply, Error> {
        self.exchange(request).await.map(|answer| answer.reply)
    }

    async fn exchange(&self, request: Request) -> Result<Answer, Error> {
        self.connect(request).await?.complete(self.timeouts.reply).await
    }

    /// Opens a connection for a request. Stopping a session needs a check: see [`crate::stopping`].
    pub(crate) async fn connect(&self, request: Request) -> Result<Exchange, Error> {
        match request {
            Request::StopTracing(id) => self.connect_to_stop(id).await,
            request => self.connect_unchecked(request).await,
        }
    }

    pub(crate) async fn connect_unchecked(&self, request: Request) -> Result<Exchange, Error> {
        Exchange::connect(&self.connector, request, self.timeouts.connect).await
    }

    /// Opens a connection for a request that a descriptor follows.
    #[cfg(target_os = "linux")]
    pub(crate) async fn connect_with(
        &self,
        request: Request,
        descriptor: std::os::fd::OwnedFd,
    ) -> Result<Exchange, Error> {
        Exchange::connect_with(&self.connector, request, descriptor, self.timeouts.connect).await
    }
}

/// Returns the error of a request whose reply was not the expected one.
pub(crate) fn unexpected(outcome: Result<Reply, Error>, request: &Request) -> Error {
    outcome.map_or_else(|error| error, |_reply| wrong_reply(request))
}
