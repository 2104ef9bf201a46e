//! The configuration of a session, independent of the command that carries it, and the settings that older commands
//! cannot carry. Section "EventPipe Commands" of the specification.

use std::fmt;

use super::{Command, Provider, providers};
use crate::EncodeError;

/// The rundown keyword of older commands when rundown is on. 0 means no rundown.
pub const DEFAULT_RUNDOWN_KEYWORD: u64 = 0x8002_0139;

/// The format of a session's stream.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum Format {
    /// 0: the format of .NET Core 2.1 and 3.0.
    NetPerf,
    /// 1: the format of all later versions.
    #[default]
    Nettrace,
}

/// What happens when the session's buffer is full. Sent since CollectTracing6.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum Buffering {
    /// 0: events are dropped; the program is never slowed down.
    #[default]
    Drop,
    /// 1: threads that write events block; no events are lost.
    Block,
}

impl Buffering {
    /// Both modes, ordered by number.
    pub const ALL: [Self; 2] = [Self::Drop, Self::Block];

    /// Returns the name of the mode.
    pub fn name(self) -> &'static str {
        match self {
            Self::Drop => "drop",
            Self::Block => "block",
        }
    }

    /// Returns what happens, and which runtimes support it.
    pub fn about(self) -> &'static str {
        match self {
            Self::Drop => "Events are lost",
            Self::Block => {
                "Block the target's threads until the buffer has space; no events are lost. Requires .NET 11"
            }
        }
    }
}

/// The replacement for a custom rundown keyword when the command only has a rundown flag.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum RundownFallback {
    /// The standard rundown: more than was requested, but it includes method names.
    #[default]
    Standard,
    /// No rundown: for requests of little rundown because the target is large.
    None,
}

impl RundownFallback {
    fn keyword(self) -> u64 {
        match self {
            Self::Standard => DEFAULT_RUNDOWN_KEYWORD,
            Self::None => 0,
        }
    }
}

/// The configuration of a session.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SessionConfig {
    /// The providers, each once: see [`merge_providers`](crate::merge_providers).
    pub providers: Vec<Provider>,
    /// The size of the runtime's buffer in MB, at least 1. The memory is allocated on demand.
    pub buffer_mb: u32,
    /// The format of the stream.
    pub format: Format,
    /// The rundown events to send at the end of the session; 0 means none.
    pub rundown_keyword: u64,
    /// What to do if the runtime is too old for a rundown keyword other than 0 and the default. Not sent.
    pub rundown_fallback: RundownFallback,
    /// Whether each event carries its stack.
    pub stackwalk: bool,
    /// What happens when the buffer is full.
    pub buffering: Buffering,
}

impl SessionConfig {
    /// Creates a session of these providers with the defaults of dotnet-trace: 256 MB, nettrace, standard rundown, stacks,
    /// and dropping events when the buffer is full.
    pub fn new(providers: Vec<Provider>) -> Self {
        Self {
            providers,
            buffer_mb: 256,
            format: Format::Nettrace,
            rundown_keyword: DEFAULT_RUNDOWN_KEYWORD,
            rundown_fallback: RundownFallback::Standard,
            stackwalk: true,
            buffering: Buffering::Drop,
        }
    }

    /// Rejects a configuration that must not be sent, whatever the form.
    ///
    /// # Errors
    /// If a field must not be sent.
    pub fn validate(&self) -> Result<(), EncodeError> {
        if self.buffer_mb == 0 {
            return Err(EncodeError::ZeroBuffer);
        }
        providers::validate(self.providers.iter())
    }

    /// Returns the rundown keyword that takes effect when this session is started with `form`.
    pub fn effective_rundown(&self, form: SessionForm) -> u64 {
        match self.rundown_keyword {
            _ if form == SessionForm::CollectTracing => DEFAULT_RUNDOWN_KEYWORD,
            0 => 0,
            keyword if form.has_rundown_keyword() => keyword,
            DEFAULT_RUNDOWN_KEYWORD => DEFAULT_RUNDOWN_KEYWORD,
            _ => self.rundown_fallback.keyword(),
        }
    }

    /// Returns the settings that are lost when this session is started with `form` instead of the newest command.
    pub fn downgrades(&self, form: SessionForm) -> Vec<Downgrade> {
        let mut lost = Vec::new();
        if self.buffering == Buffering::Block && !form.has_buffering() {
            lost.push(Downgrade::BlockingDropped);
        }
        let filtered = || self.providers.iter().filter(|provider| provider.filter.is_some());
        if !form.has_filters() && filtered().next().is_some() {
            let providers = filtered().map(|provider| provider.name.clone()).collect();
            lost.push(Downgrade::FiltersDropped { providers });
        }
        let effective = self.effective_rundown(form);
        if effective != self.rundown_keyword {
            lost.push(Downgrade::RundownChanged { requested: self.rundown_keyword, effective });
        }
        if !self.stackwalk && !form.has_stackwalk() {
            lost.push(Downgrade::StackwalkForced);
        }
        lost
    }
}

/// The commands that start a session, oldest first. Each supports all settings of its predecessors.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum SessionForm {
    /// 0x0202: always with the standard rundown and stacks.
    CollectTracing,
    /// 0x0203: adds a rundown flag.
    CollectTracing2,
    /// 0x0204: adds a stack flag.
    CollectTracing3,
    /// 0x0205: adds the rundown keyword.
    CollectTracing4,
    /// 0x0206: adds event filters, and sessions into user_events ([`UserEventsConfig`](crate::UserEventsConfig)).
    CollectTracing5,
    /// 0x0207: adds the buffering mode.
    CollectTracing6,
}

impl SessionForm {
    /// Every form, in the order in which a client should try them.
    pub const NEWEST_FIRST: [Self; 6] = [
        Self::CollectTracing6,
        Self::CollectTracing5,
        Self::CollectTracing4,
        Self::CollectTracing3,
        Self::CollectTracing2,
        Self::CollectTracing,
    ];

    /// Returns the command.
    pub fn command(self) -> Command {
        match self {
            Self::CollectTracing => Command::COLLECT_TRACING,
            Self::CollectTracing2 => Command::COLLECT_TRACING2,
            Self::CollectTracing3 => Command::COLLECT_TRACING3,
            Self::CollectTracing4 => Command::COLLECT_TRACING4,
            Self::CollectTracing5 => Command::COLLECT_TRACING5,
            Self::CollectTracing6 => Command::COLLECT_TRACING6,
        }
    }

    /// Returns the form of a command. `None` if it is another command.
    pub fn from_command(command: Command) -> Option<Self> {
        Self::NEWEST_FIRST.into_iter().find(|form| form.command() == command)
    }

    pub(super) fn has_rundown_flag(self) -> bool {
        matches!(self, Self::CollectTracing2 | Self::CollectTracing3)
    }

    pub(super) fn has_stackwalk(self) -> bool {
        self >= Self::CollectTracing3
    }

    pub(super) fn has_rundown_keyword(self) -> bool {
        self >= Self::CollectTracing4
    }

    pub(super) fn has_session_type(self) -> bool {
        self >= Self::CollectTracing5
    }

    pub(super) fn has_filters(self) -> bool {
        self >= Self::CollectTracing5
    }

    pub(super) fn has_buffering(self) -> bool {
        self >= Self::CollectTracing6
    }
}

/// A setting that does not take effect because the runtime supports only an older command.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Downgrade {
    /// Events are lost when the buffer is full, though blocking was requested.
    BlockingDropped,
    /// All events of these providers are sent, not only the ones that pass their filter.
    FiltersDropped {
        /// The names of the providers with a filter.
        providers: Vec<String>,
    },
    /// Another rundown than the requested one is sent.
    RundownChanged {
        /// The requested keyword; 0 means none.
        requested: u64,
        /// The keyword that takes effect; 0 means none.
        effective: u64,
    },
    /// Events carry stacks, though none were requested.
    StackwalkForced,
}

impl Downgrade {
    /// Returns a stable identifier of the kind of downgrade.
    pub fn code(&self) -> &'static str {
        match self {
            Self::BlockingDropped => "blocking-dropped",
            Self::FiltersDropped { .. } => "filters-dropped",
            Self::RundownChanged { .. } => "rundown-changed",
            Self::StackwalkForced => "stackwalk-forced",
        }
    }
}

impl fmt::Display for Downgrade {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::BlockingDropped => {
                f.write_str("events may be lost when the buffer is full: this runtime cannot block writers")
            }
            Self::FiltersDropped { providers } => {
                write!(f, "this runtime does not apply event filters: {}", providers.join(", "))
            }
            Self::RundownChanged { requested, effective } => {
                match requested {
                    0 => f.write_str("this runtime cannot disable rundown")?,
                    _ => write!(f, "rundown keyword {requested:#x} is not supported by this runtime")?,
                }
                match *effective {
                    0 => f.write_str(", no rundown is sent"),
                    _ => f.write_str(", the standard rundown is sent"),
                }
            }
            Self::StackwalkForced => f.write_str("this runtime cannot disable stacks"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{EventFilter, Level};

    fn demanding() -> SessionConfig {
        let filtered = Provider::new("A", 1, Level::Verbose).with_filter(EventFilter::only([1]));
        SessionConfig {
            rundown_keyword: 0x10,
            stackwalk: false,
            buffering: Buffering::Block,
            ..SessionConfig::new(vec![filtered, Provider::new("B", 1, Level::Verbose)])
        }
    }

    #[test]
    fn each_older_form_loses_more() {
        let config = demanding();
        let codes = |form| config.downgrades(form).iter().map(Downgrade::code).collect::<Vec<_>>().join(" ");
        assert_eq!(codes(SessionForm::CollectTracing6), "");
        assert_eq!(codes(SessionForm::CollectTracing5), "blocking-dropped");
        assert_eq!(codes(SessionForm::CollectTracing4), "blocking-dropped filters-dropped");
        assert_eq!(codes(SessionForm::CollectTracing3), "blocking-dropped filters-dropped rundown-changed");
        assert_eq!(
            codes(SessionForm::CollectTracing2),
            "blocking-dropped filters-dropped rundown-changed stackwalk-forced"
        );
        assert_eq!(
            config.downgrades(SessionForm::CollectTracing4)[1].to_string(),
            "this runtime does not apply event filters: A"
        );
    }

    #[test]
    fn rundown_follows_the_fallback_and_the_oldest_form_knows_no_choice() {
        let mut config = demanding();
        assert_eq!(config.effective_rundown(SessionForm::CollectTracing4), 0x10);
        assert_eq!(config.effective_rundown(SessionForm::CollectTracing2), DEFAULT_RUNDOWN_KEYWORD);
        config.rundown_fallback = RundownFallback::None;
        assert_eq!(config.effective_rundown(SessionForm::CollectTracing2), 0);
        assert_eq!(config.effective_rundown(SessionForm::CollectTracing), DEFAULT_RUNDOWN_KEYWORD);
        config.rundown_keyword = 0;
        config.rundown_fallback = RundownFallback::Standard;
        assert_eq!(config.effective_rundown(SessionForm::CollectTracing2), 0);
        let lost = config.downgrades(SessionForm::CollectTracing);
        assert!(
            lost.contains(&Downgrade::RundownChanged { requested: 0, effective: DEFAULT_RUNDOWN_KEYWORD })
        );
    }

    #[test]
    fn an_ordinary_session_loses_nothing_anywhere() {
        let config = SessionConfig::new(vec![Provider::new("A", 1, Level::Verbose)]);
        for form in SessionForm::NEWEST_FIRST {
            assert_eq!(config.downgrades(form), []);
            assert_eq!(SessionForm::from_command(form.command()), Some(form));
        }
    }
}
