//! The commands of the control socket.
//!
//! Owns: the grammar, `VERB [WORDS]`. Does not depend on agents.

use std::str::FromStr;

use runtap_bytefrog_proto::{Command, Configuration, JavaString};
use serde::Deserialize;
use thiserror::Error;

use crate::hq::AgentId;

/// A parsed command.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ControlCommand {
    /// Report the status of the agents.
    Status,
    /// Report on one agent or all.
    Report(Option<AgentId>),
    /// Send a command of the protocol to one agent, or to all that have not ended.
    Command(Command, Option<AgentId>),
    /// Change the classes to trace, before tracing starts.
    Configure(Option<AgentId>, ClassFilter),
    /// Make agents of runtap send their counts and coverage now.
    Snapshot(Option<AgentId>),
    /// Start or end a named part of the recording.
    Mark {
        /// The name of the part.
        name: String,
        /// Whether the part starts.
        begins: bool,
    },
    /// Stop the agents and end the collection with the report.
    Quit,
}

/// The classes to trace: regular expressions for internal names.
#[derive(Debug, Clone, PartialEq, Eq, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct ClassFilter {
    /// The classes to trace, even if they are excluded.
    pub include: Vec<String>,
    /// The classes not to trace.
    pub exclude: Vec<String>,
}

impl ClassFilter {
    /// Replaces the filters of a configuration.
    pub fn apply_to(&self, configuration: &mut Configuration) {
        let patterns = |patterns: &[String]| -> Vec<JavaString> {
            patterns.iter().map(|pattern| JavaString::from(pattern.as_str())).collect()
        };
        let mut exclusions = patterns(&self.exclude);
        // Inclusions only override exclusions; without any exclusion they would have no effect.
        if exclusions.is_empty() && !self.include.is_empty() {
            exclusions.push(JavaString::from(".*"));
        }
        (configuration.exclusions, configuration.inclusions) = (exclusions, patterns(&self.include));
    }
}

/// The reason why a line, or a client, is rejected.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum ControlError {
    /// The line is empty.
    #[error("the command is empty")]
    Empty,
    /// The verb is unknown.
    #[error(
        "'{0}' is not a command; valid commands: status, report, configure, start, stop, pause, unpause, \
         suspend, unsuspend, snapshot, begin, end, quit"
    )]
    Unknown(String),
    /// An agent is not given by number.
    #[error("'{0}' is not the number of an agent")]
    Agent(String),
    /// The classes are not JSON of the expected form.
    #[error("'configure' needs {{\"include\": […], \"exclude\": […]}}: {0}")]
    Classes(String),
    /// The name of a part is missing.
    #[error("'{0}' needs a name")]
    NoName(&'static str),
    /// The command is followed by unexpected words.
    #[error("'{0}' has too many arguments")]
    TooMany(String),
    /// The line exceeds the limit.
    #[error("the line is too long")]
    TooLong,
    /// The client was idle.
    #[error("no command was received for a minute")]
    Idle,
    /// The maximum number of clients is connected.
    #[error("too many clients")]
    TooManyClients,
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
            ("configure {}", ControlCommand::Configure(None, ClassFilter::default())),
            (
                r#"configure 2 {"include": ["^a b/", "^{"]}"#,
                ControlCommand::Configure(
                    two,
                    ClassFilter { include: vec!["^a b/".to_owned(), "^{".to_owned()], exclude: Vec::new() },
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
