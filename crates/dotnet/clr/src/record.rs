//! Events as records: the common members of events and the payload.

pub use runtap_model::UtcNs;
use runtap_nettrace::{Event, TraceHeader};

use crate::payload::{Payload, Value};

/// An event with everything that is known about it.
#[derive(Debug, Clone, Copy)]
pub struct Record<'a> {
    /// The stream's header.
    pub header: &'a TraceHeader,
    /// The event.
    pub event: &'a Event<'a>,
    /// The payload, with its schema.
    pub payload: Payload<'a>,
}

/// A common member of events.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Member {
    /// The nanoseconds since the start of the session.
    TsNs,
    /// The time in UTC.
    Time,
    /// The provider.
    Provider,
    /// The name of the event.
    Name,
    /// The id of the event.
    Id,
    /// The version of the event.
    Version,
    /// The level: 0 (always), or 1 (critical) to 5 (verbose).
    Level,
    /// The keywords, as bits.
    Keywords,
    /// The opcode.
    Opcode,
    /// The thread that the event is about.
    Thread,
    /// The thread that wrote the event.
    CaptureThread,
    /// The processor on which the event was written.
    Processor,
    /// The process id.
    Process,
    /// The activity that the event belongs to.
    Activity,
    /// The activity that started that activity.
    RelatedActivity,
}

impl Member {
    /// All members, in the order in which they are shown.
    pub const ALL: [Self; 15] = [
        Self::TsNs,
        Self::Time,
        Self::Provider,
        Self::Name,
        Self::Id,
        Self::Version,
        Self::Level,
        Self::Keywords,
        Self::Opcode,
        Self::Thread,
        Self::CaptureThread,
        Self::Processor,
        Self::Process,
        Self::Activity,
        Self::RelatedActivity,
    ];

    /// Returns the name in filters and files.
    pub fn name(self) -> &'static str {
        match self {
            Self::TsNs => "ts_ns",
            Self::Time => "time",
            Self::Provider => "provider",
            Self::Name => "name",
            Self::Id => "id",
            Self::Version => "version",
            Self::Level => "level",
            Self::Keywords => "keywords",
            Self::Opcode => "opcode",
            Self::Thread => "thread",
            Self::CaptureThread => "capture_thread",
            Self::Processor => "processor",
            Self::Process => "process",
            Self::Activity => "activity",
            Self::RelatedActivity => "related_activity",
        }
    }

    /// Returns the member with this name.
    pub fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|member| member.name() == name)
    }

    /// Whether the member is a number; others are texts.
    pub fn is_number(self) -> bool {
        !matches!(self, Self::Time | Self::Provider | Self::Name | Self::Activity | Self::RelatedActivity)
    }
}

/// The value of a member.
#[derive(Debug, Clone, Copy, PartialEq)]
#[non_exhaustive]
pub enum MemberValue<'a> {
    /// Text.
    Text(&'a str),
    /// A signed number.
    Int(i64),
    /// An unsigned number.
    UInt(u64),
    /// An unsigned number that is shown in hexadecimal.
    Hex(u64),
    /// A point in time.
    Time(UtcNs),
    /// A GUID.
    Guid(runtap_nettrace::Uuid),
}

impl<'a> Record<'a> {
    /// Returns the value of a member. `None` if unknown.
    pub fn member(&self, member: Member) -> Option<MemberValue<'a>> {
        let Self { header, event, payload } = *self;
        let metadata = event.metadata;
        Some(match member {
            Member::TsNs => MemberValue::Int(header.relative_ns(event.timestamp)),
            Member::Time => MemberValue::Time(UtcNs(header.utc_ns(event.timestamp)?)),
            Member::Provider => MemberValue::Text(&metadata?.provider),
            Member::Name => MemberValue::Text(Some(payload.schema().name()).filter(|name| !name.is_empty())?),
            Member::Id => MemberValue::UInt(metadata?.event_id.into()),
            Member::Version => MemberValue::UInt(event.version()?.into()),
            Member::Level => MemberValue::UInt(event.level()?.into()),
            Member::Keywords => MemberValue::Hex(event.keywords()?),
            Member::Opcode => MemberValue::UInt(event.opcode().or_else(|| payload.schema().opcode())?.into()),
            Member::Thread => MemberValue::UInt(event.thread_id),
            Member::CaptureThread => MemberValue::UInt(event.capture_thread_id),
            Member::Processor => MemberValue::UInt(Some(event.processor).filter(|n| *n != u32::MAX)?.into()),
            Member::Process => {
                let process = event.process_id.unwrap_or_else(|| header.process_id.into());
                MemberValue::UInt(Some(process).filter(|id| *id != 0)?)
            }
            Member::Activity => MemberValue::Guid(event.activity_id?),
            Member::RelatedActivity => MemberValue::Guid(event.related_activity_id?),
        })
    }

    /// Returns a field of the payload by its path: `Name`, or `Outer.Inner` for a field of an object. In an array of `{Key, Value}`,
    /// as sent by `DiagnosticSource` and loggers, the inner name is a key.
    pub fn field(&self, path: &str) -> Option<Value<'a>> {
        if let Some(value) = self.payload.get(path) {
            return Some(value);
        }
        let (outer, inner) = path.split_once('.')?;
        inside(self.payload.get(outer)?, inner)
    }
}

fn inside<'a>(value: Value<'a>, path: &str) -> Option<Value<'a>> {
    match value {
        Value::Object(fields) => fields.get(path).or_else(|| {
            let (outer, inner) = path.split_once('.')?;
            inside(fields.get(outer)?, inner)
        }),
        Value::Array(pairs) => pairs
            .objects()
            .find(|pair| pair.get("Key").and_then(|key| key.as_text()).as_deref() == Some(path))?
            .get("Value"),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn members_are_found_by_their_names() {
        for member in Member::ALL {
            assert_eq!(Member::named(member.name()), Some(member));
        }
        assert_eq!(Member::named("payload"), None);
    }
}
