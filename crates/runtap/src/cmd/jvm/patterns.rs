//! Expressions of the command line, before anything is started because of them.
//!
//! Owns: saying what is wrong with one, and where. Agents compile them again: those of runtap as it is done here, the original
//! ones with Java, which knows more.

use runtap_jvm::coverage::{MAX_PATTERNS, Patterns};
use runtap_text::units::Things;

use crate::cli::JvmTracing;
use crate::exit::usage;

/// Who compiles the expressions.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum For {
    /// Our own agent.
    #[cfg_attr(not(target_os = "linux"), allow(dead_code, reason = "it is for Linux"))]
    Ours,
    /// Any agent that dials: what only Java has may be understood.
    Any,
}

/// What only Java's expressions have: look-around, atomic groups, references, properties of characters, possessive
/// quantifiers.
const JAVA_ONLY: [&str; 17] = [
    "(?=", "(?!", "(?<=", "(?<!", "(?>", "\\p", "\\P", "*+", "++", "?+", "}+", "&&", "\\1", "\\2", "\\3",
    "\\k", "\\G",
];

/// Checks all of them.
///
/// # Errors
/// The first one that is none.
pub(super) fn check(tracing: &JvmTracing, agents: For) -> anyhow::Result<()> {
    let include = tracing.include.iter().map(|pattern| ("--include", pattern));
    let exclude = tracing.exclude.iter().map(|pattern| ("--exclude", pattern));
    if tracing.include.len() + tracing.exclude.len() > MAX_PATTERNS {
        return Err(usage(format!("--include, --exclude: more than {MAX_PATTERNS} expressions")));
    }
    if agents == For::Ours
        && let Err(error) = Patterns::new(&tracing.include, &tracing.exclude)
        // What is wrong with one of them is said better below.
        && wrong(&error.pattern).is_none()
        && !error.pattern.contains("\\Q")
    {
        return Err(usage(format!(
            "--include, --exclude: all {} together are too large: '{}': {}",
            Things((tracing.include.len() + tracing.exclude.len()) as u64, "expression"),
            error.pattern,
            error.why
        )));
    }
    for (option, pattern) in include.chain(exclude) {
        if agents == For::Any && JAVA_ONLY.iter().any(|only| pattern.contains(only)) {
            continue;
        }
        if let Some((why, at)) = wrong(pattern) {
            return Err(usage(format!("{option} '{pattern}': {why} (character {at})")));
        }
    }
    Ok(())
}

/// Names of classes that the boot loader loads begin so.
#[cfg(target_os = "linux")]
const OF_THE_JDK: [&str; 5] = ["java", "javax", "jdk", "sun", "com/sun"];

/// The first expression that asks for classes of the JDK by their names. One that only matches them among others, such as
/// `.*`, asks for none.
#[cfg(target_os = "linux")]
pub(super) fn for_the_jdk(include: &[String]) -> Option<&str> {
    let asks = |pattern: &str| {
        pattern.split('|').any(|choice| {
            let name = choice.trim_start_matches(['^', '(', '?', ':']);
            let mut rest = OF_THE_JDK.iter().filter_map(|package| name.strip_prefix(package));
            rest.any(|rest| rest.is_empty() || rest.starts_with(['/', ')']))
        })
    };
    include.iter().map(String::as_str).find(|pattern| asks(pattern))
}

/// What is wrong with an expression, and the number of the first character that can't be understood, from 1 on.
fn wrong(pattern: &str) -> Option<(String, usize)> {
    let plain = without_quotes(pattern);
    let compile = |text: &str| Patterns::new(&[text], &[]);
    let why = compile(&plain).err()?.why;
    // The longest beginning that is an expression ends before it.
    let ends = plain.char_indices().map(|(at, _)| at).rev();
    // Each beginning is compiled: of a long expression the last few must do.
    let good = ends.take(1000).filter_map(|end| plain.get(..end)).find(|text| compile(text).is_ok());
    Some((why, good.map_or(0, |text| text.chars().count()) + 1))
}

/// The expression with an `x` for each character of what is quoted (`\Q…\E`), and of the marks: as long, and as good.
fn without_quotes(pattern: &str) -> String {
    let mut result = String::with_capacity(pattern.len());
    let mut rest = pattern;
    while let Some(at) = rest.find('\\') {
        let (before, from) = rest.split_at(at);
        result.push_str(before);
        // With the character behind it: a backslash before a backslash quotes nothing.
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
    fn where_it_is_wrong() {
        let at = |pattern| wrong(pattern).map(|(_, at)| at);
        for (pattern, place) in
            [("(", 1), ("é(", 2), ("^app/(a|(b)", 6), ("a)b", 2), ("x[z-a]", 2), ("(?=a)", 1)]
        {
            assert_eq!(at(pattern), Some(place), "{pattern}");
        }
        for good in ["", "^com/example/", r"\Qa(\E.*", r"\Q(", r"a\\", "^(java|sun)/"] {
            assert_eq!(at(good), None, "{good}");
        }
        assert_eq!(at(r"\\Q("), Some(4), "a backslash, and no quote");
        assert!(wrong("(").unwrap().0.contains("group"));
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn classes_of_the_jdk_are_asked_for_by_name() {
        for jdk in
            ["^java/util/", "jdk/internal/", "^(java|sun)/", "^app/|^java/lang/String$", "^(?:com/sun/)"]
        {
            assert_eq!(for_the_jdk(&["^x/".to_owned(), jdk.to_owned()]), Some(jdk));
        }
        for other in ["", ".*", "^com/example/", "^javax0/", "^app/java/", "^sunny/"] {
            assert_eq!(for_the_jdk(&[other.to_owned()]), None, "{other}");
        }
    }
}
