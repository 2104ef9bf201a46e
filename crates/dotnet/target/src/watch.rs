//! Reports which processes start, exit and change between two scans. A runtime that answers and is not suspended is queried only
//! once, because it serves one client at a time.

use std::collections::BTreeMap;

use runtap_discover::Process;
use runtap_model::order;

use crate::status::{ProcessStatus, sort};

/// A process id and the start time of the process: process ids are reused.
type Id = (u32, u64);

/// What happened to a process.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Change {
    /// The process is new.
    Started,
    /// The process differs from the last scan.
    Changed,
    /// The process has exited.
    Exited,
}

/// The processes known from the last scan.
#[derive(Debug, Default)]
pub struct Watch {
    known: BTreeMap<Id, ProcessStatus>,
}

impl Watch {
    /// Returns the processes that must be queried: new ones, those that did not answer, and suspended ones.
    pub fn to_query(&self, found: &[Process]) -> Vec<Process> {
        let is_unsettled = |process: &&Process| {
            let known = self.known.get(&id(process));
            known.is_none_or(|seen| !seen.reachable || seen.suspended == Some(true))
        };
        found.iter().filter(is_unsettled).cloned().collect()
    }

    /// Stores the processes found and the answers of those queried. Returns what changed since the last scan.
    pub fn update(&mut self, found: &[Process], queried: Vec<ProcessStatus>) -> Vec<(Change, ProcessStatus)> {
        let mut changes = Vec::new();
        let running = order::to_map(found.iter().map(|process| (process.pid, id(process))));
        let ended = self.known.extract_if(.., |id, _| running.get(&id.0) != Some(id));
        changes.extend(ended.map(|(_, seen)| (Change::Exited, seen)));
        for seen in queried {
            let Some(id) = running.get(&seen.pid) else { continue };
            match self.known.insert(*id, seen.clone()) {
                None => changes.push((Change::Started, seen)),
                Some(before) if before != seen => changes.push((Change::Changed, seen)),
                Some(_) => {}
            }
        }
        changes
    }

    /// Returns all known processes, ordered by name and process id.
    pub fn known(&self) -> Vec<ProcessStatus> {
        let mut seen: Vec<ProcessStatus> = self.known.values().cloned().collect();
        sort(&mut seen);
        seen
    }
}

fn id(process: &Process) -> Id {
    (process.pid, process.start_time)
}
