//! The agents of a recording, replayed with what their reports need.

use std::path::{Path, PathBuf};
use std::time::Duration;

use runtap_bytefrog::{Detail, Report, Selection};
use runtap_bytefrog_proto::{Dialect, RecordMode};
use runtap_model::order;
use serde::Serialize;

use crate::broken::{BrokenRules, describe_violation};
use crate::recording::error::Error;
use crate::recording::find::{RecordedAgent, find};
use crate::recording::part::{Part, ResolvedPart};
use crate::recording::replay::{Options, ReplayedAgent, replay};

/// The numbers of classes by the outcome of instrumenting them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize)]
pub struct ClassCounts {
    /// The number of classes that were instrumented.
    pub transformed: u64,
    /// The number of classes that were skipped.
    pub ignored: u64,
    /// The number of classes that could not be instrumented.
    pub failed: u64,
}

impl ClassCounts {
    /// Returns the sum of both.
    #[must_use]
    pub fn and(self, other: Self) -> Self {
        Self {
            transformed: self.transformed.saturating_add(other.transformed),
            ignored: self.ignored.saturating_add(other.ignored),
            failed: self.failed.saturating_add(other.failed),
        }
    }
}

/// A replayed agent of a recording.
#[derive(Debug)]
pub struct LoadedAgent {
    /// The files of the agent.
    pub recorded: RecordedAgent,
    /// The options of the replay.
    pub options: Options,
    /// The result of the replay.
    pub replayed: ReplayedAgent,
}

impl LoadedAgent {
    /// Returns the numbers of the agent's reports on classes.
    pub fn classes(&self) -> ClassCounts {
        let [transformed, ignored, failed] = self.replayed.class_counts;
        ClassCounts { transformed, ignored, failed }
    }

    /// Returns the rules that the agent has broken on its connections.
    pub fn broken(&self) -> BrokenRules {
        let mut broken = BrokenRules::default();
        for (connection, violation) in &self.replayed.violations {
            broken.add(violation.rule, || describe_violation(Some(*connection), violation));
        }
        broken
    }

    /// Returns whether the agent's last data is missing because its process was killed or a connection was lost.
    pub fn ended_early(&self) -> bool {
        let replayed = &self.replayed;
        let is_early = self.broken().rules().iter().any(|finding| finding.rule.is_early_end());
        is_early || !replayed.unfinished.is_empty() || !replayed.damage.is_empty()
    }

    /// Returns whether data is missing from the recording or was lost by the agent. A recording of a killed program is
    /// complete.
    pub fn is_partial(&self) -> bool {
        let replayed = &self.replayed;
        self.recorded.marks.problem().is_some()
            || !replayed.damage.is_empty()
            || !replayed.unfinished.is_empty()
            || self.broken().has_losses()
            || replayed.model.has_losses()
    }

    /// Returns the report on the agent's trace.
    pub fn report(&self) -> Report {
        let report = self.replayed.model.report();
        let configuration = self.replayed.configuration.as_ref();
        let counts =
            configuration.is_some_and(|configuration| configuration.extension.record != RecordMode::Full);
        Report { unsent: counts && report.dialect == Dialect::F1 && self.ended_early(), ..report }
    }

    /// Describes the agent in one line.
    pub fn title(&self) -> String {
        let replayed = &self.replayed;
        let mut title = format!("{}: version {}", replayed.agent, replayed.model.dialect());
        if let Some(process) = &replayed.process {
            let main = process.main.to_string();
            title = if main.is_empty() {
                format!("{title}, process {}, JVM {}", process.pid, process.jvm)
            } else {
                format!("{title}, {main} ({}), JVM {}", process.pid, process.jvm)
            };
        }
        if let Some(project) = replayed.project {
            title = format!("{title}, project {project}");
        }
        title
    }
}

/// A replayed recording.
#[derive(Debug)]
pub struct LoadedRecording {
    /// The path of the recording.
    pub path: PathBuf,
    /// The agents.
    pub agents: Vec<LoadedAgent>,
}

impl LoadedRecording {
    /// Replays the selected agents of a recording, or all if none are selected.
    ///
    /// # Errors
    /// Fails if the recording cannot be read, lacks an agent, or does not have the part.
    pub fn load(path: &Path, part: Option<&Part>, agents: &[String], slow: Duration) -> Result<Self, Error> {
        let mut loaded = Vec::new();
        each(path, part, agents, slow, |agent| loaded.push(agent))?;
        Ok(Self { path: path.to_owned(), agents: loaded })
    }

    /// Returns the files of the recording.
    pub fn files(&self) -> Vec<&Path> {
        let streams = self.agents.iter().flat_map(|agent| &agent.recorded.streams);
        streams.flat_map(|stream| [Some(&*stream.bytes), stream.index.as_deref()]).flatten().collect()
    }

    /// Returns the reports on the agents.
    pub fn reports(&self) -> Vec<Report> {
        self.agents.iter().map(LoadedAgent::report).collect()
    }

    /// Returns what the agents have reported instead of calls, without which there are no profiles; `None` if there are
    /// calls.
    pub fn missing_calls(&self) -> Option<Detail> {
        let details: Vec<Detail> = self.agents.iter().map(|agent| agent.report().detail()).collect();
        let first = details.first().copied().filter(|first| *first != Detail::Calls);
        first.filter(|first| details.iter().all(|detail| detail == first))
    }

    /// Checks that an agent has a thread with this id. `recording` is the name of the recording, for the error.
    ///
    /// # Errors
    /// Fails if no agent has such a thread.
    pub fn check_thread(&self, thread: u32, recording: String) -> Result<(), Error> {
        let threads = self.agents.iter().flat_map(|agent| agent.replayed.model.report().threads);
        let known = order::to_set(threads.map(|thread| thread.id));
        if known.contains(&thread) { Ok(()) } else { Err(Error::NoThread { recording, thread, known }) }
    }
}

/// Replays the selected agents of a recording one after the other.
pub(super) fn each(
    path: &Path,
    part: Option<&Part>,
    agents: &[String],
    slow: Duration,
    mut take: impl FnMut(LoadedAgent),
) -> Result<(), Error> {
    let mut found = find(path)?;
    if let Some(unknown) = agents.iter().find(|wanted| found.iter().all(|it| it.agent != **wanted)) {
        return Err(Error::NoAgent {
            path: path.to_owned(),
            agent: unknown.clone(),
            available: found.into_iter().map(|it| it.agent).collect(),
        });
    }
    found.retain(|it| agents.is_empty() || agents.contains(&it.agent));
    let slow = u64::try_from(slow.as_nanos()).unwrap_or(u64::MAX);
    let mut unknown = None;
    let count = found.len();
    for recorded in found {
        let mut options = Options { slow, ..Options::default() };
        let mut replayed = replay(&recorded, &options)?;
        if let Some(part) = part {
            match part.resolve(&replayed.model.report(), &recorded.marks) {
                Ok(part) => options.part = part,
                // A marker may exist in some agents only.
                Err(error) => {
                    options.part = ResolvedPart { selection: Selection::Times(Vec::new()), marked: None };
                    unknown.get_or_insert((0, error)).0 += 1;
                }
            }
            replayed = replay(&recorded, &options)?;
        }
        take(LoadedAgent { recorded, options, replayed });
    }
    match unknown {
        Some((lacking, error)) if lacking == count => Err(Error::NoPart { path: path.to_owned(), error }),
        _ => Ok(()),
    }
}
