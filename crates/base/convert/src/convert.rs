//! From a recording on disk to all files that are wanted of it.

use std::path::Path;

use crate::source::Recording;
use runtap_clr::ProfileOptions;
use runtap_os::output::Outlet;

use crate::{Content, Error, FileFormat, Made, Note, OutputFile, Planned, Profile, upgrade, write_all};

/// A recording that was converted.
#[derive(Debug)]
pub struct Converted {
    /// What there is.
    pub made: Made,
    /// Read to its end: it tells what is missing.
    pub recording: Recording,
}

/// Makes files of a recording. One that asks for the stream itself gets an [upgraded](upgrade) one; all others are made of one
/// profile, and of these one that fails does not stop the others.
///
/// # Errors
/// The recording can't be read, or not be renewed.
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
        let mut out = Outlet::open(&to)?.begin()?;
        upgrade(&mut recording, &mut out)?;
        let (written, bytes) = out.finish()?;
        if let Some(written) = written {
            let file = OutputFile::new(written, format, bytes);
            tell(Note::Written(file.clone()));
            files.push(file);
        }
        if profiles.is_empty() {
            return Ok(Converted { made: Made { files, ..Made::default() }, recording });
        }
        recording = Recording::open(path)?;
    }
    let Profile { trace, recording } = Profile::read(recording, content, &ProfileOptions::default(), tell)?;
    if recording.lost() > 0 {
        tell(Note::Lost { events: recording.lost(), skipped: recording.has_skipped() });
    }
    let outlets =
        profiles.iter().map(|planned| (planned.format, Outlet::open(&planned.to).map_err(Into::into)));
    let mut made = write_all(&trace, recording.length(), outlets, content, tell);
    made.files.splice(0..0, files);
    Ok(Converted { made, recording })
}
