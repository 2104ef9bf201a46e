//! Converts a recording on disk to all requested files.

use std::path::Path;

use crate::source::{ProfileForm, ProfileSource, Recording, SourceProfile};
use runtap_os::output::OutputSink;

use crate::{Content, Error, FileFormat, Note, OutputFile, Planned, WrittenFiles, upgrade, write_all};

/// A converted recording.
#[derive(Debug)]
pub struct Converted {
    /// The files written, and failures.
    pub made: WrittenFiles,
    /// The recording, read to its end, which knows what is missing.
    pub recording: Recording,
}

/// Converts a recording to files. A planned stream is [upgraded](upgrade); all other files are converted from one
/// profile, and a failure of one does not affect the others.
///
/// # Errors
/// If the recording cannot be read or upgraded.
pub fn convert(
    path: &Path,
    planned: Vec<Planned>,
    content: &Content,
    tell: &mut dyn FnMut(Note),
) -> Result<Converted, Error> {
    let (streams, profiles): (Vec<_>, Vec<_>) =
        planned.into_iter().partition(|planned| planned.format == FileFormat::Nettrace);
    let mut files = Vec::new();
    let mut recording = Recording::open(path)?;
    for Planned { format, to } in streams {
        let mut out = OutputSink::open(&to)?.begin()?;
        upgrade(&mut recording, &mut out)?;
        let (written, bytes) = out.finish()?;
        if let Some(written) = written {
            let file = OutputFile::new(written, format, bytes);
            tell(Note::Written(file.clone()));
            files.push(file);
        }
        if profiles.is_empty() {
            return Ok(Converted { made: WrittenFiles { files, ..WrittenFiles::default() }, recording });
        }
        recording = Recording::open(path)?;
    }
    let mut made = convert_profiles(&mut recording, profiles, content, tell)?;
    made.files.splice(0..0, files);
    Ok(Converted { made, recording })
}

/// Writes profiles of a recording of any kind to files. A failure of one file does not affect the others.
///
/// # Errors
/// If the recording cannot be read.
pub fn convert_profiles<S: ProfileSource>(
    source: &mut S,
    planned: Vec<Planned>,
    content: &Content,
    tell: &mut dyn FnMut(Note),
) -> Result<WrittenFiles, Error> {
    let is_timeline = |planned: &Planned| source.form(planned.format, content) == ProfileForm::Timeline;
    let (timelines, sums): (Vec<_>, Vec<_>) = planned.into_iter().partition(is_timeline);
    let mut written = WrittenFiles::default();
    let has_sums = !sums.is_empty();
    for (form, planned) in [(ProfileForm::Timeline, timelines), (ProfileForm::Sums, sums)] {
        if planned.is_empty() {
            continue;
        }
        let is_last = form == ProfileForm::Sums || !has_sums;
        let SourceProfile { trace, content } = source.profile(form, content, is_last, tell)?;
        let sinks =
            planned.iter().map(|planned| (planned.format, OutputSink::open(&planned.to).map_err(Into::into)));
        written.add(write_all(&trace, source.length(), sinks, &content, tell));
    }
    Ok(written)
}
