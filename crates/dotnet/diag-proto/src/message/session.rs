//! What a session is asked for, independent of the command that carries it, and what is lost when an older command
//! has to do. Section "EventPipe Commands" of the specification.

use std::fmt;

use super::{Command, Provider, providers};
use crate::EncodeError;

/// The rundown keyword that older commands use when rundown is on. 0 means no rundown.
pub const DEFAULT_RUNDOWN_KEYWORD: u64 = 0x8002_0139;

/// The stream format.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum Format {
    /// 0: the format of .NET Core 2.1 and 3.0.
    NetPerf,
    /// 1: the format of everything since.
    #[default]
    Nettrace,
}

/// What happens when the session's buffer is full. Sent from CollectTracing6 on.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum Buffering {
    /// 0: events are lost, the program is never slowed down.
    #[default]
    Drop,
    /// 1: the threads that write events wait, nothing is lost.
    Block,
}

impl Buffering {
    /// Both, by number.
    pub const ALL: [Self; 2] = [Self::Drop, Self::Block];

    /// In a word.
    pub fn name(self) -> &'static str {
        match self {
            Self::Drop => "drop",
            Self::Block => "block",
        }
    }

    /// What happens, and which runtimes can do it.
    pub fn about(self) -> &'static str {
        match self {
            Self::Drop => "Events are lost",
            Self::Block => "Its threads block until there is room; nothing is lost. Needs .NET 11",
        }
    }
}

/// What takes the place of a custom rundown keyword when the command can only say yes or no.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum RundownFallback {
    /// The standard rundown: more than was asked for, but names are there.
    #[default]
    Standard,
    /// No rundown: for those who asked for little because the target is large.
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

/// A session: what is recorded and how.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SessionConfig {
    /// The sources, each once: see [`merge_providers`](crate::merge_providers).
    pub providers: Vec<Provider>,
    /// Size of the runtime's buffer in MB, at least 1. The memory is taken as it is needed.
    pub buffer_mb: u32,
    /// The stream format.
    pub format: Format,
    /// Which rundown events are sent at the end of the session; 0 means none.
    pub rundown_keyword: u64,
    /// What to do with another rundown keyword than 0 and the default when the runtime is too old for it. Not sent.
    pub rundown_fallback: RundownFallback,
    /// Whether each event carries its stack.
    pub stackwalk: bool,
    /// What happens when the buffer is full.
    pub buffering: Buffering,
}

impl SessionConfig {
    /// A session of these providers with the defaults of dotnet-trace: 256 MB, nettrace, standard rundown, stacks,
    /// events are dropped when the buffer is full.
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

    /// Refuses what no runtime must be sent, in any form.
    ///
    /// # Errors
    /// The field that is wrong.
    pub fn validate(&self) -> Result<(), EncodeError> {
        if self.buffer_mb == 0 {
            return Err(EncodeError::ZeroBuffer);
        }
        providers::validate(self.providers.iter())
    }

    /// The rundown keyword that takes effect when this session is started with `form`.
    pub fn effective_rundown(&self, form: SessionForm) -> u64 {
        match self.rundown_keyword {
            _ if form == SessionForm::CollectTracing => DEFAULT_RUNDOWN_KEYWORD,
            0 => 0,
            keyword if form.has_rundown_keyword() => keyword,
            DEFAULT_RUNDOWN_KEYWORD => DEFAULT_RUNDOWN_KEYWORD,
            _ => self.rundown_fallback.keyword(),
        }
    }

    /// What is lost when this session is started with `form` instead of the newest command.
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
        let given = self.effective_rundown(form);
        if given != self.rundown_keyword {
            lost.push(Downgrade::RundownChanged { asked: self.rundown_keyword, given });
        }
        if !self.stackwalk && !form.has_stackwalk() {
            lost.push(Downgrade::StackwalkForced);
        }
        lost
    }
}

/// The commands that start a session, oldest first. Each can say everything that the ones before it can.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum SessionForm {
    /// 0x0202: always standard rundown and stacks.
    CollectTracing,
    /// 0x0203: adds rundown yes or no.
    CollectTracing2,
    /// 0x0204: adds stacks yes or no.
    CollectTracing3,
    /// 0x0205: adds the rundown keyword.
    CollectTracing4,
    /// 0x0206: adds event filters, and sessions into user_events ([`UserEventsConfig`](crate::UserEventsConfig)).
    CollectTracing5,
    /// 0x0207: adds the buffering mode.
    CollectTracing6,
}

impl SessionForm {
    /// Every form, in the order in which a client tries them.
    pub const NEWEST_FIRST: [Self; 6] = [
        Self::CollectTracing6,
        Self::CollectTracing5,
        Self::CollectTracing4,
        Self::CollectTracing3,
        Self::CollectTracing2,
        Self::CollectTracing,
    ];

    /// Its command.
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

    /// The form of a command, if it is one.
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

/// Something that a session does not do because the runtime only knows an older command.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Downgrade {
    /// Events are lost when the buffer is full, though waiting was asked for.
    BlockingDropped,
    /// All events of these providers are sent, not only the filtered ones.
    FiltersDropped {
        /// Names of the providers that had a filter.
        providers: Vec<String>,
    },
    /// Another rundown than the one asked for.
    RundownChanged {
        /// The keyword asked for; 0 = none.
        asked: u64,
        /// The keyword that takes effect; 0 = none.
        given: u64,
    },
    /// Events carry stacks, though none were asked for.
    StackwalkForced,
}

impl Downgrade {
    /// A stable word for machines.
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
            Self::BlockingDropped => f.write_str(
                "events may be lost when the buffer is full: this runtime cannot make writers wait",
            ),
            Self::FiltersDropped { providers } => {
                write!(f, "event filters are not applied by this runtime: {}", providers.join(", "))
            }
            Self::RundownChanged { asked, given } => {
                match asked {
                    0 => f.write_str("rundown cannot be switched off on this runtime")?,
                    _ => write!(f, "rundown keyword {asked:#x} is not known to this runtime")?,
                }
                match *given {
                    0 => f.write_str(", no rundown is sent"),
                    _ => f.write_str(", the standard rundown is sent"),
                }
            }
            Self::StackwalkForced => f.write_str("stacks cannot be switched off on this runtime"),
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
            "event filters are not applied by this runtime: A"
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
        assert!(lost.contains(&Downgrade::RundownChanged { asked: 0, given: DEFAULT_RUNDOWN_KEYWORD }));
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
