//! What became of a dump: for people, and as `runtap.dump/1`.

use std::fmt::Write as _;
use std::path::Path;

use runtap_dump::Dump;
use serde::Serialize;

use super::explained;
use crate::exit::{self, expected};
use crate::output::{Clean, Output};
use crate::units::Bytes;

/// A dump that is there.
pub(super) struct Summary {
    pub(super) kind: &'static str,
    pub(super) dump: Dump,
}

#[derive(Serialize)]
struct Document<'a> {
    schema: &'static str,
    pid: u32,
    path: &'a str,
    target_path: &'a str,
    r#type: &'static str,
    bytes: u64,
    duration_ns: u64,
    verified: bool,
    threads: Option<usize>,
    crash_report: Option<&'a str>,
}

impl Summary {
    /// Tells the result, and gives the exit code: the file is there in any case.
    pub(super) fn print(mut self, output: Output) -> anyhow::Result<u8> {
        let (report, no_report) = match std::mem::replace(&mut self.dump.crash_report, Ok(None)) {
            Ok(report) => (report, None),
            Err(error) => (None, Some(explained(error))),
        };
        let Self { dump, .. } = &self;
        let flaw = dump.flaw();
        if output.json() {
            let (ours, theirs) = (dump.path.to_string_lossy(), dump.target_path.to_string_lossy());
            let report = report.as_ref().map(|path| path.to_string_lossy());
            output.document(&Document {
                schema: "runtap.dump/1",
                pid: dump.pid,
                path: &ours,
                target_path: &theirs,
                r#type: self.kind,
                bytes: dump.bytes,
                duration_ns: u64::try_from(dump.duration.as_nanos()).unwrap_or(u64::MAX),
                verified: flaw.is_none(),
                threads: dump.core.as_ref().ok().map(|core| core.process.threads.len()),
                crash_report: report.as_deref(),
            })?;
        } else {
            output.text(self.text(report.as_deref()))?;
        }
        match (flaw, no_report) {
            (None, None) => Ok(exit::OK),
            (None, Some(error)) => Err(error),
            (Some(why), _) => {
                Err(expected(exit::PARTIAL, format!("{} can't be used: {why}", dump.path.display()), None))
            }
        }
    }

    fn text(&self, report: Option<&Path>) -> String {
        let dump = &self.dump;
        let path = dump.path.to_string_lossy();
        let mut text = format!(
            "{}  {}  {} dump in {:.1} s",
            Clean(&path),
            Bytes(dump.bytes),
            self.kind,
            dump.duration.as_secs_f64()
        );
        // Writing to a String can't fail.
        if let Ok(core) = &dump.core {
            let (name, threads) = (&core.process.name, core.process.threads.len());
            let _ = write!(text, "  {}, {threads} threads", Clean(name));
        }
        text.push('\n');
        if let Some(report) = report {
            let _ = writeln!(text, "{}", Clean(&report.to_string_lossy()));
        }
        text
    }
}
