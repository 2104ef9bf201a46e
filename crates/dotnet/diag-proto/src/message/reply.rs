//! The two kinds of replies: OK (0xFF00) with a payload that the command defines, and Error (0xFFFF) with
//! an HRESULT. Section "Errors" of the specification, which states 28 bytes and an 8-byte code; every runtime sends
//! 24 bytes with an `i32`.

use runtap_wire::{DecodeError, DecodeErrorKind, Reader, Writer};

use super::{
    Command, HEADER_LEN, Hresult, ProcessInfo, Request, SessionId, Variable, frame, process_environment,
    result, string,
};
use crate::EncodeError;

/// The reply to a command that succeeded.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Reply {
    /// The reply to [`Request::ProcessInfo`].
    ProcessInfo(ProcessInfo),
    /// The reply to [`Request::ProcessEnvironment`], including the continuation.
    Environment(Vec<Variable>),
    /// The reply to [`Request::CollectTracing`], before the stream, and to [`Request::CollectUserEvents`], without a stream.
    SessionStarted(SessionId),
    /// The reply to [`Request::StopTracing`].
    SessionStopped(SessionId),
    /// The reply to [`Request::ResumeRuntime`].
    Resumed,
    /// The reply to every command without a result: dumps, profilers, perf maps, startup hooks and variables.
    /// **Not a proof of success**: runtimes also send it for dumps that were not written and libraries that were not found.
    Done,
}

impl Reply {
    /// Returns the encoded reply to `request`: the message, and the continuation of an environment.
    ///
    /// # Errors
    /// If the reply belongs to another command, or does not fit in a message.
    pub fn to_bytes(&self, request: &Request) -> Result<Vec<u8>, EncodeError> {
        let mut w = Writer::new();
        let mut continuation = Vec::new();
        match (self, request) {
            (Self::ProcessInfo(info), Request::ProcessInfo(form)) => info.encode(&mut w, *form),
            (Self::Environment(variables), Request::ProcessEnvironment) => {
                let (head, block) = process_environment::encode_reply(variables)?;
                w.bytes(&head);
                continuation = block;
            }
            (
                Self::SessionStarted(id),
                Request::CollectTracing { .. } | Request::CollectUserEvents { .. },
            )
            | (Self::SessionStopped(id), Request::StopTracing(_)) => {
                w.u64(id.0);
            }
            (Self::Resumed, Request::ResumeRuntime) => result::encode(&mut w),
            (Self::Done, request) if request.has_empty_reply() => result::encode(&mut w),
            _ => return Err(EncodeError::WrongReply { command: request.command() }),
        }
        let mut bytes = frame(Command::OK, w.as_bytes())?;
        bytes.append(&mut continuation);
        Ok(bytes)
    }
}

/// Decodes the payload of an OK reply to `request`, or the error code that some commands put into it. Does not decode
/// an environment, which is in the continuation.
pub(crate) fn decode_ok(request: &Request, payload: &[u8]) -> Result<Result<Reply, ErrorReply>, DecodeError> {
    let mut r = Reader::at(payload, HEADER_LEN as u64);
    Ok(Ok(match request {
        Request::ProcessInfo(form) => Reply::ProcessInfo(ProcessInfo::decode(&mut r, *form)?),
        Request::CollectTracing { .. } | Request::CollectUserEvents { .. } => match r.u64("session id")? {
            0 => {
                let kind = DecodeErrorKind::TooSmall { value: 0, least: 1 };
                return Err(DecodeError::new(HEADER_LEN as u64, "session id", kind));
            }
            id => Reply::SessionStarted(SessionId(id)),
        },
        Request::StopTracing(_) => Reply::SessionStopped(SessionId(r.u64("session id")?)),
        Request::ProcessEnvironment => Reply::Environment(Vec::new()),
        Request::ResumeRuntime
        | Request::GenerateCoreDump { .. }
        | Request::AttachProfiler(_)
        | Request::StartupProfiler(_)
        | Request::SetEnvironmentVariable { .. }
        | Request::EnablePerfMap(_)
        | Request::DisablePerfMap
        | Request::ApplyStartupHook { .. } => match result::decode(&mut r)? {
            hresult if hresult.is_failure() => return Ok(Err(hresult.into())),
            _ if *request == Request::ResumeRuntime => Reply::Resumed,
            _ => Reply::Done,
        },
    }))
}

/// The reply to a command that failed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ErrorReply {
    /// The error code.
    pub hresult: Hresult,
    /// The runtime's error text, which may be empty. Only GenerateCoreDump3 sends one.
    pub message: Option<String>,
}

impl From<Hresult> for ErrorReply {
    fn from(hresult: Hresult) -> Self {
        Self { hresult, message: None }
    }
}

impl ErrorReply {
    /// Returns the complete message.
    ///
    /// # Errors
    /// If the text does not fit in a message.
    pub fn to_bytes(&self) -> Result<Vec<u8>, EncodeError> {
        let mut w = Writer::new();
        w.u32(self.hresult.0);
        if let Some(text) = &self.message {
            w.utf16_counted(Some(text));
        }
        frame(Command::ERROR, w.as_bytes())
    }

    /// Decodes the payload. An unreadable text is ignored, because the code is sufficient.
    ///
    /// # Errors
    /// If the payload is too short for the code.
    pub fn decode(payload: &[u8]) -> Result<Self, DecodeError> {
        let mut r = Reader::at(payload, HEADER_LEN as u64);
        let hresult = Hresult(r.u32("error code")?);
        let message = string(&mut r, "error text").ok().flatten();
        Ok(Self { hresult, message })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::InfoForm;

    #[test]
    fn golden_error_bytes() {
        let reply = ErrorReply::from(Hresult::UNKNOWN_COMMAND);
        let bytes = reply.to_bytes().unwrap();
        assert_eq!(bytes, b"DOTNET_IPC_V1\0\x18\0\xff\xff\0\0\x85\x13\x13\x80");
        assert_eq!(ErrorReply::decode(&bytes[20..]).unwrap(), reply);
    }

    #[test]
    fn unreadable_error_texts_are_ignored() {
        let reply = ErrorReply { hresult: Hresult::E_FAIL, message: Some("no room é😀".into()) };
        assert_eq!(ErrorReply::decode(&reply.to_bytes().unwrap()[20..]).unwrap(), reply);
        let code = [5, 0x40, 0, 0x80];
        for tail in [&[][..], &[0; 4], &[1], &[0xff; 9]] {
            let payload = [&code[..], tail].concat();
            assert_eq!(ErrorReply::decode(&payload).unwrap(), Hresult::E_FAIL.into(), "{tail:?}");
        }
        assert_eq!(
            ErrorReply::decode(&code[..3]).unwrap_err().to_string(),
            "error code at offset 20: needs 4 bytes, 3 are left"
        );
    }

    #[test]
    fn a_session_id_is_never_0() {
        let config = crate::SessionConfig::new(vec![]);
        let request = Request::CollectTracing { form: crate::SessionForm::CollectTracing2, config };
        assert_eq!(
            decode_ok(&request, &[0; 8]).unwrap_err().to_string(),
            "session id at offset 20: is 0, less than 1"
        );
        assert_eq!(
            decode_ok(&request, &[1; 8]).unwrap(),
            Ok(Reply::SessionStarted(SessionId(0x0101_0101_0101_0101)))
        );
    }

    #[test]
    fn a_reply_to_another_request_is_rejected() {
        assert_eq!(
            Reply::Resumed.to_bytes(&Request::ProcessInfo(InfoForm::ProcessInfo2)).unwrap_err(),
            EncodeError::WrongReply { command: Command::PROCESS_INFO2 }
        );
    }
}
