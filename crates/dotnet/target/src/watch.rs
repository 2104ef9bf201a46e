//! Who starts, ends and changes from one look to the next. A runtime that answers and runs is not asked again and again: it
//! serves one client at a time.

use std::collections::BTreeMap;

use runtap_discover::Process;

use crate::seen::{Seen, sort};

/// What tells one process from another that had the same id before: its start.
type Id = (u32, u64);

/// What became of a process.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Change {
    /// It is new.
    Start,
    /// It is otherwise than before.
    Changed,
    /// It is gone.
    End,
}

/// What was known at the last look.
#[derive(Debug, Default)]
pub struct Watch {
    known: BTreeMap<Id, Seen>,
}

impl Watch {
    /// Those of whom something may still change: new ones, and those that do not answer, or wait at their start.
    pub fn open(&self, found: &[Process]) -> Vec<Process> {
        let is_open = |process: &&Process| {
            let known = self.known.get(&id(process));
            known.is_none_or(|seen| !seen.reachable || seen.suspended == Some(true))
        };
        found.iter().filter(is_open).cloned().collect()
    }

    /// Takes over what was found, and what those said that were asked: what changed since the last time.
    pub fn take(&mut self, found: &[Process], told: Vec<Seen>) -> Vec<(Change, Seen)> {
        let mut changes = Vec::new();
        let living: BTreeMap<u32, Id> = found.iter().map(|process| (process.pid, id(process))).collect();
        let ended = self.known.extract_if(.., |id, _| living.get(&id.0) != Some(id));
        changes.extend(ended.map(|(_, seen)| (Change::End, seen)));
        for seen in told {
            let Some(id) = living.get(&seen.pid) else { continue };
            match self.known.insert(*id, seen.clone()) {
                None => changes.push((Change::Start, seen)),
                Some(before) if before != seen => changes.push((Change::Changed, seen)),
                Some(_) => {}
            }
        }
        changes
    }

    /// Everybody who is known, by name, then by pid.
    pub fn known(&self) -> Vec<Seen> {
        let mut seen: Vec<Seen> = self.known.values().cloned().collect();
        sort(&mut seen);
        seen
    }
}

fn id(process: &Process) -> Id {
    (process.pid, process.start_time)
}
