//! The observations of the agents of recordings.

use runtap_bytefrog_proto::{ClassOutcome, Configuration, JavaString};

use crate::coverage::observed::{ClassFate, Observed, TracedClasses};
use crate::recording::LoadedAgent;

/// The observations of the agents of recordings, added up.
#[derive(Debug, Default)]
pub struct RecordedCoverage {
    /// The observations.
    pub observed: Observed,
    /// The time at which the first program started, in milliseconds since 1970; `None` for agents of versions 1 to 4.
    pub began_ms: Option<u64>,
}

impl RecordedCoverage {
    /// Adds an agent.
    pub fn add(&mut self, agent: &LoadedAgent) {
        let replayed = &agent.replayed;
        let wall = replayed.process.as_ref().map(|process| process.wall / 1_000_000);
        self.began_ms = self.began_ms.into_iter().chain(wall).min();
        let mut observed = Observed::of(&replayed.model.report());
        for (outcome, name) in replayed.classes.keys() {
            let fate = match outcome {
                ClassOutcome::Transformed => ClassFate::Traced,
                ClassOutcome::Ignored => ClassFate::Ignored,
                ClassOutcome::Failed => ClassFate::Failed,
            };
            observed.class(name, fate);
        }
        observed.end_of_classes();
        // Not all reports on classes are kept.
        let kept: u64 = replayed.classes.values().sum();
        observed.losses.class_reports = replayed.class_counts.iter().sum::<u64>().saturating_sub(kept);
        observed.traced.insert(traced(replayed.configuration.as_ref()));
        let jvm = replayed.process.as_ref().map(|process| process.jvm.to_string());
        observed.releases.add(jvm.as_deref());
        observed.unsent = agent.ended_early().into();
        self.observed.add(observed);
    }
}

/// Returns the patterns of the classes that an agent was configured to trace.
fn traced(configuration: Option<&Configuration>) -> TracedClasses {
    let texts = |patterns: &[JavaString]| patterns.iter().map(ToString::to_string).collect();
    configuration.map_or_else(TracedClasses::default, |configuration| TracedClasses {
        inclusions: texts(&configuration.inclusions),
        exclusions: texts(&configuration.exclusions),
    })
}
