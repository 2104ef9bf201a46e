//! Expressions for names of classes, as a configuration has them: what all that compile them have in common.
//!
//! Owns: their bounds, and Java's quotes. Refuses to: compile one.

/// The most expressions, inclusions and exclusions together.
pub const MAX_PATTERNS: usize = 20_000;
/// Bytes of all compiled expressions together. A search takes up to three times as much again.
pub const MAX_COMPILED: usize = 40 << 20;
/// Bytes of a single compiled expression.
pub const MAX_COMPILED_EACH: usize = 4 << 20;
/// Groups within groups.
pub const MAX_NESTING: u32 = 50;

/// The expression with each character of what is quoted (`\Q…\E`, which `Pattern.quote` of Java makes) escaped by itself.
pub fn without_quotes(pattern: &str, escape: impl Fn(&str) -> String) -> String {
    let mut result = String::with_capacity(pattern.len());
    let mut rest = pattern;
    loop {
        let Some((before, quoted, after)) = find_quote(rest) else {
            result.push_str(rest);
            return result;
        };
        result.push_str(before);
        result.push_str(&escape(quoted));
        rest = after;
    }
}

/// What is before `\Q`, what is quoted, and what is behind `\E`. A `\\` before the Q quotes nothing.
fn find_quote(text: &str) -> Option<(&str, &str, &str)> {
    let mut escaped = false;
    for (at, c) in text.char_indices() {
        if escaped && c == 'Q' {
            let before = text.get(..at - 1)?;
            let inside = text.get(at + 1..)?;
            let (quoted, after) = inside.split_once(r"\E").unwrap_or((inside, ""));
            return Some((before, quoted, after));
        }
        escaped = c == '\\' && !escaped;
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quotes_are_escaped() {
        let escape = |text: &str| format!("<{text}>");
        assert_eq!(without_quotes(r"\\Qx", escape), r"\\Qx");
        assert_eq!(without_quotes(r"a\Q.\E\Q+", escape), "a<.><+>");
    }
}
