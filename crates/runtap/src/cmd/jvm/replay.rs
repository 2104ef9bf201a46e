//! `runtap jvm replay RECORDING…`: recordings through the machines of HQ, and what they come to.

use super::report::load::{Loaded, load};
use super::report::{rows, whole};
use crate::cli::JvmReplay;
use crate::exit;
use crate::output::Output;

pub(super) fn run(options: &JvmReplay, output: Output) -> anyhow::Result<u8> {
    let mut all = Vec::new();
    for path in &options.recordings {
        // A '#' is one of the name here.
        all.push(load(path, None, &[], options.slow)?);
    }
    whole(&all, &rows(options.number, output), output)?;
    let is_partial = all.iter().map(|loaded| Loaded::warn(loaded, output)).fold(false, |a, b| a | b);
    Ok(if is_partial { exit::PARTIAL } else { exit::OK })
}
