//! What a router tells of itself: what happens, and what it has counted.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use runtap_diag_proto::{Command, ErrorReply};

/// Something that has happened.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub enum Notice {
    /// A runtime has dialled in for the first time, or has answered who it is.
    Runtime {
        /// As it says itself.
        process_id: u64,
    },
    /// A runtime is gone.
    RuntimeGone {
        /// As it said.
        process_id: u64,
    },
    /// Another runtime has dialled in, while the router stands for one.
    Another {
        /// The newcomer.
        process_id: u64,
        /// The one that the router stands for.
        routed: u64,
    },
    /// A runtime is disconnected, because all places of runtimes are taken.
    NoPlace {
        /// As it says itself.
        process_id: u64,
        /// The places that there are.
        places: usize,
        /// How often that has happened.
        count: u64,
    },
    /// What dialled in is no runtime.
    NoRuntime {
        /// Who it was.
        who: String,
        /// What was wrong.
        why: String,
    },
    /// Somebody has not proven that he knows the token.
    Unproven {
        /// Who it was.
        who: String,
        /// What was wrong.
        why: String,
    },
    /// A client waits for the runtime: how many do.
    Waiting(usize),
    /// A request was answered here.
    Refused {
        /// Who asked.
        who: String,
        /// Why, and what the client was told.
        why: String,
    },
    /// The runtime could not be reached, or not in time.
    NotReached {
        /// Who asked.
        who: String,
        /// What was asked.
        command: Command,
        /// What happened.
        why: String,
    },
    /// A client has come to its end.
    Carried {
        /// Who asked.
        who: String,
        /// What was asked.
        command: Command,
        /// What the runtime refused, if it did.
        error: Option<ErrorReply>,
        /// Bytes from the runtime.
        bytes: u64,
        /// From the request to the end.
        took: Duration,
    },
    /// A connection broke before the end.
    Broken {
        /// Who asked.
        who: String,
        /// What was asked.
        command: Command,
        /// What happened.
        why: String,
    },
    /// A tool that is dialled belongs to another user, and is not served.
    ForeignTool {
        /// Its user.
        uid: u32,
    },
}

impl Notice {
    /// Whether it is to be known even if nobody is curious.
    pub fn is_warning(&self) -> bool {
        matches!(
            self,
            // They dial in again and again.
            Self::NoPlace { count: 1, .. }
                | Self::Another { .. }
                | Self::NotReached { .. }
                | Self::ForeignTool { .. }
                | Self::NoRuntime { .. }
                | Self::Unproven { .. }
        )
    }
}

impl fmt::Display for Notice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Runtime { process_id } => write!(f, "the runtime of process {process_id} is connected"),
            Self::RuntimeGone { process_id } => write!(f, "the runtime of process {process_id} is gone"),
            Self::Another { process_id, routed } => write!(
                f,
                "process {process_id} has dialled in too and waits: a router stands for one runtime, which is that of \
                 process {routed}; start another router for it, on a port of its own"
            ),
            Self::NoPlace { process_id, places, count } => write!(
                f,
                "disconnected the runtime of process {process_id}: all {places} places are taken, which users and machines \
                 share ({count} so far); start another router, on a port of its own"
            ),
            Self::NoRuntime { who, why } => write!(
                f,
                "refused a connection from {who}, which is not a .NET runtime: {why}; only runtimes should dial this address"
            ),
            Self::Unproven { who, why } => write!(
                f,
                "refused a connection from {who}: {why}; if it is yours, give both sides the same token file"
            ),
            Self::Waiting(1) => f.write_str("the runtime is busy: 1 client waits"),
            Self::Waiting(clients) => write!(f, "the runtime is busy: {clients} clients wait"),
            Self::Refused { who, why } => write!(f, "{who}: not forwarded: {why}"),
            Self::NotReached { who, command, why } | Self::Broken { who, command, why } => {
                write!(f, "{who}: {command}: {why}")
            }
            Self::Carried { who, command, error, bytes, took } => {
                write!(f, "{who}: {command}: ")?;
                match error {
                    Some(error) => write!(f, "refused by the runtime with {}", error.hresult)?,
                    None => write!(f, "{bytes} bytes")?,
                }
                write!(f, ", {:.3} s", took.as_secs_f64())
            }
            Self::ForeignTool { uid } => write!(
                f,
                "the tool's port belongs to a process of user {uid}: it is not told anything; run the tool as your own user"
            ),
        }
    }
}

/// What was counted.
#[derive(Debug, Default)]
pub struct Statistics {
    connections: AtomicU64,
    forwarded: AtomicU64,
    refused: AtomicU64,
    silent: AtomicU64,
    not_reached: AtomicU64,
    to_runtime: AtomicU64,
    to_clients: AtomicU64,
    runtimes: AtomicU64,
    without_place: AtomicU64,
    most_waiting: AtomicU64,
}

macro_rules! counters {
    ($($(#[$doc:meta])* $name:ident),+ $(,)?) => {$(
        $(#[$doc])*
        pub fn $name(&self) -> u64 {
            self.$name.load(Ordering::Relaxed)
        }
    )+};
}

impl Statistics {
    counters! {
        /// Clients that have connected, or tools that have sent something.
        connections,
        /// Requests that the runtime got.
        forwarded,
        /// Requests that were answered here.
        refused,
        /// Clients that were disconnected, or left, before they had sent a request.
        silent,
        /// Requests for which the runtime could not be reached.
        not_reached,
        /// Bytes sent to runtimes.
        to_runtime,
        /// Bytes sent to clients.
        to_clients,
        /// Runtimes that were there.
        runtimes,
        /// How often a runtime was disconnected for lack of a place.
        without_place,
        /// The most clients that have waited at one time.
        most_waiting,
    }
}

/// Whoever is told.
type Tell = Arc<dyn Fn(&Notice) + Send + Sync>;

/// Counts and tells.
#[derive(Clone, Default)]
pub(crate) struct Teller {
    statistics: Arc<Statistics>,
    tell: Option<Tell>,
}

impl fmt::Debug for Teller {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Teller").field("statistics", &self.statistics).finish_non_exhaustive()
    }
}

impl Teller {
    pub(crate) fn telling(self, tell: impl Fn(&Notice) + Send + Sync + 'static) -> Self {
        Self { tell: Some(Arc::new(tell)), ..self }
    }

    pub(crate) fn statistics(&self) -> Arc<Statistics> {
        Arc::clone(&self.statistics)
    }

    pub(crate) fn connection(&self) {
        self.statistics.connections.fetch_add(1, Ordering::Relaxed);
    }

    pub(crate) fn silent(&self) {
        self.statistics.silent.fetch_add(1, Ordering::Relaxed);
    }

    /// A runtime has none of the places that there are.
    pub(crate) fn without_place(&self, process_id: u64, places: usize) {
        let count = self.statistics.without_place.fetch_add(1, Ordering::Relaxed) + 1;
        self.tell(&Notice::NoPlace { process_id, places, count });
    }

    /// The runtime has got a request of so many bytes. What becomes of it may show long after that, or never.
    pub(crate) fn forwarded(&self, bytes: usize) {
        self.statistics.forwarded.fetch_add(1, Ordering::Relaxed);
        self.statistics.to_runtime.fetch_add(bytes as u64, Ordering::Relaxed);
    }

    pub(crate) fn sent_to_client(&self, bytes: usize) {
        self.statistics.to_clients.fetch_add(bytes as u64, Ordering::Relaxed);
    }

    /// Tells of it, and counts what it stands for.
    pub(crate) fn tell(&self, notice: &Notice) {
        let count = &self.statistics;
        match notice {
            Notice::Runtime { .. } => {
                count.runtimes.fetch_add(1, Ordering::Relaxed);
            }
            Notice::Refused { .. } | Notice::Unproven { .. } => {
                count.refused.fetch_add(1, Ordering::Relaxed);
            }
            Notice::NotReached { .. } => {
                count.not_reached.fetch_add(1, Ordering::Relaxed);
            }
            Notice::Waiting(clients) => {
                count.most_waiting.fetch_max(*clients as u64, Ordering::Relaxed);
            }
            _ => {}
        }
        if let Some(tell) = &self.tell {
            tell(notice);
        }
    }
}
