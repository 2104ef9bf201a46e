//! The decision which classes are traced.
//!
//! Owns: the patterns of HQ and of the options, and their precedence, which is that of the original agents: an inclusion
//! overrides an exclusion, and a class that matches no pattern is traced. Patterns are Java regular expressions and match
//! from the start of the name (`lookingAt`), which has slashes.

use std::sync::{Arc, Mutex};

use regex_lite::{Regex, RegexBuilder};
use runtap_bytefrog_proto::patterns::{
    MAX_COMPILED, MAX_COMPILED_EACH, MAX_NESTING, MAX_PATTERNS, without_quotes,
};
use thiserror::Error;

use crate::session::locked;

/// An error for an invalid pattern.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("invalid expression {pattern:?}: {reason}")]
pub struct FilterError {
    /// The pattern, shortened if it is long.
    pub pattern: String,
    /// The reason why the pattern is invalid.
    pub reason: String,
}

/// The patterns that decide which classes are traced.
#[derive(Debug, Clone, Default)]
pub struct Filter {
    include: Vec<Regex>,
    exclude: Vec<Regex>,
    /// Held while names are compared, because each concurrent search would need additional memory.
    searches: Arc<Mutex<()>>,
}

/// Names of classes that are never traced: the probes call these classes, or are defined in them. The methods of a virtual
/// thread start on one thread and end on another.
const NEVER: &[&str] = &[
    "java/lang/Object",
    "java/lang/RuntapProbe",
    "java/lang/Thread",
    "java/lang/VirtualThread",
    "jdk/internal/misc/Unsafe",
    "sun/misc/Unsafe",
];

impl Filter {
    /// Creates a filter from patterns.
    ///
    /// # Errors
    /// If a pattern is invalid, if it has syntax that only Java supports (look-around, back-references), or if the
    /// patterns are too many or too large when compiled.
    pub fn new<S: AsRef<str>>(
        include: impl IntoIterator<Item = S>,
        exclude: impl IntoIterator<Item = S>,
    ) -> Result<Self, FilterError> {
        let include: Vec<S> = include.into_iter().take(MAX_PATTERNS + 1).collect();
        let exclude: Vec<S> = exclude.into_iter().take(MAX_PATTERNS + 1).collect();
        let count = include.len() + exclude.len();
        if count > MAX_PATTERNS {
            let first = include.iter().chain(&exclude).next().map(AsRef::as_ref).unwrap_or_default();
            return Err(FilterError {
                pattern: shortened(first),
                reason: format!("more than {MAX_PATTERNS} expressions"),
            });
        }
        let limit = (MAX_COMPILED / count.max(1)).min(MAX_COMPILED_EACH);
        let all = |patterns: Vec<S>| {
            patterns.iter().map(|pattern| compile(pattern.as_ref(), limit)).collect::<Result<Vec<_>, _>>()
        };
        Ok(Self { include: all(include)?, exclude: all(exclude)?, searches: Arc::default() })
    }

    /// Returns whether the class with this name is traced.
    pub fn keeps(&self, name: &str) -> bool {
        let never = NEVER.iter().any(|never| match name.strip_prefix(never) {
            Some(rest) => rest.is_empty() || rest.starts_with(['$', '_']),
            None => false,
        });
        if never {
            return false;
        }
        let _only_one = locked(&self.searches);
        self.include.iter().any(|one| one.is_match(name))
            || !self.exclude.iter().any(|one| one.is_match(name))
    }
}

/// Returns the start of a pattern, for a message.
fn shortened(pattern: &str) -> String {
    const CHARACTERS: usize = 200;
    let mut result: String = pattern.chars().take(CHARACTERS).collect();
    if pattern.chars().nth(CHARACTERS).is_some() {
        result.push('…');
    }
    result
}

fn compile(pattern: &str, limit: usize) -> Result<Regex, FilterError> {
    let anchored = format!(r"\A(?:{})", without_quotes(pattern, regex_lite::escape));
    let error =
        |error: regex_lite::Error| FilterError { pattern: shortened(pattern), reason: error.to_string() };
    RegexBuilder::new(&anchored).size_limit(limit).nest_limit(MAX_NESTING).build().map_err(error)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_inclusion_wins() {
        let filter = Filter::new(["^demo/[^/]+$"], [".*"]).unwrap();
        assert!(filter.keeps("demo/Counts$Node"));
        assert!(!filter.keeps("demo/deep/Counts"));
        assert!(!filter.keeps("java/util/List"));
        assert!(Filter::default().keeps("any/Thing"));
    }

    #[test]
    fn from_the_beginning_only() {
        let filter = Filter::new(["demo"], [".*"]).unwrap();
        assert!(filter.keeps("demonstration/X"), "lookingAt does not need the end");
        assert!(!filter.keeps("my/demo"));
        let either = Filter::new(["a|b"], [".*"]).unwrap();
        assert!(either.keeps("b/X") && !either.keeps("xb/X"));
    }

    #[test]
    fn quotes() {
        assert!(Filter::new([r"\Qdemo/A$B\E.*"], [".*"]).unwrap().keeps("demo/A$B$C"));
        assert!(!Filter::new([r"\Qdemo/.\E"], [".*"]).unwrap().keeps("demo/X"));
    }

    #[test]
    fn what_probes_use_is_never_traced() {
        let filter = Filter::new([".*"], Vec::new()).unwrap();
        assert!(!filter.keeps("java/lang/RuntapProbe_7f00"));
        assert!(!filter.keeps("java/lang/Thread") && !filter.keeps("java/lang/Thread$State"));
        assert!(filter.keeps("java/lang/ThreadLocal"));
    }

    #[test]
    fn expressions_are_bounded_in_number_and_in_size() {
        let names = |count: usize| {
            (0..count).map(|number| format!("^com/example/some/package/of/average/length/{number}/Name"))
        };
        assert!(Filter::new(names(MAX_PATTERNS - 1), names(1)).is_ok());
        let error = Filter::new(names(MAX_PATTERNS), names(1)).unwrap_err();
        assert_eq!(error.reason, "more than 20000 expressions");
        // A few bytes of pattern that would compile to gigabytes.
        let nested = || "(?:(?:(?:a{0,60}){0,60}){0,60}){0,60}".to_owned();
        assert!(Filter::new([nested()], Vec::new()).is_err());
        // Each pattern is small enough by itself.
        let large = || "(?:abcdefghij){1,150}".to_owned();
        assert!(Filter::new([large()], Vec::new()).is_ok());
        assert!(Filter::new(std::iter::repeat_with(large).take(4000), Vec::new()).is_err());
        for count in [300, 3000, MAX_PATTERNS] {
            assert!(Filter::new(vec!["(a{1,50}){1,50}"; count], Vec::new()).is_err(), "{count}");
        }
        let error = Filter::new(["(".repeat(5000)], Vec::new()).unwrap_err();
        assert_eq!(error.pattern.chars().count(), 201);
    }

    #[test]
    fn what_only_java_has_is_refused() {
        let error = Filter::new(["^(?!java/).*"], Vec::new()).unwrap_err();
        assert_eq!(error.pattern, "^(?!java/).*");
    }
}
