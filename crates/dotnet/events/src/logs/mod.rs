//! Log messages like those of `Microsoft-Extensions-Logging`: the provider through which tools such as dotnet-monitor read
//! the log of a .NET program. Has the loggers and their scopes; `rules.rs` has the requests of sessions, and `layout.rs`
//! the layouts of the events.

mod json;
mod layout;
mod rules;
mod template;

use std::fmt::{self, Display};
use std::sync::atomic::{AtomicI32, AtomicU8, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

use runtap_diag_server::{DefineError, EventPipe};
use uuid::Uuid;

use self::layout::Events;
pub(crate) use self::layout::{Content, Failure};
use self::rules::AllRules;
use crate::activity::Activity;

/// The level of a log message.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[repr(u8)]
pub enum LogLevel {
    /// A detail that is rarely needed.
    Trace,
    /// A detail for finding errors.
    Debug,
    /// A normal occurrence.
    Information,
    /// Something may fail.
    Warning,
    /// Something failed.
    Error,
    /// The program cannot continue.
    Critical,
    /// Above the level of all messages: nothing is logged.
    None,
}

impl LogLevel {
    const ALL: [Self; 7] =
        [Self::Trace, Self::Debug, Self::Information, Self::Warning, Self::Error, Self::Critical, Self::None];

    fn name(self) -> &'static str {
        match self {
            Self::Trace => "Trace",
            Self::Debug => "Debug",
            Self::Information => "Information",
            Self::Warning => "Warning",
            Self::Error => "Error",
            Self::Critical => "Critical",
            Self::None => "None",
        }
    }

    /// Parses a name or number.
    fn parse(text: &str) -> Option<Self> {
        let number = text.parse::<u8>().ok();
        let is_it = |level: &Self| number == Some(*level as u8) || level.name().eq_ignore_ascii_case(text);
        Self::ALL.into_iter().find(is_it)
    }
}

/// The keywords of the provider.
struct Keywords;

impl Keywords {
    const MESSAGE: u64 = 2;
    const FORMATTED: u64 = 4;
    const JSON: u64 = 8;
    const MESSAGES: u64 = Self::MESSAGE | Self::FORMATTED | Self::JSON;
}

/// The log of a program. Clones refer to one log.
///
/// A session selects categories and levels with `FilterSpecs`; its first 1,000 rules apply.
#[derive(Debug, Clone)]
pub struct Logs(Arc<Shared>);

#[derive(Debug)]
struct Shared {
    events: Events,
    state: Mutex<LogState>,
    scopes: AtomicI32,
}

#[derive(Debug, Default)]
struct LogState {
    rules: AllRules,
    categories: Vec<Weak<Category>>,
}

#[derive(Debug)]
struct Category {
    name: String,
    /// The least important [`LogLevel`] that a session requests, as a number.
    minimum: AtomicU8,
}

impl Logs {
    /// Creates the log for the sessions of `pipe`. Create one per program.
    ///
    /// # Errors
    /// Never: the names are valid.
    pub fn new(pipe: &EventPipe) -> Result<Self, DefineError> {
        let events = Events::new(pipe)?;
        let shared = Arc::new(Shared { events, state: Mutex::default(), scopes: AtomicI32::new(0) });
        let weak = Arc::downgrade(&shared);
        pipe.watch(layout::PROVIDER, move |requests| {
            if let Some(shared) = weak.upgrade() {
                shared.update(AllRules::of(requests));
            }
        });
        Ok(Self(shared))
    }

    /// Returns a logger of a category, by convention the dotted name of a part of the program. The name should contain no
    /// colon: tools request categories as `Category:Level`.
    pub fn logger(&self, category: impl Into<String>) -> Logger {
        let name = category.into();
        let mut state = self.0.state();
        let minimum = AtomicU8::new(state.rules.minimum(&name) as u8);
        let category = Arc::new(Category { name, minimum });
        state.categories.retain(|category| category.strong_count() > 0);
        state.categories.push(Arc::downgrade(&category));
        Logger { category, shared: Arc::clone(&self.0) }
    }
}

impl Shared {
    fn state(&self) -> MutexGuard<'_, LogState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn update(&self, rules: AllRules) {
        let mut state = self.state();
        for category in state.categories.iter().filter_map(Weak::upgrade) {
            category.minimum.store(rules.minimum(&category.name) as u8, Ordering::Relaxed);
        }
        state.rules = rules;
    }
}

/// Writes log messages of one category. Cheap to clone; usable from any thread.
#[derive(Debug, Clone)]
pub struct Logger {
    category: Arc<Category>,
    shared: Arc<Shared>,
}

/// The names and values of arguments.
pub type Arguments<'a> = &'a [(&'a str, &'a dyn Display)];

impl Logger {
    /// Returns the category.
    pub fn category(&self) -> &str {
        &self.category.name
    }

    /// Returns whether any session records messages of this level, with a single load.
    #[inline]
    pub fn is_enabled(&self, level: LogLevel) -> bool {
        level as u8 >= self.category.minimum.load(Ordering::Relaxed)
    }

    /// Writes a message.
    pub fn log(&self, message: &LogMessage<'_>) {
        if self.is_enabled(message.level) {
            let ids = Activity::current_ids().map(|(id, _)| id);
            self.write(message.level, message.event, message, message.failure, ids);
        }
    }

    /// Logs an [`Information`](LogLevel::Information) message: a text with `{Name}` in place of its arguments.
    pub fn information(&self, template: &str, arguments: Arguments<'_>) {
        self.log(&LogMessage::new(LogLevel::Information, template).arguments(arguments));
    }

    /// Logs a [`Warning`](LogLevel::Warning) message.
    pub fn warning(&self, template: &str, arguments: Arguments<'_>) {
        self.log(&LogMessage::new(LogLevel::Warning, template).arguments(arguments));
    }

    /// Logs an [`Error`](LogLevel::Error) message.
    pub fn error(&self, template: &str, arguments: Arguments<'_>) {
        self.log(&LogMessage::new(LogLevel::Error, template).arguments(arguments));
    }

    /// Opens a scope, which contains the messages of this thread, of all categories, until it is dropped.
    pub fn scope(&self, template: &str, arguments: Arguments<'_>) -> Scope {
        let open = self.is_enabled(LogLevel::Critical).then(|| {
            let activity = Activity::start();
            let content = LogMessage::new(LogLevel::None, template).arguments(arguments);
            let open = self.open(&activity, activity.parent_id(), &content);
            (open, activity.enter())
        });
        Scope { open }
    }

    pub(crate) fn write(
        &self,
        level: LogLevel,
        event: (i32, &str),
        content: &dyn Content,
        failure: Option<Failure<'_>>,
        activity: Option<Uuid>,
    ) {
        let head = layout::Head { level, category: &self.category.name, event };
        self.shared.events.message(&head, content, failure, activity);
    }

    /// Opens a scope with an activity.
    pub(crate) fn open(
        &self,
        activity: &Activity,
        related: Option<Uuid>,
        content: &dyn Content,
    ) -> OpenScope {
        let number = self.shared.scopes.fetch_add(1, Ordering::Relaxed).wrapping_add(1);
        let json = self.shared.events.wants_json();
        let open = OpenScope { logger: self.clone(), activity: activity.id(), number, json };
        self.shared.events.start(&open, related, content);
        open
    }
}

/// An open scope, which is closed when it is dropped.
#[derive(Debug)]
pub(crate) struct OpenScope {
    logger: Logger,
    pub(crate) activity: Uuid,
    number: i32,
    json: bool,
}

impl Drop for OpenScope {
    fn drop(&mut self) {
        self.logger.shared.events.stop(self);
    }
}

/// A scope of messages. See [`Logger::scope`].
#[derive(Debug)]
#[must_use = "the scope ends with it"]
pub struct Scope {
    #[expect(dead_code, reason = "both end when they are dropped, the scope first")]
    open: Option<(OpenScope, crate::activity::Entered)>,
}

/// A log message that is being built.
#[derive(Clone, Copy)]
pub struct LogMessage<'a> {
    level: LogLevel,
    event: (i32, &'a str),
    template: &'a str,
    arguments: Arguments<'a>,
    failure: Option<Failure<'a>>,
}

impl<'a> LogMessage<'a> {
    /// Creates a message: a text with `{Name}` in place of its arguments.
    pub fn new(level: LogLevel, template: &'a str) -> Self {
        Self { level, event: (0, ""), template, arguments: &[], failure: None }
    }

    /// Sets the arguments.
    #[must_use]
    pub fn arguments(mut self, arguments: Arguments<'a>) -> Self {
        self.arguments = arguments;
        self
    }

    /// Sets a number and a name, by which messages of this kind can be found.
    #[must_use]
    pub fn event(mut self, id: i32, name: &'a str) -> Self {
        self.event = (id, name);
        self
    }

    /// Sets the error of the message.
    #[must_use]
    pub fn error<E: std::error::Error + 'static>(mut self, error: &'a E) -> Self {
        self.failure = Some(Failure { type_name: std::any::type_name::<E>(), error });
        self
    }
}

impl Content for LogMessage<'_> {
    fn arguments(&self, each: &mut dyn FnMut(&str, &dyn Display)) {
        for (name, value) in self.arguments {
            each(name, value);
        }
    }

    fn template(&self, text: &mut dyn fmt::Write) -> fmt::Result {
        text.write_str(self.template)
    }

    fn message(&self, text: &mut dyn fmt::Write) -> fmt::Result {
        template::fill(self.template, self.arguments, text)
    }
}

impl fmt::Debug for LogMessage<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { level, event, template, .. } = self;
        f.debug_struct("LogMessage")
            .field("level", level)
            .field("event", event)
            .field("template", template)
            .finish_non_exhaustive()
    }
}
