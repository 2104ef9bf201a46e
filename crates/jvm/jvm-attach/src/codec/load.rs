//! The interpretation of replies to `load`, which differ between generations of JDKs.

use thiserror::Error;

use super::reply::Reply;

/// `ATTACH_ERROR_BADVERSION`.
const BAD_VERSION: i32 = 101;
/// The text of JDK 9 and later before the agent's return code.
const RETURN_CODE: &str = "return code: ";
/// The text of JDK 21 and later with `-XX:-EnableDynamicAgentLoading`.
const DISABLED: &str = "Dynamic agent loading is not enabled";

/// The reason why an agent was not loaded.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum LoadError {
    /// The JVM was started with dynamic agent loading disabled (JEP 451).
    #[error("the JVM was started with -XX:-EnableDynamicAgentLoading, which disables loading agents")]
    Disabled,
    /// The library was loaded, but its `Agent_OnAttach` returned an error.
    #[error("the agent failed to start (code {code})")]
    Failed {
        /// The error code, not 0.
        code: i64,
    },
    /// The JVM could not load the library. JDK 8 reports no reason.
    #[error("the JVM did not load the agent{}", match message.as_str() { "" => String::new(), text => format!(": {text}") })]
    NotLoaded {
        /// The code of the reply. JDK 21 and later reply with 0 even in this case.
        code: i32,
        /// The text of the reply.
        message: String,
    },
    /// The JVM does not support this version of the protocol.
    #[error("the JVM does not support this version of the attach protocol")]
    Version,
}

/// Interprets the reply to `load`.
///
/// # Errors
/// Fails if the agent does not run.
pub fn loaded(reply: &Reply) -> Result<(), LoadError> {
    let failed = || LoadError::NotLoaded { code: reply.code, message: reply.message() };
    let text = String::from_utf8_lossy(&reply.text);
    let first = text.lines().next().unwrap_or_default().trim();
    if text.contains(DISABLED) {
        return Err(LoadError::Disabled);
    }
    match reply.code {
        0 => {}
        BAD_VERSION if first.is_empty() => return Err(LoadError::Version),
        _ => return Err(failed()),
    }
    // JDK 8 replies with the number only.
    match first.strip_prefix(RETURN_CODE).unwrap_or(first).parse() {
        Ok(0) => Ok(()),
        Ok(code) => Err(LoadError::Failed { code }),
        Err(_) => Err(failed()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn replies_of_all_jdk_generations_are_interpreted() {
        let load = |code, text: &str| loaded(&Reply { code, text: text.into() });
        assert_eq!(load(0, "return code: 0\n"), Ok(()));
        assert_eq!(load(0, "0\n"), Ok(()), "JDK 8");
        assert_eq!(load(0, "return code: 7\n"), Err(LoadError::Failed { code: 7 }));
        assert_eq!(load(0, "-4\n"), Err(LoadError::Failed { code: -4 }));
        assert_eq!(load(101, ""), Err(LoadError::Version));
        let missing = "/tmp/none.so was not loaded.\n/tmp/none.so: cannot open shared object file\n";
        for code in [-1, 0] {
            let error = load(code, missing).unwrap_err();
            let text = error.to_string();
            assert_eq!(text, format!("the JVM did not load the agent: {}", missing.trim()), "{code}");
        }
        assert_eq!(load(-1, "").unwrap_err().to_string(), "the JVM did not load the agent");
        assert!(matches!(load(0, ""), Err(LoadError::NotLoaded { code: 0, .. })));
        let disabled =
            "Dynamic agent loading is not enabled. Use -XX:+EnableDynamicAgentLoading to launch target VM.";
        assert_eq!(load(0, disabled), Err(LoadError::Disabled));
        assert_eq!(load(-1, disabled), Err(LoadError::Disabled));
        let exception = "com.sun.tools.attach.AttachOperationFailedException: no\n\tat x\n";
        assert!(matches!(load(1, exception), Err(LoadError::NotLoaded { code: 1, .. })));
    }
}
