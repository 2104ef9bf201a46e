//! Names made safe to be shown, and for the folded format, and so for the SVG that is drawn from it.
//!
//! Names come from the traced program, which may call a method anything. What can be told of a letter without knowing where
//! it goes is told here, for all that is printed and written. A line of the folded format is frames separated by `;`, a
//! space and a number, so neither may be read out of a name.

use std::fmt;

/// Whether a letter of a stranger's text acts where it is shown, or cannot be seen there: control characters, line and
/// paragraph separators, marks that turn the direction of writing, and what has no shape of its own. The selectors that
/// choose a look for the letter in front of them (U+FE00 to U+FE0F, as in many emoji) are text.
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

/// Shows a stranger's text with every letter that [acts unseen](acts_unseen) as an escape: `\n`, `\u{202e}`. For terminals
/// and for every format that is plain text.
#[derive(Debug, Clone, Copy)]
pub struct Clean<'a>(pub &'a str);

impl fmt::Display for Clean<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if !self.0.contains(acts_unseen) {
            return f.pad(self.0);
        }
        let mut text = String::with_capacity(self.0.len() + 8);
        for c in self.0.chars() {
            if acts_unseen(c) {
                text.extend(c.escape_default());
            } else {
                text.push(c);
            }
        }
        f.pad(&text)
    }
}

/// `name` without what would end a frame, a line or an XML document: `;` becomes `:` (as other collapsers have
/// it), what [acts unseen](acts_unseen) is escaped, and the two letters that XML cannot hold become U+FFFD.
pub(crate) fn plain(name: &str) -> String {
    let mut plain = Clean(name).to_string().replace(';', ":").replace(['\u{fffe}', '\u{ffff}'], "\u{fffd}");
    plain.truncate(plain.trim_end().len());
    plain
}

/// The same for a frame, of which something is always left: an empty one would be none.
pub(crate) fn frame(name: &str) -> String {
    let plain = plain(name);
    if plain.is_empty() { "?".to_owned() } else { plain }
}

/// `name` so that it can end a stack: readers take a number after the last space for a second count (that of a
/// differential profile), so that space becomes a no-break space.
pub(crate) fn leaf(name: String) -> String {
    match name.rsplit_once(' ') {
        Some((head, tail)) if tail.bytes().all(|b| b.is_ascii_digit() || b == b'.') => {
            format!("{head}\u{a0}{tail}")
        }
        _ => name,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_acts_unseen_is_escaped() {
        assert_eq!(Clean("plain 中😀⚠\u{fe0f} ß text").to_string(), "plain 中😀⚠\u{fe0f} ß text");
        assert_eq!(Clean("\x1b]0;x\x07\n\t\r").to_string(), "\\u{1b}]0;x\\u{7}\\n\\t\\r");
        assert_eq!(Clean("a\u{9b}\u{7f}").to_string(), "a\\u{9b}\\u{7f}");
        assert_eq!(format!("{:<5}|", Clean("ab")), "ab   |");
        // Those that were found in reviews, and the ends of their ranges.
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

    #[test]
    fn separators_and_controls_are_replaced() {
        assert_eq!(
            plain("a!B(int[]; x)\n\t\u{1}é😀\u{ffff}\u{2028}\u{202e}."),
            "a!B(int[]: x)\\n\\t\\u{1}é😀\u{fffd}\\u{2028}\\u{202e}."
        );
        assert_eq!(plain("trailing \u{a0} "), "trailing");
        assert_eq!(plain("trailing\u{85}"), "trailing\\u{85}");
    }

    #[test]
    fn a_number_at_the_end_sticks_to_its_name() {
        assert_eq!(leaf("stub 12".to_owned()), "stub\u{a0}12");
        assert_eq!(leaf("stub 1.5".to_owned()), "stub\u{a0}1.5");
        assert_eq!(leaf("stub 12x".to_owned()), "stub 12x");
        assert_eq!(leaf("stub12".to_owned()), "stub12");
    }
}
