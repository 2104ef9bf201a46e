//! Which log messages sessions ask for: their level, and the argument `FilterSpecs`, by the rules of .NET's
//! `LoggingEventSource`.
//!
//! `FilterSpecs` is `Category[:Level];…`, where a category stands for all that begin with it and may have one `*`, the longest
//! one that fits counts, and what fits none is not logged. Without it all categories are logged, from the session's level on;
//! `UseAppFilters` in front says the same of categories that fit none. At level Verbose that is Debug: Trace needs a rule.

use runtap_diag_server::ProviderRequest;

use super::{Keywords, LogLevel};
use crate::arguments::argument;

/// What one session asks for.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Rules {
    otherwise: LogLevel,
    of_categories: Vec<(String, LogLevel)>,
}

/// What all sessions ask for.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct AllRules(Vec<Rules>);

impl AllRules {
    pub(super) fn of(requests: &[ProviderRequest]) -> Self {
        let wants_messages = |request: &&ProviderRequest| request.keywords & Keywords::MESSAGES != 0;
        Self(requests.iter().filter(wants_messages).map(Rules::of).collect())
    }

    /// The least important level of a category that somebody wants.
    pub(super) fn minimum(&self, category: &str) -> LogLevel {
        self.0.iter().map(|rules| rules.minimum(category)).min().unwrap_or(LogLevel::None)
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
        Self { otherwise, of_categories: specs.filter_map(|spec| rule(spec, default)).collect() }
    }

    fn minimum(&self, category: &str) -> LogLevel {
        let fitting = self.of_categories.iter().filter(|(pattern, _)| fits(pattern, category));
        // Of several equally long ones the last.
        fitting.max_by_key(|(pattern, _)| pattern.len()).map_or(self.otherwise, |(_, level)| *level)
    }
}

fn rule(spec: &str, default: LogLevel) -> Option<(String, LogLevel)> {
    let (category, level) = spec.split_once(':').unwrap_or((spec, ""));
    let level = if level.is_empty() { default } else { LogLevel::parse(level)? };
    (!category.is_empty()).then(|| (category.to_lowercase(), level))
}

/// `pattern` is in lower case.
fn fits(pattern: &str, category: &str) -> bool {
    let category = category.to_lowercase();
    match pattern.split_once('*') {
        None => category.starts_with(pattern),
        Some((prefix, suffix)) => category.strip_prefix(prefix).is_some_and(|rest| rest.ends_with(suffix)),
    }
}

#[cfg(test)]
pub(super) mod tests {
    use runtap_diag_server::{EventPipe, SessionId};

    use super::*;

    /// What a watcher would be told.
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
    fn the_most_that_any_session_wants_counts() {
        let mut deaf = request(5, "");
        deaf.keywords = 1;
        let all = AllRules::of(&[deaf.clone(), request(2, ""), request(5, "FilterSpecs=A:Trace")]);
        assert_eq!(all.minimum("A"), LogLevel::Trace);
        assert_eq!(all.minimum("B"), LogLevel::Error);
        assert_eq!(AllRules::of(&[deaf]).minimum("A"), LogLevel::None, "no keyword of messages");
    }
}
