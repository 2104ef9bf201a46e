//! `runtap resume`: resumes a runtime on each port that it waits for, including ports whose tool has exited.

use std::path::Path;

use runtap_diag::ports::Port;
use runtap_os::shell;
use runtap_record::{ResumeError, Resumption, resume, resume_at};
use runtap_target::{PortSpec, ResolvedTarget, Role, TargetSpec};

use super::failure::explain;
use super::named_port::warn_of_exposure;
use super::target::{DotnetVerb, each, resolve, target_spec};
use super::trace::{guard_arguments, show_guard_event};
use crate::cli::Resume;
use crate::exit::{self, expected};
use crate::output::Output;
use crate::units::Span;

pub(super) async fn run(options: &Resume, output: Output) -> anyhow::Result<u8> {
    let target = target_spec(&options.target)?;
    let show = move |what: Resumption<'_>| show(what, output);
    if let TargetSpec::Port(PortSpec { path, role: Role::Listen }) = &target {
        let mut port = Port::bind_for_all_users(path)?;
        warn_of_exposure(&port, output);
        if resume_at(&mut port, options.duration, &show).await {
            return Ok(exit::OK);
        }
        return Err(expected(exit::NO_TARGET, format!("nobody has dialled in on {}", path.display()), None));
    }
    let all = resolve(&target, options.all.all, DotnetVerb::RESUME, output).await?;
    let resume_one = async |chosen: ResolvedTarget, _: Output| {
        resume(&chosen, options.duration, Some(&guard_arguments()), &show).await.map_err(resume_error)?;
        Ok(exit::OK)
    };
    each(all, output, resume_one).await
}

fn show(what: Resumption<'_>, output: Output) {
    match what {
        Resumption::TakenOver(port) => warn_of_exposure(port, output),
        Resumption::GoesOn(pid) => output.note(format_args!("process {pid} goes on")),
        Resumption::Failed(pid, error) => {
            output.warning(format_args!("process {pid} could not be resumed: {error}"));
        }
        Resumption::Muted(user) => {
            output.note(format_args!("what becomes of further processes of user {user} is not told"));
        }
        Resumption::OthersUnknown(limit) => output.note(format_args!(
            "who else waits there is not known: to look at all processes took longer than {} (--duration)",
            Span(limit)
        )),
        Resumption::WaitsAgain(port) => output.note(format_args!(
            ".NET programs that they start wait at {} again; this lets them go on: {}",
            port.display(),
            listen_at(port)
        )),
        Resumption::Guard(event) => show_guard_event(event, output),
    }
}

/// Formats the command that resumes programs at a port. The path is quoted, because another program may have chosen it.
fn listen_at(port: &Path) -> String {
    let mut port = port.as_os_str().to_owned();
    port.push(",listen");
    format!("runtap resume --diagnostic-port {}", shell::word(port))
}

fn resume_error(error: ResumeError) -> anyhow::Error {
    let (code, hint) = match &error {
        ResumeError::TooSlow { .. } => (exit::FAILED, "give it more time with --duration".to_owned()),
        ResumeError::StillWaits { pid } => {
            (exit::FAILED, format!("'runtap doctor {pid}' tells what it waits for"))
        }
        ResumeError::Held { .. } => {
            (exit::FAILED, "let that tool resume it, or end the tool and try again".to_owned())
        }
        ResumeError::NoRight { port, .. } => {
            (exit::REFUSED, format!("if you know that nobody else needs that socket: {}", listen_at(port)))
        }
        ResumeError::Astray { .. } => (
            exit::REFUSED,
            "end it, and start it with a port in a directory that only you can write to".to_owned(),
        ),
        _ => {
            return match error {
                ResumeError::Runtime(error) => explain(error),
                ResumeError::Port(error) => error.into(),
                ResumeError::Io(error) => error.into(),
                error => error.into(),
            };
        }
    };
    expected(code, error.to_string(), hint)
}
