//! The recording of one process, from its first byte to its last: its name, its files, and the draining.

use std::path::PathBuf;
use std::sync::Arc;

use jiff::Zoned;
use runtap_transport::discover;

use super::job::Job;
use super::outputs::Opened;
use super::raw::Raw;
use super::recorder::Progress;
use super::session::{self, Ended};
use super::start::Started;
use crate::cmd::complete::is_plain_letter;
use crate::cmd::target::local_name;
use crate::exit;
use crate::files::Outlet;
use crate::units::Span;

/// Longest name of a program in a file name, in bytes.
const LONGEST_NAME: usize = 100;

/// A stream that has ended, and where it is.
#[derive(Debug)]
pub(super) struct Taken {
    pub(super) pid: u64,
    /// Of the program.
    pub(super) name: String,
    /// How files of it are called where nobody gave a name.
    pub(super) base: PathBuf,
    pub(super) raw: Raw,
    /// The files that are to be made of it.
    pub(super) outlets: Vec<Opened>,
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
    progress: Arc<Progress>,
) -> anyhow::Result<Taken> {
    let Started { subject, session, outputs, neighbours, since } = started;
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
    let (raw, sink, outlets) = outputs.settle(&job, &base)?;
    tell(&job, &name, pid, &raw, &outlets);
    let counting = job.counting();
    let ended = session::run(session, &job, since, neighbours, sink, counting, progress).await?;
    Ok(Taken { pid, name, base, raw, outlets, ended })
}

/// Says to whoever looks on what is being recorded, into what, and what ends it.
fn tell(job: &Job, name: &str, pid: u64, raw: &Raw, outlets: &[Opened]) {
    if !job.output.progress() || job.children {
        return;
    }
    let providers: Vec<&str> = job.asked.iter().map(|asked| asked.provider.name.as_str()).collect();
    let files = outlets.iter().map(|(_, outlet)| match outlet {
        Outlet::Stdout => "stdout".to_owned(),
        Outlet::File(draft) => draft.wanted().display().to_string(),
    });
    let stream = match raw {
        Raw::Stdout => Some("stdout".to_owned()),
        Raw::Asked(path, _) => Some(path.display().to_string()),
        Raw::Temporary(..) => None,
    };
    let files: Vec<String> = stream.into_iter().chain(files).collect();
    let ends = match (job.options.duration, job.hears_enter()) {
        (Some(duration), true) => format!("{}, Enter or Ctrl-C", Span(duration)),
        (Some(duration), false) => format!("{} or Ctrl-C", Span(duration)),
        (None, true) => "Enter or Ctrl-C".to_owned(),
        (None, false) => "Ctrl-C".to_owned(),
    };
    job.output.note(format_args!("recording {name} (process {pid}) into {}", files.join(", ")));
    job.output.note(format_args!("  events of {}; {ends} ends it", providers.join(", ")));
}

/// A name as a file may have it: a recording that is called like an option, or like a command, is one to whoever says `*`
/// to a shell. A leading dot would hide it.
fn file_name(name: &str) -> String {
    let mut text = String::new();
    for c in name.chars() {
        let is_first = text.is_empty() && !c.is_alphanumeric();
        let c = if is_first || !is_plain_letter(c) { '_' } else { c };
        if text.len() + c.len_utf8() > LONGEST_NAME {
            break;
        }
        text.push(c);
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_recording_is_called_like_nothing_that_acts() {
        let names = ["Shop.Web", "--checkpoint-action=exec=id;#", "..", "a b$(id)/../x", "Größe+1"];
        let expected = ["Shop.Web", "_-checkpoint-action_exec_id__", "_.", "a_b__id__.._x", "Größe+1"];
        assert_eq!(names.map(file_name), expected);
        assert!(file_name(&"ä".repeat(1000)).len() <= LONGEST_NAME);
    }
}
