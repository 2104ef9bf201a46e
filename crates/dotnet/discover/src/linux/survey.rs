//! Examines processes that were found, and derives why a process can't be reached. This takes longer than the search, so it is
//! limited for all processes together.

use super::budget::UserBudgets;
use super::candidate::Candidate;
use super::facts::{Facts, ProcessState, Survey};
use super::gather::{self, FoundProcess, RuntimeProbe};
use super::proc_files;
use super::runtime::{self, Runtime};
use super::search::{Search, Snapshot};
use crate::{NotFound, Process, ProcessKind, Reason};

impl Search<'_> {
    pub(super) fn one(&mut self, pid: u32) -> Result<Process, NotFound> {
        if let Some((candidate, found)) = self.find(pid)
            && found.is_reachable(pid)
        {
            let seen = Snapshot { status: found.status, comm: found.comm, start: found.start_time };
            return Ok(self.describe(&candidate, ProcessKind::Dotnet, found.sockets, seen));
        }
        let facts = self.facts(pid);
        let looked_at = facts.steps();
        // The socket may have been created meanwhile.
        let reason = Reason::all(&facts).into_iter().next().unwrap_or(Reason::Starting);
        Err(NotFound { pid, reason, looked_at })
    }

    pub(super) fn facts(&mut self, pid: u32) -> Facts {
        match self.find(pid) {
            Some((_, FoundProcess { status, .. })) if status.tgid != pid => {
                self.system.facts_of_none(pid, ProcessState::Thread { tgid: status.tgid })
            }
            Some((candidate, found)) => {
                let probe = self.probe_runtime(&candidate, &found);
                let found = self.with_new_sockets(pid, found, &probe);
                let facts = self.system.gather(&candidate.dir, pid, found, probe);
                self.with_java(facts)
            }
            None if self.system.is_hidden(pid) => self.system.facts_of_none(pid, ProcessState::Hidden),
            None => self.system.facts_of_none(pid, ProcessState::Gone),
        }
    }

    /// Raises the budget for a search for a single process.
    pub(super) fn for_one(mut self) -> Self {
        self.map_budgets = UserBudgets::new(4 * gather::MAX_PER_PROCESS, self.system.uid);
        self
    }

    /// Searches again for the sockets of a process if its server runs but no socket was found. A runtime creates its socket before
    /// the server's thread, so both may be newer than the lists of sockets, which were read before the threads.
    fn with_new_sockets(&mut self, pid: u32, found: FoundProcess, probe: &RuntimeProbe) -> FoundProcess {
        let is_newer =
            found.sockets.is_empty() && runtime::serves(&probe.runtime, &probe.names) == Some(true);
        if is_newer && self.read_lists_again() {
            return self.find(pid).map_or(found, |(_, found)| found);
        }
        found
    }

    fn probe_runtime(&mut self, candidate: &Candidate, found: &FoundProcess) -> RuntimeProbe {
        let before = self.map_budgets.left(found.status.uid).min(gather::MAX_PER_PROCESS);
        let mut budget = before;
        let probe = RuntimeProbe::look(&candidate.dir, &mut budget);
        self.map_budgets.spend(found.status.uid, before.saturating_sub(budget));
        probe
    }

    fn with_java(&mut self, facts: Facts) -> Facts {
        let known = if facts.is_jvm() { self.known_jvm(facts.pid) } else { None };
        Facts { java: known.and_then(|process| process.java), ..facts }
    }

    pub(super) fn managed_facts(&mut self) -> Survey {
        let mut survey = Survey::default();
        for pid in proc_files::pids(&self.system.proc_root) {
            let facts = self.managed_facts_of(pid, &mut survey.not_looked_at);
            survey.processes.extend(facts);
        }
        survey
    }

    fn managed_facts_of(&mut self, pid: u32, not_looked_at: &mut usize) -> Option<Facts> {
        let (candidate, found) = self.find(pid)?;
        // For most processes the memory map is enough.
        let alive =
            !matches!(gather::state(&found.status, pid), ProcessState::Thread { .. } | ProcessState::Ended);
        if !alive {
            return None;
        }
        let probe = self.probe_runtime(&candidate, &found);
        if !found.is_reachable(pid) && (probe.runtime == Runtime::None || probe.is_unread()) {
            *not_looked_at += usize::from(probe.is_unread());
            return None;
        }
        let found = self.with_new_sockets(pid, found, &probe);
        let facts = self.system.gather(&candidate.dir, pid, found, probe);
        let is_managed = facts.is_dotnet() || facts.runtime.is_too_old() || facts.is_jvm();
        is_managed.then(|| self.with_java(facts))
    }
}
