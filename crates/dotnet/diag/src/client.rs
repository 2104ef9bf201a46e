//! Asks a runtime one thing at a time. Owns time-outs and the order in which commands of different age are tried.

use std::sync::Arc;
use std::time::Duration;

use runtap_diag_proto::{
    InfoForm, ProcessInfo, Reply, Request, SessionConfig, SessionForm, SessionId, Variable,
};
use runtap_transport::Endpoint;

use crate::ports::Slot;
use crate::{
    Backlog, Error, Session,
    dial::Dial,
    exchange::{Answer, Exchange, wrong_reply},
};

/// How long a client waits.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct Timeouts {
    /// For the connection. It stands at once unless the runtime's queue of waiting clients is full. A runtime that
    /// dials in does so again within milliseconds of the last command, unless it is busy. Default 5 s.
    pub connect: Duration,
    /// For a complete answer. A healthy runtime takes milliseconds; one that writes a dump or serves another client
    /// does not answer at all. Default 10 s.
    pub reply: Duration,
    /// For progress while a session is being stopped: the longest time without a byte of the stream or of the
    /// answer. The runtime writes all its method names then, which may take minutes altogether. Default 60 s.
    pub stop: Duration,
    /// For a core dump. The runtime answers when it is written; the largest ones take minutes. Default 1 h.
    pub dump: Duration,
    /// For a profiler or a startup hook. The runtime answers when its code has run. Default 60 s.
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
    /// The same limit for everything.
    pub fn all(limit: Duration) -> Self {
        Self { connect: limit, reply: limit, stop: limit, dump: limit, load: limit }
    }

    /// The limit for the answer to a request.
    fn answer(&self, request: &Request) -> Duration {
        match request {
            Request::GenerateCoreDump { .. } => self.dump,
            Request::AttachProfiler(_) | Request::ApplyStartupHook { .. } => self.load,
            Request::StopTracing(_) => self.stop,
            _ => self.reply,
        }
    }
}

/// A client of one runtime. Cheap to clone; holds no connection: each command opens its own, because an idle one
/// would block all other clients of the runtime. (Of a runtime that dials in on a [port](crate::ports) it takes the
/// connection that waits there.)
///
/// Dropping the future of a command cancels it and closes its connection.
#[derive(Debug, Clone)]
pub struct Client {
    dial: Dial,
    timeouts: Timeouts,
    backlog: Backlog,
}

impl Client {
    /// A client of the runtime that listens there, with the default time-outs.
    pub fn new(endpoint: Endpoint) -> Self {
        Self { dial: Dial::Out(endpoint), timeouts: Timeouts::default(), backlog: Backlog::default() }
    }

    /// A client of a runtime that dials in.
    pub(crate) fn of_port(slot: Arc<Slot>) -> Self {
        Self { dial: Dial::In(slot), timeouts: Timeouts::default(), backlog: Backlog::default() }
    }

    /// With these time-outs.
    #[must_use]
    pub fn with_timeouts(mut self, timeouts: Timeouts) -> Self {
        self.timeouts = timeouts;
        self
    }

    /// With this room for what its sessions send.
    #[must_use]
    pub fn with_backlog(mut self, backlog: Backlog) -> Self {
        self.backlog = backlog;
        self
    }

    pub(crate) fn backlog(&self) -> Backlog {
        self.backlog
    }

    /// Whom it asks; for a runtime that dials in, the port where it does.
    pub fn endpoint(&self) -> &Endpoint {
        self.dial.endpoint()
    }

    /// How long it waits.
    pub fn timeouts(&self) -> Timeouts {
        self.timeouts
    }

    /// Who the process is. Asks with the newest command that the runtime knows.
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

    /// The id in our pid namespace of the process behind a connection to it, as the kernel has it. Asks it nothing.
    ///
    /// # Errors
    /// It is not reached; [`Error::Io`] if it lies in a pid namespace that we do not see.
    pub async fn process_id(&self) -> Result<u32, Error> {
        let exchange = self.connect(Request::ProcessInfo(InfoForm::ProcessInfo)).await?;
        exchange.process().map_err(|source| exchange.io(source))
    }

    /// The environment variables of the process, as they are now.
    pub async fn environment(&self) -> Result<Vec<Variable>, Error> {
        let request = Request::ProcessEnvironment;
        match self.request(request.clone()).await {
            Ok(Reply::Environment(variables)) => Ok(variables),
            other => Err(unexpected(other, &request)),
        }
    }

    /// Lets a runtime go on that waits at startup. No effect on one that runs.
    pub async fn resume(&self) -> Result<(), Error> {
        self.request(Request::ResumeRuntime).await.map(drop)
    }

    /// Ends a session by its id, which some other program may have started. A session of one's own is ended with
    /// [`Session::stop`], which never does it twice: **runtimes use ids again at once and do not say when an id is
    /// unknown.** Comes back only after the runtime has written everything into the session's stream.
    ///
    /// # Errors
    /// [`Error::Objection`] while the runtime waits at its start: it would die of it later. To hang up ends the session
    /// too.
    pub async fn stop_session(&self, id: SessionId) -> Result<(), Error> {
        let exchange = self.connect(Request::StopTracing(id)).await?;
        exchange.complete(self.timeouts.stop).await.map(drop)
    }

    /// Starts a session with the newest command that the runtime knows. [`Session::downgrades`] says what the
    /// session does not do because that command is an old one.
    ///
    /// # Errors
    /// [`Error::Invalid`], before anything is sent, if the configuration must not be sent to any runtime.
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

    /// Starts a session with this command and no other.
    ///
    /// # Errors
    /// As [`start_session`](Self::start_session), and [`Error::Refused`] by a runtime that does not know the command.
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

    /// Any request, once, as it is: no negotiation. The stream of a session that it starts is thrown away.
    ///
    /// # Errors
    /// [`Error::Objection`], before anything is sent, if the target would be harmed: see [`crate::preflight`].
    pub async fn request(&self, request: Request) -> Result<Reply, Error> {
        let limit = self.timeouts.answer(&request);
        self.connect_checked(request).await?.complete(limit).await.map(|answer| answer.reply)
    }

    /// A request that can harm nobody.
    async fn ask(&self, request: Request) -> Result<Reply, Error> {
        self.exchange(request).await.map(|answer| answer.reply)
    }

    async fn exchange(&self, request: Request) -> Result<Answer, Error> {
        self.connect(request).await?.complete(self.timeouts.reply).await
    }

    /// A connection for a request. The end of a session is not for every moment: see [`crate::stopping`].
    pub(crate) async fn connect(&self, request: Request) -> Result<Exchange, Error> {
        match request {
            Request::StopTracing(id) => self.connect_to_stop(id).await,
            request => self.dial(request).await,
        }
    }

    pub(crate) async fn dial(&self, request: Request) -> Result<Exchange, Error> {
        Exchange::connect(&self.dial, request, self.timeouts.connect).await
    }

    /// A connection for a request that a descriptor follows.
    #[cfg(target_os = "linux")]
    pub(crate) async fn connect_with(
        &self,
        request: Request,
        descriptor: std::os::fd::OwnedFd,
    ) -> Result<Exchange, Error> {
        Exchange::connect_with(&self.dial, request, descriptor, self.timeouts.connect).await
    }
}

/// The error of a request that did not have the reply that belongs to it.
pub(crate) fn unexpected(outcome: Result<Reply, Error>, request: &Request) -> Error {
    outcome.map_or_else(|error| error, |_reply| wrong_reply(request))
}
