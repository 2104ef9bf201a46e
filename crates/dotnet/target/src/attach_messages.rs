//! Messages about attaching to a Java program: why it failed, and what serves instead.

use runtap_discover::{Fix, Process, Reason, System};
use runtap_jvm_attach::codec::LoadError;
use runtap_jvm_attach::{AttachError, Jvm};
use runtap_os::in_a_thread;

use crate::java::JavaNameError;
use crate::messages::ErrorMessage;
use crate::{fixes, name_of};

const LIST_HINT: &str = "'runtap ps' lists Java programs; select one with --process-id.";

/// Returns the message for a failed attachment. Reads the files of the process, which may block.
pub fn attach_error(error: &AttachError) -> ErrorMessage {
    let hint = match error {
        AttachError::NotPermitted { pid, .. } | AttachError::Protected { pid } => {
            let reason = Reason::hidden(&System::current().facts(*pid));
            return ErrorMessage::new(format!("process {pid} {reason}"), fixes::text(&[reason.fix()]));
        }
        AttachError::NotAJvm { pid } => return not_a_jvm(*pid),
        AttachError::NoProcess { .. } => Some("'runtap ps' lists Java programs.".to_owned()),
        AttachError::OpenJ9 { .. } | AttachError::Musl { .. } => Some(fixes::text(&[Fix::OriginalAgent])),
        AttachError::AgentRefused { pid, why } if why.contains("traced already") => {
            Some(format!("'runtap jvm detach {pid}' ends that trace."))
        }
        AttachError::AgentRefused { why, .. } if why.starts_with("HQ refuses") => {
            Some("The collector has no capacity left, or is another program; see its messages.".to_owned())
        }
        AttachError::Stopped { .. } => Some("Resume it: kill -CONT PID".to_owned()),
        AttachError::Disabled { .. }
        | AttachError::ReadOnlyTemp { .. }
        | AttachError::NotLoaded(LoadError::Disabled) => Some(fixes::text(&[Fix::TraceJvmFromStart])),
        _ => None,
    };
    ErrorMessage::new(error.to_string(), hint)
}

/// Returns advice for a Java program that can't be attached to; `None` if no obstacle is known.
pub(crate) async fn instead_of_attaching(pid: u32) -> Option<String> {
    let look = move || {
        let examine = || {
            let jvm = Jvm::examine(pid)?;
            jvm.check_c_library()?;
            jvm.check_enabled()
        };
        examine().err().map(|error| attach_error(&error))
    };
    let ErrorMessage { text, hint, .. } = in_a_thread(look).await.ok()??;
    Some(match hint {
        Some(hint) => format!("{hint} ({text})"),
        None => text,
    })
}

/// Returns the message for a name that selects no Java program, or several.
pub fn java_name_error(name: &str, error: JavaNameError) -> ErrorMessage {
    match error {
        JavaNameError::NotFound { dotnet } => {
            let hint = dotnet.map_or_else(|| LIST_HINT.to_owned(), instead_of_jvm);
            ErrorMessage::new(format!("no Java program of your user is named '{name}'"), hint)
        }
        JavaNameError::Ambiguous(several) => {
            let line = |process: &Process| format!("{}  {}", process.pid, process.command_line.join(" "));
            let list = several.iter().map(line).collect();
            let text = format!("multiple Java programs are named '{name}':");
            ErrorMessage { text, list, hint: Some(LIST_HINT.to_owned()) }
        }
    }
}

/// Returns advice for a process that is a .NET program.
fn instead_of_jvm(pid: u32) -> String {
    format!("To record process {pid}, a .NET program: runtap trace -p {pid}")
}

/// Returns the message for a process without a JVM that can be attached to.
fn not_a_jvm(pid: u32) -> ErrorMessage {
    let facts = System::current().facts(pid);
    if facts.is_dotnet() {
        let name = name_of(&facts.command_line, &facts.comm);
        let text =
            format!("process {pid} ({name}) is a .NET program; 'runtap jvm attach' traces Java programs");
        return ErrorMessage::new(text, instead_of_jvm(pid));
    }
    let text = format!("process {pid} {}", Reason::NotDotnet);
    ErrorMessage::new(text, "'runtap ps' lists .NET and Java programs.".to_owned())
}
