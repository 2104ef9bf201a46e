//! Whether an agent was loaded, by what `load` answers: each generation of JDKs says it in another way.

use thiserror::Error;

use super::reply::Reply;

/// `ATTACH_ERROR_BADVERSION`.
const BAD_VERSION: i32 = 101;
/// What JDK 9 and later say before the result of the agent.
const RETURN_CODE: &str = "return code: ";
/// What JDK 21 and later say with `-XX:-EnableDynamicAgentLoading`.
const DISABLED: &str = "Dynamic agent loading is not enabled";

/// Why an agent was not loaded.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum NotLoaded {
    /// The JVM was started so that it loads no agents (JEP 451).
    #[error("the JVM was started with -XX:-EnableDynamicAgentLoading: it loads no agents while it runs")]
    Disabled,
    /// The library was loaded, and its `Agent_OnAttach` returned this.
    #[error("the agent refused to start: code {code}")]
    Refused {
        /// Not 0.
        code: i64,
    },
    /// The JVM says why, or not: JDK 8 says nothing.
    #[error("the JVM did not load the agent{}", match message.as_str() { "" => String::new(), text => format!(": {text}") })]
    Failed {
        /// The code of the answer. JDK 21 and later answer with 0 all the same.
        code: i32,
        /// What it says.
        message: String,
    },
    /// The JVM does not know this version of the protocol.
    #[error("the JVM does not know this version of the attach protocol")]
    Version,
}

/// What the answer to `load` says.
///
/// # Errors
/// The agent does not run.
pub fn loaded(reply: &Reply) -> Result<(), NotLoaded> {
    let failed = || NotLoaded::Failed { code: reply.code, message: reply.message() };
    let text = String::from_utf8_lossy(&reply.text);
    let first = text.lines().next().unwrap_or_default().trim();
    if text.contains(DISABLED) {
        return Err(NotLoaded::Disabled);
    }
    match reply.code {
        0 => {}
        BAD_VERSION if first.is_empty() => return Err(NotLoaded::Version),
        _ => return Err(failed()),
    }
    // JDK 8 has the number alone.
    match first.strip_prefix(RETURN_CODE).unwrap_or(first).parse() {
        Ok(0) => Ok(()),
        Ok(code) => Err(NotLoaded::Refused { code }),
        Err(_) => Err(failed()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_generation_is_understood() {
        let load = |code, text: &str| loaded(&Reply { code, text: text.into() });
        assert_eq!(load(0, "return code: 0\n"), Ok(()));
        assert_eq!(load(0, "0\n"), Ok(()), "JDK 8");
        assert_eq!(load(0, "return code: 7\n"), Err(NotLoaded::Refused { code: 7 }));
        assert_eq!(load(0, "-4\n"), Err(NotLoaded::Refused { code: -4 }));
        assert_eq!(load(101, ""), Err(NotLoaded::Version));
        let missing = "/tmp/none.so was not loaded.\n/tmp/none.so: cannot open shared object file\n";
        for code in [-1, 0] {
            let error = load(code, missing).unwrap_err();
            let text = error.to_string();
            assert_eq!(text, format!("the JVM did not load the agent: {}", missing.trim()), "{code}");
        }
        assert_eq!(load(-1, "").unwrap_err().to_string(), "the JVM did not load the agent");
        assert!(matches!(load(0, ""), Err(NotLoaded::Failed { code: 0, .. })));
        let disabled =
            "Dynamic agent loading is not enabled. Use -XX:+EnableDynamicAgentLoading to launch target VM.";
        assert_eq!(load(0, disabled), Err(NotLoaded::Disabled));
        assert_eq!(load(-1, disabled), Err(NotLoaded::Disabled));
        let exception = "com.sun.tools.attach.AttachOperationFailedException: no\n\tat x\n";
        assert!(matches!(load(1, exception), Err(NotLoaded::Failed { code: 1, .. })));
    }
}
