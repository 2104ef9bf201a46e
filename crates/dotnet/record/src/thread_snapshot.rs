//! The threads of a .NET program at one moment: a session with samples that is stopped as soon as it can have some.
//!
//! The runtime stops all managed threads about once a millisecond while the session runs, and sends the names of its methods at the
//! end. It writes its buffers only ten times a second, so the samples arrive with the end of the session, and a session with
//! fewer than two samples (on a busy machine) is repeated with more time.

use std::collections::BTreeMap;
use std::time::Duration;

use runtap_clr::ThreadDumpBuilder;
use runtap_diag::{Client, SessionConfig};
use runtap_model::thread_dump::{ThreadDump, ThreadWait, WaitKind};
use runtap_model::units::{Span, Things};
use runtap_model::{Message, order};
use runtap_nettrace::{Observe as _, Reader};
use runtap_os::in_a_thread;
use runtap_target::ResolvedTarget;
use tokio::time::{Instant, sleep};

use crate::error::Error;
use crate::providers::{Profile, profile};
use crate::threads::ThreadNames;

/// The duration of each attempt. The first one is enough for an idle program on an idle machine.
const ATTEMPTS: [Duration; 4] =
    [Duration::from_millis(5), Duration::from_millis(50), Duration::from_millis(500), Duration::from_secs(3)];
/// The number of samples of a thread that is enough to tell whether it moves.
const MIN_SAMPLES: u32 = 2;
/// The profile with samples only.
const SAMPLES: &str = "dotnet-sampled-thread-time";
/// The size of the runtime's buffer: 10,000 threads fit.
const BUFFER_MB: u32 = 64;

/// The threads of a .NET program, and how they were determined.
#[derive(Debug, Clone)]
pub struct ThreadSnapshot {
    /// The threads.
    pub dump: ThreadDump,
    /// The duration of the session, including the time in which the runtime sent method names.
    pub duration: Duration,
    /// How many times the runtime stopped its threads for samples, in the last session.
    pub stops: u32,
    /// The number of events that the runtime dropped.
    pub lost: u64,
    /// Whether the stream is complete, with the names of methods.
    pub is_complete: bool,
}

impl ThreadSnapshot {
    /// Returns the messages about the snapshot, and whether a part of it is missing.
    pub fn messages(&self) -> (Vec<Message>, bool) {
        let Self { dump, duration, stops, lost, is_complete } = self;
        let mut messages = vec![Message::Note(format!(
            "The runtime stopped its managed threads {} for samples; the session took {} with the names of methods.",
            Things(u64::from(*stops), "time"),
            Span(*duration)
        ))];
        if !is_complete {
            let text = "the stream of the runtime is incomplete, so threads or names of methods are missing";
            messages.push(Message::Warning(text.to_owned()));
        }
        if *lost > 0 {
            messages.push(Message::Warning(format!(
                "the runtime dropped at least {}, so threads or names of methods may be missing",
                Things(*lost, "event")
            )));
        }
        if dump.threads.is_empty() {
            let text = "the runtime sent no samples, so it may be starting, or unable to stop its threads";
            messages.push(Message::Warning(text.to_owned()));
        }
        let waits = dump.threads.iter().filter(|thread| {
            matches!(thread.wait, Some(ThreadWait { kind: WaitKind::Lock | WaitKind::Native, lock: None }))
        });
        if waits.count() > 1 {
            let text = "Several threads may wait for locks. .NET does not report the owners of locks, so deadlocks among them are not detected.";
            messages.push(Message::Note(text.to_owned()));
        }
        (messages, !is_complete || *lost > 0 || dump.threads.is_empty())
    }
}

/// Returns the threads of a program.
///
/// # Errors
/// Returns an error if the session can't be started or stopped.
pub async fn take_thread_snapshot(target: &ResolvedTarget) -> Result<ThreadSnapshot, Error> {
    let mut names = ThreadNames::default();
    let mut duration = Duration::ZERO;
    let mut attempts = ATTEMPTS.iter();
    loop {
        let window = attempts.next();
        let started = Instant::now();
        let result = session(&target.client, window.copied().unwrap_or_default()).await;
        // The process controls how long an examination takes.
        let (builder, reader) = match result {
            Ok(result) => result,
            Err(error) => {
                return Err(in_a_thread(move || Error::of_runtime(error)).await.unwrap_or_else(Into::into));
            }
        };
        duration += started.elapsed();
        let is_complete = reader.partial().is_none() && !builder.is_nameless();
        if builder.samples_per_thread() < MIN_SAMPLES && is_complete && attempts.len() > 0 {
            continue;
        }
        if let Some(pid) = target.pid() {
            names.refresh(pid);
        }
        let names = own_names(names.into_list(), target.pid());
        let stops = builder.samples_per_thread();
        let dump = builder.finish(|tid| names.get(&tid).cloned());
        return Ok(ThreadSnapshot { dump, duration, stops, lost: reader.lost(), is_complete });
    }
}

/// Runs a session for this time, and returns what it sent.
async fn session(
    client: &Client,
    window: Duration,
) -> Result<(ThreadDumpBuilder, Reader), runtap_diag::Error> {
    let providers = profile(SAMPLES).map(Profile::providers).unwrap_or_default();
    let config = SessionConfig { buffer_mb: BUFFER_MB, ..SessionConfig::new(providers) };
    let session = client.start_session(&config).await?;
    let (control, mut chunks) = session.split();
    let (mut builder, mut reader) = (ThreadDumpBuilder::new(), Reader::new());
    let read = async {
        while let Some(chunk) = chunks.next().await? {
            feed(&mut reader, &mut builder, &chunk);
        }
        reader.finish();
        feed(&mut reader, &mut builder, &[]);
        Ok(())
    };
    let stop = async {
        sleep(window).await;
        control.stop().await
    };
    tokio::try_join!(read, stop)?;
    Ok((builder, reader))
}

fn feed(reader: &mut Reader, builder: &mut ThreadDumpBuilder, bytes: &[u8]) {
    let mut items = reader.items(bytes);
    // After a damaged block, reading continues.
    while items.for_each(|item| builder.item(&item)).is_err() {}
}

/// Returns the names of threads without those that were inherited from the main thread, which is named after the program.
fn own_names(list: Vec<(u64, String)>, pid: Option<u32>) -> BTreeMap<u64, String> {
    let names = order::to_map(list);
    let main = pid.and_then(|pid| names.get(&u64::from(pid)).cloned());
    names
        .into_iter()
        .filter(|(tid, name)| Some(*tid) == pid.map(u64::from) || Some(name) != main.as_ref())
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_that_threads_inherited_are_left_out() {
        let list = [(10, "dotnet"), (11, "dotnet"), (12, "lock-1")];
        let list = list.map(|(tid, name)| (tid, name.to_owned())).to_vec();
        let own = own_names(list.clone(), Some(10));
        assert_eq!(
            own.into_iter().collect::<Vec<_>>(),
            [(10, "dotnet".to_owned()), (12, "lock-1".to_owned())]
        );
        assert_eq!(own_names(list, None).len(), 3);
    }
}
