//! The events of a run as JSON Lines, written as they happen to standard output or a file.

use std::collections::HashMap;
use std::fs::File;
use std::io::{self, Write};

use runtap_test_report::events::Events;
use runtap_test_report::{Message, Module, Run, Source as _, Spool, TestResult, Totals};

use super::convert::shown_artifact;
use crate::{LaunchId, ModuleId, RunEvent, Stream};

/// Writes the events.
#[derive(Debug)]
pub struct EventStream<W: Write> {
    events: Events<W>,
    /// The incomplete character at the end of each process's output.
    incomplete: HashMap<(LaunchId, Stream), Vec<u8>>,
}

impl<W: Write> EventStream<W> {
    /// Creates a stream that writes to `to`.
    pub fn new(to: W) -> Self {
        Self { events: Events::new(to), incomplete: HashMap::new() }
    }

    /// Writes an event with this timestamp; `result` is the result as it appears in reports.
    ///
    /// # Errors
    /// Returns an error of the writer or of the kept results.
    pub fn event(
        &mut self,
        ts: u64,
        event: &RunEvent,
        result: Option<&TestResult>,
        spool: &Spool<File>,
    ) -> io::Result<()> {
        let of = |module: &ModuleId| spool.modules().get(module.0);
        let events = &mut self.events;
        match event {
            RunEvent::RunStarted { .. } => events.run_start(ts, spool.run()),
            RunEvent::Introduced { module, .. } => {
                of(module).map_or(Ok(()), |it| events.module_start(ts, it))
            }
            RunEvent::TestStarted { module, uid, name, attempt, .. } => of(module).map_or(Ok(()), |it| {
                events.test_start(ts, it, uid, name, usize::try_from(*attempt).unwrap_or(usize::MAX))
            }),
            RunEvent::TestEnded { module, .. } => match (of(module), result) {
                (Some(module), Some(result)) => events.test_result(ts, module, result),
                _ => Ok(()),
            },
            RunEvent::Artifact { module, artifact } => of(module).map_or(Ok(()), |it| {
                events.artifact(ts, it, &shown_artifact(artifact), artifact.test_uid.as_deref())
            }),
            RunEvent::Message { module, level, text } => of(module)
                .map_or(Ok(()), |it| events.message(ts, it, &Message { level: *level, text: text.clone() })),
            RunEvent::Output { module, launch, stream, bytes } => {
                let incomplete = self.incomplete.entry((*launch, *stream)).or_default();
                incomplete.extend_from_slice(bytes);
                let rest = incomplete.split_off(incomplete.len() - incomplete_suffix(incomplete));
                let whole = std::mem::replace(incomplete, rest);
                of(module).map_or(Ok(()), |it| self.output(ts, it, *stream, &whole))
            }
            RunEvent::LaunchEnded { module, launch, .. } => {
                for stream in [Stream::Stdout, Stream::Stderr] {
                    let rest = self.incomplete.remove(&(*launch, stream)).unwrap_or_default();
                    if let Some(module) = of(module) {
                        self.output(ts, module, stream, &rest)?;
                    }
                }
                Ok(())
            }
            RunEvent::ModuleEnded { module, .. } => {
                of(module).map_or(Ok(()), |it| events.module_end(ts, it, &spool.totals(module.0)?))
            }
            RunEvent::RunEnded { exit_code, .. } => {
                let run = Run { exit_code: *exit_code, ..spool.run().clone() };
                events.run_end(ts, &run, spool.modules(), &totals(spool)?)
            }
            _ => Ok(()),
        }
    }

    fn output(&mut self, ts: u64, module: &Module, stream: Stream, bytes: &[u8]) -> io::Result<()> {
        if bytes.is_empty() {
            return Ok(());
        }
        self.events.output(ts, module, stream, &String::from_utf8_lossy(bytes))
    }
}

/// Returns the totals of all modules.
pub(super) fn totals(spool: &Spool<File>) -> io::Result<Vec<Totals>> {
    (0..spool.modules().len()).map(|module| spool.totals(module)).collect()
}

/// Returns the length of the incomplete character at the end; programs may split their output anywhere.
fn incomplete_suffix(bytes: &[u8]) -> usize {
    let is_incomplete = |length: &usize| {
        let end = bytes.len().checked_sub(*length).and_then(|from| bytes.get(from..)).unwrap_or_default();
        std::str::from_utf8(end).is_err_and(|error| error.valid_up_to() == 0 && error.error_len().is_none())
    };
    // A character has at most four bytes.
    (1..=3).find(is_incomplete).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn characters_are_not_split() {
        let text = "aä€🦀b";
        for split in 0..=text.len() {
            let left = incomplete_suffix(&text.as_bytes()[..split]);
            assert!(text.is_char_boundary(split - left), "{split}");
            assert_eq!(left == 0, text.is_char_boundary(split), "{split}");
        }
        // Invalid bytes are passed on at once.
        for bytes in [&b"a\xff"[..], b"\x80", b"\xe2\x28", b"\xf0\x9f\xff", b""] {
            assert_eq!(incomplete_suffix(bytes), 0, "{bytes:?}");
        }
    }
}
