//! Sessions of others in the same process, seen by the threads that serve them.
//!
//! A runtime that finds the client of a session gone ends that session by itself, some hundredths of a second later. It
//! works out who still wants the events of a provider under its lock, and tells the provider outside it. A session that
//! begins at that moment can be overtaken: .NET 8 to 10 then switch the provider off for it too, although it stays
//! listed, and nothing in the stream tells. The same may happen when any two sessions begin and end at once. So it is
//! worth a word whether one of others has ended meanwhile ([`Silence`](crate::Silence) says the rest).

use std::collections::BTreeSet;

/// How the runtime calls the thread of its server, and with it those of the sessions that this one starts.
const NAME: &str = ".NET EventPipe";

/// The threads of all sessions of a process, ours among them.
#[derive(Debug, Default)]
pub(crate) struct OtherSessions {
    pid: Option<u32>,
    seen: BTreeSet<u32>,
    has_one_ended: bool,
}

impl OtherSessions {
    /// Those of a process in which our own session has not begun yet.
    pub(crate) fn before(pid: Option<u32>) -> Self {
        let mut other_sessions = Self { pid, ..Self::default() };
        other_sessions.look();
        other_sessions
    }

    /// The process, where its id for us is known.
    pub(crate) fn pid(&self) -> Option<u32> {
        self.pid
    }

    /// Looks again. Not to be called any more when our own session was told to stop.
    pub(crate) fn look(&mut self) {
        let threads = self.pid.and_then(|pid| runtap_discover::threads(pid).ok()).unwrap_or_default();
        let threads = threads.into_iter().filter(|thread| thread.name == NAME);
        self.take(threads.map(|thread| thread.tid).collect());
    }

    fn take(&mut self, now: BTreeSet<u32>) {
        // A process without its server has ended, and its sessions with it.
        if !now.is_empty() {
            self.has_one_ended |= !self.seen.is_subset(&now);
            self.seen.extend(now);
        }
    }

    /// Whether one ended while ours began or ran.
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
    fn who_is_gone_has_ended() {
        // The server, and our own.
        assert!(!ended(&[&[1], &[1, 2], &[1, 2, 3]]));
        // One that was there before, and one that came and went.
        assert!(ended(&[&[1, 9], &[1, 9, 2], &[1, 2]]));
        assert!(ended(&[&[1], &[1, 2, 9], &[1, 2], &[1, 2]]));
        // The process has ended.
        assert!(!ended(&[&[1, 9], &[1, 9, 2], &[]]));
        assert!(!ended(&[&[]]));
    }
}
