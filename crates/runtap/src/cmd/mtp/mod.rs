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
use runtap_text::document::Partial;
use runtap_text::{Clean, cut as shortened};
use runtap_transcript::{Cut, Error as TranscriptError, Located, Reader};

pub(super) use self::host::normalize_args;
use crate::cli::{Mtp, MtpVerb};
use crate::exit::{self, expected};
use crate::output::Output;

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
    let unreadable =
        |reason: String| expected(exit::USAGE, format!("{} can't be read: {reason}", path.display()), None);
    let input = open_input(path, max_size)?;
    let compression = input.compression();
    let mut input = BufReader::with_capacity(1 << 16, input);
    let start = input.fill_buf().map_err(|error| match compression {
        Some(compression) => unreadable(format!("it is no {} file: {error}", compression.name())),
        None => runtap_convert::source::Error::Open { path: path.to_owned(), error }.into(),
    })?;
    let first = start.iter().find(|byte| !byte.is_ascii_whitespace());
    if first.is_some_and(|byte| *byte != b'{') {
        return Err(unreadable("it is no transcript (JSON Lines)".to_owned()));
    }
    Ok(Reader::with_limits(input, limits()))
}

/// Reads a recording to its end or to the first damage. Returns what is missing; fails if the recording is damaged from the
/// start.
fn each(
    path: &Path,
    max_size: MaxSize,
    mut take: impl FnMut(Located) -> anyhow::Result<()>,
) -> anyhow::Result<Option<Partial>> {
    let mut reader = open_recording(path, max_size)?;
    let mut lines = 0_u64;
    loop {
        match reader.read() {
            Ok(Some(located)) => {
                lines += 1;
                take(located)?;
            }
            Ok(None) if lines == 0 && reader.cut().is_none() => {
                return Err(expected(exit::USAGE, format!("{} is empty", path.display()), None));
            }
            Ok(None) => return Ok(reader.cut().map(partial)),
            Err(TranscriptError::Io(error)) if lines == 0 => {
                return Err(runtap_convert::source::Error::Read { path: path.to_owned(), error }.into());
            }
            Err(error) if lines == 0 => {
                return Err(expected(
                    exit::USAGE,
                    format!("{} can't be read: {error}", path.display()),
                    None,
                ));
            }
            Err(error) => return Ok(Some(Partial { offset: reader.offset(), reason: error.to_string() })),
        }
    }
}

fn partial(cut: Cut) -> Partial {
    Partial { offset: cut.offset, reason: format!("line {} ends after {} bytes", cut.line, cut.bytes) }
}

/// Warns of missing data, and returns the exit code.
fn warn_if_partial(path: &Path, partial: Option<&Partial>, output: Output) -> u8 {
    match partial {
        Some(partial) => {
            super::recording::warn_of(path, partial, output);
            exit::PARTIAL
        }
        None => exit::OK,
    }
}

/// Writes a script that servers start in place of an application.
fn write_script(path: &Path, words: &[OsString]) -> anyhow::Result<()> {
    write_module(path, words).map_err(|error| {
        let hint = match &error {
            ScriptError::Taken => Some("remove it, or give another name"),
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

/// Formats text from a recording as one line, sanitized and shortened.
fn single_line(text: &str) -> String {
    const MAX_CHARS: usize = 200;
    shortened(Clean(text).to_string(), Some(MAX_CHARS))
}
