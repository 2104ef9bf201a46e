//! Converts a recording on disk to all requested files.

use std::path::Path;

use crate::source::Recording;
use runtap_clr::ProfileOptions;
use runtap_os::output::OutputSink;

use crate::{
    Content, Error, FileFormat, Note, OutputFile, Planned, Profile, WrittenFiles, upgrade, write_all,
};

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
    let Profile { trace, recording } = Profile::read(recording, content, &ProfileOptions::default(), tell)?;
    if recording.lost() > 0 {
        tell(Note::Lost { events: recording.lost(), skipped: recording.has_skipped() });
    }
    let outlets =
        profiles.iter().map(|planned| (planned.format, OutputSink::open(&planned.to).map_err(Into::into)));
    let mut made = write_all(&trace, recording.length(), outlets, content, tell);
    made.files.splice(0..0, files);
    Ok(Converted { made, recording })
}
