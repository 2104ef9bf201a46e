//! Makes names safe for the folded format, and for the SVG files drawn from it.
//!
//! A line of the folded format consists of frames separated by `;`, a space and a number, so names must not contain
//! these.

use runtap_model::text::Clean;

/// Returns `name` without characters that would end a frame, a line or an XML document: `;` becomes `:` (as in other
/// collapsers), [special characters](runtap_model::text::acts_unseen) are escaped, and the two characters that XML does
/// not permit become U+FFFD.
pub(crate) fn plain(name: &str) -> String {
    let mut plain = Clean(name).to_string().replace(';', ":").replace(['\u{fffe}', '\u{ffff}'], "\u{fffd}");
    plain.truncate(plain.trim_end().len());
    plain
}

/// Like [`plain`], for the name of a frame, which must not be empty.
pub(crate) fn frame(name: &str) -> String {
    let plain = plain(name);
    if plain.is_empty() { "?".to_owned() } else { plain }
}

/// Makes `name` safe at the end of a stack: readers take a number after the last space for a second weight, so that space
/// becomes a no-break space.
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
    fn separators_and_controls_are_replaced() {
        assert_eq!(
            plain("a!B(int[]; x)\n\t\u{1}é😀\u{ffff}\u{2028}\u{202e}."),
            "a!B(int[]: x)\\n\\t\\u{1}é😀\u{fffd}\\u{2028}\\u{202e}."
        );
        assert_eq!(plain("trailing \u{a0} "), "trailing");
        assert_eq!(plain("trailing\u{85}"), "trailing\\u{85}");
    }

    #[test]
    fn a_number_at_the_end_stays_part_of_the_name() {
        assert_eq!(leaf("stub 12".to_owned()), "stub\u{a0}12");
        assert_eq!(leaf("stub 1.5".to_owned()), "stub\u{a0}1.5");
        assert_eq!(leaf("stub 12x".to_owned()), "stub 12x");
        assert_eq!(leaf("stub12".to_owned()), "stub12");
    }
}
