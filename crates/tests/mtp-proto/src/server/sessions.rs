//! Test sessions. Starts and ends are counted for each SessionUid over all connections, as the SDK does.

use std::collections::BTreeMap;

use super::{ConnectionId, Output, quote};
use crate::{Rule, SessionEvent, SessionEventType, TestResults};

#[derive(Debug, Default)]
struct SessionCount {
    starts: u32,
    ends: u32,
}

#[derive(Debug, Default)]
pub(super) struct Sessions {
    counts: BTreeMap<String, SessionCount>,
    open: u32,
}

impl Sessions {
    pub(super) fn handle(&mut self, event: &SessionEvent, connection: ConnectionId, output: &mut Output) {
        // Missing fields have already been reported.
        let (Some(kind), Some(uid)) = (event.session_type, &event.session_uid) else { return };
        let mut broken = |rule| output.violation(rule, Some(connection), format!("session {}", quote(uid)));
        match kind {
            SessionEventType::START => {
                let count = self.counts.entry(uid.clone()).or_default();
                if count.starts > 0 {
                    broken(Rule::SessionTwice);
                }
                count.starts = count.starts.saturating_add(1);
                self.open = self.open.saturating_add(1);
            }
            SessionEventType::END => match self.counts.get_mut(uid).filter(|count| count.ends < count.starts)
            {
                Some(count) => {
                    count.ends += 1;
                    self.open = self.open.saturating_sub(1);
                }
                None => broken(Rule::SessionEnd),
            },
            other => output.violation(Rule::SessionType, Some(connection), format!("got {other}")),
        }
    }

    pub(super) fn any_open(&self) -> bool {
        self.open > 0
    }

    /// Returns why a result is outside of a running session, or `None` if all results are in one.
    pub(super) fn outside(&self, results: &TestResults) -> Option<String> {
        let successful = results.successful.iter().flatten().map(|test| &test.session_uid);
        let failed = results.failed.iter().flatten().map(|test| &test.session_uid);
        successful.chain(failed).find_map(|uid| match uid {
            Some(uid) => match self.counts.get(uid) {
                None => Some(format!("session {} has not started", quote(uid))),
                Some(count) if count.ends >= count.starts => {
                    Some(format!("session {} has ended", quote(uid)))
                }
                Some(_) => None,
            },
            None if self.open == 0 => Some("no session has started".to_owned()),
            None => None,
        })
    }

    /// Reports the violations of an application that exited with code 0.
    pub(super) fn at_exit(&self, output: &mut Output) {
        if self.counts.is_empty() {
            output.violation(Rule::NoSession, None, "no session event was received");
        }
        for (uid, count) in self.counts.iter().filter(|(_, count)| count.starts != count.ends) {
            let detail = format!("session {}: {} starts, {} ends", quote(uid), count.starts, count.ends);
            output.violation(Rule::SessionOpen, None, detail);
        }
    }
}
