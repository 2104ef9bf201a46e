//! The requests. There is no variant for a custom payload, so a request that crashes a runtime cannot be built.

use runtap_wire::{DecodeError, DecodeErrorKind, Reader, Writer};

use super::{
    AttachProfiler, Command, CoreDump, DumpForm, HEADER_LEN, InfoForm, PerfMapType, SessionConfig,
    SessionForm, SessionId, StartupProfiler, UserEventsConfig, attach_profiler, collect_tracing,
    collect_tracing::Destination, core_dump, frame, perf_map, set_environment_variable, startup_hook,
    startup_profiler, stop_tracing, user_events,
};
use crate::{EncodeError, RequestError};

/// A request from a client to a runtime.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Request {
    /// Get information about the process.
    ProcessInfo(InfoForm),
    /// Get the current environment variables.
    ProcessEnvironment,
    /// Start a session; the stream follows on this connection.
    CollectTracing {
        /// The command to send.
        form: SessionForm,
        /// What to record.
        config: SessionConfig,
    },
    /// Start a session into tracepoints of the kernel. **A message with a descriptor must follow**: see
    /// [`client::Client::with_descriptor`](crate::client::Client::with_descriptor).
    CollectUserEvents {
        /// The command to send, CollectTracing5 or later.
        form: SessionForm,
        /// What to record, and into which tracepoints.
        config: UserEventsConfig,
    },
    /// Stop a session. **Runtimes reuse ids at once**: a second stop may stop another client's session.
    StopTracing(SessionId),
    /// Resume a runtime that is suspended at startup. Applies only to the port over which it is sent.
    ResumeRuntime,
    /// Write a core dump.
    GenerateCoreDump {
        /// The command to send.
        form: DumpForm,
        /// What to write, and to which file.
        dump: CoreDump,
    },
    /// Load a profiler now.
    AttachProfiler(AttachProfiler),
    /// Load a profiler when the suspended runtime resumes.
    StartupProfiler(StartupProfiler),
    /// Change the runtime's copy of the environment.
    SetEnvironmentVariable {
        /// The name of the variable; not empty, without `=`.
        name: String,
        /// The new value. `None` removes the variable.
        value: Option<String>,
    },
    /// Write the addresses of compiled methods to files in the target's `/tmp`. **Crashes .NET 8 and 9 while they are
    /// suspended at startup.**
    EnablePerfMap(PerfMapType),
    /// Stop writing the addresses of compiled methods.
    DisablePerfMap,
    /// Load an assembly and call its startup hook. **Crashes .NET 9 and later if that fails.**
    ApplyStartupHook {
        /// The assembly, loaded by the target: in its mount namespace, as its user.
        path: String,
    },
}

impl Request {
    /// Returns the command.
    pub fn command(&self) -> Command {
        match self {
            Self::ProcessInfo(form) => form.command(),
            Self::ProcessEnvironment => Command::PROCESS_ENVIRONMENT,
            Self::CollectTracing { form, .. } | Self::CollectUserEvents { form, .. } => form.command(),
            Self::StopTracing(_) => Command::STOP_TRACING,
            Self::ResumeRuntime => Command::RESUME_RUNTIME,
            Self::GenerateCoreDump { form, .. } => form.command(),
            Self::AttachProfiler(_) => Command::ATTACH_PROFILER,
            Self::StartupProfiler(_) => Command::STARTUP_PROFILER,
            Self::SetEnvironmentVariable { .. } => Command::SET_ENVIRONMENT_VARIABLE,
            Self::EnablePerfMap(_) => Command::ENABLE_PERF_MAP,
            Self::DisablePerfMap => Command::DISABLE_PERF_MAP,
            Self::ApplyStartupHook { .. } => Command::APPLY_STARTUP_HOOK,
        }
    }

    /// Returns whether the reply is [`Reply::Done`](super::Reply::Done).
    pub(super) fn has_empty_reply(&self) -> bool {
        !matches!(
            self,
            Self::ProcessInfo(_)
                | Self::ProcessEnvironment
                | Self::CollectTracing { .. }
                | Self::CollectUserEvents { .. }
                | Self::StopTracing(_)
                | Self::ResumeRuntime
        )
    }

    /// Returns the complete message, to be sent in **one** write.
    ///
    /// # Errors
    /// If a runtime would reject or misread a field, or crash on it.
    pub fn to_bytes(&self) -> Result<Vec<u8>, EncodeError> {
        let mut w = Writer::new();
        match self {
            // No payload: with one, runtimes leak memory contents in the reply.
            Self::ProcessInfo(_) | Self::ProcessEnvironment | Self::ResumeRuntime | Self::DisablePerfMap => {}
            Self::CollectTracing { form, config } => collect_tracing::encode(&mut w, *form, config)?,
            Self::CollectUserEvents { form, config } => user_events::encode(&mut w, *form, config)?,
            Self::StopTracing(id) => stop_tracing::encode(&mut w, *id),
            Self::GenerateCoreDump { form, dump } => core_dump::encode(&mut w, *form, dump)?,
            Self::AttachProfiler(profiler) => attach_profiler::encode(&mut w, profiler)?,
            Self::StartupProfiler(profiler) => startup_profiler::encode(&mut w, profiler)?,
            Self::SetEnvironmentVariable { name, value } => {
                set_environment_variable::encode(&mut w, name, value.as_deref())?;
            }
            Self::EnablePerfMap(kind) => perf_map::encode(&mut w, *kind),
            Self::ApplyStartupHook { path } => startup_hook::encode(&mut w, path)?,
        }
        frame(self.command(), w.as_bytes())
    }

    /// Decodes the payload of a request, as a server does. Offsets in errors count from the message's first byte.
    ///
    /// Accepts what healthy runtimes accept: bytes after the last field, bool bytes above 1, duplicate providers. Rejects
    /// what crashes runtimes.
    ///
    /// # Errors
    /// [`RequestError::UnknownCommand`], without reading the payload, [`RequestError::BadEncoding`] or
    /// [`RequestError::NotAccepted`].
    pub fn decode(command: Command, payload: &[u8]) -> Result<Self, RequestError> {
        let mut r = Reader::at(payload, HEADER_LEN as u64);
        if let Some(form) = InfoForm::from_command(command) {
            no_payload(&r)?;
            return Ok(Self::ProcessInfo(form));
        }
        if let Some(form) = SessionForm::from_command(command) {
            return Ok(match collect_tracing::decode(&mut r, form)? {
                Destination::Stream(config) => Self::CollectTracing { form, config },
                Destination::UserEvents(config) => Self::CollectUserEvents { form, config },
            });
        }
        if let Some(form) = DumpForm::from_command(command) {
            return Ok(Self::GenerateCoreDump { form, dump: core_dump::decode(&mut r, form)? });
        }
        Ok(match command {
            Command::PROCESS_ENVIRONMENT => {
                no_payload(&r)?;
                Self::ProcessEnvironment
            }
            Command::STOP_TRACING => Self::StopTracing(stop_tracing::decode(&mut r)?),
            // Runtimes ignore a payload of these two commands.
            Command::RESUME_RUNTIME => Self::ResumeRuntime,
            Command::DISABLE_PERF_MAP => Self::DisablePerfMap,
            Command::ATTACH_PROFILER => Self::AttachProfiler(attach_profiler::decode(&mut r)?),
            Command::STARTUP_PROFILER => Self::StartupProfiler(startup_profiler::decode(&mut r)?),
            Command::SET_ENVIRONMENT_VARIABLE => {
                let (name, value) = set_environment_variable::decode(&mut r)?;
                Self::SetEnvironmentVariable { name, value }
            }
            Command::ENABLE_PERF_MAP => Self::EnablePerfMap(perf_map::decode(&mut r)?),
            Command::APPLY_STARTUP_HOOK => Self::ApplyStartupHook { path: startup_hook::decode(&mut r)? },
            _ => return Err(RequestError::UnknownCommand(command)),
        })
    }
}

/// Rejects a payload: with one, real runtimes leak memory contents in the reply.
fn no_payload(r: &Reader<'_>) -> Result<(), DecodeError> {
    if r.is_empty() {
        return Ok(());
    }
    let kind = DecodeErrorKind::TooLarge { value: r.remaining() as u64, limit: 0 };
    Err(r.error("payload size", kind))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_payload_of_a_command_without_payload_is_rejected() {
        for command in [
            Command::PROCESS_INFO,
            Command::PROCESS_INFO2,
            Command::PROCESS_INFO3,
            Command::PROCESS_ENVIRONMENT,
        ] {
            let error = Request::decode(command, &[0xff; 7]).unwrap_err();
            assert_eq!(error.to_string(), "payload size at offset 20: is 7, more than the allowed 0");
            assert!(Request::decode(command, &[]).is_ok());
        }
    }

    #[test]
    fn unknown_commands_are_rejected_before_their_payload_is_read() {
        let error = Request::decode(Command(0x0409), &[1]).unwrap_err();
        assert_eq!(error, RequestError::UnknownCommand(Command(0x0409)));
        assert_eq!(error.hresult().to_string(), "0x80131385 (UNKNOWN_COMMAND)");
    }
}
