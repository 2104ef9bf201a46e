//! Notices and statistics of a router.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use runtap_diag_proto::{Command, ErrorReply};

/// An event that a router reports.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub enum Notice {
    /// A runtime has connected for the first time, or has answered a query of its identity.
    Runtime {
        /// The process id that the runtime reports.
        process_id: u64,
    },
    /// A runtime is gone.
    RuntimeGone {
        /// The process id that the runtime reported.
        process_id: u64,
    },
    /// Another runtime has connected, while the router stands for one.
    Another {
        /// The process id of the new runtime.
        process_id: u64,
        /// The process id of the runtime that the router stands for.
        routed: u64,
    },
    /// A runtime was disconnected because all places of runtimes are taken.
    NoPlace {
        /// The process id that the runtime reports.
        process_id: u64,
        /// The number of places.
        places: usize,
        /// How many times this has happened.
        count: u64,
    },
    /// A peer that connected is not a runtime.
    NoRuntime {
        /// A description of the peer.
        who: String,
        /// The reason.
        why: String,
    },
    /// A peer has not proven that it has the token.
    Unproven {
        /// A description of the peer.
        who: String,
        /// The reason.
        why: String,
    },
    /// A client waits for the runtime. The number of waiting clients.
    Waiting(usize),
    /// The router answered a request itself.
    Refused {
        /// A description of the client.
        who: String,
        /// The reason, and the answer.
        why: String,
    },
    /// The runtime could not be reached in time.
    NotReached {
        /// A description of the client.
        who: String,
        /// The requested command.
        command: Command,
        /// The reason.
        why: String,
    },
    /// A client has been served.
    Carried {
        /// A description of the client.
        who: String,
        /// The requested command.
        command: Command,
        /// The error reply of the runtime, if any.
        error: Option<ErrorReply>,
        /// The number of bytes from the runtime.
        bytes: u64,
        /// The time from the request to the end.
        took: Duration,
    },
    /// A connection broke before the end.
    Broken {
        /// A description of the client.
        who: String,
        /// The requested command.
        command: Command,
        /// The reason.
        why: String,
    },
    /// A tool that listens belongs to another user and is not served.
    ForeignTool {
        /// The user id of the tool.
        uid: u32,
    },
}

/// Counters of a router.
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
        /// Returns the number of clients that connected, or of requests from tools that listen.
        connections,
        /// Returns the number of requests forwarded to a runtime.
        forwarded,
        /// Returns the number of requests that the router answered itself.
        refused,
        /// Returns the number of clients that were disconnected or left before they had sent a request.
        silent,
        /// Returns the number of requests for which the runtime could not be reached.
        not_reached,
        /// Returns the number of bytes sent to runtimes.
        to_runtime,
        /// Returns the number of bytes sent to clients.
        to_clients,
        /// Returns the number of runtimes seen.
        runtimes,
        /// Returns the number of times that a runtime was disconnected because all places were taken.
        without_place,
        /// Returns the peak number of waiting clients.
        most_waiting,
    }
}

/// A callback for notices.
type Callback = Arc<dyn Fn(&Notice) + Send + Sync>;

/// Counts events and forwards notices.
#[derive(Clone, Default)]
pub(crate) struct NoticeReporter {
    statistics: Arc<Statistics>,
    callback: Option<Callback>,
}

impl fmt::Debug for NoticeReporter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("NoticeReporter").field("statistics", &self.statistics).finish_non_exhaustive()
    }
}

impl NoticeReporter {
    pub(crate) fn with_callback(self, callback: impl Fn(&Notice) + Send + Sync + 'static) -> Self {
        Self { callback: Some(Arc::new(callback)), ..self }
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

    /// Reports that a runtime found no place.
    pub(crate) fn without_place(&self, process_id: u64, places: usize) {
        let count = self.statistics.without_place.fetch_add(1, Ordering::Relaxed) + 1;
        self.report(&Notice::NoPlace { process_id, places, count });
    }

    /// Counts a request of this many bytes. Its outcome may be known much later, or never.
    pub(crate) fn forwarded(&self, bytes: usize) {
        self.statistics.forwarded.fetch_add(1, Ordering::Relaxed);
        self.statistics.to_runtime.fetch_add(bytes as u64, Ordering::Relaxed);
    }

    pub(crate) fn sent_to_client(&self, bytes: usize) {
        self.statistics.to_clients.fetch_add(bytes as u64, Ordering::Relaxed);
    }

    /// Counts a notice and forwards it.
    pub(crate) fn report(&self, notice: &Notice) {
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
        if let Some(callback) = &self.callback {
            callback(notice);
        }
    }
}
