//! Where events are defined, and where they find the sessions that want them.
//!
//! What is delivered, and to whom, follows what .NET 8 and 10 were measured to deliver.

use std::fmt;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError, RwLock};
use std::time::Instant;

use runtap_diag_proto::{Provider, SessionConfig, SessionId};
use runtap_nettrace::{FieldType, Metadata};
use thiserror::Error;

use super::encoder::Rundown;
use super::event::{Definition, Event, EventData};
use super::session::Session;

/// As many as a runtime has.
const MAX_SESSIONS: usize = 64;

/// The clock begins here, so that times before a session are possible.
const CLOCK_START: u64 = 1_000_000_000;

/// The events of a program. Clones are the same pipe.
#[derive(Debug, Clone)]
pub struct EventPipe {
    pub(super) state: Arc<PipeState>,
}

/// A name in a definition that the stream can't carry.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("define event {event} of {provider:?}: a name contains a NUL character")]
pub struct DefineError {
    /// The provider.
    pub provider: String,
    /// The event's number.
    pub event: u32,
}

type RundownSource = Box<dyn Fn(&mut Rundown<'_>) + Send + Sync>;

pub(super) struct PipeState {
    epoch: Instant,
    next_id: AtomicU64,
    /// Definitions and sessions change together, so that no event is written to a session that does not want it.
    shared: RwLock<Shared>,
    rundown: Mutex<Vec<Arc<RundownSource>>>,
}

#[derive(Debug, Default)]
struct Shared {
    definitions: Vec<Arc<Definition>>,
    sessions: Vec<Option<Arc<Session>>>,
}

impl fmt::Debug for PipeState {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PipeState").field("shared", &self.shared).finish_non_exhaustive()
    }
}

impl Default for EventPipe {
    fn default() -> Self {
        Self::new()
    }
}

impl EventPipe {
    /// A pipe without events.
    pub fn new() -> Self {
        let state = PipeState {
            epoch: Instant::now(),
            next_id: AtomicU64::new(1),
            shared: RwLock::default(),
            rundown: Mutex::default(),
        };
        Self { state: Arc::new(state) }
    }

    /// Defines an event; [`Metadata::id`] is not looked at. Providers exist by their events.
    ///
    /// # Errors
    /// A NUL in a name.
    pub fn define(&self, metadata: Metadata) -> Result<Event, DefineError> {
        let nul = |name: &String| name.contains('\0');
        if nul(&metadata.provider) || nul(&metadata.name) || has_nul(&metadata.fields) {
            return Err(DefineError { provider: metadata.provider, event: metadata.event_id });
        }
        let mut shared = self.state.shared.write().unwrap_or_else(PoisonError::into_inner);
        let wanted_by = shared.sessions.iter().flatten().filter(|session| session.wants(&metadata));
        let wanted_by = wanted_by.fold(0, |bits, session| bits | session.bit());
        let definition = Arc::new(Definition {
            index: shared.definitions.len(),
            metadata,
            wanted_by: AtomicU64::new(wanted_by),
        });
        shared.definitions.push(Arc::clone(&definition));
        Ok(Event { definition, pipe: Arc::clone(&self.state) })
    }

    /// Has `source` called at the end of each session that wants a rundown: it describes what the stream's
    /// addresses and ids mean. It runs on the server's thread, once for each session.
    pub fn on_rundown(&self, source: impl Fn(&mut Rundown<'_>) + Send + Sync + 'static) {
        let mut sources = self.state.rundown.lock().unwrap_or_else(PoisonError::into_inner);
        sources.push(Arc::new(Box::new(source)));
    }

    /// Number of sessions at this moment.
    pub fn sessions(&self) -> usize {
        self.state.shared.read().unwrap_or_else(PoisonError::into_inner).sessions.iter().flatten().count()
    }
}

fn has_nul(fields: &[runtap_nettrace::Field]) -> bool {
    fields.iter().any(|field| {
        let inner = |mut field_type: &FieldType| {
            while let FieldType::Array(element) = field_type {
                field_type = element;
            }
            matches!(field_type, FieldType::Object(fields) if has_nul(fields))
        };
        field.name.contains('\0') || inner(&field.field_type)
    })
}

impl PipeState {
    /// Nanoseconds of the clock that all time stamps count in.
    pub(super) fn now(&self) -> u64 {
        CLOCK_START.saturating_add(u64::try_from(self.epoch.elapsed().as_nanos()).unwrap_or(u64::MAX))
    }

    pub(super) fn write(&self, definition: &Arc<Definition>, data: &EventData<'_>) {
        let shared = self.shared.read().unwrap_or_else(PoisonError::into_inner);
        // Under the lock: a session that has gone meanwhile is not in the bits any more.
        let wanted_by = definition.wanted_by.load(Ordering::Relaxed);
        for session in shared.sessions.iter().flatten() {
            if wanted_by & session.bit() != 0 {
                session.push(definition, data, || self.now());
            }
        }
    }

    /// Starts a session. `None`: there are too many.
    pub(super) fn start(&self, config: SessionConfig, buffer: usize) -> Option<Arc<Session>> {
        let mut shared = self.shared.write().unwrap_or_else(PoisonError::into_inner);
        let place = match shared.sessions.iter().position(Option::is_none) {
            Some(place) => place,
            None if shared.sessions.len() < MAX_SESSIONS => {
                shared.sessions.push(None);
                shared.sessions.len() - 1
            }
            None => return None,
        };
        // Never used again, unlike a runtime's: a late StopTracing can't end a stranger's session.
        let id = SessionId(self.next_id.fetch_add(1, Ordering::Relaxed));
        let session = Arc::new(Session::new(id, place, config, buffer));
        for definition in &shared.definitions {
            if session.wants(&definition.metadata) {
                definition.wanted_by.fetch_or(session.bit(), Ordering::Relaxed);
            }
        }
        if let Some(free) = shared.sessions.get_mut(place) {
            *free = Some(Arc::clone(&session));
        }
        Some(session)
    }

    /// Takes a session out: nothing is written to it any more.
    pub(super) fn end(&self, session: &Session) {
        let mut shared = self.shared.write().unwrap_or_else(PoisonError::into_inner);
        for definition in &shared.definitions {
            definition.wanted_by.fetch_and(!session.bit(), Ordering::Relaxed);
        }
        for place in &mut shared.sessions {
            if place.as_ref().is_some_and(|other| other.id == session.id) {
                *place = None;
            }
        }
    }

    pub(super) fn session(&self, id: SessionId) -> Option<Arc<Session>> {
        self.all_sessions().into_iter().find(|session| session.id == id)
    }

    pub(super) fn all_sessions(&self) -> Vec<Arc<Session>> {
        let shared = self.shared.read().unwrap_or_else(PoisonError::into_inner);
        shared.sessions.iter().flatten().cloned().collect()
    }

    pub(super) fn definition(&self, index: usize) -> Option<Arc<Definition>> {
        let shared = self.shared.read().unwrap_or_else(PoisonError::into_inner);
        shared.definitions.get(index).cloned()
    }

    pub(super) fn rundown_sources(&self) -> Vec<Arc<RundownSource>> {
        self.rundown.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

/// Whether a session with these providers gets the event. The first entry of a provider counts, names are
/// case-sensitive, an event without keywords always passes, level 0 lets everything through.
pub(super) fn passes(providers: &[Provider], event: &Metadata) -> bool {
    let Some(provider) = providers.iter().find(|provider| provider.name == event.provider) else {
        return false;
    };
    let keyword = event.keywords == 0 || event.keywords & provider.keywords != 0;
    let level = provider.level.number() == 0 || event.level <= provider.level.number();
    let filter =
        |filter: &runtap_diag_proto::EventFilter| filter.enable == filter.ids.contains(&event.event_id);
    keyword && level && provider.filter.as_ref().is_none_or(filter)
}

#[cfg(test)]
mod tests {
    use runtap_diag_proto::{EventFilter, Level};

    use super::*;

    fn event(keywords: u64, level: u32) -> Metadata {
        let mut event = Metadata::new("P", 7, "E");
        (event.keywords, event.level) = (keywords, level);
        event
    }

    #[test]
    fn what_is_delivered() {
        let with = |keywords, level| vec![Provider::new("P", keywords, level)];
        // (session keywords, session level, event keywords, event level, passes)
        for (keywords, level, event_keywords, event_level, expected) in [
            (1, Level::Verbose, 1, 5, true),
            (2, Level::Verbose, 1, 5, false),
            (3, Level::Verbose, 2, 4, true),
            (0, Level::Verbose, 1, 1, false),
            (0, Level::Verbose, 0, 1, true),
            (2, Level::Verbose, 0, 5, true),
            (1, Level::Informational, 1, 5, false),
            (1, Level::Informational, 1, 4, true),
            (1, Level::Informational, 1, 0, true),
            (1, Level::LogAlways, 1, 5, true),
        ] {
            assert_eq!(
                passes(&with(keywords, level), &event(event_keywords, event_level)),
                expected,
                "{keywords} {level:?} {event_keywords} {event_level}"
            );
        }
        assert!(!passes(&[Provider::new("p", u64::MAX, Level::Verbose)], &event(0, 1)));
        assert!(!passes(&[], &event(0, 1)));
        let twice = [Provider::new("P", 0, Level::Verbose), Provider::new("P", u64::MAX, Level::Verbose)];
        assert!(!passes(&twice, &event(1, 1)), "the first entry counts");
    }

    #[test]
    fn filters_come_after_keyword_and_level() {
        let with = |filter| vec![Provider::new("P", 1, Level::Verbose).with_filter(filter)];
        assert!(passes(&with(EventFilter::only([7])), &event(1, 1)));
        assert!(!passes(&with(EventFilter::only([8])), &event(1, 1)));
        assert!(!passes(&with(EventFilter::only([])), &event(1, 1)));
        assert!(!passes(&with(EventFilter::except([7])), &event(1, 1)));
        assert!(passes(&with(EventFilter::except([8])), &event(1, 1)));
        assert!(passes(&with(EventFilter::except([])), &event(1, 1)));
        assert!(!passes(&with(EventFilter::only([7])), &event(2, 1)));
    }

    #[test]
    fn events_and_sessions_may_come_in_any_order() {
        let pipe = EventPipe::new();
        let early = pipe.define(event(1, 4)).unwrap();
        assert!(!early.is_enabled());
        let config = || SessionConfig::new(vec![Provider::new("P", 1, Level::Verbose)]);
        let one = pipe.state.start(config(), 1000).unwrap();
        let two = pipe.state.start(config(), 1000).unwrap();
        let late = pipe.define(event(1, 4)).unwrap();
        let other = pipe.define(event(2, 4)).unwrap();
        assert!(early.is_enabled() && late.is_enabled() && !other.is_enabled());
        pipe.state.end(&one);
        assert!(early.is_enabled() && late.is_enabled());
        pipe.state.end(&two);
        assert!(!early.is_enabled() && !late.is_enabled());
        assert_eq!(pipe.sessions(), 0);
    }

    #[test]
    fn there_are_64_sessions_and_ids_are_never_used_again() {
        let pipe = EventPipe::new();
        let config = SessionConfig::new(vec![Provider::new("P", 1, Level::Verbose)]);
        let mut sessions: Vec<_> = (0..64).map(|_| pipe.state.start(config.clone(), 1).unwrap()).collect();
        assert!(pipe.state.start(config.clone(), 1).is_none());
        pipe.state.end(&sessions[10]);
        sessions.push(pipe.state.start(config, 1).unwrap());
        let mut ids: Vec<_> = sessions.iter().map(|session| session.id).collect();
        ids.dedup();
        assert_eq!(ids.len(), 65);
        assert!(ids.iter().all(|id| id.0 != 0));
    }

    #[test]
    fn names_with_nul_are_refused() {
        let pipe = EventPipe::new();
        let mut nested = event(0, 0);
        let inner = FieldType::Object(vec![runtap_nettrace::Field::new("a\0", FieldType::I32)]);
        nested.fields = vec![runtap_nettrace::Field::new("x", FieldType::Array(Box::new(inner)))];
        assert!(pipe.define(nested).is_err());
        let error = pipe.define(Metadata::new("P\0", 3, "E")).unwrap_err();
        assert_eq!(error.to_string(), "define event 3 of \"P\\0\": a name contains a NUL character");
    }
}
