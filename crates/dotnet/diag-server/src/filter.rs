//! Decides whether a session records an event, as measured on .NET 8 and 10.

use runtap_diag_proto::{EventFilter, Provider};
use runtap_nettrace::Metadata;

/// Returns whether a session with these providers records the event. The first entry of a provider applies, names are
/// case-sensitive, an event without keywords always passes, and level 0 passes all events.
pub(crate) fn passes(providers: &[Provider], event: &Metadata) -> bool {
    let Some(provider) = providers.iter().find(|provider| provider.name == event.provider) else {
        return false;
    };
    let keyword = event.keywords == 0 || event.keywords & provider.keywords != 0;
    let level = provider.level.number() == 0 || event.level <= provider.level.number();
    let filter = |filter: &EventFilter| filter.enable == filter.ids.contains(&event.event_id);
    keyword && level && provider.filter.as_ref().is_none_or(filter)
}

#[cfg(test)]
pub(crate) mod tests {
    use runtap_diag_proto::Level;

    use super::*;

    /// Returns event 7 of the provider `P`.
    pub(crate) fn event(keywords: u64, level: u32) -> Metadata {
        let mut event = Metadata::new("P", 7, "E");
        (event.keywords, event.level) = (keywords, level);
        event
    }

    #[test]
    fn keywords_and_levels_select_events() {
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
}
