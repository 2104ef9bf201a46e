//! Limits and quoting of regular expressions for class names, shared by all code that compiles them.
//!
//! This module compiles nothing itself.

/// The largest number of expressions, inclusions and exclusions together.
pub const MAX_PATTERNS: usize = 20_000;
/// The largest size of all compiled expressions together, in bytes. A search takes up to three times as much in
/// addition.
pub const MAX_COMPILED: usize = 40 << 20;
/// The largest size of one compiled expression, in bytes.
pub const MAX_COMPILED_EACH: usize = 4 << 20;
/// The deepest nesting of groups.
pub const MAX_NESTING: u32 = 50;

/// Replaces quoted parts (`\Q…\E`, as Java's `Pattern.quote` writes them) by their escaped text.
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

/// Splits at the first quoted part: the text before `\Q`, the quoted text, and the text after `\E`. `\\Q` is not a
/// quote.
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
