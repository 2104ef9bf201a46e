//! `runtap mtp inspect FILE`: prints one line per frame, or all of its fields.

use runtap_mtp::transcript::TestPipe;
use runtap_text::Output;
use runtap_text::test::transcript::FramePrinter;
use runtap_transcript::Inspector;

use super::{each, warn_if_missing};
use crate::cli::MtpInspect;

pub(super) fn run(options: &MtpInspect, output: Output) -> anyhow::Result<u8> {
    let path = &options.file;
    let mut inspector = Inspector::new(TestPipe);
    let mut printer = FramePrinter::new(path, output)?;
    let partial = each(path, options.max_size.of(), |located| Ok(printer.rows(&inspector.rows(located))?))?;
    let code = warn_if_missing(path, partial.as_ref(), output);
    printer.finish(&inspector, partial)?;
    Ok(code)
}
