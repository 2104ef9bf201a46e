//! A layer for `tracing`: writes events of `tracing` as events of providers, spans as activities with a start and a stop,
//! and both as log messages with scopes. `callsite.rs` has the state of each callsite.
//!
//! **Providers.** The provider of an event is the crate in its target (`shop` of `shop::orders`), because sessions request
//! providers by their complete names; [`EventLayerBuilder::naming`] has the alternative. In names `::` becomes `.`, because tools
//! separate the keywords of a provider by a colon. An event has the name in its `name:`, or else its file and line
//! (`orders.rs:42`). It has no keywords; its level is that of `tracing`, where TRACE and DEBUG are both Verbose.
//!
//! **Fields.** A definition needs types, which fields of `tracing` have only when they are recorded: the first event of each
//! combination of fields and types defines it. Values other than numbers, booleans and strings are written as text.
//!
//! **Spans** become a pair of events `NAMEStart` and `NAMEStop`, written when the span is created and when it is closed,
//! whatever threads enter it meanwhile. The start has the fields of the span, the stop those that were recorded later. Both
//! carry the id of the span's [activity](crate::Activity), and so do all events within it. A span that was created before
//! the start of a session is not reported to that session.
//!
//! **Costs.** If no session records a callsite, it is disabled in `tracing` itself. Whenever a session starts or ends, all
//! callsites are evaluated again.

mod callsite;
mod message;
mod record;
mod witness;

use std::cell::RefCell;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, PoisonError, RwLock};

use foldhash::fast::RandomState;
use hashbrown::HashMap;
use runtap_diag_server::EventPipe;
use tracing::callsite::Identifier;
use tracing::span::{Attributes, Id, Record};
use tracing::subscriber::Interest;
use tracing::{Dispatch, Metadata, Subscriber};
use tracing_subscriber::filter::Filtered;
use tracing_subscriber::layer::{Context, Filter, Layer};
use tracing_subscriber::registry::{LookupSpan, SpanRef};
use uuid::Uuid;

use self::callsite::{Callsite, CallsiteKind};
use self::message::{EventContent, SpanContent};
use self::record::Recorded;
use self::witness::Witness;
use crate::activity::Activity;
use crate::logs::{Logs, OpenScope};
use crate::payload;

/// The mapping from targets of `tracing` to providers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Naming {
    /// The crate: the part before the first `::`.
    #[default]
    Crate,
    /// The complete target, with `.` in place of `::`.
    Target,
}

/// A layer that writes the events and spans of `tracing` to a pipe.
///
/// ```
/// use runtap_events::{EventLayer, EventPipe, Logs};
/// use tracing_subscriber::layer::SubscriberExt as _;
///
/// let pipe = EventPipe::new();
/// let layer = EventLayer::new(&pipe).logs(&Logs::new(&pipe)?).build();
/// let subscriber = tracing_subscriber::registry().with(layer);
/// tracing::subscriber::with_default(subscriber, || tracing::info!(number = 17, "order placed"));
/// # Ok::<(), runtap_events::DefineError>(())
/// ```
#[derive(Debug)]
pub struct EventLayer {
    shared: Arc<Shared>,
    _witness: Dispatch,
}

/// The builder of a layer. See [`EventLayer::new`].
#[derive(Debug, Clone)]
pub struct EventLayerBuilder {
    pipe: EventPipe,
    naming: Naming,
    prefix: String,
    logs: Option<Logs>,
}

/// A filter that passes what a session records.
#[derive(Debug)]
pub struct SessionFilter(Arc<Shared>);

#[derive(Debug)]
struct Shared {
    /// Distinguishes the layers of the process.
    number: u64,
    config: EventLayerBuilder,
    callsites: RwLock<HashMap<Identifier, Arc<Callsite>, RandomState>>,
}

static LAYERS: AtomicU64 = AtomicU64::new(0);

/// The most callsites that a thread caches.
const MAX_RECENT: usize = 4096;

thread_local! {
    /// A cache per thread, by layer and callsite, so that threads do not wait for each other.
    static RECENT: RefCell<HashMap<(u64, Identifier), Arc<Callsite>, RandomState>> = RefCell::default();
}

impl EventLayer {
    /// Returns a builder of a layer that writes to `pipe`.
    #[expect(clippy::new_ret_no_self, reason = "the layer comes with its filter")]
    pub fn new(pipe: &EventPipe) -> EventLayerBuilder {
        EventLayerBuilder { pipe: pipe.clone(), naming: Naming::default(), prefix: String::new(), logs: None }
    }
}

impl EventLayerBuilder {
    /// Sets the mapping from targets to providers.
    #[must_use]
    pub fn naming(mut self, naming: Naming) -> Self {
        self.naming = naming;
        self
    }

    /// Sets a prefix of the names of all providers.
    #[must_use]
    pub fn prefix(mut self, prefix: impl Into<String>) -> Self {
        self.prefix = prefix.into();
        self
    }

    /// Also writes log messages: the target is the category, spans are scopes.
    #[must_use]
    pub fn logs(mut self, logs: &Logs) -> Self {
        self.logs = Some(logs.clone());
        self
    }

    /// Builds the layer, with a filter that enables and disables callsites. Other layers of the subscriber are not affected.
    pub fn build<S: Subscriber + for<'a> LookupSpan<'a>>(self) -> Filtered<EventLayer, SessionFilter, S> {
        self.pipe.watch_sessions(tracing::callsite::rebuild_interest_cache);
        let number = LAYERS.fetch_add(1, Ordering::Relaxed);
        let shared = Arc::new(Shared { number, config: self, callsites: RwLock::default() });
        let witness = Dispatch::new(Witness(Arc::clone(&shared)));
        EventLayer { shared: Arc::clone(&shared), _witness: witness }.with_filter(SessionFilter(shared))
    }
}

impl Shared {
    fn interest(&self, metadata: &'static Metadata<'static>) -> Interest {
        if self.callsite(metadata).is_enabled() { Interest::always() } else { Interest::never() }
    }

    fn callsite(&self, metadata: &'static Metadata<'static>) -> Arc<Callsite> {
        self.registered(metadata).unwrap_or_else(|| {
            // Created without the lock; if two threads do so at once, one result is dropped.
            let callsite = Arc::new(Callsite::new(&self.config, metadata));
            let mut callsites = self.callsites.write().unwrap_or_else(PoisonError::into_inner);
            Arc::clone(callsites.entry(metadata.callsite()).or_insert(callsite))
        })
    }

    fn known(&self, metadata: &Metadata<'_>) -> Option<Arc<Callsite>> {
        let key = (self.number, metadata.callsite());
        let recent = RECENT.try_with(|recent| recent.borrow().get(&key).cloned());
        // A thread that is exiting has no cache any more.
        if let Ok(Some(callsite)) = recent {
            return Some(callsite);
        }
        let callsite = self.registered(metadata)?;
        let _ = RECENT.try_with(|recent| {
            let mut recent = recent.borrow_mut();
            if recent.len() == MAX_RECENT {
                recent.clear();
            }
            recent.insert(key, Arc::clone(&callsite));
        });
        Some(callsite)
    }

    fn registered(&self, metadata: &Metadata<'_>) -> Option<Arc<Callsite>> {
        let callsites = self.callsites.read().unwrap_or_else(PoisonError::into_inner);
        callsites.get(&metadata.callsite()).cloned()
    }
}

impl<S> Filter<S> for SessionFilter {
    fn callsite_enabled(&self, metadata: &'static Metadata<'static>) -> Interest {
        self.0.interest(metadata)
    }

    fn enabled(&self, metadata: &Metadata<'_>, _: &Context<'_, S>) -> bool {
        self.0.known(metadata).is_some_and(|callsite| callsite.is_enabled())
    }
}

/// The state of a span.
struct Span {
    callsite: Arc<Callsite>,
    activity: Activity,
    scope: Option<OpenScope>,
    /// Fields that were recorded after its creation.
    later: Recorded,
    payload: Vec<u8>,
}

impl Span {
    /// The activity of its scope in the log.
    fn scope_activity(&self) -> Option<Uuid> {
        self.scope.as_ref().map(|scope| scope.activity)
    }
}

impl<S: Subscriber + for<'a> LookupSpan<'a>> Layer<S> for EventLayer {
    fn on_new_span(&self, attributes: &Attributes<'_>, id: &Id, context: Context<'_, S>) {
        let metadata = attributes.metadata();
        let (Some(span), Some(callsite)) = (context.span(id), self.shared.known(metadata)) else { return };
        let around = span.parent();
        let around = with_span(around, |around| (around.activity.clone(), around.scope_activity()));
        let activity = match &around {
            Some((around, _)) => around.child(),
            None if attributes.is_root() => Activity::root(),
            None => Activity::start(),
        };
        if let CallsiteKind::Span { start, .. } = &callsite.kind
            && callsite.gate_is_open()
        {
            payload::with(|payload| {
                let mut recorded = Recorded::default();
                attributes.record(&mut recorded.visitor(payload));
                start.write(
                    &recorded,
                    payload.as_bytes(),
                    |shape| callsite.define(shape, metadata),
                    |event, bytes| event.write_ids(Some(activity.id()), activity.parent_id(), bytes),
                );
            });
        }
        // The scope's id is for the messages in the span, the span's id for its events.
        let scope = callsite.logger.as_ref().filter(|logger| logger.scopes()).map(|logger| {
            let around = around.and_then(|(_, scope)| scope);
            let related = around.or_else(|| Some(activity.id()));
            logger.open(&activity.child(), related, &SpanContent(attributes))
        });
        let span_state = Span { callsite, activity, scope, later: Recorded::default(), payload: Vec::new() };
        span.extensions_mut().insert(span_state);
    }

    fn on_record(&self, id: &Id, values: &Record<'_>, context: Context<'_, S>) {
        let Some(span) = context.span(id) else { return };
        payload::with(|payload| {
            // Without the lock, because the program's own code formats the values.
            let mut recorded = Recorded::default();
            values.record(&mut recorded.visitor(payload));
            let mut extensions = span.extensions_mut();
            if let Some(state) = extensions.get_mut::<Span>()
                && state.later.append(&recorded)
            {
                state.payload.extend_from_slice(payload.as_bytes());
            }
        });
    }

    fn on_event(&self, event: &tracing::Event<'_>, context: Context<'_, S>) {
        let metadata = event.metadata();
        let activity = if event.is_contextual() {
            Activity::current_ids().map(|(id, _)| id)
        } else {
            of_span(event, &context, |span| span.activity.id())
        };
        let Some(callsite) = self.shared.known(metadata) else { return };
        if let CallsiteKind::Event(shapes) = &callsite.kind
            && callsite.gate_is_open()
        {
            payload::with(|payload| {
                let mut recorded = Recorded::default();
                event.record(&mut recorded.visitor(payload));
                shapes.write(
                    &recorded,
                    payload.as_bytes(),
                    |shape| callsite.define(shape, metadata),
                    |event, bytes| event.write_ids(activity, None, bytes),
                );
            });
        }
        if let Some(logger) = callsite.logger.as_ref().filter(|logger| logger.is_enabled()) {
            let scope = of_span(event, &context, Span::scope_activity);
            logger.write(&EventContent(event), scope.flatten().or(activity));
        }
    }

    fn on_enter(&self, id: &Id, context: Context<'_, S>) {
        let _ = with_span(context.span(id), |span| span.activity.push());
    }

    fn on_exit(&self, id: &Id, context: Context<'_, S>) {
        let _ = with_span(context.span(id), |span| Activity::pop(span.activity.id()));
    }

    fn on_close(&self, id: Id, context: Context<'_, S>) {
        let Some(span) = context.span(&id) else { return };
        let Some(mut state) = span.extensions_mut().remove::<Span>() else { return };
        drop(state.scope.take());
        if let CallsiteKind::Span { stop, .. } = &state.callsite.kind
            && state.callsite.gate_is_open()
        {
            stop.write(
                &state.later,
                &state.payload,
                |shape| state.callsite.define(shape, span.metadata()),
                |event, bytes| event.write_ids(Some(state.activity.id()), None, bytes),
            );
        }
    }
}

fn with_span<'a, R: LookupSpan<'a>, T>(
    span: Option<SpanRef<'a, R>>,
    then: impl FnOnce(&Span) -> T,
) -> Option<T> {
    let span = span?;
    let extensions = span.extensions();
    extensions.get::<Span>().map(then)
}

/// Calls a function with the state of the span that contains an event.
fn of_span<S: Subscriber + for<'a> LookupSpan<'a>, T>(
    event: &tracing::Event<'_>,
    context: &Context<'_, S>,
    then: impl FnOnce(&Span) -> T,
) -> Option<T> {
    with_span(context.event_span(event), then)
}
