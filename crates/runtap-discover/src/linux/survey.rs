//! From a process that was found to all that is known of it, or to the reason that it can't be reached: what is looked at
//! closer takes longer, and is limited for all together.

use super::candidate::Candidate;
use super::facts::{Facts, Life, Survey};
use super::gather::{self, Found, Inside};
use super::proc_files;
use super::runtime::Runtime;
use super::search::{Search, SeenOf};
use super::shares::Shares;
use crate::{Kind, NotFound, Process, Reason};

impl Search<'_> {
    pub(super) fn one(&mut self, pid: u32) -> Result<Process, NotFound> {
        if let Some((candidate, found)) = self.find(pid)
            && found.is_reachable(pid)
        {
            let seen = SeenOf { status: found.status, comm: found.comm, start: found.start_time };
            return Ok(self.describe(&candidate, Kind::Dotnet, found.sockets, seen));
        }
        let facts = self.facts(pid);
        let looked_at = facts.steps();
        // What came in between: the socket was made while we looked.
        let reason = Reason::all(&facts).into_iter().next().unwrap_or(Reason::Starting);
        Err(NotFound { pid, reason, looked_at })
    }

    pub(super) fn facts(&mut self, pid: u32) -> Facts {
        match self.find(pid) {
            Some((_, Found { status, .. })) if status.tgid != pid => {
                self.system.nobody(pid, Life::Thread { tgid: status.tgid })
            }
            Some((candidate, found)) => {
                let inside = self.look_inside(&candidate, &found);
                self.system.gather(&candidate.dir, pid, found, inside)
            }
            None if self.system.is_hidden(pid) => self.system.nobody(pid, Life::Hidden),
            None => self.system.nobody(pid, Life::Gone),
        }
    }

    /// For one process alone: of others nothing has to be left.
    pub(super) fn alone(mut self) -> Self {
        self.inside = Shares::new(4 * gather::MOST_OF_ONE, self.system.uid);
        self
    }

    fn look_inside(&mut self, candidate: &Candidate, found: &Found) -> Inside {
        let before = self.inside.left(found.status.uid).min(gather::MOST_OF_ONE);
        let mut budget = before;
        let inside = Inside::look(&candidate.dir, &mut budget);
        self.inside.spend(found.status.uid, before.saturating_sub(budget));
        inside
    }

    pub(super) fn dotnet_facts(&mut self) -> Survey {
        let mut survey = Survey::default();
        for pid in proc_files::pids(&self.system.proc_root) {
            let facts = self.dotnet_facts_of(pid, &mut survey.not_looked_at);
            survey.processes.extend(facts);
        }
        survey
    }

    fn dotnet_facts_of(&mut self, pid: u32, not_looked_at: &mut usize) -> Option<Facts> {
        let (candidate, found) = self.find(pid)?;
        // Most processes are told by their memory map alone.
        let alive = !matches!(gather::life(&found.status, pid), Life::Thread { .. } | Life::Ended);
        if !alive {
            return None;
        }
        let inside = self.look_inside(&candidate, &found);
        if !found.is_reachable(pid) && (inside.runtime == Runtime::None || inside.is_unread()) {
            *not_looked_at += usize::from(inside.is_unread());
            return None;
        }
        let facts = self.system.gather(&candidate.dir, pid, found, inside);
        (facts.is_dotnet() || facts.runtime.is_too_old()).then_some(facts)
    }
}
