//! Detects sessions of other tools in a process by the threads that serve them.
//!
//! When the client of a session disconnects, the runtime ends the session some hundredths of a second later. It determines under its
//! lock which sessions still need the events of a provider, but notifies the provider outside the lock. A session that starts at
//! that moment can be affected: .NET 8 to 10 then disable the provider for it too, although it stays listed, and the stream does not
//! show it. The same may happen whenever sessions start and end concurrently. So the end of another session is worth a note
//! ([`Silence`](crate::Silence)).

use std::collections::BTreeSet;

/// The name of the runtime's server thread, which the threads of sessions inherit.
const NAME: &str = ".NET EventPipe";

/// The threads of all sessions of a process, including this one.
#[derive(Debug, Default)]
pub(crate) struct OtherSessions {
    pid: Option<u32>,
    seen: BTreeSet<u32>,
    has_one_ended: bool,
}

impl OtherSessions {
    /// Returns the sessions of a process in which this tool's session has not started yet.
    pub(crate) fn before(pid: Option<u32>) -> Self {
        let mut other_sessions = Self { pid, ..Self::default() };
        other_sessions.look();
        other_sessions
    }

    /// Returns the process id, if known.
    pub(crate) fn pid(&self) -> Option<u32> {
        self.pid
    }

    /// Updates the threads. Must not be called after this tool's session was requested to stop.
    pub(crate) fn look(&mut self) {
        let threads = self.pid.and_then(|pid| runtap_discover::threads(pid).ok()).unwrap_or_default();
        let threads = threads.into_iter().filter(|thread| thread.name == NAME);
        self.take(threads.map(|thread| thread.tid).collect());
    }

    fn take(&mut self, now: BTreeSet<u32>) {
        // Without a server thread the process has exited, together with its sessions.
        if !now.is_empty() {
            self.has_one_ended |= !self.seen.is_subset(&now);
            self.seen.extend(now);
        }
    }

    /// Whether another session ended while this one started or ran.
    pub(crate) fn has_one_ended(&self) -> bool {
        self.has_one_ended
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ended(looks: &[&[u32]]) -> bool {
        let mut other_sessions = OtherSessions::default();
        for look in looks {
            other_sessions.take(look.iter().copied().collect());
        }
        other_sessions.has_one_ended()
    }

    #[test]
    fn a_missing_thread_is_an_ended_session() {
        // The server, and this session.
        assert!(!ended(&[&[1], &[1, 2], &[1, 2, 3]]));
        // One that existed before, and one that came and went.
        assert!(ended(&[&[1, 9], &[1, 9, 2], &[1, 2]]));
        assert!(ended(&[&[1], &[1, 2, 9], &[1, 2], &[1, 2]]));
        // The process has exited.
        assert!(!ended(&[&[1, 9], &[1, 9, 2], &[]]));
        assert!(!ended(&[&[]]));
    }
}
