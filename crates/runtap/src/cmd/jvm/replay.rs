//! `runtap jvm replay RECORDING…`: replays recordings through the collector's decoders and prints the results.

use super::report::load::{Loaded, load};
use super::report::{rows, whole};
use crate::cli::JvmReplay;
use crate::exit;
use crate::output::Output;

pub(super) fn run(options: &JvmReplay, output: Output) -> anyhow::Result<u8> {
    let mut all = Vec::new();
    for path in &options.recordings {
        // Paths are taken literally here: a '#' does not select a part.
        all.push(load(path, None, &[], options.slow)?);
    }
    whole(&all, &rows(options.number, output), output)?;
    let is_partial = all.iter().map(|loaded| Loaded::warn(loaded, output)).fold(false, |a, b| a | b);
    Ok(if is_partial { exit::PARTIAL } else { exit::OK })
}
