//! `runtap mtp inspect FILE`: prints one line per frame, or all of its fields.

use runtap_mtp::transcript::TestPipe;
use runtap_text::test::transcript::{FramesHead, FramesTail, frame, frame_document, frame_heading};
use runtap_transcript::Inspector;

use super::{each, warn_if_missing};
use crate::cli::MtpInspect;
use crate::output::Output;

pub(super) fn run(options: &MtpInspect, output: Output) -> anyhow::Result<u8> {
    let path = &options.file;
    let mut inspector = Inspector::new(TestPipe);
    let mut document = output.list(&FramesHead::new(path.display().to_string()), "rows")?;
    let mut is_headed = false;
    let partial = each(path, options.max_size.of(), |located| {
        for row in inspector.rows(located) {
            if output.json() {
                document.element(&frame_document(&row))?;
                continue;
            }
            if !std::mem::replace(&mut is_headed, true) {
                output.text(frame_heading(&output.options()))?;
            }
            output.text(frame(&row, output.is_verbose()))?;
        }
        Ok(())
    })?;
    let code = warn_if_missing(path, partial.as_ref(), output);
    if output.json() {
        document.finish(&FramesTail::new(&inspector, partial))?;
    }
    Ok(code)
}
