//! Providers with typed events, like an `EventSource` of .NET.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use runtap_diag_server::{DefineError, EventData, EventPipe, Field, FieldType, Metadata};
use uuid::Uuid;

use crate::activity::Activity;
use crate::payload::{self, Payload};

/// Bits that `EventSource` adds to the keywords of every event.
pub(crate) const SESSION_KEYWORDS: u64 = 0xF000_0000_0000;

/// The opcodes of events that start and stop an activity.
const START: u8 = 1;
const STOP: u8 = 2;

/// The ids of events that are identified by name. Ids chosen by programs are lower.
static NEXT_ID: AtomicU32 = AtomicU32::new(0x4000);

/// Returns an id for an event that is identified by name: one counter for the whole process, as in .NET.
pub(crate) fn next_id() -> u32 {
    next_ids(1)
}

/// Returns the first of `count` consecutive ids.
pub(crate) fn next_ids(count: u32) -> u32 {
    NEXT_ID.fetch_add(count, Ordering::Relaxed)
}

/// The level of an event. A session records all events up to its level.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[repr(u8)]
pub enum Level {
    /// Recorded at every level.
    Always,
    /// The program cannot continue.
    Critical,
    /// Something failed.
    Error,
    /// Something may fail.
    Warning,
    /// A normal occurrence.
    Informational,
    /// A detail.
    Verbose,
}

/// The definition of an event: its number and name, and settings with defaults.
#[derive(Debug, Clone)]
pub struct EventSpec {
    metadata: Metadata,
    keywords: u64,
}

impl EventSpec {
    /// Creates an event of level [`Informational`](Level::Informational) without keywords, in version 0. The number is
    /// unique within its provider: 1 to 16,383.
    pub fn new(id: u16, name: impl Into<String>) -> Self {
        Self { metadata: Metadata::new("", u32::from(id), name), keywords: 0 }
    }

    /// Sets the level.
    #[must_use]
    pub fn level(mut self, level: Level) -> Self {
        self.metadata.level = u32::from(level as u8);
        self
    }

    /// Sets the keywords (categories), one bit each, of the lower 44 bits.
    #[must_use]
    pub fn keywords(mut self, keywords: u64) -> Self {
        self.keywords = keywords;
        self
    }

    /// Sets the version, which must increase whenever fields are added.
    #[must_use]
    pub fn version(mut self, version: u8) -> Self {
        self.metadata.version = u32::from(version);
        self
    }

    /// Sets the opcode.
    #[must_use]
    pub fn opcode(mut self, opcode: u8) -> Self {
        self.metadata.opcode = Some(opcode);
        self
    }

    /// Makes this the event that starts an activity. Its name must end in `Start`, and the event that [stops](Self::stop)
    /// the activity must have the next number and a name with `Stop` instead.
    #[must_use]
    pub fn start(self) -> Self {
        self.opcode(START)
    }

    /// Makes this the event that stops an activity.
    #[must_use]
    pub fn stop(self) -> Self {
        self.opcode(STOP)
    }

    /// Adds a field.
    #[must_use]
    pub fn field(mut self, name: impl Into<String>, field_type: FieldType) -> Self {
        self.metadata.fields.push(Field::new(name, field_type));
        self
    }
}

/// A provider of events. If all events have fixed fields, the macro [`provider!`](crate::provider!)
/// defines a type with a method for each event.
#[derive(Debug, Clone)]
pub struct Provider {
    pipe: EventPipe,
    name: Arc<str>,
}

impl Provider {
    /// Creates a provider. Tools request it by exactly this name, which should contain no colon and no comma.
    pub fn new(pipe: &EventPipe, name: impl Into<Arc<str>>) -> Self {
        Self { pipe: pipe.clone(), name: name.into() }
    }

    /// Returns the name.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Defines an event of the provider.
    ///
    /// # Errors
    /// If a name contains a NUL.
    pub fn define(&self, spec: EventSpec) -> Result<Event, DefineError> {
        let mut metadata = spec.metadata;
        metadata.provider = self.name.to_string();
        metadata.keywords = spec.keywords | SESSION_KEYWORDS;
        define(&self.pipe, metadata)
    }

    /// Returns the pipe of its events.
    pub fn pipe(&self) -> &EventPipe {
        &self.pipe
    }
}

/// Defines an event with exactly these keywords.
pub(crate) fn define(pipe: &EventPipe, metadata: Metadata) -> Result<Event, DefineError> {
    let starts = metadata.opcode == Some(START);
    Ok(Event { event: pipe.define(metadata)?, starts })
}

/// A defined event. Cheap to clone; usable from any thread.
#[derive(Debug, Clone)]
pub struct Event {
    event: runtap_diag_server::Event,
    starts: bool,
}

impl Event {
    /// Returns whether any session records the event, with a single load.
    #[inline]
    pub fn is_enabled(&self) -> bool {
        self.event.is_enabled()
    }

    /// Writes the event, with the fields that `fill` appends in the order of their definition, for the current
    /// [activity](Activity::enter) of this thread. `fill` is not called if no session records the event.
    #[inline]
    pub fn write(&self, fill: impl FnOnce(&mut Payload)) {
        if self.is_enabled() {
            payload::with(|payload| {
                fill(payload);
                self.write_payload(payload.as_bytes());
            });
        }
    }

    pub(crate) fn write_payload(&self, payload: &[u8]) {
        match Activity::current_ids() {
            None => self.event.write_here(payload),
            Some((id, parent)) => self.write_ids(Some(id), parent.filter(|_| self.starts), payload),
        }
    }

    /// Writes the event for the given activity instead of the current one.
    pub(crate) fn write_ids(
        &self,
        activity_id: Option<Uuid>,
        related_activity_id: Option<Uuid>,
        payload: &[u8],
    ) {
        self.event.write(&EventData { activity_id, related_activity_id, payload, ..EventData::default() });
    }

    /// Returns the definition.
    pub fn metadata(&self) -> &Metadata {
        self.event.metadata()
    }
}

/// Defines a provider type with a method for each event.
///
/// ```
/// use runtap_events::{EventSpec, Level, provider};
///
/// provider! {
///     /// Events of orders.
///     pub struct Orders("Example-Orders") {
///         /// A customer has placed an order.
///         fn placed(number: u64, customer: &str) => EventSpec::new(1, "OrderPlaced").keywords(0x1);
///         fn refused(number: u64) => EventSpec::new(2, "OrderRefused").level(Level::Warning).keywords(0x1);
///         fn packing_start(number: u64) => EventSpec::new(3, "PackingStart").start();
///         fn packing_stop() => EventSpec::new(4, "PackingStop").stop();
///     }
/// }
///
/// let pipe = runtap_events::EventPipe::new();
/// let orders = Orders::new(&pipe)?;
/// orders.placed(17, "anna");
/// // Gather expensive data only if a session records the event.
/// if orders.refused.is_enabled() {
///     orders.refused(18);
/// }
/// # Ok::<(), runtap_events::DefineError>(())
/// ```
///
/// Parameters have types that implement [`Value`](crate::Value), or references to them. Each event is also a
/// field of the struct, of the type [`Event`].
#[macro_export]
macro_rules! provider {
    (
        $(#[$meta:meta])*
        $vis:vis struct $Provider:ident($provider:expr) {
            $(
                $(#[doc = $doc:expr])*
                fn $event:ident($($field:ident: $type:ty),* $(,)?) => $spec:expr;
            )*
        }
    ) => {
        $(#[$meta])*
        #[derive(Debug, Clone)]
        $vis struct $Provider {
            $(
                $(#[doc = $doc])*
                $vis $event: $crate::Event,
            )*
        }

        #[allow(dead_code, clippy::too_many_arguments, reason = "what a program makes of its events is its own business")]
        impl $Provider {
            /// The name by which tools request the events.
            $vis const NAME: &'static str = $provider;

            /// Defines the events.
            ///
            /// # Errors
            /// If a name contains a NUL.
            $vis fn new(pipe: &$crate::EventPipe) -> ::core::result::Result<Self, $crate::DefineError> {
                let provider = $crate::Provider::new(pipe, Self::NAME);
                ::core::result::Result::Ok(Self {
                    $(
                        $event: provider.define(
                            $spec $(.field(stringify!($field), <$type as $crate::Value>::field_type()))*
                        )?,
                    )*
                })
            }

            $(
                $(#[doc = $doc])*
                #[inline]
                $vis fn $event(&self $(, $field: $type)*) {
                    self.$event.write(|_payload| {
                        $( _payload.push(&$field); )*
                    });
                }
            )*
        }
    };
}
