//! Repairs damaged recordings.

use std::fs;
use std::io::Write as _;
use std::path::{Path, PathBuf};

use crate::source::{ForeignFile, MaxSize};
use runtap_nettrace::{Repair, Repaired, TraceHeader};
use runtap_os::output::{Destination, OutputSink};

use crate::{Error, FileFormat, Planned, reject_overwriting};

/// The result of repairing a recording.
#[derive(Debug)]
pub struct RepairedFile {
    /// Header of the recording.
    pub header: TraceHeader,
    /// What was repaired.
    pub repaired: Repaired,
    /// Destination of the copy; `None` if the recording is intact and nothing was written.
    pub output: Option<Destination>,
}

/// Repairs a recording. If it is intact, a copy is only written to standard output, whose reader expects one.
///
/// # Errors
/// If the recording is not a regular file, has no header or cannot be read, or if the copy cannot be written or is the
/// recording.
pub fn repair(path: &Path, to: &Destination) -> Result<RepairedFile, Error> {
    let meta =
        fs::metadata(path).map_err(|error| crate::source::Error::Open { path: path.to_owned(), error })?;
    if !meta.is_file() {
        return Err(Error::ReadTwice(path.to_owned()));
    }
    reject_overwriting(&[path], &[Planned { format: FileFormat::Nettrace, to: to.clone() }])?;

    // The first pass determines whether there is anything to repair.
    let (header, repaired) = pass(path, |_| Ok(()))?;
    let Some(header) = header else {
        return Err(Error::Unrepairable { path: PathBuf::from(path), reason: repaired.partial });
    };
    if !repaired.has_changed() && *to != Destination::Stdout {
        return Ok(RepairedFile { header, repaired, output: None });
    }
    let mut out = OutputSink::open(to)?.begin()?;
    pass(path, |bytes| out.write_all(bytes).map_err(|error| out.failed(error).into()))?;
    out.finish()?;
    Ok(RepairedFile { header, repaired, output: Some(to.clone()) })
}

/// Repairs the file in one pass. Returns the header (`None` if the file has no header) and what was repaired.
fn pass(
    path: &Path,
    mut take: impl FnMut(&[u8]) -> Result<(), Error>,
) -> Result<(Option<TraceHeader>, Repaired), Error> {
    let input = crate::source::open_input(path, MaxSize::BY_RATIO)?;
    let (mut repair, mut is_start) = (Repair::new(), true);
    crate::source::chunks(input, path, |chunk| {
        if let (true, Some(kind)) = (std::mem::take(&mut is_start), ForeignFile::of(chunk)) {
            return Err(crate::source::Error::Foreign { path: path.to_owned(), kind }.into());
        }
        repair.feed(chunk);
        take(&repair.take_output())
    })?;
    let header = repair.header().cloned();
    let (rest, repaired) = repair.finish();
    take(&rest)?;
    Ok((header, repaired))
}
