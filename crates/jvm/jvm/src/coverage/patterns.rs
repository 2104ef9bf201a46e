//! Which classes are meant: inclusions and exclusions, as agents have them in their configuration.
//!
//! Owns: [`Patterns`]. A pattern is a regular expression that is matched from the beginning of the internal name of a class
//! (`demo/Program$Inner`) and need not reach its end, as Java's `lookingAt` does. A class that an inclusion matches is kept;
//! else, if there are exclusions, one that any of them matches is left out; without exclusions, everything else is left out:
//! inclusions alone are all that is wanted, as `jvm run` and `jvm hq` tell agents.
//!
//! The expressions are those of `regex-lite`: what Java has besides (looking around, references to groups, `\p{…}`) is an
//! error, not another meaning.

use regex_lite::{Regex, RegexBuilder};
use runtap_bytefrog_proto::patterns::{MAX_COMPILED, MAX_COMPILED_EACH, MAX_NESTING, without_quotes};
use thiserror::Error;

pub use runtap_bytefrog_proto::patterns::MAX_PATTERNS;

/// The least that is tried for a compiled expression, in bytes.
const SMALLEST: usize = 512;
/// The work of looking at one expression, in the unit of [`Patterns::work`].
const LOOK: u64 = 64;

/// Inclusions and exclusions.
#[derive(Debug, Clone, Default)]
pub struct Patterns {
    inclusions: Vec<Pattern>,
    exclusions: Vec<Pattern>,
}

#[derive(Debug, Clone)]
struct Pattern {
    /// Text that each name begins with that it matches.
    prefix: String,
    regex: Regex,
    /// Bytes that are enough for the compiled expression: at most twice as many as it has.
    size: usize,
}

impl Pattern {
    fn matches(&self, class: &str) -> bool {
        class.starts_with(&self.prefix) && self.regex.is_match(class)
    }
}

/// A pattern that can't be used.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("the pattern {pattern:?} can't be used: {why}")]
pub struct PatternError {
    /// The pattern.
    pub pattern: String,
    /// What is wrong with it.
    pub why: String,
}

impl Patterns {
    /// Patterns for names of classes in their internal form.
    ///
    /// # Errors
    /// For the first one that is no regular expression, that has what only Java's have, or that is too large when it is
    /// compiled; for more than [`MAX_PATTERNS`].
    pub fn new<S: AsRef<str>>(inclusions: &[S], exclusions: &[S]) -> Result<Self, PatternError> {
        Self::one_of(1, inclusions, exclusions)
    }

    /// Patterns that share the bounds with those of other runs: `runs` in all.
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

    /// The work of [`Self::keep`] for a class at most: bytes of compiled expressions, once for each byte of the name.
    pub(crate) fn work(&self, class: &str) -> u64 {
        let length = class.len() as u64 + 1;
        let each = self.inclusions.iter().chain(&self.exclusions).map(|pattern| {
            let search = if class.starts_with(&pattern.prefix) { pattern.size as u64 } else { 0 };
            search.saturating_mul(length).saturating_add(LOOK)
        });
        each.fold(0, u64::saturating_add)
    }

    /// Whether the class of this internal name is kept.
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
        // By itself first: `a)(b` is none, though it would be one in a group.
        let plain = without_quotes(pattern, regex_lite::escape);
        build(&plain, limit).map_err(error)?;
        let anchored = format!(r"\A(?:{plain})");
        let mut size = SMALLEST.min(limit);
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

/// The text that an expression begins with; empty if it has choices.
fn prefix(pattern: &str) -> &str {
    if pattern.contains('|') {
        return "";
    }
    let text = pattern.strip_prefix('^').unwrap_or(pattern);
    let is_plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '/' | '_');
    let end = text.find(|c| !is_plain(c)).unwrap_or(text.len());
    // What may be repeated may be missing.
    let is_repeated = text.get(end..).is_some_and(|rest| rest.starts_with(['*', '?', '{', '+']));
    text.get(..end - usize::from(is_repeated && end > 0)).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_inclusion_wins_and_alone_it_is_all() {
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
        // Each of them is small enough by itself.
        assert!(Patterns::new(&["(?:abcdefghij){1,150}"], &[]).is_ok());
        assert!(Patterns::new(&vec!["(?:abcdefghij){1,150}"; MAX_PATTERNS], &[]).is_err());
        for count in [300, 3000, MAX_PATTERNS] {
            assert!(Patterns::new(&vec!["(a{1,50}){1,50}"; count], &[]).is_err(), "{count}");
        }
        // The patterns of all runs of a recording share the bounds.
        let runs = ["(a{1,50}){1,50}"; 20];
        assert!(Patterns::one_of(1, &runs, &[]).is_ok() && Patterns::one_of(1000, &runs, &[]).is_err());
    }

    #[test]
    fn names_begin_with_the_text_of_a_pattern() {
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
        let (other, ours) = (small.work("org/A"), small.work("com/A"));
        assert!(other < ours && ours < 20_000, "{other} {ours}");
        let large = Patterns::new(&["(?:.?){20000}z"], &[".*"]).unwrap();
        assert!(large.work("com/A") > 1_000_000);
    }

    #[test]
    fn what_is_no_pattern_is_named() {
        let error = Patterns::new(&["a)(b"], &[]).unwrap_err();
        assert_eq!(error.pattern, "a)(b");
        assert!(Patterns::new(&[], &["(?=a)"]).is_err(), "only Java has it");
    }
}
