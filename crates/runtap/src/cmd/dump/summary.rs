//! What became of a dump.

use std::path::PathBuf;
use std::time::Duration;

use runtap_text::document;

use super::place;
use crate::exit::{self, expected};
use crate::output::Output;

/// A dump that the target says it has written, and what we found.
pub(super) struct Summary {
    pub(super) pid: u32,
    /// In the target's own pid namespace, where that is known: what the dump has to say.
    pub(super) own_pid: Option<u32>,
    /// Where the target wrote it, or sees it now.
    pub(super) target_path: PathBuf,
    pub(super) kind: &'static str,
    pub(super) duration: Duration,
    pub(super) found: place::Result,
}

impl Summary {
    /// Prints the result, and gives the exit code: the file is there in any case.
    pub(super) fn print(mut self, output: Output) -> anyhow::Result<u8> {
        let report = std::mem::replace(&mut self.found.crash_report, Ok(None));
        let (report, no_report) = match report {
            Ok(report) => (report, None),
            Err(error) => (None, Some(error)),
        };
        let wrong = self.wrong();
        let (ours, theirs) = (self.found.path.to_string_lossy(), self.target_path.to_string_lossy());
        let report = report.as_ref().map(|path| path.to_string_lossy());
        let core = self.found.core.as_ref().ok();
        let mut dump = document::DumpDocument::new(self.pid, self.kind, &ours, self.found.bytes);
        dump.target_path = &theirs;
        dump.duration_ns = u64::try_from(self.duration.as_nanos()).unwrap_or(u64::MAX);
        dump.verified = wrong.is_none();
        dump.threads = core.map(|core| core.process.threads.len());
        dump.crash_report = report.as_deref();
        dump.program = core.map(|core| &*core.process.name);
        if output.json() {
            output.document(&dump)?;
        } else {
            output.print(&dump, &output.options())?;
        }
        match (wrong, no_report) {
            (None, None) => Ok(exit::OK),
            (None, Some(error)) => Err(error),
            (Some(why), _) => Err(expected(
                exit::PARTIAL,
                format!("{} can't be used: {why}", self.found.path.display()),
                None,
            )),
        }
    }

    /// What is wrong with the file.
    fn wrong(&self) -> Option<String> {
        let core = match &self.found.core {
            Ok(core) => core,
            Err(error) => return Some(error.to_string()),
        };
        match (core.process.pid, self.own_pid) {
            (Some(has), Some(own)) if has != own => {
                Some(format!("it is of process {has}, not of process {own}"))
            }
            (None, _) => Some("it does not say of which process it is".to_owned()),
            _ if core.process.threads.is_empty() => Some("it has no threads".to_owned()),
            _ => None,
        }
    }
}
