//! Replayed recordings as sources of profiles.

use runtap_convert::source::{Partial, ProfileForm, ProfileSource, SourceProfile, has_view};
use runtap_convert::{Content, FileFormat, Note, Unsuitable};
use runtap_model::{Trace, View};
use runtap_sinks::Format;

use crate::recording::error::Error;
use crate::recording::loaded::{LoadedAgent, LoadedRecording};
use crate::recording::profile::{ProfileKind, TreeMeasure, profile, views};

/// The maximum number of segments of a timeline, of all agents together: 480 MB.
const MAX_SEGMENTS: u64 = 20_000_000;

/// A replayed recording as a source of profiles.
#[derive(Debug)]
pub struct JavaSource {
    /// `None` after the last profile was read: files are written from the profile, so the traces are freed.
    loaded: Option<LoadedRecording>,
    length: u64,
    lost: u64,
    left_out: u64,
}

impl JavaSource {
    /// Creates the source of a recording.
    pub fn new(loaded: LoadedRecording) -> Self {
        let lost = loaded.agents.iter().map(|agent| agent.replayed.model.counters().missing);
        Self {
            length: loaded.agents.iter().map(|agent| agent.recorded.bytes()).sum(),
            lost: lost.fold(0, u64::saturating_add),
            left_out: 0,
            loaded: Some(loaded),
        }
    }

    /// Returns the number of pieces of time that are missing from the end of timelines.
    pub fn left_out(&self) -> u64 {
        self.left_out
    }

    fn agents(&self) -> &[LoadedAgent] {
        self.loaded.as_ref().map_or(&[], |loaded| &loaded.agents)
    }

    /// Returns the profile of all agents.
    fn trace(&self, kind: ProfileKind) -> Result<Trace, Error> {
        let one = |LoadedAgent { recorded, replayed, options }: &LoadedAgent| {
            profile(recorded, replayed, options, kind)
        };
        match self.agents() {
            [agent] => one(agent),
            agents => Ok(Trace::merge(agents.iter().map(one).collect::<Result<Vec<_>, _>>()?)),
        }
    }
}

/// Returns whether a format shows calls over time instead of sums.
fn is_timeline(format: FileFormat) -> bool {
    let shown = [Format::Speedscope, Format::Chrome, Format::Perfetto, Format::Firefox];
    format.sink().is_some_and(|format| shown.contains(&format))
}

/// Returns whether the content is the view of times.
fn is_timed(content: &Content) -> bool {
    let [_, calls] = views();
    content.view != Some(calls)
}

impl ProfileSource for JavaSource {
    const DESCRIPTION: &'static str = "a Java recording";

    fn views() -> Vec<View> {
        views().to_vec()
    }

    fn check(formats: &[FileFormat], content: &Content) -> Result<(), Unsuitable> {
        has_view::<Self>(content)?;
        Content { view: None, ..*content }.check(formats)?;
        let mut sinks =
            formats.iter().filter(|format| is_timeline(**format)).filter_map(|format| format.sink());
        match sinks.find(|sink| *sink != Format::Speedscope) {
            Some(sink) if !is_timed(content) => Err(Unsuitable::NeedsTimes(sink)),
            _ => Ok(()),
        }
    }

    fn length(&self) -> u64 {
        self.length
    }

    fn lost(&self) -> u64 {
        self.lost
    }

    fn partial(&self) -> Option<Partial> {
        None
    }

    fn form(&self, format: FileFormat, content: &Content) -> ProfileForm {
        if is_timed(content) && is_timeline(format) { ProfileForm::Timeline } else { ProfileForm::Sums }
    }

    fn profile(
        &mut self,
        form: ProfileForm,
        content: &Content,
        is_last: bool,
        _tell: &mut dyn FnMut(Note),
    ) -> Result<SourceProfile, runtap_convert::Error> {
        let share = MAX_SEGMENTS / (self.agents().len() as u64).max(1);
        let [time, calls] = views();
        let (view, measure) =
            if is_timed(content) { (time, TreeMeasure::Time) } else { (calls, TreeMeasure::Calls) };
        let kind = match form {
            ProfileForm::Timeline => ProfileKind::Timeline(share),
            ProfileForm::Sums => ProfileKind::Tree(measure),
        };
        let trace = self.trace(kind).map_err(|error| runtap_convert::Error::Source(Box::new(error)))?;
        self.left_out += trace.left_out();
        if is_last {
            self.loaded = None;
        }
        // Calls have a start and an end; they are not samples.
        let evented = form == ProfileForm::Timeline;
        Ok(SourceProfile { trace, content: Content { view: Some(view), evented, ..*content } })
    }
}
