//! Interaction with the user who selects a target.

use std::io;
use std::path::Path;

use runtap_diag::ports::Port;
use runtap_discover::Process;
use runtap_transport::{Endpoint, Peer};

/// Information about the selection of a target. Not an error.
#[derive(Debug, Clone, Copy)]
pub enum Remark<'a> {
    /// The socket over which a process is queried.
    Connecting {
        /// The process id.
        pid: u32,
        /// Its socket.
        endpoint: &'a Endpoint,
    },
    /// Processes of other users have the name too and are skipped.
    SkippedOtherUsers {
        /// The name.
        name: &'a str,
        /// The skipped processes.
        processes: &'a [Process],
    },
    /// The process is a router: the program behind it can be reached at this port.
    Router {
        /// The process id.
        pid: u32,
        /// The path of the port.
        path: &'a Path,
    },
    /// Waiting for a runtime to connect.
    Listening(&'a Port),
    /// A peer that is not permitted connected and was disconnected.
    RejectedPeer(Peer),
    /// The number of processes that were not checked for .NET because they have too many memory mappings.
    NotInspected(usize),
}

/// A request to choose a process.
#[derive(Debug, Clone, Copy)]
pub struct Question<'a> {
    /// The processes to choose from. A valid answer is a position in this list, starting at 1, or a process id.
    pub processes: &'a [Process],
    /// The previous answer, if it was invalid.
    pub invalid_answer: Option<&'a str>,
}

/// Interaction with the user who selects a target.
pub trait Dialogue {
    /// Receives a remark.
    fn remark(&self, remark: Remark<'_>);

    /// Whether the user can be asked.
    fn can_ask(&self) -> bool {
        false
    }

    /// Asks the user and returns the answer, or an empty line if there is none.
    ///
    /// # Errors
    /// Returns an error if the answer cannot be read.
    fn ask(&self, question: Question<'_>) -> impl Future<Output = io::Result<String>> {
        let _ = question;
        async { Ok(String::new()) }
    }
}

/// Ignores remarks and never asks.
impl Dialogue for () {
    fn remark(&self, _: Remark<'_>) {}
}
