//! The events of a program: where they are defined, and where the program is asked for its rundown.

use std::sync::Arc;

use runtap_nettrace::{FieldType, Metadata};
use thiserror::Error;

use crate::event::Event;
use crate::rundown::{Rundown, Sources};
use crate::state::PipeState;
use crate::watch::ProviderRequest;

/// The events of a program. Clones are the same pipe.
#[derive(Debug, Clone)]
pub struct EventPipe {
    pub(crate) state: Arc<PipeState>,
    pub(crate) rundown: Arc<Sources>,
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

impl Default for EventPipe {
    fn default() -> Self {
        Self::new()
    }
}

impl EventPipe {
    /// A pipe without events.
    pub fn new() -> Self {
        Self { state: Arc::new(PipeState::new()), rundown: Arc::default() }
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
        let definition = self.state.define(metadata);
        Ok(Event { definition, pipe: Arc::clone(&self.state) })
    }

    /// Has `source` called at the end of each session that wants a rundown: it describes what the stream's
    /// addresses and ids mean. It runs on a thread of its own, once for each session, for several that end at the same time side by side.
    pub fn on_rundown(&self, source: impl Fn(&mut Rundown<'_>) + Send + Sync + 'static) {
        self.rundown.add(source);
    }

    /// Has `watcher` called with what every running session asks of `provider`: at once, and whenever a session that
    /// names it has come or gone. For providers whose work depends on it, or that have arguments.
    ///
    /// Calls come one after the other, on the thread that registers and on the server's, and a session waits for them:
    /// hand on what takes long. A watcher must not register another one.
    pub fn watch(
        &self,
        provider: impl Into<String>,
        watcher: impl Fn(&[ProviderRequest]) + Send + Sync + 'static,
    ) {
        self.state.watch(provider.into(), Arc::new(watcher));
    }

    /// Has `watcher` called whenever a session has come or gone: for programs that keep what [`Event::is_enabled`] says, and
    /// ask again then. It may define events. Called like those of [`watch`](Self::watch).
    pub fn watch_sessions(&self, watcher: impl Fn() + Send + Sync + 'static) {
        self.state.watch_sessions(Arc::new(watcher));
    }

    /// Number of sessions at this moment.
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
    use crate::limits::Limits;
    use crate::wanted::tests::event;

    /// Sessions, with what each asks of a provider.
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
    fn watchers_know_what_is_asked_of_their_provider() {
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
    fn who_watches_sessions_may_ask_and_define() {
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
