//! `runtap repair FILE`: a copy that every tool reads.

use std::path::Path;

use runtap_convert::RepairedFile;
use runtap_nettrace::Repaired;
use runtap_outputs::{Destination, insert_before_extension};
use serde::Serialize;

use super::recording::Partial;
use crate::cli::Repair;
use crate::exit;
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

pub(crate) fn run(options: &Repair, output: Output) -> anyhow::Result<u8> {
    let path = &options.file;
    let to = match &options.output {
        Some(output) if output == Path::new("-") => Destination::Stdout,
        Some(output) => Destination::File(output.clone()),
        None => Destination::File(insert_before_extension(path, ".repaired")),
    };
    let RepairedFile { header, repaired, output: written } = runtap_convert::repair(path, &to)?;
    let written = written.map(|to| match to {
        Destination::File(to) => to.display().to_string(),
        Destination::Stdout => "-".to_owned(),
    });
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
