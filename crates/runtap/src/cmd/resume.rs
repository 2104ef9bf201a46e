//! `runtap resume`: resumes a runtime on each port that it waits for, including ports whose tool has exited.

use runtap_diag::ports::Port;
use runtap_record::{ResumeError, Resumption, messages, resume, resume_at};
use runtap_target::{PortSpec, ResolvedTarget, Role, TargetSpec};
use runtap_text::Output;

use super::failure::explain;
use super::named_port::warn_of_exposure;
use super::target::{DotnetVerb, each, resolve, target_spec};
use super::trace::guard_arguments;
use crate::cli::Resume;
use crate::exit::{self, expected};

pub(super) async fn run(options: &Resume, output: Output) -> anyhow::Result<u8> {
    let target = target_spec(&options.target)?;
    let show = move |event: Resumption<'_>| show(event, output);
    if let TargetSpec::Port(PortSpec { path, role: Role::Listen }) = &target {
        let mut port = Port::bind_for_all_users(path)?;
        warn_of_exposure(&port, output);
        if resume_at(&mut port, options.duration, &show).await {
            return Ok(exit::OK);
        }
        return Err(expected(
            exit::NO_TARGET,
            format!("no program has connected to {}", path.display()),
            None,
        ));
    }
    let all = resolve(&target, options.all.all, DotnetVerb::RESUME, output).await?;
    let resume_one = async |chosen: ResolvedTarget, _: Output| {
        resume(&chosen, options.duration, Some(&guard_arguments()), &show).await.map_err(resume_error)?;
        Ok(exit::OK)
    };
    each(all, output, resume_one).await
}

fn show(event: Resumption<'_>, output: Output) {
    match event {
        Resumption::TakenOver(port) => warn_of_exposure(port, output),
        event => output.messages(messages::resumption(&event)),
    }
}

fn resume_error(error: ResumeError) -> anyhow::Error {
    let code = match &error {
        ResumeError::NoRight { .. } | ResumeError::Astray { .. } => exit::REFUSED,
        _ => exit::FAILED,
    };
    match (messages::resume_hint(&error), error) {
        (_, ResumeError::Runtime(error)) => explain(error),
        (_, ResumeError::Port(error)) => error.into(),
        (_, ResumeError::Io(error)) => error.into(),
        (hint, error) => expected(code, error.to_string(), hint),
    }
}
