//! `runtap inspect FILE`: lists the blocks of a recording with their offsets, or the decoded messages of a transcript or of
//! a recording of Java agents.

use std::io::{BufRead as _, BufReader};

use runtap_clr::layout::{GapKind, Layout};
use runtap_convert::source::{ForeignFile, open_input};
use runtap_text::document::Partial;
use runtap_text::{BlockPrinter, Output};

mod transcript;

use self::transcript::{java, transcript};
use super::recording::warn_of;
use crate::cli::Inspect;
use crate::exit::{self, expected};
use runtap_text::units::Count;

/// The error for a file that starts neither like a recording nor like a transcript.
const NEITHER: &str = "it is neither a recording (nettrace) nor a transcript (JSON Lines)";

pub(crate) fn run(options: &Inspect, output: Output) -> anyhow::Result<u8> {
    let path = &options.file;
    if runtap_jvm::recording::is_recording(path) {
        return java(options, output);
    }
    let mut file = BufReader::with_capacity(1 << 16, open_input(path, options.max_size.of())?);
    // A recording starts with the name of its format, a transcript with a JSON object.
    let start =
        file.fill_buf().map_err(|error| runtap_convert::source::Error::Read { path: path.clone(), error })?;
    if let Some(kind) = ForeignFile::of(start) {
        return Err(runtap_convert::source::Error::Foreign { path: path.clone(), kind }.into());
    }
    if start.first() == Some(&b'{') {
        return transcript(options, file, output);
    }
    let (mut layout, mut printer) = (Layout::default(), BlockPrinter::new(path, output)?);
    let bytes = runtap_convert::source::inspect_opened(file, path, |found| {
        layout.see(&found);
        anyhow::Ok(printer.found(&found)?)
    })?;
    let partial = layout.gap.as_ref().map(|gap| Partial { offset: gap.offset, reason: gap.kind.to_string() });
    if layout.blocks_count == 0 {
        let why = match &layout.gap {
            _ if bytes == 0 => "it is empty".to_owned(),
            None => "it has no blocks".to_owned(),
            // The intended format is unknown, so name both.
            Some(gap) if gap.kind == GapKind::Damage(runtap_nettrace::Error::NotNettrace) => {
                NEITHER.to_owned()
            }
            Some(gap) => gap.kind.to_string(),
        };
        return Err(expected(exit::USAGE, format!("{} can't be read: {why}", path.display()), None));
    }
    let trailing_bytes = layout.trailing_bytes(bytes);
    if trailing_bytes > 0 {
        output.warning(format_args!("{} bytes follow the end marker", Count(trailing_bytes)));
    }
    let code = if layout.is_damaged || partial.is_some() { exit::PARTIAL } else { exit::OK };
    match &partial {
        Some(partial) => warn_of(path, partial, output),
        None if layout.is_damaged => output.warning(format_args!("{} has damaged blocks", path.display())),
        None => {}
    }
    printer.finish(&layout, bytes, partial)?;
    Ok(code)
}
