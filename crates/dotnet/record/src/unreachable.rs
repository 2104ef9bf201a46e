//! Detects before a recording that a stop event can't occur. Only the runtime's own events are known in advance, because other
//! providers define their events themselves.

use crate::providers::Requested;
use runtap_clr::payload::{EventSwitch, KnownEvent, known_events};
use runtap_diag::{EventFilter, Level, Provider};
use runtap_wire::nearest;

use crate::StopEvent;

/// The reason why a stop event can't occur.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Unreachable {
    /// The provider is not recorded.
    Provider {
        /// The most similar name of a recorded provider.
        nearest: Option<String>,
    },
    /// The provider has no known event with this name.
    Name {
        /// The most similar name of a known event.
        nearest: Option<String>,
    },
    /// The keywords of the event are not enabled.
    Keywords {
        /// The keywords of which one is needed.
        needed: u64,
    },
    /// The level of the event is not enabled.
    Level {
        /// The number of the minimum level.
        needed: u8,
        /// The requested level.
        requested: Level,
    },
    /// The event filter of the provider excludes the event.
    Filter {
        /// The ids of the event.
        ids: Vec<u32>,
    },
    /// The known payloads of the event have no such field.
    Field {
        /// The name of the field.
        name: String,
        /// The most similar name of a field.
        nearest: Option<String>,
    },
}

impl StopEvent {
    /// Returns the reason why this event can't occur if these providers are recorded. `None` if it can, or if that is unknown.
    pub fn unreachable(&self, requested: &[Requested]) -> Option<Unreachable> {
        let is_its_own = |asked: &&Requested| asked.provider.name.eq_ignore_ascii_case(&self.provider);
        let Some(Requested { provider, .. }) = requested.iter().find(is_its_own) else {
            let names = requested.iter().map(|asked| asked.provider.name.as_str());
            return Some(Unreachable::Provider {
                nearest: nearest(&self.provider, names).map(str::to_owned),
            });
        };
        let all = known_events(&provider.name)?;
        let is_meant = |event: &&KnownEvent| self.name.as_ref().is_none_or(|name| event.name == *name);
        let events: Vec<&KnownEvent> = all.iter().filter(is_meant).collect();
        if let ([], Some(name)) = (&events[..], &self.name) {
            let nearest = nearest(name, all.iter().map(|event| event.name));
            return Some(Unreachable::Name { nearest: nearest.map(str::to_owned) });
        }
        if let Some(obstacle) = switched_off(provider, &events) {
            return Some(obstacle);
        }
        let is_left_out = |filter: &EventFilter| events.iter().all(|event| !filter.passes(event.id));
        if provider.filter.as_ref().is_some_and(is_left_out) && self.name.is_some() {
            let mut ids: Vec<u32> = events.iter().map(|event| event.id).collect();
            ids.dedup();
            return Some(Unreachable::Filter { ids });
        }
        let has = |field: &String| events.iter().any(|event| event.fields.contains(field));
        let missing = self.payload.as_ref()?.fields().into_iter().find(|field| !has(field))?;
        let known = events.iter().flat_map(|event| event.fields.iter().map(String::as_str));
        let nearest = nearest(&missing, known).map(str::to_owned);
        Some(Unreachable::Field { name: missing, nearest })
    }
}

/// Returns whether keywords or level disable all of these events.
fn switched_off(provider: &Provider, events: &[&KnownEvent]) -> Option<Unreachable> {
    let switches: Vec<EventSwitch> = events.iter().map(|event| event.switch).collect::<Option<_>>()?;
    let has_keyword =
        |switch: &&EventSwitch| switch.keywords == 0 || switch.keywords & provider.keywords != 0;
    let has_level = |switch: &&EventSwitch| {
        provider.level == Level::LogAlways || u32::from(switch.level) <= provider.level.number()
    };
    if !switches.iter().any(|switch| has_keyword(&switch)) {
        let needed = switches.iter().fold(0, |all, switch| all | switch.keywords);
        return Some(Unreachable::Keywords { needed });
    }
    let with_keyword = switches.iter().filter(has_keyword);
    if !with_keyword.clone().any(|switch| has_level(&switch)) {
        let needed = with_keyword.map(|switch| switch.level).min()?;
        return Some(Unreachable::Level { needed, requested: provider.level });
    }
    None
}

#[cfg(test)]
mod tests {
    use crate::providers::EnabledBy;

    use super::*;

    const RUNTIME: &str = "Microsoft-Windows-DotNETRuntime";

    fn requested(keywords: u64, level: Level, filter: Option<EventFilter>) -> [Requested; 2] {
        let provider = Provider { filter, ..Provider::new(RUNTIME, keywords, level) };
        [provider, Provider::new("Demo-Orders", u64::MAX, Level::Verbose)]
            .map(|provider| Requested { provider, by: EnabledBy::Providers })
    }

    fn event(provider: &str, name: Option<&str>, payload: Option<&str>) -> StopEvent {
        let payload = payload.map(|text| StopEvent::payload_filter(text).unwrap());
        StopEvent { provider: provider.to_owned(), name: name.map(str::to_owned), payload }
    }

    #[test]
    fn every_known_obstacle_is_reported() {
        let of_runtime = |name, payload, keywords, level, filter| {
            event(RUNTIME, Some(name), payload).unreachable(&requested(keywords, level, filter))
        };
        let near = |name: &str| Some(name.to_owned());
        assert_eq!(
            event("Demo-Order", None, None).unreachable(&requested(1, Level::Verbose, None)),
            Some(Unreachable::Provider { nearest: near("Demo-Orders") })
        );
        let all = u64::MAX;
        for (name, nearest) in
            [("GC/Strat", near("GC/Start")), ("gc/start", near("GC/Start")), ("Nothing", None)]
        {
            let found = of_runtime(name, None, all, Level::Verbose, None);
            assert_eq!(found, Some(Unreachable::Name { nearest }));
        }
        assert_eq!(
            of_runtime("GC/Start", None, 0x8000, Level::Verbose, None),
            Some(Unreachable::Keywords { needed: 1 })
        );
        assert_eq!(
            of_runtime("GC/SampledObjectAllocation", None, 1, Level::Verbose, None),
            Some(Unreachable::Keywords { needed: 0x220_0000 })
        );
        assert_eq!(
            of_runtime("GC/AllocationTick", None, 1, Level::Informational, None),
            Some(Unreachable::Level { needed: 5, requested: Level::Informational })
        );
        for filter in [EventFilter::only([2]), EventFilter::except([1])] {
            let found = of_runtime("GC/Start", None, 1, Level::Verbose, Some(filter));
            assert_eq!(found, Some(Unreachable::Filter { ids: vec![1] }));
        }
        assert_eq!(
            of_runtime("GC/Start", Some("Dept:2"), 1, Level::Verbose, None),
            Some(Unreachable::Field { name: "Dept".to_owned(), nearest: near("Depth") })
        );
    }

    #[test]
    fn events_that_may_occur_are_not_reported() {
        let asked = requested(1, Level::Informational, Some(EventFilter::only([1])));
        for event in [
            event(RUNTIME, Some("GC/Start"), Some("Depth:2,Reason:0")),
            event(RUNTIME, None, None),
            // The process defines these events.
            event("Demo-Orders", Some("Anything"), Some("Any:1")),
        ] {
            assert_eq!(event.unreachable(&asked), None, "{event:?}");
        }
        // Level 0 means every level, an event without keywords is sent with any keywords, and the settings that enable an event may
        // be unknown.
        for (name, keywords, level) in [
            ("GC/AllocationTick", 1, Level::LogAlways),
            ("Runtime/Start", 1, Level::Informational),
            ("AllocationSampling/AllocationSampled", 1, Level::Critical),
        ] {
            let found = event(RUNTIME, Some(name), None).unreachable(&requested(keywords, level, None));
            assert_eq!(found, None, "{name}");
        }
    }
}
