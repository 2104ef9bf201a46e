//! The commands that each version of .NET supports: measured for 3.1, 8, 9 and 10, and for others according to the
//! specification.

use runtap_diag_proto::Command;

/// A version of .NET, by the commands that it supports.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[allow(missing_docs, reason = "the names say it")]
pub enum Likeness {
    NetCore31,
    Net5,
    Net6,
    Net7,
    Net8,
    Net9,
    Net10,
}

impl Likeness {
    /// Returns whether this version supports the command.
    pub fn knows(self, command: Command) -> bool {
        let since = match command {
            Command::STOP_TRACING
            | Command::COLLECT_TRACING
            | Command::COLLECT_TRACING2
            | Command::GENERATE_CORE_DUMP
            | Command::ATTACH_PROFILER => Self::NetCore31,
            Command::PROCESS_INFO | Command::RESUME_RUNTIME | Command::PROCESS_ENVIRONMENT => Self::Net5,
            Command::PROCESS_INFO2
            | Command::GENERATE_CORE_DUMP2
            | Command::STARTUP_PROFILER
            | Command::SET_ENVIRONMENT_VARIABLE => Self::Net6,
            Command::GENERATE_CORE_DUMP3 => Self::Net7,
            Command::PROCESS_INFO3
            | Command::ENABLE_PERF_MAP
            | Command::DISABLE_PERF_MAP
            | Command::APPLY_STARTUP_HOOK => Self::Net8,
            Command::COLLECT_TRACING3 | Command::COLLECT_TRACING4 => Self::Net9,
            Command::COLLECT_TRACING5 => Self::Net10,
            _ => return false,
        };
        self >= since
    }
}
