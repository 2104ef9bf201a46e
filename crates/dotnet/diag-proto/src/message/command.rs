//! The names of command sets and commands, including commands that this crate has no message for. Section "Commands"
//! of the specification.

use std::fmt;

/// The upper byte of a command, which selects a service of the runtime. Any value can be represented.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct CommandSet(pub u8);

impl CommandSet {
    /// Core dumps.
    pub const DUMP: Self = Self(0x01);
    /// Event sessions.
    pub const EVENT_PIPE: Self = Self(0x02);
    /// Profilers.
    pub const PROFILER: Self = Self(0x03);
    /// Process information and control.
    pub const PROCESS: Self = Self(0x04);
    /// Replies.
    pub const SERVER: Self = Self(0xff);

    /// Returns the name in the specification. `None` for an unknown set.
    pub fn name(self) -> Option<&'static str> {
        Some(match self {
            Self::DUMP => "Dump",
            Self::EVENT_PIPE => "EventPipe",
            Self::PROFILER => "Profiler",
            Self::PROCESS => "Process",
            Self::SERVER => "Server",
            _ => return None,
        })
    }
}

impl fmt::Debug for CommandSet {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.name() {
            Some(name) => write!(f, "{name} ({:#04x})", self.0),
            None => write!(f, "{:#04x}", self.0),
        }
    }
}

/// A command: set and id as the specification writes them, `0x0206` = set 0x02, id 0x06. Any value can be
/// represented.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Command(pub u16);

macro_rules! commands {
    ($($constant:ident = $value:literal, $name:literal, $doc:literal;)*) => {
        impl Command {
            $(
                #[doc = concat!("`", stringify!($value), "` ", $name, ": ", $doc)]
                pub const $constant: Self = Self($value);
            )*

            /// Returns the name in the specification. `None` for an unknown command.
            pub fn name(self) -> Option<&'static str> {
                match self.0 {
                    $($value => Some($name),)*
                    _ => None,
                }
            }
        }
    };
}

commands! {
    GENERATE_CORE_DUMP = 0x0101, "GenerateCoreDump", "since .NET Core 3.0.";
    GENERATE_CORE_DUMP2 = 0x0102, "GenerateCoreDump2", "with flags, since .NET 6.";
    GENERATE_CORE_DUMP3 = 0x0103, "GenerateCoreDump3", "with an error text, since .NET 7.";
    STOP_TRACING = 0x0201, "StopTracing", "since .NET Core 3.0.";
    COLLECT_TRACING = 0x0202, "CollectTracing", "since .NET Core 3.0.";
    COLLECT_TRACING2 = 0x0203, "CollectTracing2", "adds a rundown flag, since .NET Core 3.1.";
    COLLECT_TRACING3 = 0x0204, "CollectTracing3", "adds a stack flag, since .NET 9.";
    COLLECT_TRACING4 = 0x0205, "CollectTracing4", "adds a rundown keyword, since .NET 9.";
    COLLECT_TRACING5 = 0x0206, "CollectTracing5", "adds event filters and user_events, since .NET 10.";
    COLLECT_TRACING6 = 0x0207, "CollectTracing6", "adds a buffering mode, since .NET 11.";
    ATTACH_PROFILER = 0x0301, "AttachProfiler", "since .NET Core 3.0.";
    STARTUP_PROFILER = 0x0302, "StartupProfiler", "since .NET 6.";
    PROCESS_INFO = 0x0400, "ProcessInfo", "since .NET 5.";
    RESUME_RUNTIME = 0x0401, "ResumeRuntime", "since .NET 5.";
    PROCESS_ENVIRONMENT = 0x0402, "ProcessEnvironment", "since .NET 5.";
    SET_ENVIRONMENT_VARIABLE = 0x0403, "SetEnvironmentVariable", "since .NET 6.";
    PROCESS_INFO2 = 0x0404, "ProcessInfo2", "entry assembly and runtime version, since .NET 6.";
    ENABLE_PERF_MAP = 0x0405, "EnablePerfMap", "since .NET 8.";
    DISABLE_PERF_MAP = 0x0406, "DisablePerfMap", "since .NET 8.";
    APPLY_STARTUP_HOOK = 0x0407, "ApplyStartupHook", "since .NET 8.";
    PROCESS_INFO3 = 0x0408, "ProcessInfo3", "portable RID, extensible, since .NET 8.";
    OK = 0xff00, "OK", "the reply to a command that succeeded.";
    ERROR = 0xffff, "Error", "the reply to a command that failed.";
}

impl Command {
    /// Creates a command from its set and id.
    pub const fn new(set: CommandSet, id: u8) -> Self {
        Self(u16::from_be_bytes([set.0, id]))
    }

    /// Returns the set.
    pub const fn set(self) -> CommandSet {
        let [set, _] = self.0.to_be_bytes();
        CommandSet(set)
    }

    /// Returns the id within the set.
    pub const fn id(self) -> u8 {
        let [_, id] = self.0.to_be_bytes();
        id
    }
}

impl fmt::Display for Command {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.name() {
            Some(name) => write!(f, "{:#06x} ({name})", self.0),
            None => write!(f, "{:#06x}", self.0),
        }
    }
}

impl fmt::Debug for Command {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn set_and_id_are_the_two_halves() {
        assert_eq!(Command::new(CommandSet::EVENT_PIPE, 6), Command::COLLECT_TRACING5);
        assert_eq!(Command::PROCESS_INFO3.set(), CommandSet::PROCESS);
        assert_eq!(Command::PROCESS_INFO3.id(), 8);
    }

    #[test]
    fn unknown_commands_keep_their_number() {
        assert_eq!(Command::COLLECT_TRACING5.to_string(), "0x0206 (CollectTracing5)");
        assert_eq!(Command(0x0299).to_string(), "0x0299");
        assert_eq!(format!("{:?} {:?}", CommandSet::DUMP, CommandSet(9)), "Dump (0x01) 0x09");
    }
}
