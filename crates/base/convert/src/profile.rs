//! From a recording to a profile.

use crate::source::Recording;
use runtap_clr::{DotnetTraceBuilder, ProfileBuilder, ProfileOptions};
use runtap_model::{Room, Trace};
use runtap_nettrace::Observe;

use crate::{Content, Error, Note};

/// A profile, and the recording that it was made of.
#[derive(Debug)]
pub struct Profile {
    /// The profile.
    pub trace: Trace,
    /// Read to its end: it tells what is missing.
    pub recording: Recording,
}

impl Profile {
    /// Reads what `content` needs of a recording.
    ///
    /// # Errors
    /// It can't be read.
    pub fn read(
        mut recording: Recording,
        content: &Content,
        options: &ProfileOptions,
        tell: &mut dyn FnMut(Note),
    ) -> Result<Self, Error> {
        let options = &ProfileOptions { room: room_of(&recording), ..options.clone() };
        let (malformed, trace) = if content.dotnet_trace {
            let mut builder = DotnetTraceBuilder::new();
            recording.read(|item| builder.item(item))?;
            if recording.partial().is_some() {
                builder.cut_off();
            }
            (builder.malformed(), builder.finish(options))
        } else {
            let mut builder = content.view.map_or_else(ProfileBuilder::new, ProfileBuilder::of);
            match builder.parts() {
                Some(part) => recording.read_parallel(&mut builder, part)?,
                None => recording.read(|item| builder.item(item))?,
            }
            (builder.malformed(), builder.finish(options))
        };
        note_left_out(&mut recording, &trace);
        if malformed > 0 {
            tell(Note::Malformed(malformed));
        }
        notes(&trace).into_iter().for_each(tell);
        Ok(Self { trace, recording })
    }
}

/// What a reader of a profile should know, whatever is made of it.
pub fn notes(trace: &Trace) -> Vec<Note> {
    let lacks = trace.lacks_resumptions().then_some(Note::LacksResumptions);
    nameless(trace).into_iter().chain(lacks).collect()
}

/// Says that a profile is made of addresses for more than a quarter.
fn nameless(trace: &Trace) -> Option<Note> {
    let (mut all, mut nameless) = (0_u64, 0_u64);
    for (_, frame) in trace.all_frames() {
        all += 1;
        nameless += u64::from(frame.module.is_none() && !frame.has_name());
    }
    (nameless > all / 4).then_some(Note::Nameless { nameless, all })
}

/// The profile of a recording that was read.
pub fn finish(builder: ProfileBuilder, recording: &mut Recording) -> Trace {
    let trace = builder.finish(&ProfileOptions { room: room_of(recording), ..ProfileOptions::default() });
    note_left_out(recording, &trace);
    trace
}

/// The room for a profile that is put together of what was read.
fn room_of(recording: &Recording) -> Room {
    Room::while_there_is(recording.room())
}

/// Notes what is missing from the profile that was made of a recording.
fn note_left_out(recording: &mut Recording, trace: &Trace) {
    if trace.left_out() > 0 {
        recording.note_left_out(trace.left_out());
    }
}
