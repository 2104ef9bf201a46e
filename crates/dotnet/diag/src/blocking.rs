//! The same methods for programs without an async runtime.
//!
//! Each [`Client`] has one thread of its own, which moves the bytes of all its commands and sessions; the calls
//! wait for it. Must not be called from async code: tokio panics then.

use std::{
    io,
    sync::{Arc, mpsc},
    thread,
};

use runtap_diag_proto::{
    AttachProfiler, Command, CoreDump, Downgrade, PerfMapType, ProcessInfo, Reply, Request, SessionConfig,
    SessionForm, SessionId, StartupProfiler, Variable,
};
use runtap_transport::Endpoint;
use tokio::{
    runtime::{Builder, Handle},
    sync::oneshot,
};

use crate::{Chunk, Error, Timeouts, WrittenDump};

/// The thread that moves the bytes. Ends when the last client, session and stop that use it are gone.
#[derive(Debug)]
struct Driver {
    handle: Handle,
    /// Dropped with the driver, which ends the thread.
    _running: oneshot::Sender<()>,
}

impl Driver {
    fn start() -> io::Result<Arc<Self>> {
        let (tell, started) = mpsc::channel();
        let (running, ended) = oneshot::channel::<()>();
        thread::Builder::new().name("runtap-diag".into()).spawn(move || {
            let runtime = match Builder::new_current_thread().enable_io().enable_time().build() {
                Ok(runtime) => runtime,
                Err(error) => {
                    let _ = tell.send(Err(error));
                    return;
                }
            };
            let _ = tell.send(Ok(runtime.handle().clone()));
            // Ends with an error when the sender is dropped: that is the signal.
            let _ = runtime.block_on(ended);
        })?;
        let handle = started.recv().map_err(io::Error::other)??;
        Ok(Arc::new(Self { handle, _running: running }))
    }
}

/// A client of one runtime: see [`crate::Client`].
#[derive(Debug, Clone)]
pub struct Client {
    inner: crate::Client,
    driver: Arc<Driver>,
}

impl Client {
    /// A client of the runtime that listens there, with the default time-outs.
    ///
    /// # Errors
    /// When the system has no more threads or descriptors.
    pub fn new(endpoint: Endpoint) -> io::Result<Self> {
        Ok(Self { inner: crate::Client::new(endpoint), driver: Driver::start()? })
    }

    /// With these time-outs.
    #[must_use]
    pub fn with_timeouts(mut self, timeouts: Timeouts) -> Self {
        self.inner = self.inner.with_timeouts(timeouts);
        self
    }

    /// Whom it asks.
    pub fn endpoint(&self) -> &Endpoint {
        self.inner.endpoint()
    }

    /// How long it waits.
    pub fn timeouts(&self) -> Timeouts {
        self.inner.timeouts()
    }

    /// See [`crate::Client::process_info`].
    pub fn process_info(&self) -> Result<ProcessInfo, Error> {
        self.driver.handle.block_on(self.inner.process_info())
    }

    /// See [`crate::Client::environment`].
    pub fn environment(&self) -> Result<Vec<Variable>, Error> {
        self.driver.handle.block_on(self.inner.environment())
    }

    /// See [`crate::Client::resume`].
    pub fn resume(&self) -> Result<(), Error> {
        self.driver.handle.block_on(self.inner.resume())
    }

    /// See [`crate::Client::stop_session`].
    pub fn stop_session(&self, id: SessionId) -> Result<(), Error> {
        self.driver.handle.block_on(self.inner.stop_session(id))
    }

    /// See [`crate::Client::start_session`].
    pub fn start_session(&self, config: &SessionConfig) -> Result<Session, Error> {
        let inner = self.driver.handle.block_on(self.inner.start_session(config))?;
        Ok(Session { inner, driver: Arc::clone(&self.driver) })
    }

    /// See [`crate::Client::dump`].
    pub fn dump(&self, dump: &CoreDump) -> Result<WrittenDump, Error> {
        self.driver.handle.block_on(self.inner.dump(dump))
    }

    /// See [`crate::Client::attach_profiler`].
    pub fn attach_profiler(&self, profiler: &AttachProfiler) -> Result<(), Error> {
        self.driver.handle.block_on(self.inner.attach_profiler(profiler))
    }

    /// See [`crate::Client::startup_profiler`].
    pub fn startup_profiler(&self, profiler: &StartupProfiler) -> Result<(), Error> {
        self.driver.handle.block_on(self.inner.startup_profiler(profiler))
    }

    /// See [`crate::Client::set_environment_variable`].
    pub fn set_environment_variable(&self, name: &str, value: Option<&str>) -> Result<(), Error> {
        self.driver.handle.block_on(self.inner.set_environment_variable(name, value))
    }

    /// See [`crate::Client::enable_perf_map`].
    pub fn enable_perf_map(&self, kind: PerfMapType) -> Result<(), Error> {
        self.driver.handle.block_on(self.inner.enable_perf_map(kind))
    }

    /// See [`crate::Client::disable_perf_map`].
    pub fn disable_perf_map(&self) -> Result<(), Error> {
        self.driver.handle.block_on(self.inner.disable_perf_map())
    }

    /// See [`crate::Client::apply_startup_hook`].
    pub fn apply_startup_hook(&self, path: &str) -> Result<(), Error> {
        self.driver.handle.block_on(self.inner.apply_startup_hook(path))
    }

    /// See [`crate::Client::start_user_events`].
    #[cfg(target_os = "linux")]
    pub fn start_user_events(
        &self,
        config: &crate::UserEventsConfig,
        descriptor: std::os::fd::OwnedFd,
    ) -> Result<UserEventsSession, Error> {
        let inner = self.driver.handle.block_on(self.inner.start_user_events(config, descriptor))?;
        Ok(UserEventsSession { inner, driver: Arc::clone(&self.driver) })
    }

    /// See [`crate::Client::request`].
    pub fn request(&self, request: Request) -> Result<Reply, Error> {
        self.driver.handle.block_on(self.inner.request(request))
    }
}

/// A session of ours into `user_events`: see [`crate::user_events::UserEventsSession`].
#[cfg(target_os = "linux")]
#[derive(Debug)]
pub struct UserEventsSession {
    inner: crate::user_events::UserEventsSession,
    driver: Arc<Driver>,
}

#[cfg(target_os = "linux")]
impl UserEventsSession {
    /// Its number in the runtime.
    pub fn id(&self) -> SessionId {
        self.inner.id()
    }

    /// Waits until the runtime has ended the session, or itself.
    pub fn wait(&mut self) {
        self.driver.handle.block_on(self.inner.ended());
    }

    /// See [`crate::user_events::UserEventsSession::stop`].
    pub fn stop(self) -> Result<(), Error> {
        self.driver.handle.block_on(self.inner.stop())
    }
}

/// A session of ours in a runtime: see [`crate::Session`].
#[derive(Debug)]
pub struct Session {
    inner: crate::Session,
    driver: Arc<Driver>,
}

impl Session {
    /// Its number in the runtime.
    pub fn id(&self) -> SessionId {
        self.inner.id()
    }

    /// Whom it records.
    pub fn endpoint(&self) -> &Endpoint {
        self.inner.endpoint()
    }

    /// The form that the runtime accepted.
    pub fn form(&self) -> SessionForm {
        self.inner.form()
    }

    /// The command that the runtime accepted.
    pub fn command(&self) -> Command {
        self.inner.command()
    }

    /// See [`crate::Session::downgrades`].
    pub fn downgrades(&self) -> &[Downgrade] {
        self.inner.downgrades()
    }

    /// Bytes of the stream that came so far, taken or not.
    pub fn received(&self) -> u64 {
        self.inner.received()
    }

    /// See [`crate::Session::next_chunk`]. Waits until there is something.
    pub fn next_chunk(&mut self) -> Result<Option<Chunk>, Error> {
        self.driver.handle.block_on(self.inner.next_chunk())
    }

    /// Asks the runtime to finish the stream, and comes back at once: see [`crate::Session::stop`]. Go on with
    /// [`next_chunk`](Self::next_chunk) until it gives `None`, then [`Stopping::wait`].
    pub fn stop(&self) -> Stopping {
        let _context = self.driver.handle.enter();
        let stopping = self.inner.stop();
        let (tell, outcome) = mpsc::channel();
        // The thread lives until the runtime has answered, whatever else was dropped by then.
        let driver = Arc::clone(&self.driver);
        tokio::spawn(async move {
            // Nobody listens any more: that is allowed.
            let _ = tell.send(stopping.await);
            drop(driver);
        });
        Stopping { outcome, id: self.id() }
    }
}

/// The outcome of [`Session::stop`], when it is there.
#[derive(Debug)]
#[must_use = "the stop goes on without it, but then nobody learns whether it failed"]
pub struct Stopping {
    outcome: mpsc::Receiver<Result<(), Error>>,
    id: SessionId,
}

impl Stopping {
    /// Waits for the outcome. Somebody has to take the stream's chunks meanwhile, or have taken them all.
    pub fn wait(self) -> Result<(), Error> {
        self.outcome.recv().unwrap_or(Err(Error::StopRequested { id: self.id }))
    }
}
