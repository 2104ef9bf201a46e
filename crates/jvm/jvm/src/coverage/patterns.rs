//! Filters of classes: inclusions and exclusions, as in the configuration of agents.
//!
//! A pattern is a regular expression that is matched from the start of the internal name of a class
//! (`demo/Program$Inner`) and need not reach its end, like Java's `lookingAt`. A class that matches an inclusion is
//! kept. Otherwise, if there are exclusions, a class that matches one of them is omitted; without exclusions, all
//! other classes are omitted: inclusions alone select exactly what they match, as `jvm run` and `jvm hq` configure
//! agents.
//!
//! The expressions are those of `regex-lite`: additional syntax of Java (look-around, back-references, `\p{…}`) is
//! an error, never a different meaning.

use regex_lite::{Regex, RegexBuilder};
use runtap_bytefrog_proto::patterns::{MAX_COMPILED, MAX_COMPILED_EACH, MAX_NESTING, without_quotes};
use thiserror::Error;

pub use runtap_bytefrog_proto::patterns::MAX_PATTERNS;

/// The first size limit that is tried for a compiled expression, in bytes.
const MIN_COMPILED: usize = 512;
/// The fixed work of matching one expression, in the unit of [`Patterns::work`].
const BASE_WORK: u64 = 64;

/// A filter of classes by inclusions and exclusions.
#[derive(Debug, Clone, Default)]
pub struct Patterns {
    inclusions: Vec<Pattern>,
    exclusions: Vec<Pattern>,
}

#[derive(Debug, Clone)]
struct Pattern {
    /// A text with which every matching name starts.
    prefix: String,
    regex: Regex,
    /// A sufficient size limit for the compiled expression, in bytes: at most twice its size.
    size: usize,
}

impl Pattern {
    fn matches(&self, class: &str) -> bool {
        class.starts_with(&self.prefix) && self.regex.is_match(class)
    }
}

/// An invalid pattern.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("invalid pattern {pattern:?}: {why}")]
pub struct PatternError {
    /// The pattern.
    pub pattern: String,
    /// The reason.
    pub why: String,
}

impl Patterns {
    /// Compiles patterns for internal names of classes.
    ///
    /// # Errors
    /// Fails for the first pattern that is not a regular expression, uses syntax that only Java has, or is too
    /// large when compiled, and for more than [`MAX_PATTERNS`] patterns.
    pub fn new<S: AsRef<str>>(inclusions: &[S], exclusions: &[S]) -> Result<Self, PatternError> {
        Self::one_of(1, inclusions, exclusions)
    }

    /// Compiles patterns that share the limits with those of other runs; `runs` is the number of all runs.
    pub(crate) fn one_of<S: AsRef<str>>(
        runs: usize,
        inclusions: &[S],
        exclusions: &[S],
    ) -> Result<Self, PatternError> {
        let count = inclusions.len() + exclusions.len();
        if count > MAX_PATTERNS {
            let pattern = inclusions.iter().chain(exclusions).next().map(AsRef::as_ref).unwrap_or_default();
            let why = format!("there are more than {MAX_PATTERNS} patterns");
            return Err(PatternError { pattern: pattern.to_owned(), why });
        }
        let limit = (MAX_COMPILED / count.max(1) / runs.max(1)).min(MAX_COMPILED_EACH);
        Ok(Self { inclusions: compile(inclusions, limit)?, exclusions: compile(exclusions, limit)? })
    }

    /// Returns an upper bound on the work of [`Self::keep`] for a class: the size of the compiled expressions times
    /// the length of the name.
    pub(crate) fn work(&self, class: &str) -> u64 {
        let length = class.len() as u64 + 1;
        let each = self.inclusions.iter().chain(&self.exclusions).map(|pattern| {
            let search = if class.starts_with(&pattern.prefix) { pattern.size as u64 } else { 0 };
            search.saturating_mul(length).saturating_add(BASE_WORK)
        });
        each.fold(0, u64::saturating_add)
    }

    /// Returns whether the class with this internal name is kept.
    pub fn keep(&self, class: &str) -> bool {
        let any = |patterns: &[Pattern]| patterns.iter().any(|pattern| pattern.matches(class));
        let is_only = self.exclusions.is_empty() && !self.inclusions.is_empty();
        any(&self.inclusions) || !(is_only || any(&self.exclusions))
    }
}

fn compile<S: AsRef<str>>(patterns: &[S], limit: usize) -> Result<Vec<Pattern>, PatternError> {
    let compile = |pattern: &S| {
        let pattern = pattern.as_ref();
        let error =
            |error: regex_lite::Error| PatternError { pattern: pattern.to_owned(), why: error.to_string() };
        let build = |pattern: &str, limit: usize| {
            RegexBuilder::new(pattern).size_limit(limit).nest_limit(MAX_NESTING).build()
        };
        // Compile it alone first: `a)(b` is invalid, although it would be valid inside of a group.
        let plain = without_quotes(pattern, regex_lite::escape);
        build(&plain, limit).map_err(error)?;
        let anchored = format!(r"\A(?:{plain})");
        let mut size = MIN_COMPILED.min(limit);
        loop {
            match build(&anchored, size) {
                Ok(regex) => return Ok(Pattern { prefix: prefix(&plain).to_owned(), regex, size }),
                Err(_) if size < limit => size = size.saturating_mul(2).min(limit),
                Err(too_large) => return Err(error(too_large)),
            }
        }
    };
    patterns.iter().map(compile).collect()
}

/// Returns the literal text with which an expression starts; empty if it has alternatives.
fn prefix(pattern: &str) -> &str {
    if pattern.contains('|') {
        return "";
    }
    let text = pattern.strip_prefix('^').unwrap_or(pattern);
    let is_plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '/' | '_');
    let end = text.find(|c| !is_plain(c)).unwrap_or(text.len());
    // A repeated character may be absent.
    let is_repeated = text.get(end..).is_some_and(|rest| rest.starts_with(['*', '?', '{', '+']));
    text.get(..end - usize::from(is_repeated && end > 0)).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_inclusion_takes_precedence_and_alone_selects_all() {
        let none = Patterns::default();
        assert!(none.keep("a/B"));
        let of = |inclusions: &[&str], exclusions: &[&str]| Patterns::new(inclusions, exclusions).unwrap();
        let usual = of(&["^demo/[^/]+$"], &[".*"]);
        assert!(
            usual.keep("demo/Program$Inner") && !usual.keep("demo/inner/Program") && !usual.keep("x/demo/P")
        );
        let inclusions = of(&["demo/"], &[]);
        assert!(inclusions.keep("demo/Class") && !inclusions.keep("other/Class"));
        let quoted = of(&[r"\Qdemo/A$B\E.*"], &[".*"]);
        assert!(quoted.keep("demo/A$B$C") && !quoted.keep("demo/AB"));
        let exclusions = of(&[], &["org/|com/"]);
        assert!(!exclusions.keep("com/A") && exclusions.keep("x/com/A"));
    }

    #[test]
    fn patterns_are_bounded_in_number_and_in_size() {
        let many = vec!["^com/example/Name"; MAX_PATTERNS];
        assert!(Patterns::new(&many, &[]).is_ok());
        assert!(Patterns::new(&many, &["x"]).unwrap_err().why.contains("more than 20000"));
        assert!(Patterns::new(&["(?:(?:(?:a{0,60}){0,60}){0,60}){0,60}"], &[]).is_err());
        // Each pattern is small enough alone.
        assert!(Patterns::new(&["(?:abcdefghij){1,150}"], &[]).is_ok());
        assert!(Patterns::new(&vec!["(?:abcdefghij){1,150}"; MAX_PATTERNS], &[]).is_err());
        for count in [300, 3000, MAX_PATTERNS] {
            assert!(Patterns::new(&vec!["(a{1,50}){1,50}"; count], &[]).is_err(), "{count}");
        }
        // The patterns of all runs of a recording share the limits.
        let runs = ["(a{1,50}){1,50}"; 20];
        assert!(Patterns::one_of(1, &runs, &[]).is_ok() && Patterns::one_of(1000, &runs, &[]).is_err());
    }

    #[test]
    fn names_start_with_the_prefix_of_a_pattern() {
        for (pattern, expected) in [
            ("^com/example/.*", "com/example/"),
            ("demo/A", "demo/A"),
            ("ab*", "a"),
            ("ab{0,1}", "a"),
            ("ab+c", "a"),
            ("a|b", ""),
            ("(?i)a", ""),
            (".*", ""),
            ("*", ""),
        ] {
            assert_eq!(prefix(pattern), expected, "{pattern}");
        }
    }

    #[test]
    fn work_is_that_of_the_patterns_that_may_match() {
        let small = Patterns::new(&["^com/"], &[".*"]).unwrap();
        let (other, matching) = (small.work("org/A"), small.work("com/A"));
        assert!(other < matching && matching < 20_000, "{other} {matching}");
        let large = Patterns::new(&["(?:.?){20000}z"], &[".*"]).unwrap();
        assert!(large.work("com/A") > 1_000_000);
    }

    #[test]
    fn an_error_names_the_invalid_pattern() {
        let error = Patterns::new(&["a)(b"], &[]).unwrap_err();
        assert_eq!(error.pattern, "a)(b");
        assert!(Patterns::new(&[], &["(?=a)"]).is_err(), "only Java has it");
    }
}
