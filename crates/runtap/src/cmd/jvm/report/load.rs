//! The recordings named on the command line.
//!
//! Owns: [`Operand`], a parsed `RECORDING#PART`, and [`load`], which replays the agents of a recording.

use std::path::{Path, PathBuf};
use std::time::Duration;

use runtap_bytefrog::Report;
use runtap_bytefrog_proto::{Dialect, RecordMode, Rule};
use runtap_jvm::recording::{Error, Options, Part, RecordedAgent, ReplayedAgent, ResolvedPart, find, replay};

use super::super::broken::{BrokenRules, describe_violation};
use super::super::document::Classes;
use crate::exit::{self, expected, usage};
use crate::output::Output;
use crate::units::Things;

/// A recording, and the part of it to report on.
#[derive(Debug)]
pub(in crate::cmd::jvm) struct Operand {
    pub(in crate::cmd::jvm) path: PathBuf,
    pub(in crate::cmd::jvm) part: Option<Part>,
}

impl Operand {
    /// Parses an operand. An existing path is taken literally, even if it contains '#'.
    pub(in crate::cmd::jvm) fn parse(text: &str) -> anyhow::Result<Self> {
        let whole = || Self { path: text.into(), part: None };
        if Path::new(text).exists() {
            return Ok(whole());
        }
        match text.rsplit_once('#') {
            None => Ok(whole()),
            Some((path, part)) => {
                let part = Part::parse(part).map_err(|problem| usage(format!("{text}: {problem}")))?;
                Ok(Self { path: path.into(), part: Some(part) })
            }
        }
    }

    /// Returns the operand as it was given.
    pub(in crate::cmd::jvm) fn label(&self) -> String {
        match &self.part {
            Some(part) => format!("{}#{part}", self.path.display()),
            None => self.path.display().to_string(),
        }
    }

    /// Replays the selected agents one after the other, so that only one is in memory, and warns of missing data. Returns the
    /// exit code.
    pub(in crate::cmd::jvm) fn each(
        &self,
        agents: &[String],
        slow: Duration,
        output: Output,
        mut take: impl FnMut(&LoadedAgent),
    ) -> anyhow::Result<u8> {
        let whole = LoadedRecording { path: self.path.clone(), agents: Vec::new() };
        let (mut is_partial, mut is_first) = (false, true);
        each(&self.path, self.part.as_ref(), agents, slow, |agent| {
            take(&agent);
            // All agents share the marks.
            is_partial |= std::mem::take(&mut is_first) && whole.warn_of_marks(&agent, output);
            is_partial |= whole.warn_of(&agent, output);
        })?;
        Ok(if is_partial { exit::PARTIAL } else { exit::OK })
    }

    /// Replays the selected agents.
    pub(in crate::cmd::jvm) fn load(
        &self,
        agents: &[String],
        slow: Duration,
    ) -> anyhow::Result<LoadedRecording> {
        load(&self.path, self.part.as_ref(), agents, slow)
    }
}

/// A replayed agent of a recording.
#[derive(Debug)]
pub(in crate::cmd::jvm) struct LoadedAgent {
    pub(in crate::cmd::jvm) recorded: RecordedAgent,
    pub(in crate::cmd::jvm) options: Options,
    pub(in crate::cmd::jvm) replayed: ReplayedAgent,
}

impl LoadedAgent {
    pub(in crate::cmd::jvm) fn classes(&self) -> Classes {
        let [transformed, ignored, failed] = self.replayed.class_counts;
        Classes { transformed, ignored, failed }
    }

    /// Returns the rules that the agent has broken on its connections.
    pub(in crate::cmd::jvm) fn broken(&self) -> BrokenRules {
        let mut broken = BrokenRules::default();
        for (connection, violation) in &self.replayed.violations {
            broken.add(violation.rule, || describe_violation(Some(*connection), violation));
        }
        broken
    }

    /// Returns whether the agent's last data is missing because its process was killed or a connection was lost.
    pub(in crate::cmd::jvm) fn ended_early(&self) -> bool {
        let replayed = &self.replayed;
        let is_early = self.broken().rules().iter().any(|finding| finding.rule.is_early_end());
        is_early || !replayed.unfinished.is_empty() || !replayed.damage.is_empty()
    }

    /// Returns the report on the agent's trace.
    pub(in crate::cmd::jvm) fn report(&self) -> Report {
        let report = self.replayed.model.report();
        let configuration = self.replayed.configuration.as_ref();
        let counts = configuration.is_some_and(|told| told.extension.record != RecordMode::Full);
        Report { unsent: counts && report.dialect == Dialect::F1 && self.ended_early(), ..report }
    }

    /// Describes the agent in one line.
    pub(in crate::cmd::jvm) fn title(&self) -> String {
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
pub(in crate::cmd::jvm) struct LoadedRecording {
    path: PathBuf,
    pub(in crate::cmd::jvm) agents: Vec<LoadedAgent>,
}

/// Replays the recording at a path.
pub(in crate::cmd::jvm) fn load(
    path: &Path,
    part: Option<&Part>,
    wanted: &[String],
    slow: Duration,
) -> anyhow::Result<LoadedRecording> {
    let mut agents = Vec::new();
    each(path, part, wanted, slow, |agent| agents.push(agent))?;
    Ok(LoadedRecording { path: path.to_owned(), agents })
}

fn each(
    path: &Path,
    part: Option<&Part>,
    wanted: &[String],
    slow: Duration,
    mut take: impl FnMut(LoadedAgent),
) -> anyhow::Result<()> {
    let mut found = find(path).map_err(classify_error)?;
    if let Some(unknown) = wanted.iter().find(|wanted| found.iter().all(|it| it.agent != **wanted)) {
        let available: Vec<&str> = found.iter().map(|it| it.agent.as_str()).collect();
        let hint = format!("the recording has {}", available.join(", "));
        return Err(expected(exit::USAGE, format!("{} has no agent '{unknown}'", path.display()), hint));
    }
    found.retain(|it| wanted.is_empty() || wanted.contains(&it.agent));
    let slow = u64::try_from(slow.as_nanos()).unwrap_or(u64::MAX);
    let mut unknown = None;
    let count = found.len();
    for recorded in found {
        let mut options = Options { slow, ..Options::default() };
        let mut replayed = replay(&recorded, &options).map_err(classify_error)?;
        if let Some(part) = part {
            match part.resolve(&replayed.model.report(), &recorded.marks) {
                Ok(part) => options.part = part,
                // A marker may exist in some agents only.
                Err(error) => {
                    options.part = ResolvedPart {
                        selection: runtap_bytefrog::Selection::Times(Vec::new()),
                        marked: None,
                    };
                    unknown.get_or_insert((0, error)).0 += 1;
                }
            }
            replayed = replay(&recorded, &options).map_err(classify_error)?;
        }
        take(LoadedAgent { recorded, options, replayed });
    }
    match unknown {
        Some((lacking, error)) if lacking == count => {
            Err(expected(exit::USAGE, format!("{}: {error}", path.display()), None))
        }
        _ => Ok(()),
    }
}

impl LoadedRecording {
    /// Warns of missing data. Returns whether data is missing from the recording or was lost by an agent. The way in which an
    /// agent ended is reported too, but such a recording is complete.
    pub(in crate::cmd::jvm) fn warn(&self, output: Output) -> bool {
        // All agents share the marks.
        let mut is_partial = self.agents.first().is_some_and(|agent| self.warn_of_marks(agent, output));
        for agent in &self.agents {
            is_partial |= self.warn_of(agent, output);
        }
        is_partial
    }

    fn warn_of_marks(&self, agent: &LoadedAgent, output: Output) -> bool {
        let Some(problem) = agent.recorded.marks.problem() else { return false };
        let path = self.path.display();
        output.warning(format_args!("{path}: marks.tsv {problem}; parts that were marked may be missing"));
        true
    }

    fn warn_of(&self, agent: &LoadedAgent, output: Output) -> bool {
        let path = self.path.display();
        let mut is_partial = false;
        let replayed = &agent.replayed;
        for damage in &replayed.damage {
            output.warning(format_args!(
                "{path}: {} can't be read beyond offset {}: {}",
                damage.stream, damage.offset, damage.reason
            ));
            is_partial = true;
        }
        if !replayed.unfinished.is_empty() {
            let names: Vec<String> = replayed.unfinished.iter().map(ToString::to_string).collect();
            output.warning(format_args!(
                "{path}: {}: the recording ends before the connection ({})",
                replayed.agent,
                names.join(", ")
            ));
            is_partial = true;
        }
        let broken = agent.broken();
        let matters = |rule: Rule| rule.loses() || rule.is_early_end();
        for finding in broken.rules().iter().filter(|finding| matters(finding.rule)) {
            if finding.rule == Rule::EndWithoutShutdown {
                // Data that the agent had not sent by itself or on request is lost.
                output.warning(format_args!(
                    "{path}: {}: the program was killed or halted, or its connection was lost ({}): calls that the \
                     agent had not sent by then are missing; with --mode counts or coverage, all since the last snapshot",
                    replayed.agent, finding.rule
                ));
                continue;
            }
            output.warning(format_args!(
                "{path}: {}: {}: {}; what came is shown",
                replayed.agent,
                finding.rule,
                finding.rule.summary()
            ));
        }
        is_partial |= broken.loses() || replayed.model.has_losses();
        let counters = replayed.model.counters();
        if counters.counted_besides() > 0 {
            output.warning(format_args!(
                "{path}: {}: {} only counted, because the collector was too slow: times, callers and threads are \
                 without them",
                replayed.agent,
                Things(counters.counted_besides(), "call")
            ));
        }
        for (count, what) in
            [(counters.missing, "never came"), (counters.dropped, "were dropped by the agent")]
        {
            if count > 0 {
                output.warning(format_args!(
                    "{path}: {}: {} {what}; numbers may be too low",
                    replayed.agent,
                    Things(count, "event")
                ));
            }
        }
        is_partial
    }
}

/// Adds an exit code and a hint to an error.
pub(in crate::cmd::jvm) fn classify_error(error: Error) -> anyhow::Error {
    if !error.is_rejection() {
        return error.into();
    }
    let cause = std::error::Error::source(&error).map(ToString::to_string);
    let text = match cause {
        Some(cause) if !error.to_string().contains(&cause) => format!("{error}: {cause}"),
        _ => error.to_string(),
    };
    let hint =
        matches!(error, Error::NoRecording(_)).then(|| "'runtap jvm hq --record DIR' makes one".to_owned());
    expected(exit::USAGE, text, hint)
}
