//! `runtap repair FILE`: a copy that every tool reads.

use std::fs::{self, File};
use std::io::{Read, Write};
use std::path::Path;

use anyhow::Context;
use runtap_convert::{FileFormat, Planned, refuse_overwriting};
use runtap_nettrace::{Repaired, TraceHeader};
use runtap_outputs::{Destination, Outlet, insert_before_extension};
use serde::Serialize;

use super::recording::Partial;
use crate::cli::Repair;
use crate::exit::{self, expected, usage};
use crate::output::{Clean, Output};
use crate::units::Bytes;

/// `runtap.repair/1`
#[derive(Serialize)]
struct Document {
    schema: &'static str,
    file: String,
    /// `None` where the recording is whole, and nothing was written.
    output: Option<String>,
    format: &'static str,
    version: u32,
    partial: Option<Partial>,
    bytes_read: u64,
    bytes_written: u64,
    blocks_shortened: u64,
    blocks_left_out: u64,
    end_added: bool,
}

/// How much is read at a time.
const PIECE: usize = 1 << 20;

pub(crate) fn run(options: &Repair, output: Output) -> anyhow::Result<u8> {
    let path = &options.file;
    let to = match &options.output {
        Some(output) if output == Path::new("-") => Destination::Stdout,
        Some(output) => Destination::File(output.clone()),
        None => Destination::File(insert_before_extension(path, ".repaired")),
    };
    let meta = fs::metadata(path)
        .map_err(|error| expected(exit::USAGE, format!("can't read {}: {error}", path.display()), None))?;
    if !meta.is_file() {
        return Err(usage(format!("{} is no file: it has to be read twice", path.display())));
    }
    refuse_overwriting(&[path], &[Planned { format: FileFormat::Nettrace, to: to.clone() }])?;

    // Once to see whether there is anything to repair: a copy of a whole recording is of no use, but to who reads a pipe.
    let (header, repaired) = repair(path, |_| Ok(()))?;
    let Some(header) = header else {
        let message = format!("{} can't be repaired: {}", path.display(), no_header(&repaired));
        return Err(expected(exit::USAGE, message, None));
    };
    let written = if repaired.has_changed() || to == Destination::Stdout {
        let mut out = Outlet::open(&to)?.begin()?;
        repair(path, |bytes| out.write_all(bytes).map_err(|error| out.failed(error).into()))?;
        out.finish()?;
        match &to {
            Destination::File(to) => Some(to.display().to_string()),
            Destination::Stdout => Some("-".to_owned()),
        }
    } else {
        None
    };
    if output.json() {
        let document = Document {
            schema: "runtap.repair/1",
            file: path.display().to_string(),
            output: written,
            format: header.format_name(),
            version: header.version,
            partial: repaired.partial.as_ref().map(Into::into),
            bytes_read: repaired.bytes_read,
            bytes_written: repaired.bytes_written,
            blocks_shortened: repaired.blocks_shortened,
            blocks_left_out: repaired.blocks_left_out,
            end_added: repaired.end_added,
        };
        if to == Destination::Stdout {
            output.document_to_stderr(&document)?;
        } else {
            output.document(&document)?;
        }
    } else {
        tell(&repaired, path, &to, output)?;
    }
    Ok(exit::OK)
}

/// Repairs the file once; the header, if there is one, and what was done.
fn repair(
    path: &Path,
    mut take: impl FnMut(&[u8]) -> anyhow::Result<()>,
) -> anyhow::Result<(Option<TraceHeader>, Repaired)> {
    let failed = || format!("can't read {}", path.display());
    let mut file = File::open(path).with_context(failed)?;
    let mut repair = runtap_nettrace::Repair::new();
    let mut piece = vec![0; PIECE];
    loop {
        let n = file.read(&mut piece).with_context(failed)?;
        if n == 0 {
            break;
        }
        repair.feed(piece.get(..n).unwrap_or_default());
        take(&repair.take_output())?;
    }
    let header = repair.header().cloned();
    let (rest, repaired) = repair.finish();
    take(&rest)?;
    Ok((header, repaired))
}

fn no_header(repaired: &Repaired) -> String {
    repaired.partial.as_ref().map_or_else(|| "it has no header".to_owned(), ToString::to_string)
}

/// The copy on stdout, where that does not hold it itself; everything else on stderr.
fn tell(repaired: &Repaired, path: &Path, to: &Destination, output: Output) -> anyhow::Result<()> {
    if !repaired.has_changed() {
        output.note(format_args!("{} is whole: nothing to repair", path.display()));
        return Ok(());
    }
    let partial = repaired.partial.as_ref().map(ToString::to_string);
    let why = partial.as_deref().unwrap_or("has blocks that nobody knows");
    let Repaired { bytes_read, bytes_written, blocks_shortened, blocks_left_out, .. } = repaired;
    output.note(format_args!(
        "{} {why}; blocks shortened: {blocks_shortened}, left out: {blocks_left_out}",
        path.display()
    ));
    match to {
        Destination::Stdout => Ok(()),
        Destination::File(to) => output.text(format_args!(
            "{}  {} of {}\n",
            Clean(&to.to_string_lossy()),
            Bytes(*bytes_written),
            Bytes(*bytes_read)
        )),
    }
}
