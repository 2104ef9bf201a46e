//! ResumeRuntime (0x0401): resumes a runtime that is suspended at startup. No payload; runtimes ignore one.
//! The reply carries an `i32` 0 in practice and nothing according to the specification, so both are accepted.

#[cfg(test)]
mod tests {
    use crate::{Command, Hresult, Reply, Request, message::decode_ok};

    #[test]
    fn golden_bytes() {
        assert_eq!(Request::ResumeRuntime.to_bytes().unwrap(), b"DOTNET_IPC_V1\0\x14\0\x04\x01\0\0");
        let reply = Reply::Resumed.to_bytes(&Request::ResumeRuntime).unwrap();
        assert_eq!(reply, b"DOTNET_IPC_V1\0\x18\0\xff\0\0\0\0\0\0\0");
    }

    #[test]
    fn a_reply_without_a_code_is_accepted() {
        assert_eq!(decode_ok(&Request::ResumeRuntime, &[]).unwrap(), Ok(Reply::Resumed));
        assert_eq!(decode_ok(&Request::ResumeRuntime, &[0; 4]).unwrap(), Ok(Reply::Resumed));
        let refused = decode_ok(&Request::ResumeRuntime, &[5, 0x40, 0, 0x80]).unwrap().unwrap_err();
        assert_eq!(refused.hresult, Hresult::E_FAIL);
        assert!(decode_ok(&Request::ResumeRuntime, &[0; 3]).unwrap_err().is_incomplete());
    }

    #[test]
    fn a_payload_is_ignored() {
        assert_eq!(Request::decode(Command::RESUME_RUNTIME, b"abc").unwrap(), Request::ResumeRuntime);
    }
}
