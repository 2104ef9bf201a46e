//! The methods of this crate for programs without an async runtime.
//!
//! Each [`Client`] has its own thread, which moves the bytes of all its commands and sessions; the calls
//! wait for it.
//!
//! # Panics
//! If called from async code.

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

/// The thread that moves the bytes. Exits when the last client, session and stop that use it are dropped.
#[derive(Debug)]
struct Driver {
    handle: Handle,
    /// Dropped with the driver, which stops the thread.
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
            // Completes with an error when the sender is dropped, which is the signal to exit.
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
    /// Creates a client of the runtime that listens on `endpoint`, with the default time-outs.
    ///
    /// # Errors
    /// If the system is out of threads or descriptors.
    pub fn new(endpoint: Endpoint) -> io::Result<Self> {
        Ok(Self { inner: crate::Client::new(endpoint), driver: Driver::start()? })
    }

    /// Sets the time-outs.
    #[must_use]
    pub fn with_timeouts(mut self, timeouts: Timeouts) -> Self {
        self.inner = self.inner.with_timeouts(timeouts);
        self
    }

    /// Returns the endpoint of the runtime.
    pub fn endpoint(&self) -> &Endpoint {
        self.inner.endpoint()
    }

    /// Returns the time-outs.
    pub fn timeouts(&self) -> Timeouts {
        self.inner.timeouts()
    }

    /// Returns information about the process; see [`crate::Client::process_info`].
    pub fn process_info(&self) -> Result<ProcessInfo, Error> {
        self.driver.handle.block_on(self.inner.process_info())
    }

    /// Returns the environment variables; see [`crate::Client::environment`].
    pub fn environment(&self) -> Result<Vec<Variable>, Error> {
        self.driver.handle.block_on(self.inner.environment())
    }

    /// Resumes a suspended runtime; see [`crate::Client::resume`].
    pub fn resume(&self) -> Result<(), Error> {
        self.driver.handle.block_on(self.inner.resume())
    }

    /// Stops a session by its id; see [`crate::Client::stop_session`].
    pub fn stop_session(&self, id: SessionId) -> Result<(), Error> {
        self.driver.handle.block_on(self.inner.stop_session(id))
    }

    /// Starts a session; see [`crate::Client::start_session`].
    pub fn start_session(&self, config: &SessionConfig) -> Result<Session, Error> {
        let inner = self.driver.handle.block_on(self.inner.start_session(config))?;
        Ok(Session { inner, driver: Arc::clone(&self.driver) })
    }

    /// Makes the runtime write a core dump; see [`crate::Client::dump`].
    pub fn dump(&self, dump: &CoreDump) -> Result<WrittenDump, Error> {
        self.driver.handle.block_on(self.inner.dump(dump))
    }

    /// Makes a running process load a profiler; see [`crate::Client::attach_profiler`].
    pub fn attach_profiler(&self, profiler: &AttachProfiler) -> Result<(), Error> {
        self.driver.handle.block_on(self.inner.attach_profiler(profiler))
    }

    /// Makes a suspended runtime load a profiler; see [`crate::Client::startup_profiler`].
    pub fn startup_profiler(&self, profiler: &StartupProfiler) -> Result<(), Error> {
        self.driver.handle.block_on(self.inner.startup_profiler(profiler))
    }

    /// Sets or removes a variable; see [`crate::Client::set_environment_variable`].
    pub fn set_environment_variable(&self, name: &str, value: Option<&str>) -> Result<(), Error> {
        self.driver.handle.block_on(self.inner.set_environment_variable(name, value))
    }

    /// Starts writing perf maps; see [`crate::Client::enable_perf_map`].
    pub fn enable_perf_map(&self, kind: PerfMapType) -> Result<(), Error> {
        self.driver.handle.block_on(self.inner.enable_perf_map(kind))
    }

    /// Stops writing perf maps; see [`crate::Client::disable_perf_map`].
    pub fn disable_perf_map(&self) -> Result<(), Error> {
        self.driver.handle.block_on(self.inner.disable_perf_map())
    }

    /// Calls a startup hook; see [`crate::Client::apply_startup_hook`].
    pub fn apply_startup_hook(&self, path: &str) -> Result<(), Error> {
        self.driver.handle.block_on(self.inner.apply_startup_hook(path))
    }

    /// Starts a session into `user_events`; see [`crate::Client::start_user_events`].
    #[cfg(target_os = "linux")]
    pub fn start_user_events(
        &self,
        config: &crate::UserEventsConfig,
        descriptor: std::os::fd::OwnedFd,
    ) -> Result<UserEventsSession, Error> {
        let inner = self.driver.handle.block_on(self.inner.start_user_events(config, descriptor))?;
        Ok(UserEventsSession { inner, driver: Arc::clone(&self.driver) })
    }

    /// Sends any request; see [`crate::Client::request`].
    pub fn request(&self, request: Request) -> Result<Reply, Error> {
        self.driver.handle.block_on(self.inner.request(request))
    }
}

/// A session into `user_events`: see [`crate::user_events::UserEventsSession`].
#[cfg(target_os = "linux")]
#[derive(Debug)]
pub struct UserEventsSession {
    inner: crate::user_events::UserEventsSession,
    driver: Arc<Driver>,
}

#[cfg(target_os = "linux")]
impl UserEventsSession {
    /// Returns the id of the session in the runtime.
    pub fn id(&self) -> SessionId {
        self.inner.id()
    }

    /// Waits until the runtime has ended the session, or has exited.
    pub fn wait(&mut self) {
        self.driver.handle.block_on(self.inner.ended());
    }

    /// Stops the session; see [`crate::user_events::UserEventsSession::stop`].
    pub fn stop(self) -> Result<(), Error> {
        self.driver.handle.block_on(self.inner.stop())
    }
}

/// A session in a runtime: see [`crate::Session`].
#[derive(Debug)]
pub struct Session {
    inner: crate::Session,
    driver: Arc<Driver>,
}

impl Session {
    /// Returns the id of the session in the runtime.
    pub fn id(&self) -> SessionId {
        self.inner.id()
    }

    /// Returns the endpoint of the runtime.
    pub fn endpoint(&self) -> &Endpoint {
        self.inner.endpoint()
    }

    /// Returns the form that the runtime accepted.
    pub fn form(&self) -> SessionForm {
        self.inner.form()
    }

    /// Returns the command that the runtime accepted.
    pub fn command(&self) -> Command {
        self.inner.command()
    }

    /// Returns the settings that were lost; see [`crate::Session::downgrades`].
    pub fn downgrades(&self) -> &[Downgrade] {
        self.inner.downgrades()
    }

    /// Returns the number of bytes of the stream that were received, taken or not.
    pub fn received(&self) -> u64 {
        self.inner.received()
    }

    /// Waits for the next bytes of the stream; see [`crate::Session::next_chunk`].
    pub fn next_chunk(&mut self) -> Result<Option<Chunk>, Error> {
        self.driver.handle.block_on(self.inner.next_chunk())
    }

    /// Requests the end of the stream and returns at once: see [`crate::Session::stop`]. Then call
    /// [`next_chunk`](Self::next_chunk) until it returns `None`, and [`Stopping::wait`].
    pub fn stop(&self) -> Stopping {
        let _context = self.driver.handle.enter();
        let stopping = self.inner.stop();
        let (tell, outcome) = mpsc::channel();
        // The thread runs until the runtime has answered, whatever else was dropped by then.
        let driver = Arc::clone(&self.driver);
        tokio::spawn(async move {
            // The receiver may have been dropped.
            let _ = tell.send(stopping.await);
            drop(driver);
        });
        Stopping { outcome, id: self.id() }
    }
}

/// The pending outcome of [`Session::stop`].
#[derive(Debug)]
#[must_use = "the stop continues without it, but a failure is not reported"]
pub struct Stopping {
    outcome: mpsc::Receiver<Result<(), Error>>,
    id: SessionId,
}

impl Stopping {
    /// Waits for the outcome. The stream's chunks must be taken by another thread meanwhile, or must all have been taken.
    pub fn wait(self) -> Result<(), Error> {
        self.outcome.recv().unwrap_or(Err(Error::StopRequested { id: self.id }))
    }
}
