//! Messages about what happens during a recording, a dump or a resumption, and about what a recording lacks.

use std::path::Path;

use runtap_discover::Fix;
use runtap_model::Message;
use runtap_model::units::{Seconds, Span};
use runtap_nettrace::Partial;
use runtap_os::shell;
use runtap_target::fixes;
use runtap_target::messages::peer_name;

use crate::event::Event;
use crate::{Missing, ResumeError, Resumption, Silence, dump};

/// Returns the message for an event. `None` for progress and for events that carry data to be formatted elsewhere.
pub fn event(event: &Event) -> Option<Message> {
    let fix = |jvm: u32| fixes::text(&[Fix::TraceJvm { pid: jvm }]);
    Some(match event {
        Event::RuntimeConnected { process, claims: None } => {
            Message::Detail(format!("{process} has connected"))
        }
        Event::RuntimeConnected { process, claims: Some(other) } => {
            Message::Detail(format!("{process} has connected, and reports the process id {other}"))
        }
        Event::Session { id, command } => Message::Detail(format!("session {id} by {command}")),
        Event::Downgraded(downgrade) => Message::Note(format!("note: {downgrade}")),
        Event::StoppingAlready { sends_names: true } => Message::Note(
            "already stopping; repeat the signal to skip the method names that are still to come".to_owned(),
        ),
        Event::StoppingAlready { sends_names: false } => Message::Note(
            "already stopping; repeat the signal to skip the events that are still to come".to_owned(),
        ),
        Event::NotResumed { process, error } => {
            Message::Warning(format!("could not resume {process}, in case it is suspended: {error}"))
        }
        // .NET 5 does not support the command. Its child processes connect and are resumed then.
        Event::NotRestored { name, error } => Message::Detail(format!("could not restore {name}: {error}")),
        Event::EndedBefore { process } => {
            Message::Warning(format!("{process} exited before it could be recorded"))
        }
        Event::Stranger(visitor) => {
            let peer = peer_name(visitor.peer);
            Message::Note(if visitor.was_let_in {
                format!(
                    "{peer} connected, but was not started by the command: such programs are resumed, not recorded"
                )
            } else {
                format!("{peer} was disconnected: only programs of your own and of root are recorded here")
            })
        }
        Event::NoRuntimeConnected { pid, after: _, jvm: Some(jvm) } => Message::Warning(format!(
            "the command (process {pid}) continues without being recorded: process {jvm} is a Java program, not a .NET one; {}",
            fix(*jvm)
        )),
        Event::NoRuntimeConnected { pid, after, jvm: None } => Message::Warning(format!(
            "no .NET runtime has connected after {}; the command (process {pid}) continues without being recorded. \
             Only .NET 5 and later connect, and only unless DOTNET_EnableDiagnostics=0 is set",
            Span(*after)
        )),
        Event::NothingRecorded { jvm: Some(jvm) } => Message::Warning(format!(
            "nothing was recorded: the command ran a Java program (process {jvm}), and no .NET one; trace it as a Java program: runtap jvm run -- java …"
        )),
        Event::NothingRecorded { jvm: None } => Message::Warning(
            "nothing was recorded: the command exited before any .NET runtime had connected".to_owned(),
        ),
        Event::WaitingForProcess => Message::Note("Waiting for a process with this name to start".to_owned()),
        Event::WaitingForCommand => Message::Note(
            "the recording is complete; waiting for the command to exit (--kill-command kills it)".to_owned(),
        ),
        Event::GuardLeft { processes, guard } => Message::Note(format!(
            "still running: {}; process {guard} stays in the background and resumes the programs that they start",
            process_list(processes.as_deref())
        )),
        Event::NoGuard { processes, port, error } => Message::Warning(format!(
            "still running: {}; .NET programs that they start will wait for {}, because no guard could be left there: \
             {error}. 'runtap resume PID' resumes each of them",
            process_list(processes.as_deref()),
            port.display()
        )),
        Event::Kept(path) => Message::Warning(format!("the recording was kept in {}", path.display())),
        Event::Started { .. }
        | Event::Progress(_)
        | Event::Recorded
        | Event::Note(_)
        | Event::LeftOut { .. } => return None,
    })
}

fn process_list(processes: Option<&[u32]>) -> String {
    match processes {
        Some(pids) => pids.iter().map(ToString::to_string).collect::<Vec<_>>().join(", "),
        None => "possibly processes that could not be examined in time".to_owned(),
    }
}

/// Formats a note about missing events or names. `names` explains how to record the names of methods.
///
/// It is not known whether the providers should have sent events, so the note is never an error.
pub fn silence(silence: &Silence, names: &str) -> String {
    match silence {
        Silence::Never(providers) => format!(
            "no events were received from {}: the program wrote none, or the provider name, keywords or level do not match",
            providers.join(" and ")
        ),
        Silence::Overtaken { after, providers } => {
            let silent: Vec<String> = providers
                .iter()
                .map(|(name, after)| match after {
                    None => format!("from {name}"),
                    Some(after) => format!("from {name} after {:.2}", Seconds(*after)),
                })
                .collect();
            format!(
                "another session of this process ended during this recording of {:.2}, and no events were received {}: the \
                 runtime may have disabled the events for both sessions; if you expected events, record again",
                Seconds(*after),
                silent.join(", and none ")
            )
        }
        Silence::Broken { provider, message } => {
            format!("{provider} can't send some of its events; it reports: {message}")
        }
        Silence::NoNames => format!("No method names were received. {names}"),
    }
}

/// Formats why a recording is incomplete. `reason` formats why the readable part ends.
pub fn missing(missing: &Missing, reason: impl Fn(&Partial) -> String) -> String {
    match missing {
        Missing::Abandoned { sends_names: true } => {
            "the recording was interrupted before the runtime had sent all method names".to_owned()
        }
        Missing::Abandoned { sends_names: false } => {
            "the recording was interrupted before the runtime had sent all events".to_owned()
        }
        Missing::NotBegun => "the recording was stopped before the program had started".to_owned(),
        Missing::Unfinished(error) => format!("the runtime did not complete the recording: {error}"),
        Missing::DiskFull => "the disk is full".to_owned(),
        Missing::NotWritten(error) => format!("the recording could not be written any further: {error}"),
        Missing::Broken(error) => format!("the connection broke: {error}"),
        Missing::MidStream(partial) => format!(
            "the process exited, or closed the connection, before the stream was complete ({})",
            reason(partial)
        ),
        Missing::Damaged(error) => format!("some performance counters can't be read: {error}"),
        Missing::NoStream(partial) => {
            format!("the received data is not an event stream ({})", reason(partial))
        }
    }
}

/// Returns the message for an event of a resumption. `None` for [`Resumption::TakenOver`].
pub fn resumption(resumption: &Resumption<'_>) -> Option<Message> {
    Some(match resumption {
        Resumption::TakenOver(_) => return None,
        Resumption::Resumed(pid) => Message::Note(format!("Resumed process {pid}.")),
        Resumption::Failed(pid, error) => {
            Message::Warning(format!("could not resume process {pid}: {error}"))
        }
        Resumption::Muted(user) => {
            Message::Note(format!("further processes of user {user} are resumed without a message"))
        }
        Resumption::OthersUnknown(limit) => Message::Note(format!(
            "other processes that wait there are unknown: examining all processes took longer than {} (--duration)",
            Span(*limit)
        )),
        Resumption::WaitsAgain(port) => Message::Note(format!(
            "Any .NET child processes will also wait at {}. To resume them: {}",
            port.display(),
            resume_command(port)
        )),
        Resumption::Guard(guard) => return event(guard),
    })
}

/// Formats the command that resumes programs at a port. The path is quoted, because another program may have chosen it.
fn resume_command(port: &Path) -> String {
    let mut port = port.as_os_str().to_owned();
    port.push(",listen");
    format!("runtap resume --diagnostic-port {}", shell::word(port))
}

/// Returns the next step after a process was not resumed, or `None` if unknown.
pub fn resume_hint(error: &ResumeError) -> Option<String> {
    Some(match error {
        ResumeError::TooSlow { .. } => "Allow more time with --duration.".to_owned(),
        ResumeError::StillWaits { pid } => {
            format!("'runtap doctor {pid}' shows what the process is waiting for.")
        }
        ResumeError::Held { .. } => {
            "Let that tool resume the process, or stop the tool and try again.".to_owned()
        }
        ResumeError::NoRight { port, .. } => {
            format!("If no other program needs that socket: {}", resume_command(port))
        }
        ResumeError::Astray { .. } => {
            "Stop the process, and start it with a port in a directory that only you can write to.".to_owned()
        }
        _ => return None,
    })
}

/// Returns the message for an event of a dump of this kind. `None` for progress.
pub fn dump_event(event: &dump::Event<'_>, kind: &str) -> Option<Message> {
    Some(match event {
        dump::Event::Fetching { theirs, why } => Message::Note(format!(
            "The target writes the dump to {}, and runtap copies it from there: {why}.",
            theirs.display()
        )),
        dump::Event::Writing { pid, ours } => {
            Message::Note(format!("Writing a {kind} dump of process {pid} to {}", ours.display()))
        }
        dump::Event::Asked => Message::Detail("sent the request to the target".to_owned()),
        dump::Event::NoCrashReport => Message::Warning(
            "no crash report is written: crash reports require .NET 6 or later in the target".to_owned(),
        ),
        dump::Event::Left { theirs } => {
            Message::Warning(format!("the data that the target has written is in {}", theirs.display()))
        }
        dump::Event::Progress { .. } | dump::Event::Over => return None,
    })
}

/// Returns the next step after a failed dump, or `None` if unknown.
pub fn dump_hint(error: &dump::Error) -> Option<&'static str> {
    Some(match error {
        dump::Error::Unseen { .. } => "Run runtap as root, or as the user who runs the process.",
        dump::Error::NoPlace { .. } => "Choose a directory with -o that the target's user may write to.",
        dump::Error::NoSpace { .. } => "Choose another directory with -o, or a smaller --type.",
        dump::Error::NoCore { .. } => "The invalid file was deleted.",
        dump::Error::Runtime(error) => match dump::Refusal::of(error)? {
            dump::Refusal::NoPtrace => {
                "createdump may not trace its own parent: a container needs the capability SYS_PTRACE."
            }
            dump::Refusal::FullOnly => "Use --type full.",
        },
        _ => return None,
    })
}

/// Returns the message for an event of a recording to these tracepoints.
#[cfg(target_os = "linux")]
pub fn user_event(event: &crate::UserEvent<'_>, pid: u32, tracepoints: &[String]) -> Message {
    use crate::UserEvent;
    match event {
        UserEvent::NotResumed(error) => {
            Message::Warning(format!("could not resume process {pid}, in case it is suspended: {error}"))
        }
        UserEvent::Started => Message::Note(format!(
            "process {pid} writes its events into user_events:{}",
            tracepoints.join(", user_events:")
        )),
        UserEvent::Ended => Message::Note("the target has exited, or has stopped the session".to_owned()),
        UserEvent::Abandoned => {
            Message::Warning("the target was still writing the names of its methods".to_owned())
        }
    }
}

/// Returns why the kernel has no usable `user_events`, and the next step.
#[cfg(target_os = "linux")]
pub fn user_events_unavailable(error: &std::io::Error) -> (String, &'static str) {
    match error.kind() {
        std::io::ErrorKind::NotFound => (
            "this kernel has no user_events, or tracefs is not mounted".to_owned(),
            "This requires Linux 6.4 or later with CONFIG_USER_EVENTS, and 'mount -t tracefs none /sys/kernel/tracing'.",
        ),
        std::io::ErrorKind::PermissionDenied => (
            "cannot open user_events_data: permission denied".to_owned(),
            "Run runtap as root, or give your user access to /sys/kernel/tracing/user_events_data.",
        ),
        _ => (format!("cannot open user_events_data: {error}"), "Record into a file, without --user-events."),
    }
}
