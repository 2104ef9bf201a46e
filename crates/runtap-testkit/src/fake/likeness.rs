//! Which commands each version of .NET knows. Measured on 3.1, 8, 9 and 10; others by the specification.

use runtap_diag_proto::Command;

/// A version of .NET, by the commands that it knows. Commands that the fake server does not serve stay unknown.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[allow(missing_docs, reason = "the names say it")]
pub enum Likeness {
    NetCore31,
    Net5,
    Net6,
    Net8,
    Net9,
    Net10,
}

impl Likeness {
    /// Whether it knows the command.
    pub fn knows(self, command: Command) -> bool {
        let since = match command {
            Command::STOP_TRACING | Command::COLLECT_TRACING | Command::COLLECT_TRACING2 => Self::NetCore31,
            Command::PROCESS_INFO | Command::RESUME_RUNTIME | Command::PROCESS_ENVIRONMENT => Self::Net5,
            Command::PROCESS_INFO2 => Self::Net6,
            Command::PROCESS_INFO3 => Self::Net8,
            Command::COLLECT_TRACING3 | Command::COLLECT_TRACING4 => Self::Net9,
            Command::COLLECT_TRACING5 => Self::Net10,
            _ => return false,
        };
        self >= since
    }
}
