//! What can be said on the control socket.
//!
//! Owns: the grammar, `VERB [WORDS]`. Refuses to know agents.

use std::str::FromStr;

use runtap_bytefrog::hq::AgentId;
use runtap_bytefrog_proto::Command;
use serde::Deserialize;
use thiserror::Error;

/// A line that was understood.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(in crate::cmd::jvm) enum Order {
    /// What agents do.
    Status,
    /// `runtap.jvm/1`, of one agent or of all.
    Report(Option<AgentId>),
    /// A command of the protocol, to one agent or to all that live.
    Command(Command, Option<AgentId>),
    /// Before start: other classes.
    Configure(Option<AgentId>, Classes),
    /// Agents of runtap: send counts and coverage now.
    Snapshot(Option<AgentId>),
    /// A named part of the recording begins, or ends.
    Mark { name: String, begins: bool },
    /// Stop the agents and end with the report.
    Quit,
}

/// Which classes agents trace: what `--include` and `--exclude` say otherwise.
#[derive(Debug, Clone, PartialEq, Eq, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(in crate::cmd::jvm) struct Classes {
    pub(in crate::cmd::jvm) include: Vec<String>,
    pub(in crate::cmd::jvm) exclude: Vec<String>,
}

/// A line that was not.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub(in crate::cmd::jvm) enum OrderError {
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

impl FromStr for Order {
    type Err = OrderError;

    fn from_str(line: &str) -> Result<Self, OrderError> {
        let line = line.trim();
        let (verb, rest) = line.split_once(char::is_whitespace).unwrap_or((line, ""));
        let rest = rest.trim();
        let agent = || numbered(rest);
        let alone =
            |order: Self| if rest.is_empty() { Ok(order) } else { Err(OrderError::TooMany(verb.to_owned())) };
        let named = |verb: &'static str| {
            if rest.is_empty() { Err(OrderError::NoName(verb)) } else { Ok(rest.to_owned()) }
        };
        if let Some(command) = Command::ALL.into_iter().find(|command| command.name() == verb) {
            return Ok(Self::Command(command, agent()?));
        }
        match verb {
            "" => Err(OrderError::Empty),
            "status" => alone(Self::Status),
            "quit" => alone(Self::Quit),
            "report" => Ok(Self::Report(agent()?)),
            "configure" => {
                let (agent, classes) = rest.split_at(rest.find('{').unwrap_or(rest.len()));
                let classes =
                    serde_json::from_str(classes).map_err(|error| OrderError::Classes(error.to_string()))?;
                Ok(Self::Configure(numbered(agent.trim())?, classes))
            }
            "snapshot" => Ok(Self::Snapshot(agent()?)),
            "begin" => Ok(Self::Mark { name: named("begin")?, begins: true }),
            "end" => Ok(Self::Mark { name: named("end")?, begins: false }),
            _ => Err(OrderError::Unknown(verb.to_owned())),
        }
    }
}

/// One agent by its number, or all.
fn numbered(words: &str) -> Result<Option<AgentId>, OrderError> {
    match words {
        "" | "all" => Ok(None),
        number => match number.parse() {
            Ok(number) => Ok(Some(AgentId(number))),
            Err(_) => Err(OrderError::Agent(number.to_owned())),
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_understood_or_refused_with_a_reason() {
        let two = Some(AgentId(2));
        for (line, order) in [
            ("status", Order::Status),
            ("  report 2\r\n", Order::Report(two)),
            ("report all", Order::Report(None)),
            ("suspend", Order::Command(Command::Suspend, None)),
            ("unpause\t2", Order::Command(Command::Unpause, two)),
            ("begin two words ", Order::Mark { name: "two words".to_owned(), begins: true }),
            ("end x", Order::Mark { name: "x".to_owned(), begins: false }),
            ("snapshot 2", Order::Snapshot(two)),
            ("quit", Order::Quit),
            ("configure {}", Order::Configure(None, Classes::default())),
            (
                r#"configure 2 {"include": ["^a b/", "^{"]}"#,
                Order::Configure(
                    two,
                    Classes { include: vec!["^a b/".to_owned(), "^{".to_owned()], exclude: Vec::new() },
                ),
            ),
        ] {
            assert_eq!(line.parse(), Ok(order), "{line:?}");
        }
        for (line, error) in [
            ("", OrderError::Empty),
            ("Stop", OrderError::Unknown("Stop".to_owned())),
            ("stop two", OrderError::Agent("two".to_owned())),
            ("stop -1", OrderError::Agent("-1".to_owned())),
            ("stop 4294967296", OrderError::Agent("4294967296".to_owned())),
            ("begin", OrderError::NoName("begin")),
            ("quit now", OrderError::TooMany("quit".to_owned())),
        ] {
            assert_eq!(line.parse::<Order>(), Err(error), "{line:?}");
        }
        for line in ["configure", "configure 2", r#"configure {"only": []}"#, r#"configure {"include": "a"}"#]
        {
            assert!(matches!(line.parse::<Order>(), Err(OrderError::Classes(_))), "{line:?}");
        }
        assert_eq!("configure x {}".parse::<Order>(), Err(OrderError::Agent("x".to_owned())));
    }
}
