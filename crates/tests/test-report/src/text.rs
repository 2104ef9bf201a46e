//! Cleaning of texts of tests for reports.
//!
//! Defines the rules for all formats that users and their tools read. [`plain`]: terminal sequences (colors, links,
//! cursor movements) are removed; other control characters are replaced by their pictures (NUL by ␀, ESC by ␛), because
//! XML cannot represent them and terminals would interpret them; noncharacters (U+FFFE, U+FFFF), the controls U+0080 to
//! U+009F and bidirectional controls become U+FFFD; line ends become `
//! `. [`line()`]: like `plain`, on one line. [`cut`]: limits the size. [`no_command`]: removes commands that build
//! servers interpret. Escaping is specific to each format. Unpaired surrogates cannot occur, because decoders replace
//! them by U+FFFD.

use std::borrow::Cow;
use std::convert::Infallible;

use crate::TestResult;

/// The name of a test without a name.
pub const UNNAMED: &str = "(unnamed)";

/// Removes terminal sequences and characters that are not text. Lines end with `
/// `.
pub fn plain(text: &str) -> Cow<'_, str> {
    if !text.chars().any(is_special) {
        return Cow::Borrowed(text);
    }
    let mut out = String::with_capacity(text.len());
    let told: Result<(), Infallible> = plain_parts(text, |part| {
        out.push_str(part);
        Ok(())
    });
    match told {
        Ok(()) => Cow::Owned(out),
        Err(never) => match never {},
    }
}

/// Passes the result of [`plain`] to `take` in parts, to avoid copies of long texts.
pub(crate) fn plain_parts<E>(text: &str, mut take: impl FnMut(&str) -> Result<(), E>) -> Result<(), E> {
    let mut rest = text;
    while let Some(at) = rest.find(is_special) {
        let (before, special) = rest.split_at_checked(at).unwrap_or((rest, ""));
        if !before.is_empty() {
            take(before)?;
        }
        if let Some(after) = after_sequence(special) {
            rest = after;
            continue;
        }
        let Some(c) = special.chars().next() else { return Ok(()) };
        rest = special.get(c.len_utf8()..).unwrap_or_default();
        match c {
            '\r' if rest.starts_with('\n') => {}
            '\r' => take("\n")?,
            _ => take(picture(c).encode_utf8(&mut [0; 4]))?,
        }
    }
    if rest.is_empty() { Ok(()) } else { take(rest) }
}

/// Escapes a line so that build servers do not interpret it: GitHub interprets lines that start with `::` after
/// optional white space, and GitHub, Azure Pipelines and `TeamCity` interpret `##[`, `##vso[` and `##teamcity[`
/// anywhere in a line.
pub fn no_command(line: &str) -> Cow<'_, str> {
    let safe = no_inner_command(line);
    let Some(rest) = safe.trim_start().strip_prefix("::") else { return safe };
    let blanks = safe.get(..safe.len() - safe.trim_start().len()).unwrap_or_default();
    Cow::Owned(format!("{blanks}: :{rest}"))
}

/// Escapes commands that build servers interpret anywhere in a line, by a space between two `#`.
pub fn no_inner_command(text: &str) -> Cow<'_, str> {
    if !text.contains("##") {
        return Cow::Borrowed(text);
    }
    let mut out = String::with_capacity(text.len() + 4);
    let mut last = ' ';
    for c in text.chars() {
        if (last, c) == ('#', '#') {
            out.push(' ');
        }
        out.push(c);
        last = c;
    }
    Cow::Owned(out)
}

/// Applies [`plain`], and replaces line ends and tabs by spaces.
pub fn line(text: &str) -> Cow<'_, str> {
    let text = plain(text);
    if text.contains(['\n', '\t']) { Cow::Owned(text.replace(['\n', '\t'], " ")) } else { text }
}

/// Returns the name of a test on one line, or [`UNNAMED`].
pub fn name(result: &TestResult) -> Cow<'_, str> {
    let name = line(&result.name);
    if name.trim().is_empty() { Cow::Borrowed(UNNAMED) } else { name }
}

/// Formats a number with its noun.
pub(crate) fn plural(count: u64, what: &str) -> String {
    if count == 1 { format!("1 {what}") } else { format!("{count} {what}s") }
}

/// Truncates `text` to at most `bytes` bytes, with `…` at the end of a truncated text. Empty if there is no room for
/// it.
pub fn cut(text: &str, bytes: usize) -> Cow<'_, str> {
    const MARK: char = '…';
    if text.len() <= bytes {
        return Cow::Borrowed(text);
    }
    let Some(room) = bytes.checked_sub(MARK.len_utf8()) else { return Cow::Borrowed("") };
    let mut kept = text.get(..text.floor_char_boundary(room)).unwrap_or_default().to_owned();
    kept.push(MARK);
    Cow::Owned(kept)
}

fn replaced(c: char) -> bool {
    matches!(c, '\0'..='\x08' | '\x0b'..='\x0c' | '\x0e'..='\x1f' | '\x7f'..='\u{9f}' | '\u{fffe}' | '\u{ffff}')
        || is_bidi_control(c)
}

/// Returns whether a character changes the direction of the following text, which can make it look like another text.
pub(crate) fn is_bidi_control(c: char) -> bool {
    matches!(c, '\u{61c}' | '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
}

fn is_special(c: char) -> bool {
    c == '\r' || replaced(c)
}

/// Returns the replacement of a character that is [`replaced`].
fn picture(c: char) -> char {
    match u32::from(c) {
        control @ 0..0x20 => char::from_u32(0x2400 + control).unwrap_or('\u{fffd}'),
        0x7f => '\u{2421}',
        _ => '\u{fffd}',
    }
}

/// Returns the text after the terminal sequence at the start of `text`, if it is complete (ECMA-48, section 5.4).
fn after_sequence(text: &str) -> Option<&str> {
    let (kind, rest) = match text.strip_prefix('\x1b') {
        Some(rest) => {
            let kind = rest.chars().next().filter(char::is_ascii)?;
            (kind, rest.get(1..)?)
        }
        None => ('[', text.strip_prefix('\u{9b}')?),
    };
    match kind {
        // Parameters, intermediates, and one final byte.
        '[' => {
            let rest = rest.trim_start_matches(|c| matches!(c, '0'..='?'));
            let rest = rest.trim_start_matches(|c| matches!(c, ' '..='/'));
            rest.strip_prefix(|c| matches!(c, '@'..='~'))
        }
        // A title or a link, terminated by BEL or ST; device control, privacy and application strings, terminated by
        // ST. They end on the same line: an unterminated sequence is shown.
        ']' | 'P' | 'X' | '^' | '_' => {
            let end = rest.find(['\x07', '\x1b', '\n'])?;
            let rest = rest.get(end..)?;
            rest.strip_prefix('\x07').or_else(|| rest.strip_prefix("\x1b\\"))
        }
        // Character sets and other short sequences.
        ' '..='/' => {
            let rest = rest.trim_start_matches(|c| matches!(c, ' '..='/'));
            rest.strip_prefix(|c| matches!(c, '0'..='~'))
        }
        '0'..='~' => Some(rest),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn terminal_sequences_are_removed() {
        assert_eq!(plain("\x1b[31;1mred\x1b[0m \x1b[2K\x1b[10;3Hat"), "red at");
        assert_eq!(plain("\x1b]8;;https://x.example/\x1b\\link\x1b]8;;\x1b\\"), "link");
        assert_eq!(plain("\x1b]0;title\x07text\x1b(B\x1b7\x1b="), "text");
        assert_eq!(plain("\u{9b}31mred"), "red");
        assert_eq!(plain("\x1bPdata\x1b\\after"), "after");
    }

    #[test]
    fn incomplete_sequences_are_shown() {
        assert_eq!(plain("\x1b"), "␛");
        assert_eq!(plain("\x1b[31"), "␛[31");
        assert_eq!(plain("\x1b]0;a title without end\nnext"), "␛]0;a title without end\nnext");
        assert_eq!(plain("\x1bé"), "␛é");
    }

    #[test]
    fn controls_become_pictures_and_lines_end_alike() {
        assert_eq!(plain("a\0b\x07c\x7fd\u{85}e\u{ffff}\u{fffd}"), "a␀b␇c␡d\u{fffd}e\u{fffd}\u{fffd}");
        assert_eq!(plain("one\r\ntwo\rthree\tx\n"), "one\ntwo\nthree\tx\n");
        assert_eq!(line("one\r\ntwo\tthree\n"), "one two three ");
        assert!(matches!(plain("as it was\n\t"), Cow::Borrowed(_)));
    }

    #[test]
    fn bidirectional_controls_are_replaced() {
        assert_eq!(plain("a\u{202e}b\u{2066}c\u{200f}d\u{61c}"), "a\u{fffd}b\u{fffd}c\u{fffd}d\u{fffd}");
        assert_eq!(plain("\u{5d0}\u{5d1} 👩\u{200d}🚀"), "\u{5d0}\u{5d1} 👩\u{200d}🚀");
    }

    #[test]
    fn build_server_commands_are_escaped() {
        assert_eq!(no_command("  ::error file=a::b"), "  : :error file=a::b");
        assert_eq!(no_command("\u{a0}::stop-commands::x"), "\u{a0}: :stop-commands::x");
        assert_eq!(no_command("x ##[error]y ###vso[task]"), "x # #[error]y # # #vso[task]");
        assert!(matches!(no_command("A::B # c ::"), Cow::Borrowed("A::B # c ::")));
    }

    #[test]
    fn a_truncated_text_has_a_mark_and_fits_the_limit() {
        assert_eq!(cut("abcdef", 6), "abcdef");
        assert_eq!(cut("abcdef", 5), "ab…");
        assert_eq!(cut("ééé", 5), "é…");
        assert_eq!(cut("abcdef", 2), "");
    }

    #[test]
    fn a_test_always_has_a_name() {
        let named = |name: &str| TestResult { name: name.to_owned(), ..TestResult::default() };
        assert_eq!(name(&named("")), UNNAMED);
        assert_eq!(name(&named(" \r\n")), UNNAMED);
        assert_eq!(name(&named("Adds(\"a\nb\")")), "Adds(\"a b\")");
    }

    proptest! {
        #[test]
        fn nothing_that_xml_cannot_carry_is_left(text in any::<String>(), bytes in 0usize..64) {
            let plain = plain(&text);
            prop_assert!(plain.chars().all(|c| c == '\n' || c == '\t' || !replaced(c) && c != '\r'));
            prop_assert_eq!(super::plain(&plain), plain.as_ref());
            prop_assert!(cut(&plain, bytes).len() <= bytes);
            let tame = no_command(&text).into_owned();
            prop_assert!(!tame.trim_start().starts_with("::") && !tame.contains("##"));
        }
    }
}
