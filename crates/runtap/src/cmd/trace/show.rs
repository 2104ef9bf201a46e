//! Prints the events of a recording in progress.

use std::ffi::OsString;
use std::path::PathBuf;
use std::time::Duration;

use runtap_record::{Event, Progress, Specification, messages};
use runtap_text::{Output, conversion_message};

use crate::cmd::recording;
use runtap_text::units::{Bytes, Clock, Lost, Span, Things};

/// Prints the events of a recording.
pub(super) struct EventPrinter {
    /// Whether child processes are recorded too.
    children: bool,
    duration: Option<Duration>,
    providers: Vec<String>,
    stops_on_enter: bool,
    /// Whether a consumer shows the progress.
    is_shown: bool,
    output: Output,
}

impl EventPrinter {
    pub(super) fn new(spec: &Specification, stops_on_enter: bool, output: Output) -> Self {
        let providers = spec.asked.iter().map(|asked| asked.provider.name.clone()).collect();
        let (children, duration, is_shown) = (spec.children, spec.duration, spec.consumers.is_some());
        Self { children, duration, providers, stops_on_enter, is_shown, output }
    }

    pub(super) fn event(&self, event: Event) {
        let output = self.output;
        match event {
            Event::Started { .. } | Event::Progress(_) if self.is_shown => {}
            Event::Started { name, pid, files } => self.started(&name, pid, &files),
            Event::Progress(progress) => self.progress(&progress),
            Event::Recorded if output.progress() => output.end_status(),
            Event::Recorded => {}
            Event::Note(note) => output.messages(conversion_message(&note)),
            Event::LeftOut { path, partial } => recording::warn_of(&path, &partial.into(), output),
            event => output.messages(messages::event(&event)),
        }
    }

    /// Prints what is being recorded, the output files, and how to stop the recording.
    fn started(&self, name: &str, pid: u64, files: &[Option<PathBuf>]) {
        if !self.output.progress() || self.children {
            return;
        }
        let shown = |file: &Option<PathBuf>| {
            file.as_ref().map_or_else(|| "stdout".to_owned(), |path| path.display().to_string())
        };
        let files: Vec<String> = files.iter().map(shown).collect();
        let ends = match (self.duration, self.stops_on_enter) {
            (Some(duration), true) => format!("{}, Enter or Ctrl-C", Span(duration)),
            (Some(duration), false) => format!("{} or Ctrl-C", Span(duration)),
            (None, true) => "Enter or Ctrl-C".to_owned(),
            (None, false) => "Ctrl-C".to_owned(),
        };
        self.output.note(format_args!("Recording {name} (process {pid}) into {}", files.join(", ")));
        self.output
            .note(format_args!("  providers: {}; {ends} stops the recording", self.providers.join(", ")));
    }

    fn progress(&self, progress: &Progress) {
        if !self.output.progress() {
            return;
        }
        let Progress { elapsed, left, bytes, events, lost, active, all, is_stopping } = *progress;
        let rate =
            u64::try_from(u128::from(bytes) * 1_000_000 / elapsed.as_micros().max(1)).unwrap_or(u64::MAX);
        let what = if self.children {
            // The events of a process are counted after it exits.
            format!("{active} of {all} processes")
        } else {
            format!("{}  {}", Things(events, "event"), Lost(lost))
        };
        let left = left.map_or_else(String::new, |left| format!(", {} left", Clock(left)));
        let stopping = if is_stopping { "  stopping: receiving method names" } else { "" };
        self.output.status(format_args!(
            "[{}{left}]  {}  {}/s  {what}{stopping}",
            Clock(elapsed),
            Bytes(bytes),
            Bytes(rate)
        ));
    }
}

/// Returns the arguments that make runtap guard a port.
pub(in crate::cmd) fn guard_arguments() -> Vec<OsString> {
    vec!["guard-port".into()]
}
