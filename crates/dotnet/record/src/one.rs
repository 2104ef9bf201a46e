//! Records one process to the end of its stream.

use std::path::PathBuf;
use std::sync::Arc;

use runtap_os::output::OutputSink;

use crate::Error;
use crate::event::Event;
use crate::job::Job;
use crate::outputs::Opened;
use crate::raw::RawStream;
use crate::recorder::{Progress, Sink};
use crate::session::{self, EndedSession};
use crate::start::Started;
use runtap_target::local_name;

/// A stream that has ended, and where it was written.
#[derive(Debug)]
pub(crate) struct EndedStream {
    pub(crate) pid: u64,
    /// The name of the program.
    pub(crate) name: String,
    /// The base of file names if the user gave none.
    pub(crate) base: PathBuf,
    pub(crate) raw: RawStream,
    /// The files to be created from the stream.
    pub(crate) outlets: Vec<Opened>,
    pub(crate) ended: EndedSession,
}

impl EndedStream {
    /// Whether the reader of the output has closed it. This is not a failure, and nothing is left to do.
    pub(crate) fn is_unread(&self) -> bool {
        self.raw.may_be_closed() && self.ended.recorded.is_unread
    }
}

/// Records a process to the end of its stream.
pub(crate) async fn record(
    job: Arc<Job>,
    started: Started,
    progress: Arc<Progress>,
) -> Result<EndedStream, Error> {
    let Started { subject, outputs, running } = started;
    // .NET Core 3 does not support the command, and a process may exit at this moment.
    let info = subject.client.process_info().await.ok();
    let pid = subject.pid().map(u64::from).or_else(|| info.as_ref().map(|info| info.process_id)).unwrap_or(0);
    let known = || subject.process.clone().or_else(|| runtap_discover::process(subject.pid()?).ok());
    let name = info
        .and_then(|info| info.entry_assembly.filter(|name| !name.is_empty()))
        .or_else(|| known().as_ref().map(local_name))
        .unwrap_or_else(|| "process".to_owned());
    let base = job.spec.naming.of(&name, pid);
    let (raw, sink, outlets) = match &job.spec.consumers {
        Some(consumers) => {
            let consumer = consumers.create(u32::try_from(pid).unwrap_or(0), &name);
            (RawStream::Consumed, Sink::Consumer(consumer), Vec::new())
        }
        None => outputs.settle(&job, &base)?,
    };
    let of_stream = match &raw {
        RawStream::Stdout => Some(None),
        RawStream::Asked(path, _) => Some(Some(path.clone())),
        RawStream::Temporary(..) | RawStream::Consumed => None,
    };
    let of_outlets = outlets.iter().map(|(_, outlet)| match outlet {
        OutputSink::Stdout => None,
        OutputSink::File(draft) => Some(draft.wanted()),
    });
    let files = of_stream.into_iter().chain(of_outlets).collect();
    job.report(Event::Started { name: name.clone(), pid, files });
    let counting = job.counting();
    let ended = session::run(&job, running, sink, counting, progress).await?;
    Ok(EndedStream { pid, name, base, raw, outlets, ended })
}
