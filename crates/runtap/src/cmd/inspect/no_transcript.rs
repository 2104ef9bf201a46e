//! Transcripts, where what writes them is not there either.

use std::io::BufRead;

use crate::cli::Inspect;
use crate::exit::{self, expected};
use crate::output::Output;

pub(super) fn transcript(options: &Inspect, _file: impl BufRead, _output: Output) -> anyhow::Result<u8> {
    let text = format!("{} is a transcript, which can't be read on Windows yet", options.file.display());
    Err(expected(exit::USAGE, text, None))
}
