//! Diagnostic Ports, listening side: runtimes connect, and a tool configures and resumes them.
//!
//! A runtime that is started with `DOTNET_DiagnosticPorts=PATH` connects to `PATH`, waits there at startup, and
//! reconnects after every command. [`Port`] is the tool's end:
//!
//! ```no_run
//! # async fn first_events(config: runtap_diag::SessionConfig) -> Result<(), Box<dyn std::error::Error>> {
//! use runtap_diag::ports::Port;
//!
//! let mut port = Port::bind("/run/my/port")?;
//! // DOTNET_DiagnosticPorts=/run/my/port dotnet app.dll
//! loop {
//!     let runtime = port.accept().await;
//!     let session = runtime.client().start_session(&config).await?;
//!     runtime.resume().await?;
//! #   drop(session);
//! }
//! # }
//! ```
//!
//! - **Many runtimes on one port**, distinguished by the cookie of their Advertise message *and* by the process that the
//!   kernel reports at the other end. [`Port::accept`] returns each one once. A cookie is not secret: a process that
//!   repeats the cookie of another one is a separate runtime, and receives nothing that is meant for the other one. The
//!   same applies to a process that changes its user.
//! - **A command uses up a connection.** A [`Client`](crate::Client) of such a runtime uses the idle connection, or
//!   waits until the runtime reconnects, for at most [`Timeouts::connect`](crate::Timeouts::connect).
//! - **The process id of an Advertise message is a claim**: [`Runtime::peer`] is the kernel's information. They differ if
//!   the runtime is in its own pid namespace, or behind a router ([`Runtime::claims_another_id`]).
//! - **A newer Advertise of a runtime replaces its older idle connection**, as in Microsoft's tools.
//! - **Strangers cannot block others**: every Advertise has its own deadline, 250 ms. At a port for all users, processes
//!   of the port's user, of root, and descendants of this process are kin and are always served; all others are guests.
//!   The guests of one user may hold a sixteenth of the descriptors (4 to 256), and all guests an eighth (8 to 1024).
//!   Beyond that the oldest guest of the user with most guests is disconnected. If descriptors run out, all guests are.
//! - A port that is dropped closes all connections. Suspended runtimes stay suspended, and connect to the next port of
//!   that name: [`Port::resume_all`] is for that.
//! - **A runtime reconnects for its whole lifetime, and trusts whatever listens**, with the rights of its user. So the
//!   name must never belong to another user. Create a port in a directory that only its user can write to
//!   ([`Port::exposure`]); in a directory such as `/tmp` its file remains when it is dropped, which prevents others from
//!   using the name. A port is passed to another process as a descriptor ([`Port::socket`], [`Port::passed_on`]), not by
//!   its name.
//!
//! For the other direction, connecting to a runtime's own port, use [`Client::new`](crate::Client::new).
//! [`runtap_diag_proto::Advertise`] is the codec. Source: the Diagnostic IPC specification, section
//! "Diagnostic Ports", and measurements on .NET 8, 9 and 10.

mod accept;
#[allow(unreachable_pub, reason = "exported to the fuzz target")]
mod admission;
/// For the fuzz targets.
#[cfg(fuzzing)]
#[doc(hidden)]
pub mod fuzzing {
    pub use super::admission::{Admission, DEADLINE, Limits, Standing, Verdict};
}
#[cfg(unix)]
mod passing;
mod process;
mod registry;
mod runtime;
mod slot;
#[cfg(target_os = "linux")]
mod waiting;

use std::io;
use std::path::{Path, PathBuf};
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use runtap_diag_proto::diagnostic_ports::LONGEST_ADDRESS;
use runtap_transport::{BindError, BindOptions, Endpoint, Exposure, Listener};
use tokio::sync::mpsc;
use tokio::task::{AbortHandle, JoinSet};
use tokio::time::timeout;

pub use self::process::user_of;
use self::registry::Registry;
pub(crate) use self::registry::Ticket;
pub use self::registry::{Visitor, Visitors};
pub use self::runtime::Runtime;
pub(crate) use self::slot::Slot;
#[cfg(target_os = "linux")]
pub use self::waiting::{SuspendPort, awaited, waited_for, waiting_for};
use crate::Error;

/// The time that [`Port::resume_all`] allows for pending answers at its end.
const RESUME_GRACE: Duration = Duration::from_secs(2);

/// A socket to which runtimes connect. Private (mode 0600) unless created for all users; its file is removed with it,
/// unless other users could then create a socket of that name.
#[derive(Debug)]
pub struct Port {
    listener: Arc<Listener>,
    registry: Arc<Registry>,
    arrivals: mpsc::UnboundedReceiver<Runtime>,
    accepting: AbortHandle,
}

impl Port {
    /// Listens on `path`, which has at most 107 bytes, the limit of runtimes. A socket file without a listening process is
    /// replaced. Requires a tokio runtime with I/O and time.
    ///
    /// # Errors
    /// If the path is in use, or an operating system error occurs.
    pub fn bind(path: impl Into<PathBuf>) -> Result<Self, BindError> {
        Self::bind_with(path.into(), BindOptions::default())
    }

    /// Like [`bind`](Self::bind), for processes of all users (mode 0666). [`Runtime::peer`] and [`Runtime::is_kin`] identify
    /// a connected process, as reported by the kernel. Resume unknown processes, and send them no other command.
    ///
    /// # Errors
    /// The errors of [`bind`](Self::bind).
    pub fn bind_for_all_users(path: impl Into<PathBuf>) -> Result<Self, BindError> {
        Self::bind_with(path.into(), BindOptions::default().everybody(true))
    }

    fn bind_with(path: PathBuf, options: BindOptions) -> Result<Self, BindError> {
        // Listening would succeed, but no runtime could ever connect.
        let length = path.as_os_str().len();
        if cfg!(unix) && length > LONGEST_ADDRESS {
            let reason =
                format!("the path is {length} bytes long; runtimes support at most {LONGEST_ADDRESS} bytes");
            return Err(BindError::Io { path, source: io::Error::new(io::ErrorKind::InvalidInput, reason) });
        }
        Ok(Self::on(Listener::bind(path, options.replace_stale(true).keeps_name(true))?))
    }

    /// Returns what other users can do to the name of the socket.
    pub fn exposure(&self) -> Exposure {
        self.listener.exposure()
    }

    /// Creates a port from a listening socket.
    pub(crate) fn on(listener: Listener) -> Self {
        let listener = Arc::new(listener);
        let (sender, arrivals) = mpsc::unbounded_channel();
        let registry = Arc::new(Registry::new(listener.endpoint(), listener.accepts_all_users(), sender));
        let accepting = tokio::spawn(accept::run(Arc::clone(&listener), Arc::clone(&registry)));
        Self { listener, registry, arrivals, accepting: accepting.abort_handle() }
    }

    /// Returns the path of the socket.
    pub fn path(&self) -> &Path {
        self.listener.path()
    }

    /// Returns the endpoint to which runtimes connect.
    pub fn endpoint(&self) -> &Endpoint {
        self.registry.endpoint()
    }

    /// Returns the next runtime that has not connected before. Runtimes wait until they are accepted, suspended if they were
    /// started so. Cancel safe.
    pub async fn accept(&mut self) -> Runtime {
        match self.arrivals.recv().await {
            Some(runtime) => runtime,
            // The port holds a sender, so the channel stays open.
            None => std::future::pending().await,
        }
    }

    /// Returns a receiver of the connections from processes that are not kin, once for each user.
    pub fn visitors(&self) -> Visitors {
        Visitors::new(&self.registry)
    }

    /// Resumes every runtime that connects, including waiting ones, until `until` completes; then completes the pending
    /// resumes within two seconds. Calls `report` with the outcome of each.
    ///
    /// This frees processes that a killed tool left suspended: they keep connecting to the port of that tool, whose path is
    /// in their environment (`DOTNET_DiagnosticPorts`).
    pub async fn resume_all(
        &mut self,
        until: impl Future<Output = ()>,
        mut report: impl FnMut(&Runtime, Result<(), Error>),
    ) {
        let mut until = pin!(until);
        let mut resuming = JoinSet::new();
        loop {
            tokio::select! {
                () = &mut until => break,
                runtime = self.accept() => {
                    resuming.spawn(async move {
                        let outcome = runtime.resume().await;
                        (runtime, outcome)
                    });
                }
                Some(Ok((runtime, outcome))) = resuming.join_next() => report(&runtime, outcome),
            }
        }
        // A runtime that does not answer may block forever.
        let _ = timeout(RESUME_GRACE, async {
            while let Some(Ok((runtime, outcome))) = resuming.join_next().await {
                report(&runtime, outcome);
            }
        })
        .await;
    }
}

impl Drop for Port {
    fn drop(&mut self) {
        self.accepting.abort();
        // The task may still run for a moment, but the socket must no longer be reachable.
        self.listener.remove_file();
        self.registry.close();
    }
}
