//! `runtap jvm replay RECORDING…`: replays recordings through the collector's decoders and prints the results.

use super::report::load::{LoadedRecording, load};
use super::report::{print_summaries, rows};
use crate::cli::JvmReplay;
use crate::exit;
use crate::output::Output;

pub(super) fn run(options: &JvmReplay, output: Output) -> anyhow::Result<u8> {
    let mut all = Vec::new();
    for path in &options.recordings {
        // Paths are taken literally here: a '#' does not select a part.
        all.push(load(path, None, &[], options.slow)?);
    }
    print_summaries(&all, &rows(options.number, output), output)?;
    let is_partial = all.iter().map(|loaded| LoadedRecording::warn(loaded, output)).fold(false, |a, b| a | b);
    Ok(if is_partial { exit::PARTIAL } else { exit::OK })
}
