//! Providers with typed events, as an `EventSource` of .NET has them. Owns how such events are defined and written; what their
//! fields look like is [`Payload`]'s business.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use runtap_diag_server::{DefineError, EventData, EventPipe, Field, FieldType, Metadata};
use uuid::Uuid;

use crate::activity::Activity;
use crate::payload::{self, Payload};

/// What every keyword of an `EventSource` carries in addition.
pub(crate) const SESSION_KEYWORDS: u64 = 0xF000_0000_0000;

/// The opcodes of events that begin and end an activity.
const START: u8 = 1;
const STOP: u8 = 2;

/// The ids of events that are known by their names. Those that programs give themselves are below.
static NEXT_ID: AtomicU32 = AtomicU32::new(0x4000);

/// An id for an event that is known by its name: one counter for the whole process, as in .NET.
pub(crate) fn next_id() -> u32 {
    next_ids(1)
}

/// The first of `count` ids in a row.
pub(crate) fn next_ids(count: u32) -> u32 {
    NEXT_ID.fetch_add(count, Ordering::Relaxed)
}

/// How important an event is. A session gets all up to the level that it asks for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[repr(u8)]
pub enum Level {
    /// At every level.
    Always,
    /// The program can't go on.
    Critical,
    /// Something failed.
    Error,
    /// Something may fail.
    Warning,
    /// What happens.
    Informational,
    /// What happens in detail.
    Verbose,
}

/// How an event is defined: its number and name, and more where the defaults do not fit.
#[derive(Debug, Clone)]
pub struct EventSpec {
    metadata: Metadata,
    keywords: u64,
}

impl EventSpec {
    /// An event of level [`Informational`](Level::Informational) without keywords, in version 0. The number is the event's
    /// own within its provider: 1 to 16,383.
    pub fn new(id: u16, name: impl Into<String>) -> Self {
        Self { metadata: Metadata::new("", u32::from(id), name), keywords: 0 }
    }

    /// With another level.
    #[must_use]
    pub fn level(mut self, level: Level) -> Self {
        self.metadata.level = u32::from(level as u8);
        self
    }

    /// With keywords (categories), one bit each, of the lower 44.
    #[must_use]
    pub fn keywords(mut self, keywords: u64) -> Self {
        self.keywords = keywords;
        self
    }

    /// With another version: one more whenever fields were added.
    #[must_use]
    pub fn version(mut self, version: u8) -> Self {
        self.metadata.version = u32::from(version);
        self
    }

    /// With an opcode.
    #[must_use]
    pub fn opcode(mut self, opcode: u8) -> Self {
        self.metadata.opcode = Some(opcode);
        self
    }

    /// The event that begins an activity. Its name ends in `Start`, and the event that [ends](Self::stop) it has the next
    /// number and the same name with `Stop`.
    #[must_use]
    pub fn start(self) -> Self {
        self.opcode(START)
    }

    /// The event that ends an activity.
    #[must_use]
    pub fn stop(self) -> Self {
        self.opcode(STOP)
    }

    /// With one more field.
    #[must_use]
    pub fn field(mut self, name: impl Into<String>, field_type: FieldType) -> Self {
        self.metadata.fields.push(Field::new(name, field_type));
        self
    }
}

/// A provider of events, by its name. Where events with fixed fields are enough, the macro [`provider!`](crate::provider!)
/// makes one with a method for each.
#[derive(Debug, Clone)]
pub struct Provider {
    pipe: EventPipe,
    name: Arc<str>,
}

impl Provider {
    /// A provider of this name. Tools ask for it by exactly this name: it should have no colon and no comma.
    pub fn new(pipe: &EventPipe, name: impl Into<Arc<str>>) -> Self {
        Self { pipe: pipe.clone(), name: name.into() }
    }

    /// Its name.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Defines one of its events.
    ///
    /// # Errors
    /// A NUL in a name.
    pub fn define(&self, spec: EventSpec) -> Result<Event, DefineError> {
        let mut metadata = spec.metadata;
        metadata.provider = self.name.to_string();
        metadata.keywords = spec.keywords | SESSION_KEYWORDS;
        define(&self.pipe, metadata)
    }

    /// The pipe that its events go to.
    pub fn pipe(&self) -> &EventPipe {
        &self.pipe
    }
}

/// An event with exactly these keywords.
pub(crate) fn define(pipe: &EventPipe, metadata: Metadata) -> Result<Event, DefineError> {
    let starts = metadata.opcode == Some(START);
    Ok(Event { event: pipe.define(metadata)?, starts })
}

/// An event that was defined. Cheap to clone; usable from any thread.
#[derive(Debug, Clone)]
pub struct Event {
    event: runtap_diag_server::Event,
    starts: bool,
}

impl Event {
    /// Whether any session wants it: one load.
    #[inline]
    pub fn is_enabled(&self) -> bool {
        self.event.is_enabled()
    }

    /// Writes it, with the fields that `fill` appends in the order of their definition, for the
    /// [activity](Activity::enter) that this thread works for. Nothing is called if no session wants it.
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

    /// For an activity that this thread need not work for.
    pub(crate) fn write_ids(
        &self,
        activity_id: Option<Uuid>,
        related_activity_id: Option<Uuid>,
        payload: &[u8],
    ) {
        self.event.write(&EventData { activity_id, related_activity_id, payload, ..EventData::default() });
    }

    /// How it was defined.
    pub fn metadata(&self) -> &Metadata {
        self.event.metadata()
    }
}

/// A provider with a method for each of its events.
///
/// ```
/// use runtap_events::{EventSpec, Level, provider};
///
/// provider! {
///     /// What happens to orders.
///     pub struct Orders("Example-Orders") {
///         /// Somebody has ordered something.
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
/// // What is expensive to find out is asked for only where it is wanted.
/// if orders.refused.is_enabled() {
///     orders.refused(18);
/// }
/// # Ok::<(), runtap_events::DefineError>(())
/// ```
///
/// The types of parameters are those that implement [`Value`](crate::Value), and references to them. Each event is also a
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
            /// The name by which tools ask for the events.
            $vis const NAME: &'static str = $provider;

            /// Defines the events.
            ///
            /// # Errors
            /// A NUL in a name.
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
