//! Every request of this crate, as a value. There is no variant for a payload of one's own: what could harm a
//! runtime cannot be built.

use runtap_wire::{DecodeError, DecodeErrorKind, Reader, Writer};

use super::{
    AttachProfiler, Command, CoreDump, DumpForm, HEADER_LEN, InfoForm, PerfMapType, SessionConfig,
    SessionForm, SessionId, StartupProfiler, UserEventsConfig, attach_profiler, collect_tracing,
    collect_tracing::Destination, core_dump, frame, perf_map, set_environment_variable, startup_hook,
    startup_profiler, stop_tracing, user_events,
};
use crate::{EncodeError, RequestError};

/// What a client asks a runtime for.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Request {
    /// Who the process is.
    ProcessInfo(InfoForm),
    /// Its environment variables, as they are now.
    ProcessEnvironment,
    /// Start a session; the stream follows on this connection.
    CollectTracing {
        /// The command that carries it.
        form: SessionForm,
        /// What is recorded.
        config: SessionConfig,
    },
    /// Start a session into tracepoints of the kernel. **A message with a descriptor has to follow**: see
    /// [`client::Client::with_descriptor`](crate::client::Client::with_descriptor).
    CollectUserEvents {
        /// The command that carries it, CollectTracing5 or later.
        form: SessionForm,
        /// What is recorded, and where to.
        config: UserEventsConfig,
    },
    /// End a session. **Ids are used again at once**: a second stop may end a stranger's session.
    StopTracing(SessionId),
    /// Let a runtime go on that waits at startup. Counts only for the port it arrives on.
    ResumeRuntime,
    /// Write a core dump.
    GenerateCoreDump {
        /// The command that carries it.
        form: DumpForm,
        /// What is written, and where to.
        dump: CoreDump,
    },
    /// Load a profiler now.
    AttachProfiler(AttachProfiler),
    /// Load a profiler when the runtime goes on that waits at startup.
    StartupProfiler(StartupProfiler),
    /// Change the runtime's copy of the environment.
    SetEnvironmentVariable {
        /// The variable; not empty, without `=`.
        name: String,
        /// Its new value. `None` removes the variable.
        value: Option<String>,
    },
    /// Write the addresses of compiled methods to files in the target's `/tmp`. **Kills .NET 8 and 9 while they wait at
    /// startup.**
    EnablePerfMap(PerfMapType),
    /// Write them no more.
    DisablePerfMap,
    /// Load an assembly and call its startup hook. **Kills .NET 9 and later if that fails.**
    ApplyStartupHook {
        /// The assembly, loaded by the target: in its mount namespace, as its user.
        path: String,
    },
}

impl Request {
    /// The command on the wire.
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

    /// Whether the answer is a [`Reply::Done`](super::Reply::Done).
    pub(super) fn gives_a_result_only(&self) -> bool {
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

    /// The whole message, to be sent in **one** write.
    ///
    /// # Errors
    /// The field that a runtime would refuse, misread or die of.
    pub fn to_bytes(&self) -> Result<Vec<u8>, EncodeError> {
        let mut w = Writer::new();
        match self {
            // No payload: runtimes answer these with foreign memory if there is one.
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

    /// Reads the payload of a request, as a server does. Offsets in errors count from the message's first byte.
    ///
    /// Takes what healthy runtimes take: bytes after the last field, bool bytes above 1, doubled providers. Refuses
    /// what they die of.
    ///
    /// # Errors
    /// [`RequestError::UnknownCommand`], before the payload is looked at, [`RequestError::BadEncoding`] or
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
            // Runtimes ignore a payload of these two.
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

/// Real runtimes answer these commands with their own memory if a payload comes along.
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
    fn a_payload_where_none_belongs_is_refused() {
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
    fn unknown_commands_are_refused_before_their_payload() {
        let error = Request::decode(Command(0x0409), &[1]).unwrap_err();
        assert_eq!(error, RequestError::UnknownCommand(Command(0x0409)));
        assert_eq!(error.hresult().to_string(), "0x80131385 (UNKNOWN_COMMAND)");
    }
}
