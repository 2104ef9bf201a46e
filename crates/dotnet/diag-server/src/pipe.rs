//! The source of a program's events: their definitions, and the program's rundown.

use std::sync::Arc;

use runtap_nettrace::{FieldType, Metadata};
use thiserror::Error;

use crate::event::Event;
use crate::rundown::{Rundown, Sources};
use crate::state::PipeState;
use crate::watch::ProviderRequest;

/// The source of a program's events. Clones refer to one pipe.
#[derive(Debug, Clone)]
pub struct EventPipe {
    pub(crate) state: Arc<PipeState>,
    pub(crate) rundown: Arc<Sources>,
}

/// An error of defining an event: a name that the stream cannot carry.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("cannot define event {event} of {provider:?}: a name contains a NUL character")]
pub struct DefineError {
    /// The provider.
    pub provider: String,
    /// The number of the event.
    pub event: u32,
}

impl Default for EventPipe {
    fn default() -> Self {
        Self::new()
    }
}

impl EventPipe {
    /// Creates a pipe without events.
    pub fn new() -> Self {
        Self { state: Arc::new(PipeState::new()), rundown: Arc::default() }
    }

    /// Defines an event; ignores [`Metadata::id`]. A provider exists if it has an event.
    ///
    /// # Errors
    /// If a name contains a NUL.
    pub fn define(&self, metadata: Metadata) -> Result<Event, DefineError> {
        let nul = |name: &String| name.contains('\0');
        if nul(&metadata.provider) || nul(&metadata.name) || has_nul(&metadata.fields) {
            return Err(DefineError { provider: metadata.provider, event: metadata.event_id });
        }
        let definition = self.state.define(metadata);
        Ok(Event { definition, pipe: Arc::clone(&self.state) })
    }

    /// Registers a function that is called at the end of each session with a rundown, to describe the stream's addresses
    /// and ids. It runs on a separate thread for each session, concurrently for several sessions that end together.
    pub fn on_rundown(&self, source: impl Fn(&mut Rundown<'_>) + Send + Sync + 'static) {
        self.rundown.add(source);
    }

    /// Registers a function that is called with the requests of all running sessions to `provider`: at once, and whenever a
    /// session with that provider starts or ends. For providers whose work depends on the requests, or that have arguments.
    /// Calls are sequential, on the registering thread and on the server's, and a session waits for them: the function must
    /// not block. It must not register another watcher.
    pub fn watch(
        &self,
        provider: impl Into<String>,
        watcher: impl Fn(&[ProviderRequest]) + Send + Sync + 'static,
    ) {
        self.state.watch(provider.into(), Arc::new(watcher));
    }

    /// Registers a function that is called whenever a session starts or ends: for programs that cache
    /// [`Event::is_enabled`]. It may define events. Called like those of [`watch`](Self::watch).
    pub fn watch_sessions(&self, watcher: impl Fn() + Send + Sync + 'static) {
        self.state.watch_sessions(Arc::new(watcher));
    }

    /// Returns the current number of sessions.
    pub fn sessions(&self) -> usize {
        self.state.sessions()
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

#[cfg(test)]
mod tests {
    use std::sync::Mutex;

    use runtap_diag_proto::{Level, Provider, SessionConfig};

    use super::*;
    use crate::filter::tests::event;
    use crate::limits::Limits;

    /// Sessions, with the request of each to a provider.
    type Seen = Vec<(u64, String)>;

    #[test]
    fn events_and_sessions_may_come_in_any_order() {
        let pipe = EventPipe::new();
        let early = pipe.define(event(1, 4)).unwrap();
        assert!(!early.is_enabled());
        let config = || SessionConfig::new(vec![Provider::new("P", 1, Level::Verbose)]);
        let one = pipe.state.start(config(), &Limits::default()).unwrap();
        let two = pipe.state.start(config(), &Limits::default()).unwrap();
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
        let mut sessions: Vec<_> =
            (0..64).map(|_| pipe.state.start(config.clone(), &Limits::default()).unwrap()).collect();
        assert!(pipe.state.start(config.clone(), &Limits::default()).is_none());
        pipe.state.end(&sessions[10]);
        sessions.push(pipe.state.start(config, &Limits::default()).unwrap());
        let mut ids: Vec<_> = sessions.iter().map(|session| session.id).collect();
        ids.dedup();
        assert_eq!(ids.len(), 65);
        assert!(ids.iter().all(|id| id.0 != 0));
    }

    #[test]
    fn watchers_receive_the_requests_to_their_provider() {
        let pipe = EventPipe::new();
        let seen: Arc<Mutex<Vec<Seen>>> = Arc::default();
        let told = Arc::clone(&seen);
        pipe.watch("Q", move |requests| {
            let all = requests.iter().map(|r| (r.session.0, format!("{} {}", r.keywords, r.arguments)));
            told.lock().unwrap().push(all.collect());
        });
        let provider = |name, arguments: &str| {
            let mut provider = Provider::new(name, 3, Level::Verbose);
            provider.arguments = Some(arguments.to_owned());
            provider
        };
        let of_others =
            pipe.state.start(SessionConfig::new(vec![provider("P", "x")]), &Limits::default()).unwrap();
        let providers = vec![provider("P", ""), provider("Q", "a=1"), provider("Q", "a=2")];
        let session = pipe.state.start(SessionConfig::new(providers), &Limits::default()).unwrap();
        pipe.state.end(&of_others);
        pipe.state.end(&session);
        let one = vec![(session.id.0, "3 a=1".to_owned())];
        assert_eq!(*seen.lock().unwrap(), [vec![], one, vec![]]);
    }

    #[test]
    fn watchers_of_sessions_may_query_and_define_events() {
        let pipe = EventPipe::new();
        let early = pipe.define(event(1, 4)).unwrap();
        let seen: Arc<Mutex<Vec<(bool, bool)>>> = Arc::default();
        let (told, own) = (Arc::clone(&seen), pipe.clone());
        pipe.watch_sessions(move || {
            let late = own.define(event(1, 4)).unwrap();
            told.lock().unwrap().push((early.is_enabled(), late.is_enabled()));
        });
        let config = SessionConfig::new(vec![Provider::new("P", 1, Level::Verbose)]);
        let session = pipe.state.start(config, &Limits::default()).unwrap();
        pipe.state.end(&session);
        assert_eq!(*seen.lock().unwrap(), [(true, true), (false, false)]);
    }

    #[test]
    fn names_with_nul_are_rejected() {
        let pipe = EventPipe::new();
        let mut nested = event(0, 0);
        let inner = FieldType::Object(vec![runtap_nettrace::Field::new("a\0", FieldType::I32)]);
        nested.fields = vec![runtap_nettrace::Field::new("x", FieldType::Array(Box::new(inner)))];
        assert!(pipe.define(nested).is_err());
        let error = pipe.define(Metadata::new("P\0", 3, "E")).unwrap_err();
        assert_eq!(error.to_string(), "cannot define event 3 of \"P\\0\": a name contains a NUL character");
    }
}
