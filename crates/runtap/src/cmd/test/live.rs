//! The events of a run as lines of JSON while they happen, on standard output or in a file.

use std::collections::HashMap;
use std::fs::File;
use std::io::{self, Write};

use runtap_mtp::{LaunchId, ModuleId, RunEvent, Stream};
use runtap_test_report::events::{self, Events};
use runtap_test_report::{Message, Module, Run, Source as _, Spool, TestResult, Totals};

use super::reported::{level, shown_artifact};

/// Writes them.
pub(super) struct Live<W: Write> {
    events: Events<W>,
    /// What processes have printed last, where the rest of a character has not come yet.
    cut: HashMap<(LaunchId, Stream), Vec<u8>>,
}

impl<W: Write> Live<W> {
    pub(super) fn new(to: W) -> Self {
        Self { events: Events::new(to), cut: HashMap::new() }
    }

    /// Writes what has happened at this time; `result` is the result in the report's words.
    pub(super) fn event(
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
            RunEvent::Message { module, severity, text } => of(module).map_or(Ok(()), |it| {
                events.message(ts, it, &Message { level: level(*severity), text: text.clone() })
            }),
            RunEvent::Output { module, launch, stream, bytes } => {
                let cut = self.cut.entry((*launch, *stream)).or_default();
                cut.extend_from_slice(bytes);
                let rest = cut.split_off(cut.len() - unfinished(cut));
                let whole = std::mem::replace(cut, rest);
                of(module).map_or(Ok(()), |it| self.output(ts, it, *stream, &whole))
            }
            RunEvent::LaunchEnded { module, launch, .. } => {
                for stream in [Stream::Stdout, Stream::Stderr] {
                    let rest = self.cut.remove(&(*launch, stream)).unwrap_or_default();
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
        let stream = match stream {
            Stream::Stdout => events::Stream::Stdout,
            Stream::Stderr => events::Stream::Stderr,
        };
        self.events.output(ts, module, stream, &String::from_utf8_lossy(bytes))
    }
}

/// The totals of all modules.
pub(super) fn totals(spool: &Spool<File>) -> io::Result<Vec<Totals>> {
    (0..spool.modules().len()).map(|module| spool.totals(module)).collect()
}

/// How many bytes at the end are the beginning of a character: programs write in pieces of any size.
fn unfinished(bytes: &[u8]) -> usize {
    let is_begun = |length: &usize| {
        let end = bytes.len().checked_sub(*length).and_then(|from| bytes.get(from..)).unwrap_or_default();
        std::str::from_utf8(end).is_err_and(|error| error.valid_up_to() == 0 && error.error_len().is_none())
    };
    // The longest has four.
    (1..=3).find(is_begun).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn characters_are_not_cut() {
        let text = "aä€🦀b";
        for cut in 0..=text.len() {
            let left = unfinished(&text.as_bytes()[..cut]);
            assert!(text.is_char_boundary(cut - left), "{cut}");
            assert_eq!(left == 0, text.is_char_boundary(cut), "{cut}");
        }
        // What is no character at all is not waited for.
        for bytes in [&b"a\xff"[..], b"\x80", b"\xe2\x28", b"\xf0\x9f\xff", b""] {
            assert_eq!(unfinished(bytes), 0, "{bytes:?}");
        }
    }
}
