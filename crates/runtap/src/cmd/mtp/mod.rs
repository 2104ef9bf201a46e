//! `runtap mtp`: recordings of the pipe between test applications and their servers, and test applications made of other
//! commands. Implemented by [`runtap_mtp::transcript`] and [`runtap_mtp_host::command`].

mod host;
mod inspect;
mod lint;
mod record;
mod replay;

use std::ffi::OsString;
use std::io::{BufRead as _, BufReader};
use std::path::Path;

use runtap_convert::source::{Input, MaxSize, open_input};
use runtap_mtp::transcript::{ScriptError, limits, write_module};
use runtap_text::Output;
use runtap_text::document::Partial;
use runtap_transcript::{Located, Reader};

pub(super) use self::host::normalize_args;
use crate::cli::{Mtp, MtpVerb};
use crate::cmd::recording::{each_line, unreadable, warn_if_missing};
use crate::exit::{self, expected};

pub(super) fn run(options: Mtp, output: Output) -> anyhow::Result<u8> {
    match options.verb {
        MtpVerb::Record(options) => record::run(&options, output),
        MtpVerb::Replay(options) => replay::run(&options, output),
        MtpVerb::Inspect(options) => inspect::run(&options, output),
        MtpVerb::Lint(options) => lint::run(&options, output),
        MtpVerb::Host(options) => host::run(options, output),
        MtpVerb::Keep(options) => host::keep(&options),
    }
}

/// Opens a recording, or explains why the file is not a recording.
fn open_recording(path: &Path, max_size: MaxSize) -> anyhow::Result<Reader<BufReader<Input>>> {
    let input = open_input(path, max_size)?;
    let compression = input.compression();
    let mut input = BufReader::with_capacity(1 << 16, input);
    let start = input.fill_buf().map_err(|error| match compression {
        Some(compression) => unreadable(path, &format!("it is not a {} file: {error}", compression.name())),
        None => runtap_convert::source::Error::Open { path: path.to_owned(), error }.into(),
    })?;
    let first = start.iter().find(|byte| !byte.is_ascii_whitespace());
    if first.is_some_and(|byte| *byte != b'{') {
        return Err(unreadable(path, "it is not a transcript (JSON Lines)"));
    }
    Ok(Reader::with_limits(input, limits()))
}

/// Reads a recording to its end or to the first damage. Returns what is missing; fails if the recording is empty, or damaged
/// from the start.
fn each(
    path: &Path,
    max_size: MaxSize,
    mut take: impl FnMut(Located) -> anyhow::Result<()>,
) -> anyhow::Result<Option<Partial>> {
    let mut is_empty = true;
    let partial = each_line(&mut open_recording(path, max_size)?, path, |located| {
        is_empty = false;
        take(located)
    })?;
    match partial {
        None if is_empty => Err(expected(exit::USAGE, format!("{} is empty", path.display()), None)),
        partial => Ok(partial),
    }
}

/// Writes a script that servers start in place of an application.
fn write_script(path: &Path, words: &[OsString]) -> anyhow::Result<()> {
    write_module(path, words).map_err(|error| {
        let hint = match &error {
            ScriptError::Taken => Some("Remove the file, or choose another name."),
            // Report this error as for any other output, with its cause.
            ScriptError::Output(error) => {
                let advice = error.cause.advice().map(str::to_owned);
                return expected(exit::USAGE, format!("{error}: {}", error.cause), advice);
            }
            _ => None,
        };
        expected(exit::USAGE, format!("{}: {error}", path.display()), hint.map(str::to_owned))
    })
}
