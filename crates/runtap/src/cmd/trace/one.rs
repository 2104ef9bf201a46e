//! The recording of one process, from its first byte to its last: its name, its files, and the draining.

use std::path::PathBuf;
use std::sync::Arc;

use jiff::Zoned;
use runtap_transport::discover;

use super::job::Job;
use super::raw::Raw;
use super::recorder::Progress;
use super::session::{self, Ended};
use super::start::Started;
use crate::cmd::target::local_name;
use crate::exit;
use crate::files::{Planned, free_base};

/// Longest name of a program in a file name, in bytes.
const LONGEST_NAME: usize = 100;

/// A stream that has ended, and where it is.
#[derive(Debug)]
pub(super) struct Taken {
    pub(super) pid: u64,
    /// Of the program.
    pub(super) name: String,
    pub(super) raw: Raw,
    pub(super) planned: Vec<Planned>,
    pub(super) ended: Ended,
}

impl Taken {
    /// Nobody reads what we write: that is no failure, and nothing is left to do.
    pub(super) fn is_unread(&self) -> bool {
        self.raw.is_stdout() && self.ended.recorded.write_error.as_ref().is_some_and(exit::is_closed_pipe)
    }
}

/// Records a process to the end of its stream.
pub(super) async fn record(
    job: Arc<Job>,
    started: Started,
    is_first: bool,
    progress: Arc<Progress>,
) -> anyhow::Result<Taken> {
    let Started { subject, session, since } = started;
    // .NET Core 3 can be traced without being able to say who it is, and any may end at this moment.
    let info = subject.client.process_info().await.ok();
    let pid = subject.pid().map(u64::from).or_else(|| info.as_ref().map(|info| info.process_id)).unwrap_or(0);
    let known = || subject.process.clone().or_else(|| discover::process(subject.pid()?).ok());
    let name = info
        .and_then(|info| info.entry_assembly.filter(|name| !name.is_empty()))
        .or_else(|| known().as_ref().map(local_name))
        .unwrap_or_else(|| "process".to_owned());
    let base =
        PathBuf::from(format!("{}_{pid}_{}", file_name(&name), Zoned::now().strftime("%Y%m%d_%H%M%S")));
    let base = free_base(&job.formats, &base);
    let planned = job.files(&base, pid, is_first)?;
    let (raw, sink, planned) = Raw::create(planned, job.options.output.is_none(), &base)?;
    let counting = job.counting(raw.path());
    let ended = session::run(session, &job, since, subject.pid(), sink, counting, progress).await?;
    Ok(Taken { pid, name, raw, planned, ended })
}

/// A name that is safe in a file name.
fn file_name(name: &str) -> String {
    let safe = name.chars().map(|c| if c == '/' || c.is_control() { '_' } else { c });
    let mut text = String::new();
    for c in safe {
        if text.len() + c.len_utf8() > LONGEST_NAME {
            break;
        }
        text.push(c);
    }
    text
}
