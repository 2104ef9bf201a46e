//! Messages about events and files: what is missing from a recording, a file or a selection, and why.

use std::io;
use std::time::Duration;

use runtap_clr::lines::{Matched, NameOf, Unmet};
use runtap_convert::{Note, Unsuitable};
use runtap_model::{Message, Unit};

use crate::document::OutputFile;
use crate::units::{Bytes, Count, Nanoseconds, Seconds, Things};
use crate::{Output, advice};

/// Prints the notes of a conversion, and a line for each written file unless the result is a JSON document.
#[derive(Debug)]
pub struct NotePrinter {
    output: Output,
    /// The first error of printing.
    pub result: io::Result<()>,
}

impl NotePrinter {
    /// Creates a printer that has printed nothing.
    pub fn new(output: Output) -> Self {
        Self { output, result: Ok(()) }
    }

    /// Prints a note.
    pub fn print(&mut self, note: &Note) {
        match note {
            Note::Written(file) if !self.output.json() => {
                let printed = self.output.print(&OutputFile::from(file), &self.output.options());
                if self.result.is_ok() {
                    self.result = printed;
                }
            }
            note => self.output.messages(conversion_message(note)),
        }
    }
}

/// Returns the remark for a note about the result of a conversion, or `None` if the summary shows it.
pub fn conversion_message(note: &Note) -> Option<Message> {
    Some(match note {
        Note::Written(_) => return None,
        Note::Malformed(events) => {
            Message::Warning(format!("skipped {}: the payload can't be read", Things(*events, "event")))
        }
        Note::Lost { events, skipped } => Message::Warning(lost_events(*events, *skipped)),
        Note::Nameless { nameless, all } => Message::Note(format!(
            "{} of {} frames are addresses without a method name. {}",
            Count(*nameless),
            Count(*all),
            advice::NAMES
        )),
        Note::LacksResumptions => Message::Warning(format!(
            "code that ran after an await may be shown as [awaiting] or belong to no request; {}",
            advice::RESUMPTIONS
        )),
        Note::DeepStacks { deep, most } => Message::Note(format!(
            "{} truncated to the first {} frames; the deepest has {}; --max-depth changes the limit",
            Things(deep.stacks as u64, "stack"),
            if deep.at_leaf > 0 {
                format!("and last {}", Count(*most as u64 / 2))
            } else {
                Count(deep.at_root as u64).to_string()
            },
            Things(deep.deepest as u64, "frame")
        )),
        Note::EndsEarly { format, end_ns, max_bytes } => Message::Warning(format!(
            "the {} file ends {:.3} after the start of the recording: the complete file would be larger than {}; --max-size \
             changes the limit",
            format.name(),
            Seconds(Duration::from_nanos(*end_ns)),
            Bytes(*max_bytes)
        )),
        Note::NarrowBranches { format, view, least, max_bytes } => Message::Warning(format!(
            "the {} file has branches of less than {} added to their callers: the complete file would be larger than {}; \
             --max-size changes the limit",
            format.name(),
            match view.unit() {
                Unit::Nanoseconds => Nanoseconds(*least).to_string(),
                Unit::Bytes => Bytes(*least).to_string(),
                _ => format!("{} {}", Count(*least), view.name()),
            },
            Bytes(*max_bytes)
        )),
        Note::Doubtful { format, shown, doubtful } => {
            Message::Warning(format!("{}: {}", format.name(), advice::doubtful_samples(*shown, *doubtful)))
        }
        Note::AllSamples { format, view, shown, all } => Message::Warning(format!(
            "only {} of {} samples are in the view '{view}', so {} shows all of them: the threads waited, or this runtime \
             marks running threads as waiting (.NET 9 does); use --view cpu to show only those",
            Count(*shown),
            Count(*all),
            format.name()
        )),
    })
}

/// Formats why a format does not support the requested content, and which formats do.
pub fn unsuitable(why: Unsuitable) -> String {
    match why {
        Unsuitable::DotnetTrace(format) => format!(
            "--compat dotnet-trace puts the work of several threads on one, which {} can't show: use speedscope, chrome, \
             folded, flamegraph or pprof",
            format.name()
        ),
        Unsuitable::MergedThreads(format) => format!(
            "--merge-threads applies to folded and flamegraph: in {}, threads stay separate",
            format.name()
        ),
        Unsuitable::NeedsTimes(format) => format!(
            "calls have no time axis, which {} needs: use speedscope, folded, flamegraph or pprof",
            format.name()
        ),
        Unsuitable::OtherView { view, views } => format!(
            "the recording has no view '{view}'; valid values: {}",
            views.iter().map(|view| view.name()).collect::<Vec<_>>().join(", ")
        ),
        Unsuitable::Timeless(format, view) => format!(
            "the view '{view}' has no time axis, which {} needs: use speedscope, firefox, pprof, folded or flamegraph",
            format.name()
        ),
    }
}

/// Formats that at least this number of events is missing, and why.
pub fn lost_events(events: u64, skipped: bool) -> String {
    if skipped {
        format!(
            "at least {} missing: dropped by the target, or in blocks that were skipped",
            Things(events, "event")
        )
    } else {
        format!(
            "the target dropped at least {} because its buffer was full, or because their size was above 64 KiB",
            Things(events, "event")
        )
    }
}

/// Returns warnings about names in a selection that no event has, and if no event matched. Each starts with `subject`.
pub fn unmet_messages(matched: &Matched, has_filter: bool, subject: &str) -> Vec<Message> {
    let lacking = |Unmet { of, name, nearest }: &Unmet| {
        let lacking = match of {
            NameOf::Provider => format!("no event has a provider named '{name}'"),
            NameOf::Event => format!("no event is named '{name}'"),
            _ => format!("no event has a field 'payload.{name}'"),
        };
        let prefix = if *of == NameOf::Field { "payload." } else { "" };
        let meant =
            nearest.as_ref().map(|near| format!("; did you mean '{prefix}{near}'?")).unwrap_or_default();
        Message::Warning(format!("{subject}{lacking}{meant}"))
    };
    let mut messages: Vec<_> = matched.unmet.iter().map(lacking).collect();
    if matched.taken == 0 && matched.events > 0 {
        let options = if has_filter { "--filter" } else { "--provider" };
        let events = Things(matched.events, "event");
        messages.push(Message::Warning(format!("{subject}none of {events} matches {options}")));
    }
    messages
}
