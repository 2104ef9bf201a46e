//! Every request of this crate, as a value. There is no variant for a payload of one's own: what could harm a
//! runtime cannot be built.

use runtap_wire::{DecodeError, DecodeErrorKind, Reader, Writer};

use super::{
    Command, HEADER_LEN, InfoForm, SessionConfig, SessionForm, SessionId, collect_tracing, frame,
    stop_tracing,
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
    /// End a session. **Ids are used again at once**: a second stop may end a stranger's session.
    StopTracing(SessionId),
    /// Let a runtime go on that waits at startup. Counts only for the port it arrives on.
    ResumeRuntime,
}

impl Request {
    /// The command on the wire.
    pub fn command(&self) -> Command {
        match self {
            Self::ProcessInfo(form) => form.command(),
            Self::ProcessEnvironment => Command::PROCESS_ENVIRONMENT,
            Self::CollectTracing { form, .. } => form.command(),
            Self::StopTracing(_) => Command::STOP_TRACING,
            Self::ResumeRuntime => Command::RESUME_RUNTIME,
        }
    }

    /// The whole message, to be sent in **one** write.
    ///
    /// # Errors
    /// The field that a runtime would refuse, misread or die of.
    pub fn to_bytes(&self) -> Result<Vec<u8>, EncodeError> {
        let mut payload = Writer::new();
        match self {
            // No payload: runtimes answer these with foreign memory if there is one.
            Self::ProcessInfo(_) | Self::ProcessEnvironment | Self::ResumeRuntime => {}
            Self::CollectTracing { form, config } => collect_tracing::encode(&mut payload, *form, config)?,
            Self::StopTracing(id) => stop_tracing::encode(&mut payload, *id),
        }
        frame(self.command(), payload.as_bytes())
    }

    /// Reads the payload of a request, as a server does. Offsets in errors count from the message's first byte.
    ///
    /// Takes what healthy runtimes take: bytes after the last field, bool bytes above 1, doubled providers. Refuses
    /// what they die of.
    ///
    /// # Errors
    /// [`RequestError::UnknownCommand`], before the payload is looked at, or [`RequestError::BadEncoding`].
    pub fn decode(command: Command, payload: &[u8]) -> Result<Self, RequestError> {
        Self::decode_known(command, payload)
            .ok_or(RequestError::UnknownCommand(command))?
            .map_err(RequestError::BadEncoding)
    }

    /// `None`: the command is unknown.
    fn decode_known(command: Command, payload: &[u8]) -> Option<Result<Self, DecodeError>> {
        let mut r = Reader::at(payload, HEADER_LEN as u64);
        if let Some(form) = InfoForm::from_command(command) {
            return Some(no_payload(&r).map(|()| Self::ProcessInfo(form)));
        }
        if let Some(form) = SessionForm::from_command(command) {
            let config = collect_tracing::decode(&mut r, form);
            return Some(config.map(|config| Self::CollectTracing { form, config }));
        }
        match command {
            Command::PROCESS_ENVIRONMENT => Some(no_payload(&r).map(|()| Self::ProcessEnvironment)),
            Command::STOP_TRACING => Some(stop_tracing::decode(&mut r).map(Self::StopTracing)),
            Command::RESUME_RUNTIME => Some(Ok(Self::ResumeRuntime)),
            _ => None,
        }
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
