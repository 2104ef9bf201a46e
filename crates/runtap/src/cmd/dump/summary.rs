//! The summary of a written dump.

use runtap_record::dump::Dump;
use runtap_text::Output;
use runtap_text::document::DumpDocument;

use super::explain_dump_error;
use crate::exit::{self, expected};

/// Prints the summary of a written dump and returns the exit code. The file is kept even if it is unusable.
pub(super) fn conclude(kind: &'static str, mut dump: Dump, output: Output) -> anyhow::Result<u8> {
    let (report, no_report) = match std::mem::replace(&mut dump.crash_report, Ok(None)) {
        Ok(report) => (report, None),
        Err(error) => (None, Some(explain_dump_error(error))),
    };
    let flaw = dump.flaw();
    let (ours, theirs) = (dump.path.to_string_lossy(), dump.target_path.to_string_lossy());
    let report = report.as_ref().map(|path| path.to_string_lossy());
    let core = dump.core.as_ref().ok();
    let mut document = DumpDocument::new(dump.pid, kind, &ours, dump.bytes);
    document.target_path = &theirs;
    document.duration_ns = u64::try_from(dump.duration.as_nanos()).unwrap_or(u64::MAX);
    document.verified = flaw.is_none();
    document.threads = core.map(|core| core.process.threads.len());
    document.crash_report = report.as_deref();
    document.program = core.map(|core| &*core.process.name).filter(|name| !name.is_empty());
    output.show(&document)?;
    match (flaw, no_report) {
        (None, None) => Ok(exit::OK),
        (None, Some(error)) => Err(error),
        (Some(why), _) => {
            Err(expected(exit::PARTIAL, format!("{} can't be used: {why}", dump.path.display()), None))
        }
    }
}
