//! The commands of the control socket.
//!
//! Owns: the grammar, `VERB [WORDS]`. Does not depend on agents.

use std::str::FromStr;

use runtap_bytefrog::hq::AgentId;
use runtap_bytefrog_proto::Command;
use serde::Deserialize;
use thiserror::Error;

/// A parsed command.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(in crate::cmd::jvm) enum ControlCommand {
    /// Report the status of the agents.
    Status,
    /// Send a `runtap.jvm/1` document on one agent or all.
    Report(Option<AgentId>),
    /// Send a command of the protocol to one agent, or to all that have not ended.
    Command(Command, Option<AgentId>),
    /// Change the classes to trace, before tracing starts.
    Configure(Option<AgentId>, Classes),
    /// Make agents of runtap send their counts and coverage now.
    Snapshot(Option<AgentId>),
    /// Start or end a named part of the recording.
    Mark { name: String, begins: bool },
    /// Stop the agents and end the collection with the report.
    Quit,
}

/// The classes to trace, as with `--include` and `--exclude`.
#[derive(Debug, Clone, PartialEq, Eq, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(in crate::cmd::jvm) struct Classes {
    pub(in crate::cmd::jvm) include: Vec<String>,
    pub(in crate::cmd::jvm) exclude: Vec<String>,
}

/// An error that is returned for an invalid command.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub(in crate::cmd::jvm) enum ControlError {
    #[error("an empty line is no command")]
    Empty,
    #[error(
        "'{0}' is no command: status, report, configure, start, stop, pause, unpause, suspend, unsuspend, snapshot, begin, end, quit"
    )]
    Unknown(String),
    #[error("'{0}' is not the number of an agent")]
    Agent(String),
    #[error("'configure' needs {{\"include\": […], \"exclude\": […]}}: {0}")]
    Classes(String),
    #[error("'{0}' needs a name")]
    NoName(&'static str),
    #[error("'{0}' takes no more words")]
    TooMany(String),
}

impl FromStr for ControlCommand {
    type Err = ControlError;

    fn from_str(line: &str) -> Result<Self, ControlError> {
        let line = line.trim();
        let (verb, rest) = line.split_once(char::is_whitespace).unwrap_or((line, ""));
        let rest = rest.trim();
        let agent = || parse_agent(rest);
        let alone = |order: Self| {
            if rest.is_empty() { Ok(order) } else { Err(ControlError::TooMany(verb.to_owned())) }
        };
        let named = |verb: &'static str| {
            if rest.is_empty() { Err(ControlError::NoName(verb)) } else { Ok(rest.to_owned()) }
        };
        if let Some(command) = Command::ALL.into_iter().find(|command| command.name() == verb) {
            return Ok(Self::Command(command, agent()?));
        }
        match verb {
            "" => Err(ControlError::Empty),
            "status" => alone(Self::Status),
            "quit" => alone(Self::Quit),
            "report" => Ok(Self::Report(agent()?)),
            "configure" => {
                let (agent, classes) = rest.split_at(rest.find('{').unwrap_or(rest.len()));
                let classes = serde_json::from_str(classes)
                    .map_err(|error| ControlError::Classes(error.to_string()))?;
                Ok(Self::Configure(parse_agent(agent.trim())?, classes))
            }
            "snapshot" => Ok(Self::Snapshot(agent()?)),
            "begin" => Ok(Self::Mark { name: named("begin")?, begins: true }),
            "end" => Ok(Self::Mark { name: named("end")?, begins: false }),
            _ => Err(ControlError::Unknown(verb.to_owned())),
        }
    }
}

/// Parses the number of an agent; `None` stands for all agents.
fn parse_agent(words: &str) -> Result<Option<AgentId>, ControlError> {
    match words {
        "" | "all" => Ok(None),
        number => match number.parse() {
            Ok(number) => Ok(Some(AgentId(number))),
            Err(_) => Err(ControlError::Agent(number.to_owned())),
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_parsed_or_rejected_with_a_reason() {
        let two = Some(AgentId(2));
        for (line, order) in [
            ("status", ControlCommand::Status),
            ("  report 2\r\n", ControlCommand::Report(two)),
            ("report all", ControlCommand::Report(None)),
            ("suspend", ControlCommand::Command(Command::Suspend, None)),
            ("unpause\t2", ControlCommand::Command(Command::Unpause, two)),
            ("begin two words ", ControlCommand::Mark { name: "two words".to_owned(), begins: true }),
            ("end x", ControlCommand::Mark { name: "x".to_owned(), begins: false }),
            ("snapshot 2", ControlCommand::Snapshot(two)),
            ("quit", ControlCommand::Quit),
            ("configure {}", ControlCommand::Configure(None, Classes::default())),
            (
                r#"configure 2 {"include": ["^a b/", "^{"]}"#,
                ControlCommand::Configure(
                    two,
                    Classes { include: vec!["^a b/".to_owned(), "^{".to_owned()], exclude: Vec::new() },
                ),
            ),
        ] {
            assert_eq!(line.parse(), Ok(order), "{line:?}");
        }
        for (line, error) in [
            ("", ControlError::Empty),
            ("Stop", ControlError::Unknown("Stop".to_owned())),
            ("stop two", ControlError::Agent("two".to_owned())),
            ("stop -1", ControlError::Agent("-1".to_owned())),
            ("stop 4294967296", ControlError::Agent("4294967296".to_owned())),
            ("begin", ControlError::NoName("begin")),
            ("quit now", ControlError::TooMany("quit".to_owned())),
        ] {
            assert_eq!(line.parse::<ControlCommand>(), Err(error), "{line:?}");
        }
        for line in ["configure", "configure 2", r#"configure {"only": []}"#, r#"configure {"include": "a"}"#]
        {
            assert!(matches!(line.parse::<ControlCommand>(), Err(ControlError::Classes(_))), "{line:?}");
        }
        assert_eq!("configure x {}".parse::<ControlCommand>(), Err(ControlError::Agent("x".to_owned())));
    }
}
