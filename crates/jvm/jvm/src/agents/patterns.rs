//! Validation of class patterns before a program is started.
//!
//! Owns: the positions of errors. Agents compile the patterns again: runtap's agent as here, the original agents with
//! Java, which supports more syntax.

use thiserror::Error;

use crate::coverage::{MAX_PATTERNS, Patterns};

/// The agents that will compile the patterns.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TargetAgents {
    /// Runtap's agent.
    Runtap,
    /// Any agent that connects: syntax that only Java supports may be valid.
    Any,
}

/// Whether a pattern includes or excludes classes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PatternRole {
    /// The pattern includes classes.
    Include,
    /// The pattern excludes classes.
    Exclude,
}

/// The reason why agents cannot use patterns.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum PatternsError {
    /// There are more than [`MAX_PATTERNS`].
    #[error("more than {MAX_PATTERNS} expressions")]
    TooMany,
    /// Each pattern is valid, but together they are too large when compiled.
    #[error("all expressions together are too large: '{pattern}': {why}")]
    TooLarge {
        /// The number of patterns.
        count: usize,
        /// The first pattern for which there is no capacity.
        pattern: String,
        /// The reason.
        why: String,
    },
    /// A pattern is invalid.
    #[error("'{pattern}': {why} (character {at})")]
    Invalid {
        /// The role of the pattern.
        role: PatternRole,
        /// The pattern.
        pattern: String,
        /// The reason.
        why: String,
        /// The position of the first invalid character, counted from 1.
        at: usize,
    },
}

/// Syntax that only Java supports: look-around, atomic groups, references, character properties and possessive quantifiers.
const JAVA_ONLY: [&str; 17] = [
    "(?=", "(?!", "(?<=", "(?<!", "(?>", "\\p", "\\P", "*+", "++", "?+", "}+", "&&", "\\1", "\\2", "\\3",
    "\\k", "\\G",
];

/// Checks the patterns of the classes to trace.
///
/// # Errors
/// Fails at the first invalid pattern.
pub fn check_patterns(
    include: &[String],
    exclude: &[String],
    agents: TargetAgents,
) -> Result<(), PatternsError> {
    let count = include.len() + exclude.len();
    if count > MAX_PATTERNS {
        return Err(PatternsError::TooMany);
    }
    if agents == TargetAgents::Runtap
        && let Err(error) = Patterns::new(include, exclude)
        // The check of single patterns below has better messages.
        && find_error(&error.pattern).is_none()
        && !error.pattern.contains("\\Q")
    {
        return Err(PatternsError::TooLarge { count, pattern: error.pattern, why: error.why });
    }
    let include = include.iter().map(|pattern| (PatternRole::Include, pattern));
    let exclude = exclude.iter().map(|pattern| (PatternRole::Exclude, pattern));
    for (role, pattern) in include.chain(exclude) {
        if agents == TargetAgents::Any && JAVA_ONLY.iter().any(|only| pattern.contains(only)) {
            continue;
        }
        if let Some((why, at)) = find_error(pattern) {
            return Err(PatternsError::Invalid { role, pattern: pattern.clone(), why, at });
        }
    }
    Ok(())
}

/// The first path elements of classes that the boot loader loads.
const JDK_PACKAGES: [&str; 5] = ["java", "javax", "jdk", "sun", "com/sun"];

/// Returns whether a pattern names classes of the JDK. A pattern such as `.*`, which matches them among others, does not
/// count.
pub fn names_jdk_class(include: &[String]) -> bool {
    let is_jdk_class = |choice: &str| {
        let name = choice.trim_start_matches(['^', '(', '?', ':']);
        let mut rest = JDK_PACKAGES.iter().filter_map(|package| name.strip_prefix(package));
        rest.any(|rest| rest.is_empty() || rest.starts_with(['/', ')']))
    };
    include.iter().any(|pattern| pattern.split('|').any(is_jdk_class))
}

/// Returns an error message for an invalid pattern, with the position of the first invalid character, counted from 1.
fn find_error(pattern: &str) -> Option<(String, usize)> {
    let plain = without_quotes(pattern);
    let compile = |text: &str| Patterns::new(&[text], &[]);
    let why = compile(&plain).err()?.why;
    // The longest valid prefix ends before the error.
    let ends = plain.char_indices().map(|(at, _)| at).rev();
    // Every prefix is compiled, so check only the last ones of a long pattern.
    let valid_prefix = ends.take(1000).filter_map(|end| plain.get(..end)).find(|text| compile(text).is_ok());
    Some((why, valid_prefix.map_or(0, |text| text.chars().count()) + 1))
}

/// Replaces each character of quoted text (`\Q…\E`), and of the quotes, with `x`: the result has the same length and is valid
/// if the pattern is.
fn without_quotes(pattern: &str) -> String {
    let mut result = String::with_capacity(pattern.len());
    let mut rest = pattern;
    while let Some(at) = rest.find('\\') {
        let (before, from) = rest.split_at(at);
        result.push_str(before);
        // Include the character after the backslash, so that a double backslash does not start a quote.
        let end = if from.starts_with("\\Q") {
            from.find("\\E").map_or(from.len(), |end| end + 2)
        } else {
            from.char_indices().nth(2).map_or(from.len(), |(end, _)| end)
        };
        let (mark, after) = from.split_at(end);
        if from.starts_with("\\Q") {
            result.extend(mark.chars().map(|_| 'x'));
        } else {
            result.push_str(mark);
        }
        rest = after;
    }
    result.push_str(rest);
    result
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_position_of_an_error_is_found() {
        let at = |pattern| find_error(pattern).map(|(_, at)| at);
        for (pattern, place) in
            [("(", 1), ("é(", 2), ("^app/(a|(b)", 6), ("a)b", 2), ("x[z-a]", 2), ("(?=a)", 1)]
        {
            assert_eq!(at(pattern), Some(place), "{pattern}");
        }
        for valid in ["", "^com/example/", r"\Qa(\E.*", r"\Q(", r"a\\", "^(java|sun)/"] {
            assert_eq!(at(valid), None, "{valid}");
        }
        assert_eq!(at(r"\\Q("), Some(4), "a backslash, and no quote");
        assert!(find_error("(").unwrap().0.contains("group"));
    }

    #[test]
    fn patterns_that_name_classes_of_the_jdk_are_found() {
        for jdk in
            ["^java/util/", "jdk/internal/", "^(java|sun)/", "^app/|^java/lang/String$", "^(?:com/sun/)"]
        {
            assert!(names_jdk_class(&["^x/".to_owned(), jdk.to_owned()]), "{jdk}");
        }
        for other in ["", ".*", "^com/example/", "^javax0/", "^app/java/", "^sunny/"] {
            assert!(!names_jdk_class(&[other.to_owned()]), "{other}");
        }
    }
}
