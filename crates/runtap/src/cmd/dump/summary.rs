//! What became of a dump: for people, and as `runtap.dump/1`.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::time::Duration;

use serde::Serialize;

use super::place;
use crate::exit::{self, expected};
use crate::output::{Clean, Output};
use crate::units::Bytes;

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
        let report = std::mem::replace(&mut self.found.crash_report, Ok(None));
        let (report, no_report) = match report {
            Ok(report) => (report, None),
            Err(error) => (None, Some(error)),
        };
        let wrong = self.wrong();
        if output.json() {
            let (ours, theirs) = (self.found.path.to_string_lossy(), self.target_path.to_string_lossy());
            let report = report.as_ref().map(|path| path.to_string_lossy());
            output.document(&Document {
                schema: "runtap.dump/1",
                pid: self.pid,
                path: &ours,
                target_path: &theirs,
                r#type: self.kind,
                bytes: self.found.bytes,
                duration_ns: u64::try_from(self.duration.as_nanos()).unwrap_or(u64::MAX),
                verified: wrong.is_none(),
                threads: self.found.core.as_ref().ok().map(|core| core.process.threads.len()),
                crash_report: report.as_deref(),
            })?;
        } else {
            output.text(self.text(report.as_deref()))?;
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

    fn text(&self, report: Option<&Path>) -> String {
        let path = self.found.path.to_string_lossy();
        let mut text = format!(
            "{}  {}  {} dump in {:.1} s",
            Clean(&path),
            Bytes(self.found.bytes),
            self.kind,
            self.duration.as_secs_f64()
        );
        // Writing to a String can't fail.
        if let Ok(core) = &self.found.core {
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
