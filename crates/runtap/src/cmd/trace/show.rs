//! Prints the events of a recording in progress.

use std::ffi::OsString;
use std::path::PathBuf;
use std::time::Duration;

use runtap_diag::ports::Visitor;
use runtap_discover::Fix;
use runtap_record::{Event, Progress, Specification};
use runtap_transport::Peer;

use crate::cmd::convert;
use crate::cmd::fix;
use crate::cmd::recording;
use crate::output::Output;
use crate::units::{Bytes, Clock, Lost, Span, Things};

/// Prints the events of a recording.
pub(super) struct EventPrinter {
    /// Whether child processes are recorded too.
    children: bool,
    duration: Option<Duration>,
    providers: Vec<String>,
    stops_on_enter: bool,
    output: Output,
}

impl EventPrinter {
    pub(super) fn new(spec: &Specification, stops_on_enter: bool, output: Output) -> Self {
        let providers = spec.asked.iter().map(|asked| asked.provider.name.clone()).collect();
        Self { children: spec.children, duration: spec.duration, providers, stops_on_enter, output }
    }

    pub(super) fn event(&self, event: Event) {
        let output = self.output;
        match event {
            Event::RuntimeConnected { process, claims: None } => {
                output.detail(format_args!("{process} has dialled in"));
            }
            Event::RuntimeConnected { process, claims: Some(other) } => {
                output.detail(format_args!("{process} has dialled in, and calls itself {other}"));
            }
            Event::Session { id, command } => output.detail(format_args!("session {id} by {command}")),
            Event::Downgraded(downgrade) => output.note(format_args!("note: {downgrade}")),
            Event::Started { name, pid, files } => self.started(&name, pid, &files),
            Event::Progress(progress) => self.progress(&progress),
            Event::StoppingAlready => output
                .note("already stopping; repeat the signal to skip the method names that are still to come"),
            Event::NotResumed { process, error } => output.warning(format_args!(
                "{process} could not be resumed, in case it is suspended: {error}"
            )),
            // .NET 5 does not support the command. Its child processes connect and are resumed then.
            Event::NotRestored { name, error } => {
                output.detail(format_args!("{name} could not be put back: {error}"));
            }
            Event::EndedBefore { process } => {
                output.warning(format_args!("{process} ended before it could be recorded"));
            }
            Event::Stranger(visitor) => self.stranger(visitor),
            Event::NoRuntimeConnected { pid, after: _, jvm: Some(jvm) } => output.warning(format_args!(
                "the command (process {pid}) continues without being recorded: process {jvm} is a Java program, not a .NET one; {}",
                fix::text(&[Fix::TraceJvm { pid: jvm }])
            )),
            Event::NoRuntimeConnected { pid, after, jvm: None } => output.warning(format_args!(
                "no .NET runtime has dialled in after {}; the command (process {pid}) continues without being recorded. \
                 Only .NET 5 and later dial in, and only unless DOTNET_EnableDiagnostics=0 is set",
                Span(after)
            )),
            Event::NothingRecorded { jvm: Some(jvm) } => output.warning(format_args!(
                "nothing was recorded: the command ran a Java program (process {jvm}), and no .NET one; trace it as a Java program: runtap jvm run -- java …"
            )),
            Event::NothingRecorded { jvm: None } => {
                output.warning("the command ended before any .NET runtime had dialled in: nothing was recorded");
            }
            Event::WaitingForCommand => {
                output.note("the recording is over; waiting for the command (--kill-command ends it)");
            }
            Event::Recorded if output.progress() => output.end_status(),
            Event::Recorded => {}
            Event::Note(note) => convert::say(&note, output),
            Event::LeftOut { path, partial } => recording::warn_of(&path, &partial.into(), output),
            Event::Kept(path) => {
                output.warning(format_args!("the recording was kept in {}", path.display()));
            }
            event @ (Event::GuardLeft { .. } | Event::NoGuard { .. }) => show_guard_event(event, output),
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
        self.output.note(format_args!("recording {name} (process {pid}) into {}", files.join(", ")));
        self.output.note(format_args!("  providers: {}; {ends} ends it", self.providers.join(", ")));
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

    /// Prints that a foreign program connected. The recorder reports it once per user, so that it cannot flood the output.
    fn stranger(&self, Visitor { peer, was_let_in, .. }: Visitor) {
        let who = describe_peer(peer);
        self.output.note(if was_let_in {
            format!("{who} has dialled in, and the command has not started it: such programs are resumed, not recorded")
        } else {
            format!("{who} was disconnected: only programs of your own and of root are recorded here")
        });
    }
}

/// Prints that a guard stays at a port, or why none could be left there.
pub(in crate::cmd) fn show_guard_event(event: Event, output: Output) {
    let list = |processes: Option<Vec<u32>>| match processes {
        Some(pids) => pids.iter().map(ToString::to_string).collect::<Vec<_>>().join(", "),
        None => "perhaps processes that can't be looked at in time".to_owned(),
    };
    match event {
        Event::GuardLeft { processes, guard } => output.note(format_args!(
            "still running: {}; process {guard} stays in the background and resumes what they start",
            list(processes)
        )),
        Event::NoGuard { processes, port, error } => output.warning(format_args!(
            "still running: {}; .NET programs that they start will wait for {}, because no guard could be left there: \
             {error}. 'runtap resume PID' resumes each of them",
            list(processes),
            port.display()
        )),
        _ => {}
    }
}

/// Returns the arguments that make runtap guard a port.
pub(in crate::cmd) fn guard_arguments() -> Vec<OsString> {
    vec!["guard-port".into()]
}

/// Describes the peer of a connection by the process id and user that the kernel reports.
pub(in crate::cmd) fn describe_peer(peer: Peer) -> String {
    match peer.pid {
        Some(pid) => format!("process {pid} of user {}", peer.uid),
        None => format!("a process of user {}", peer.uid),
    }
}
