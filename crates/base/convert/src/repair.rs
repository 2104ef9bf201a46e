//! A copy of a damaged recording that every tool reads.

use std::fs;
use std::io::Write as _;
use std::path::{Path, PathBuf};

use crate::source::{ForeignFile, MaxSize};
use runtap_nettrace::{Repair, Repaired, TraceHeader};
use runtap_os::output::{Destination, Outlet};

use crate::{Error, FileFormat, Planned, refuse_overwriting};

/// A recording that was looked through.
#[derive(Debug)]
pub struct RepairedFile {
    /// Of the recording.
    pub header: TraceHeader,
    /// What was done.
    pub repaired: Repaired,
    /// Where the copy is; `None` where the recording is whole, and nothing was written.
    pub output: Option<Destination>,
}

/// Repairs a recording. Of a whole one there is no copy, but for standard output: who reads a pipe wants one in any case.
///
/// # Errors
/// The recording is no file, holds no header or can't be read; the copy can't be written, or would be the recording.
pub fn repair(path: &Path, to: &Destination) -> Result<RepairedFile, Error> {
    let meta =
        fs::metadata(path).map_err(|error| crate::source::Error::Open { path: path.to_owned(), error })?;
    if !meta.is_file() {
        return Err(Error::ReadTwice(path.to_owned()));
    }
    refuse_overwriting(&[path], &[Planned { format: FileFormat::Nettrace, to: to.clone() }])?;

    // Once to see whether there is anything to repair.
    let (header, repaired) = pass(path, |_| Ok(()))?;
    let Some(header) = header else {
        return Err(Error::Unrepairable { path: PathBuf::from(path), reason: repaired.partial });
    };
    if !repaired.has_changed() && *to != Destination::Stdout {
        return Ok(RepairedFile { header, repaired, output: None });
    }
    let mut out = Outlet::open(to)?.begin()?;
    pass(path, |bytes| out.write_all(bytes).map_err(|error| out.failed(error).into()))?;
    out.finish()?;
    Ok(RepairedFile { header, repaired, output: Some(to.clone()) })
}

/// Repairs the file once; the header, if there is one, and what was done.
fn pass(
    path: &Path,
    mut take: impl FnMut(&[u8]) -> Result<(), Error>,
) -> Result<(Option<TraceHeader>, Repaired), Error> {
    let input = crate::source::open_input(path, MaxSize::BY_RATIO)?;
    let (mut repair, mut is_start) = (Repair::new(), true);
    crate::source::pieces(input, path, |piece| {
        if let (true, Some(kind)) = (std::mem::take(&mut is_start), ForeignFile::of(piece)) {
            return Err(crate::source::Error::Foreign { path: path.to_owned(), kind }.into());
        }
        repair.feed(piece);
        take(&repair.take_output())
    })?;
    let header = repair.header().cloned();
    let (rest, repaired) = repair.finish();
    take(&rest)?;
    Ok((header, repaired))
}
