//! The requests of sessions for log messages: their level, and the argument `FilterSpecs`, by the rules of .NET's
//! `LoggingEventSource`.
//!
//! `FilterSpecs` is `Category[:Level];…`. A category matches all that begin with it, and may contain one `*`; the longest
//! match applies, and unmatched categories are not logged. Without `FilterSpecs` all categories are logged from the
//! session's level on; with a leading `UseAppFilters` so are unmatched ones. Level Verbose then means Debug: Trace needs
//! a rule.
//!
//! Rules are evaluated for each category on the server's thread, so that a session gets all messages from its start on;
//! therefore their number is limited. Unlike .NET, only the first [`MAX_RULES`] rules of a session apply.

use std::cmp::Reverse;
use std::collections::HashSet;

use runtap_diag_server::ProviderRequest;

use super::{Keywords, LogLevel};
use crate::arguments::argument;

/// The most rules of a session that apply.
const MAX_RULES: usize = 1000;

/// The request of one session.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Rules {
    otherwise: LogLevel,
    /// The first matching rule applies. No two have equal patterns.
    of_categories: Vec<(Pattern, LogLevel)>,
}

/// A category pattern in lower case, with the part after its `*`.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
struct Pattern {
    prefix: String,
    suffix: Option<String>,
}

/// The requests of all sessions.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct AllRules(Vec<Rules>);

impl AllRules {
    pub(super) fn of(requests: &[ProviderRequest]) -> Self {
        let wants_messages = |request: &&ProviderRequest| request.keywords & Keywords::MESSAGES != 0;
        let mut all: Vec<Rules> = Vec::new();
        for rules in requests.iter().filter(wants_messages).map(Rules::of) {
            if !all.contains(&rules) {
                all.push(rules);
            }
        }
        Self(all)
    }

    /// Returns the least important level that any session requests for a category.
    pub(super) fn minimum(&self, category: &str) -> LogLevel {
        let category = category.to_lowercase();
        self.0.iter().map(|rules| rules.minimum(&category)).min().unwrap_or(LogLevel::None)
    }
}

impl Rules {
    fn of(request: &ProviderRequest) -> Self {
        let default = match request.level {
            1 => LogLevel::Critical,
            2 => LogLevel::Error,
            3 => LogLevel::Warning,
            4 => LogLevel::Information,
            _ => LogLevel::Debug,
        };
        let specs = argument(&request.arguments, "FilterSpecs").unwrap_or_default();
        let mut specs = specs.split(';').filter(|spec| !spec.is_empty()).peekable();
        let otherwise = match specs.peek() {
            None => default,
            Some(first) if first.eq_ignore_ascii_case("UseAppFilters") => {
                specs.next();
                default
            }
            Some(_) => LogLevel::None,
        };
        let mut of_categories: Vec<_> =
            specs.take(MAX_RULES).filter_map(|spec| rule(spec, default)).collect();
        // Of several rules of equal length the last one applies.
        of_categories.reverse();
        of_categories.sort_by_key(|(pattern, _)| Reverse(pattern.len()));
        let mut seen = HashSet::new();
        of_categories.retain(|(pattern, _)| seen.insert(pattern.clone()));
        Self { otherwise, of_categories }
    }

    /// Returns the level for `category`, which is in lower case.
    fn minimum(&self, category: &str) -> LogLevel {
        let mut rules = self.of_categories.iter();
        rules.find(|(pattern, _)| pattern.fits(category)).map_or(self.otherwise, |(_, level)| *level)
    }
}

fn rule(spec: &str, default: LogLevel) -> Option<(Pattern, LogLevel)> {
    let (category, level) = spec.split_once(':').unwrap_or((spec, ""));
    let level = if level.is_empty() { default } else { LogLevel::parse(level)? };
    (!category.is_empty()).then(|| (Pattern::of(category), level))
}

impl Pattern {
    fn of(category: &str) -> Self {
        let category = category.to_lowercase();
        match category.split_once('*') {
            None => Self { prefix: category, suffix: None },
            Some((prefix, suffix)) => Self { prefix: prefix.to_owned(), suffix: Some(suffix.to_owned()) },
        }
    }

    /// Returns the length of the pattern as a text.
    fn len(&self) -> usize {
        self.prefix.len() + self.suffix.as_ref().map_or(0, |suffix| 1 + suffix.len())
    }

    /// Returns whether the pattern matches `category`, which is in lower case.
    fn fits(&self, category: &str) -> bool {
        let Some(rest) = category.strip_prefix(self.prefix.as_str()) else { return false };
        self.suffix.as_ref().is_none_or(|suffix| rest.ends_with(suffix.as_str()))
    }
}

#[cfg(test)]
pub(super) mod tests {
    use runtap_diag_server::{EventPipe, SessionId};

    use super::*;

    /// Returns the request that a watcher would receive.
    fn request(level: u32, arguments: &str) -> ProviderRequest {
        ProviderRequest::new(SessionId(1), 0xE, level, arguments)
    }

    fn minimum(level: u32, arguments: &str, category: &str) -> LogLevel {
        AllRules::of(&[request(level, arguments)]).minimum(category)
    }

    #[test]
    fn levels_are_those_of_dotnet() {
        let _ = EventPipe::new();
        assert_eq!(minimum(5, "", "A"), LogLevel::Debug);
        assert_eq!(minimum(0, "", "A"), LogLevel::Debug);
        assert_eq!(minimum(4, "", "A"), LogLevel::Information);
        assert_eq!(minimum(1, "", "A"), LogLevel::Critical);
        let specs = r#"FilterSpecs="Demo.Orders:Trace;Demo:Error;*.Sub:Warning;demo.quiet:2;x;Y:Nonsense""#;
        assert_eq!(minimum(5, specs, "Demo.Orders"), LogLevel::Trace);
        assert_eq!(minimum(5, specs, "Demo.Orders.Sub"), LogLevel::Trace);
        assert_eq!(minimum(5, specs, "Demo.Other"), LogLevel::Error);
        assert_eq!(minimum(5, specs, "Demo.Sub"), LogLevel::Warning);
        assert_eq!(minimum(5, specs, "Demo.Quiet"), LogLevel::Information);
        assert_eq!(minimum(3, specs, "Xyz"), LogLevel::Warning, "without a level the session's");
        assert_eq!(minimum(5, specs, "Y"), LogLevel::None);
        assert_eq!(minimum(4, "FilterSpecs=UseAppFilters;Demo:Error", "Other"), LogLevel::Information);
        assert_eq!(minimum(4, "FilterSpecs=\"UseAppFilters;Demo:Error\"", "Demo.A"), LogLevel::Error);
    }

    #[test]
    fn rules_are_limited_and_kept_once() {
        let specs: Vec<_> = (0..=MAX_RULES).map(|number| format!("c{number}.:Error")).collect();
        let many = format!("FilterSpecs=\"{}\"", specs.join(";"));
        assert_eq!(minimum(5, &many, &format!("C{}.X", MAX_RULES - 1)), LogLevel::Error);
        assert_eq!(minimum(5, &many, &format!("C{MAX_RULES}.X")), LogLevel::None, "one too many");

        let twice = "FilterSpecs=\"Demo:Error;a*b:Trace;DEMO:Warning;a*b:3;aXb:Critical\"";
        let rules = Rules::of(&request(5, twice));
        assert_eq!(rules.of_categories.len(), 3);
        assert_eq!(minimum(5, twice, "Demo"), LogLevel::Warning, "the last one");
        assert_eq!(minimum(5, twice, "AxB"), LogLevel::Critical, "the last one of this length");
        assert_eq!(minimum(5, twice, "AyB"), LogLevel::Warning);
        let all = AllRules::of(&[request(5, twice), request(5, twice), request(4, "")]);
        assert_eq!(all.0.len(), 2, "what several sessions ask for is looked through once");
    }

    #[test]
    fn the_least_important_level_of_any_session_applies() {
        let mut deaf = request(5, "");
        deaf.keywords = 1;
        let all = AllRules::of(&[deaf.clone(), request(2, ""), request(5, "FilterSpecs=A:Trace")]);
        assert_eq!(all.minimum("A"), LogLevel::Trace);
        assert_eq!(all.minimum("B"), LogLevel::Error);
        assert_eq!(AllRules::of(&[deaf]).minimum("A"), LogLevel::None, "no keyword of messages");
    }
}
