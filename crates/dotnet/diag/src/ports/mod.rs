//! Diagnostic Ports, listening side: runtimes dial in, a tool configures them and lets them go on.
//!
//! A runtime that is started with `DOTNET_DiagnosticPorts=PATH` dials `PATH`, waits there at its startup, and does so
//! again after every command. [`Port`] is the tool's end:
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
//! - **Many runtimes on one port**, told apart by the cookie of their Advertise message *and* by the process that the
//!   kernel sees at the other end. Each is handed out once. A cookie is no secret: who repeats that of another process is
//!   a runtime of its own, and gets nothing that was meant for the other. So does a process that changes its user.
//! - **A command uses up a connection.** A [`Client`](crate::Client) of such a runtime takes the idle connection, or
//!   waits until the runtime dials in again, for at most [`Timeouts::connect`](crate::Timeouts::connect).
//! - **The process id of an Advertise message is a claim**: [`Runtime::peer`] is the kernel's word. They differ where the
//!   runtime lives in a pid namespace of its own, and behind a router ([`Runtime::claims_another_id`]).
//! - **A newer Advertise of the same runtime replaces the older idle connection**, as in Microsoft's tools.
//! - **Nobody is blocked by a stranger**: every Advertise has a deadline of its own, 250 ms. At a port for everybody,
//!   processes of our user, of root, and those below us are kin and always have room; all others are guests, of whom each
//!   user may hold a sixteenth of our descriptors (4 to 256), and all together an eighth (8 to 1024). Beyond that the
//!   oldest is hung up on, and nobody pays for it but whoever holds most. Without descriptors all guests are.
//! - A port that is dropped hangs up on everybody. What was suspended stays suspended, and dials in on the next port
//!   of that name: [`Port::resume_all`] is for that.
//! - **A runtime dials for as long as it lives, and obeys whoever listens**: with its user's rights. So the name must not
//!   become another user's. A port belongs in a folder that only its user can write to ([`Port::exposure`]); in a folder
//!   such as `/tmp` its file stays when it is dropped, which keeps the name from others. To another process of ours a
//!   port is passed on as a descriptor ([`Port::socket`], [`Port::passed_on`]), not by its name.
//!
//! The other direction, dialling a runtime's own port, is [`Client::new`](crate::Client::new). Here is no codec
//! ([`runtap_diag_proto::Advertise`]) and no launching of programs. Source: the Diagnostic IPC specification, section
//! "Diagnostic Ports", and what .NET 8, 9 and 10 were measured to do.

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

/// How long [`Port::resume_all`] waits for answers when it is to end.
const GRACE: Duration = Duration::from_secs(2);

/// A socket on which runtimes dial in. Private (mode 0600) unless everybody is let in; its file goes with it, unless that
/// would leave its name to others.
#[derive(Debug)]
pub struct Port {
    listener: Arc<Listener>,
    registry: Arc<Registry>,
    arrivals: mpsc::UnboundedReceiver<Runtime>,
    accepting: AbortHandle,
}

impl Port {
    /// Listens on `path`, which has at most 107 bytes, because runtimes reach no longer one. A socket file that nobody listens on any
    /// more is replaced. Needs a tokio runtime with I/O and time.
    ///
    /// # Errors
    /// The path is in use, or the system does not let us.
    pub fn bind(path: impl Into<PathBuf>) -> Result<Self, BindError> {
        Self::bind_with(path.into(), BindOptions::default())
    }

    /// The same for processes of every user (mode 0666). Who has dialled in, the kernel says: [`Runtime::peer`] and
    /// [`Runtime::is_kin`]. Let those go on that you do not know, and ask nothing else of them.
    ///
    /// # Errors
    /// As [`bind`](Self::bind).
    pub fn bind_for_everybody(path: impl Into<PathBuf>) -> Result<Self, BindError> {
        Self::bind_with(path.into(), BindOptions::default().everybody(true))
    }

    fn bind_with(path: PathBuf, options: BindOptions) -> Result<Self, BindError> {
        // We can listen there, and no runtime could ever connect.
        let length = path.as_os_str().len();
        if cfg!(unix) && length > LONGEST_ADDRESS {
            let reason =
                format!("the path has {length} bytes, and a runtime reaches at most {LONGEST_ADDRESS}");
            return Err(BindError::Io { path, source: io::Error::new(io::ErrorKind::InvalidInput, reason) });
        }
        Ok(Self::on(Listener::bind(path, options.replace_stale(true).keeps_name(true))?))
    }

    /// What other users can do to the name of the socket.
    pub fn exposure(&self) -> Exposure {
        self.listener.exposure()
    }

    /// On a socket that listens already.
    pub(crate) fn on(listener: Listener) -> Self {
        let listener = Arc::new(listener);
        let (tell, arrivals) = mpsc::unbounded_channel();
        let registry = Arc::new(Registry::new(listener.endpoint(), listener.accepts_all_users(), tell));
        let accepting = tokio::spawn(accept::run(Arc::clone(&listener), Arc::clone(&registry)));
        Self { listener, registry, arrivals, accepting: accepting.abort_handle() }
    }

    /// The path of the socket.
    pub fn path(&self) -> &Path {
        self.listener.path()
    }

    /// Where runtimes dial in.
    pub fn endpoint(&self) -> &Endpoint {
        self.registry.endpoint()
    }

    /// The next runtime that has not dialled in before. Those that nobody accepts wait, suspended if they were started
    /// so. Cancel safe.
    pub async fn accept(&mut self) -> Runtime {
        match self.arrivals.recv().await {
            Some(runtime) => runtime,
            // We hold a sender ourselves.
            None => std::future::pending().await,
        }
    }

    /// Those who dial in and are no kin, once for each user: to tell of them.
    pub fn visitors(&self) -> Visitors {
        Visitors::new(&self.registry)
    }

    /// Lets every runtime go on that dials in, those that wait already among them, until `until` is ready; then
    /// finishes what was begun, as long as that takes no more than two seconds. `told` learns of each one, when it is
    /// over.
    ///
    /// This is what frees the processes that a killed tool left suspended: they dial the port of that tool, again and
    /// again, and its path stands in their environment (`DOTNET_DiagnosticPorts`).
    pub async fn resume_all(
        &mut self,
        until: impl Future<Output = ()>,
        mut told: impl FnMut(&Runtime, Result<(), Error>),
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
                Some(Ok((runtime, outcome))) = resuming.join_next() => told(&runtime, outcome),
            }
        }
        // One that does not answer may take for ever.
        let _ = timeout(GRACE, async {
            while let Some(Ok((runtime, outcome))) = resuming.join_next().await {
                told(&runtime, outcome);
            }
        })
        .await;
    }
}

impl Drop for Port {
    fn drop(&mut self) {
        self.accepting.abort();
        // The task may live on for a moment, but nobody is to find us any more.
        self.listener.remove_file();
        self.registry.close();
    }
}
