//! `runtap jvm replay RECORDING…`: replays recordings through the collector's decoders and prints the results.

use runtap_jvm::recording::LoadedRecording;
use runtap_text::Output;

use super::report::{classify_error, print_summaries, rows, warn};
use crate::cli::JvmReplay;
use crate::exit;

pub(super) fn run(options: &JvmReplay, output: Output) -> anyhow::Result<u8> {
    let mut all = Vec::new();
    for path in &options.recordings {
        // Paths are taken literally here: a '#' does not select a part.
        all.push(LoadedRecording::load(path, None, &[], options.slow).map_err(classify_error)?);
    }
    print_summaries(&all, &rows(options.number, output), output)?;
    Ok(all.iter().map(|loaded| warn(loaded, output)).max().unwrap_or(exit::OK))
}
