//! Reads recordings into profiles.

use std::path::Path;

use runtap_clr::{DotnetTraceBuilder, Names, ProfileBuilder, ProfileOptions};
use runtap_model::{Room, Trace, View};
use runtap_nettrace::{Observe, StreamItem};

use crate::source::{self, Partial, ProfileForm, ProfileSource, Recording, SourceProfile};
use crate::{Content, Error, Note};

/// A profile and its recording.
#[derive(Debug)]
pub struct Profile {
    /// The profile.
    pub trace: Trace,
    /// The recording, read to its end, which knows what is missing.
    pub recording: Recording,
}

impl Profile {
    /// Reads what `content` needs from a recording.
    ///
    /// # Errors
    /// If the recording cannot be read.
    pub fn read(
        mut recording: Recording,
        content: &Content,
        options: &ProfileOptions,
        tell: &mut dyn FnMut(Note),
    ) -> Result<Self, Error> {
        let trace = read(&mut recording, content, options, tell)?;
        Ok(Self { trace, recording })
    }
}

impl ProfileSource for Recording {
    const DESCRIPTION: &'static str = "a .NET recording";

    fn views() -> Vec<View> {
        View::ALL.to_vec()
    }

    fn length(&self) -> u64 {
        Self::length(self)
    }

    fn lost(&self) -> u64 {
        Self::lost(self)
    }

    fn partial(&self) -> Option<Partial> {
        Self::partial(self)
    }

    fn profile(
        &mut self,
        _form: ProfileForm,
        content: &Content,
        _is_last: bool,
        tell: &mut dyn FnMut(Note),
    ) -> Result<SourceProfile, Error> {
        let trace = read(self, content, &ProfileOptions::default(), tell)?;
        if Self::lost(self) > 0 {
            tell(Note::Lost { events: Self::lost(self), skipped: self.has_skipped() });
        }
        Ok(SourceProfile { trace, content: *content })
    }
}

/// Reads what `content` needs from a recording.
fn read(
    recording: &mut Recording,
    content: &Content,
    options: &ProfileOptions,
    tell: &mut dyn FnMut(Note),
) -> Result<Trace, Error> {
    let options = &ProfileOptions { room: room_of(recording), ..options.clone() };
    let (malformed, trace) = if content.dotnet_trace {
        let mut builder = DotnetTraceBuilder::new();
        recording.read(&mut |item| builder.item(item))?;
        if recording.partial().is_some() {
            builder.cut_off();
        }
        (builder.malformed(), builder.finish(options))
    } else {
        let mut builder = content.view.map_or_else(ProfileBuilder::new, ProfileBuilder::of);
        match builder.parts() {
            Some(part) => recording.read_parallel(&mut builder, part)?,
            None => recording.read(&mut |item| builder.item(item))?,
        }
        (builder.malformed(), builder.finish(options))
    };
    note_left_out(recording, &trace);
    if malformed > 0 {
        tell(Note::Malformed(malformed));
    }
    notes(&trace).into_iter().for_each(tell);
    Ok(trace)
}

/// Returns notes about a profile that are independent of the output format.
pub fn notes(trace: &Trace) -> Vec<Note> {
    let lacks = trace.lacks_resumptions().then_some(Note::LacksResumptions);
    nameless(trace).into_iter().chain(lacks).collect()
}

/// Returns a note if more than a quarter of the frames are addresses.
fn nameless(trace: &Trace) -> Option<Note> {
    let (mut all, mut nameless) = (0_u64, 0_u64);
    for (_, frame) in trace.all_frames() {
        all += 1;
        nameless += u64::from(frame.module.is_none() && !frame.has_name());
    }
    (nameless > all / 4).then_some(Note::Nameless { nameless, all })
}

/// Completes the profile of a recording that has been read.
pub fn finish(builder: ProfileBuilder, recording: &mut Recording) -> Trace {
    let trace = builder.finish(&ProfileOptions { room: room_of(recording), ..ProfileOptions::default() });
    note_left_out(recording, &trace);
    trace
}

/// Reads the method names of a recording, to name stacks while the recording is read again: the names are at the end.
///
/// # Errors
/// If the recording cannot be read, or not twice.
pub fn method_names(path: &Path) -> Result<Names, source::Error> {
    let mut recording = Recording::open(path)?;
    recording.must_be_read_twice()?;
    let mut names = Names::new();
    recording.read(&mut |item| {
        if !matches!(item, StreamItem::Header(_)) {
            names.item(item);
        }
    })?;
    names.seal();
    Ok(names)
}

/// Returns the memory limit for building a profile from data that has been read.
fn room_of(recording: &Recording) -> Room {
    Room::while_there_is(recording.room())
}

/// Records how many samples are missing from the profile.
fn note_left_out(recording: &mut Recording, trace: &Trace) {
    if trace.left_out() > 0 {
        recording.note_left_out(trace.left_out());
    }
}
