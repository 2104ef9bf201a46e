//! What is said to, and asked of, whoever chooses a target.

use std::io;
use std::path::Path;

use runtap_diag::ports::Port;
use runtap_discover::Process;
use runtap_transport::{Endpoint, Peer};

/// What is to be known of a choice, and is no failure. In the order in which it happens.
#[derive(Debug, Clone, Copy)]
pub enum Remark<'a> {
    /// Where a process is asked.
    AskedOn {
        /// The process.
        pid: u32,
        /// Its socket.
        endpoint: &'a Endpoint,
    },
    /// Processes of other users have the name too.
    LeftOut {
        /// The name.
        name: &'a str,
        /// Those processes.
        processes: &'a [Process],
    },
    /// A process is a router: the program that it stands for is asked at this port.
    Router {
        /// The process.
        pid: u32,
        /// The port.
        path: &'a Path,
    },
    /// A program is waited for that is to dial in.
    Listening(&'a Port),
    /// Somebody has dialled in who may not, and was disconnected.
    Stranger(Peer),
    /// Of so many processes it is not known whether they are .NET: they have more memory mappings than are read.
    NotLookedAt(usize),
}

/// Which one is meant.
#[derive(Debug, Clone, Copy)]
pub struct Question<'a> {
    /// The ones there are. The answer is a number of this list, from 1, or a process id in it.
    pub processes: &'a [Process],
    /// What was answered before, and is neither. Nothing the first time.
    pub slip: Option<&'a str>,
}

/// Whoever chooses a target.
pub trait Dialogue {
    /// Takes note of something.
    fn remark(&self, remark: Remark<'_>);

    /// Whether there is anybody to be asked.
    fn can_ask(&self) -> bool {
        false
    }

    /// Asks, and gives the line that was answered; an empty one for no answer.
    ///
    /// # Errors
    /// Nothing can be read.
    fn ask(&self, question: Question<'_>) -> impl Future<Output = io::Result<String>> {
        let _ = question;
        async { Ok(String::new()) }
    }
}

/// Takes note of nothing, and is never asked.
impl Dialogue for () {
    fn remark(&self, _: Remark<'_>) {}
}
