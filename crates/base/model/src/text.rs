//! Safe display of untrusted text.
//!
//! Names come from the traced program, which may contain any characters. This module contains what is independent of
//! the output format.

use std::fmt;

/// Returns whether a character has an effect when displayed, or is invisible: control characters, line and paragraph
/// separators, bidirectional formatting, and characters without a shape. Variation selectors (U+FE00 to U+FE0F, common
/// in emoji) are text.
pub fn acts_unseen(c: char) -> bool {
    // Nearly all text is ASCII.
    if c.is_ascii() {
        return c.is_ascii_control();
    }
    matches!(
        c,
        '\u{80}'..='\u{9f}'
            | '\u{ad}'
            | '\u{34f}'
            | '\u{61c}'
            | '\u{115f}'..='\u{1160}'
            | '\u{17b4}'..='\u{17b5}'
            | '\u{180b}'..='\u{180f}'
            | '\u{200b}'..='\u{200f}'
            | '\u{2028}'..='\u{202e}'
            | '\u{2060}'..='\u{206f}'
            | '\u{3164}'
            | '\u{feff}'
            | '\u{ffa0}'
            | '\u{fff0}'..='\u{fffb}'
            | '\u{1bca0}'..='\u{1bca3}'
            | '\u{1d173}'..='\u{1d17a}'
            | '\u{e0000}'..='\u{e0fff}'
    )
}

/// Zero-width joiner, which combines emoji to families, professions and flags.
const JOINER: char = '\u{200d}';

/// Returns whether a character is an emoji or symbol that [`JOINER`] may combine.
fn is_pictograph(c: char) -> bool {
    matches!(c, '\u{2190}'..='\u{21ff}' | '\u{2600}'..='\u{27bf}' | '\u{2b00}'..='\u{2bff}' | '\u{1f000}'..='\u{1faff}')
}

/// Returns whether a character only modifies the previous one: a variation selector or a skin tone.
fn is_modifier(c: char) -> bool {
    matches!(c, '\u{fe00}'..='\u{fe0f}' | '\u{1f3fb}'..='\u{1f3ff}')
}

/// Workflow commands in GitHub's log: `::error::text`, `::set-output name=x::text`.
const COMMANDS: [&str; 16] = [
    "add-mask",
    "add-matcher",
    "add-path",
    "debug",
    "echo",
    "endgroup",
    "error",
    "group",
    "notice",
    "remove-matcher",
    "save-state",
    "set-env",
    "set-output",
    "stop-commands",
    "warning",
    "add-annotation",
];

/// Returns whether a build server may interpret a text as a command: GitHub, Azure Pipelines and `TeamCity` interpret
/// `##[`, `##vso[` and `##teamcity[` anywhere in a line, GitHub also `::` and certain words at the start of a line.
pub fn is_command(text: &str) -> bool {
    text.contains("##") || begins_with_command(text)
}

fn begins_with_command(text: &str) -> bool {
    let Some(rest) = text.trim_start().strip_prefix("::") else { return false };
    let word = rest.split(|c: char| c == ':' || c.is_whitespace()).next().unwrap_or_default();
    COMMANDS.iter().any(|command| command.eq_ignore_ascii_case(word))
}

/// Displays untrusted text with [special characters](acts_unseen) escaped: `\n`, `\u{202e}`. A character of what a
/// build server may interpret as a [command](is_command) is escaped too. Joiners between emoji are kept. For terminals
/// and plain-text formats.
#[derive(Debug, Clone, Copy)]
pub struct Clean<'a>(pub &'a str);

impl fmt::Display for Clean<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if !self.0.contains(acts_unseen) && !is_command(self.0) {
            return f.pad(self.0);
        }
        let mut text = String::with_capacity(self.0.len() + 8);
        let mut begins = begins_with_command(self.0);
        let mut last = ' ';
        // The last character that a joiner may combine with the next one.
        let mut sign = ' ';
        let mut chars = self.0.chars().peekable();
        while let Some(c) = chars.next() {
            let joins =
                c == JOINER && is_pictograph(sign) && chars.peek().copied().is_some_and(is_pictograph);
            if acts_unseen(c) && !joins {
                text.extend(c.escape_default());
            } else if (last, c) == ('#', '#') || (begins && c == ':') {
                text.extend(c.escape_unicode());
                begins = false;
            } else {
                text.push(c);
            }
            last = c;
            if !is_modifier(c) {
                sign = c;
            }
        }
        f.pad(&text)
    }
}

/// Writes a character as a JSON escape sequence.
pub fn json_escape(c: char, out: &mut impl fmt::Write) {
    for unit in c.encode_utf16(&mut [0; 2]) {
        // Writing to memory cannot fail.
        let _ = write!(out, "\\u{unit:04x}");
    }
}

/// Converts a text to one line of at most `most` characters without control characters, with single blanks between
/// words.
pub fn one_line(text: &str, most: usize) -> String {
    let clean = |c: char| if c.is_whitespace() || acts_unseen(c) { ' ' } else { c };
    let words: String = text.chars().map(clean).collect();
    words.split_whitespace().collect::<Vec<_>>().join(" ").chars().take(most).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_line_contains_no_control_characters() {
        assert_eq!(one_line("a\tb\nc\rd\u{1b}[2J \u{202e}e \u{b}f", 200), "a b c d [2J e f");
        assert_eq!(one_line(&"x".repeat(100_000), 200).len(), 200);
    }

    #[test]
    fn commands_of_build_servers_are_escaped() {
        for (text, shown) in [
            ("a##vso[task.complete]", "a#\\u{23}vso[task.complete]"),
            ("###[error]x", "#\\u{23}\\u{23}[error]x"),
            ("::error::x", "\\u{3a}:error::x"),
            ("  ::set-output name=a::b", "  \\u{3a}:set-output name=a::b"),
            ("\n::add-mask::x", "\\n\\u{3a}:add-mask::x"),
        ] {
            assert_eq!(Clean(text).to_string(), shown);
        }
        for plain in ["C# a#b", "::operator new", "::std::error", "a::error::b", "::errors::x"] {
            assert_eq!(Clean(plain).to_string(), plain);
        }
    }

    #[test]
    fn only_joiners_between_emoji_are_kept() {
        for emoji in [
            "👨\u{200d}👩\u{200d}👧",
            "🏳\u{fe0f}\u{200d}🌈",
            "👩\u{1f3fd}\u{200d}⚕\u{fe0f}",
            "❤\u{fe0f}\u{200d}🔥",
        ] {
            assert_eq!(Clean(&format!("Family_{emoji}(x)")).to_string(), format!("Family_{emoji}(x)"));
        }
        for (text, shown) in [
            ("👨\u{200d}x", "👨\\u{200d}x"),
            ("x\u{200d}👨", "x\\u{200d}👨"),
            ("👨\u{200d}\u{200d}👩", "👨\\u{200d}\\u{200d}👩"),
            ("👨\u{200d}", "👨\\u{200d}"),
            ("👨\u{200d}👩\u{202e}", "👨\u{200d}👩\\u{202e}"),
        ] {
            assert_eq!(Clean(text).to_string(), shown);
        }
    }

    #[test]
    fn special_characters_are_escaped() {
        assert_eq!(Clean("plain 中😀⚠\u{fe0f} ß text").to_string(), "plain 中😀⚠\u{fe0f} ß text");
        assert_eq!(Clean("\x1b]0;x\x07\n\t\r").to_string(), "\\u{1b}]0;x\\u{7}\\n\\t\\r");
        assert_eq!(Clean("a\u{9b}\u{7f}").to_string(), "a\\u{9b}\\u{7f}");
        assert_eq!(format!("{:<5}|", Clean("ab")), "ab   |");
        // Characters found in reviews, and the ends of their ranges.
        for c in "\u{ad}\u{61c}\u{200b}\u{200d}\u{200f}\u{2028}\u{2029}\u{202a}\u{202e}\u{2060}\u{2066}\u{2069}\u{206f}\u{feff}\u{e0001}\u{e0041}\u{e01ef}".chars() {
            assert_eq!(Clean(&format!("a{c}b")).to_string(), format!("a\\u{{{:x}}}b", u32::from(c)));
        }
        for c in "\u{a0}\u{ac}\u{ae}\u{200a}\u{2010}\u{2027}\u{202f}\u{205f}\u{2070}\u{fe0f}\u{fffd}".chars()
        {
            assert!(!acts_unseen(c), "{c:?}");
        }
        assert!(
            (0..=u32::from(char::MAX)).filter_map(char::from_u32).all(|c| !c.is_control() || acts_unseen(c))
        );
    }
}
