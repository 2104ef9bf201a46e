//! Lines of text on a screen.

use ratatui_core::buffer::Buffer;
use ratatui_core::layout::Rect;
use ratatui_core::style::{Color, Modifier, Style};
use unicode_width::UnicodeWidthChar as _;

use crate::Clean;

pub(super) const BOLD: Style = Style::new().add_modifier(Modifier::BOLD);
pub(super) const DIM: Style = Style::new().add_modifier(Modifier::DIM);
pub(super) const SELECTED: Style = Style::new().add_modifier(Modifier::REVERSED);
pub(super) const WARNING: Style = Style::new().fg(Color::Yellow);
pub(super) const GROUP: Style = Style::new().fg(Color::Cyan).add_modifier(Modifier::BOLD);
pub(super) const CHART: Style = Style::new().fg(Color::Green);

/// Writes a line, truncated to the area. Texts of programs must have been [cleaned](clean).
pub(super) fn line(buffer: &mut Buffer, area: Rect, y: u16, text: &str, style: Style) {
    at(buffer, area, 0, y, text, style);
}

/// Writes a text from column `x` on.
pub(super) fn at(buffer: &mut Buffer, area: Rect, x: u16, y: u16, text: &str, style: Style) {
    if y < area.height && x < area.width {
        buffer.set_stringn(area.x + x, area.y + y, text, usize::from(area.width - x), style);
    }
}

/// Highlights an entire line.
pub(super) fn highlight(buffer: &mut Buffer, area: Rect, y: u16, style: Style) {
    if y < area.height {
        buffer.set_style(Rect { y: area.y + y, height: 1, ..area }, style);
    }
}

/// Returns untrusted text without characters that act on the terminal. Letters that are written from right to left are escaped too,
/// because terminals would reorder the columns beside them.
pub(super) fn clean(text: &str) -> String {
    let text = Clean(text).to_string();
    if text.is_ascii() {
        return text;
    }
    let mut cleaned = String::with_capacity(text.len());
    for c in text.chars() {
        if is_right_to_left(c) {
            cleaned.extend(c.escape_unicode());
        } else {
            cleaned.push(c);
        }
    }
    cleaned
}

fn is_right_to_left(c: char) -> bool {
    matches!(c,
        '\u{590}'..='\u{8ff}' | '\u{fb1d}'..='\u{fdff}' | '\u{fe70}'..='\u{feff}' | '\u{10800}'..='\u{10fff}'
            | '\u{1e800}'..='\u{1efff}')
}

/// Returns the number of columns of a text.
fn width(text: &str) -> usize {
    text.chars().map(|c| c.width().unwrap_or(0)).sum()
}

/// Returns a text of exactly `columns` columns: truncated with an ellipsis, or followed by spaces.
pub(super) fn fit(text: &str, columns: usize) -> String {
    let whole = width(text);
    if whole <= columns {
        return format!("{text}{:gap$}", "", gap = columns - whole);
    }
    let (mut fitted, mut used) = (String::new(), 0);
    for c in text.chars() {
        let wide = c.width().unwrap_or(0);
        if used + wide + 1 > columns {
            break;
        }
        fitted.push(c);
        used += wide;
    }
    if used < columns {
        fitted.push('…');
        used += 1;
    }
    format!("{fitted}{:gap$}", "", gap = columns.saturating_sub(used))
}

/// Returns the parts that fit as a whole, separated by two spaces.
pub(super) fn join(parts: &[&str], columns: usize) -> String {
    let (mut joined, mut used) = (String::new(), 0);
    for part in parts {
        let gap = if joined.is_empty() { 0 } else { 2 };
        if used + gap + width(part) <= columns {
            joined.push_str(if gap > 0 { "  " } else { "" });
            joined.push_str(part);
            used += gap + width(part);
        }
    }
    joined
}

/// Returns a chart of the last values, one column each, at the right. The limits of `range`, or else the lowest and the highest value,
/// have the lowest and the highest bar; a missing value has none.
pub(super) fn sparkline(
    values: impl DoubleEndedIterator<Item = f32> + Clone,
    columns: usize,
    range: Option<(f32, f32)>,
) -> String {
    const BARS: [char; 8] = ['▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];
    let last = values.rev().take(columns);
    let finite = last.clone().filter(|value| value.is_finite());
    let (low, high) = range.unwrap_or_else(|| {
        finite.fold((f32::MAX, f32::MIN), |(low, high), value| (low.min(value), high.max(value)))
    });
    let bar = |value: f32| {
        if !value.is_finite() {
            return ' ';
        }
        #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "between 0 and 7")]
        let level = if high > low { ((value - low) / (high - low) * 7.0).round() as usize } else { 0 };
        BARS.get(level).copied().unwrap_or(BARS[0])
    };
    let mut bars: Vec<char> = last.map(bar).collect();
    bars.resize(columns, ' ');
    bars.iter().rev().collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_fit_a_number_of_columns() {
        assert_eq!(fit("abc", 5), "abc  ");
        assert_eq!(fit("abcdef", 5), "abcd…");
        assert_eq!(fit("漢字漢字", 5), "漢字…");
        assert_eq!(fit("漢字漢字", 4), "漢… ");
        assert_eq!((fit("ab", 1), fit("ab", 0)), ("…".to_owned(), String::new()));
        assert_eq!(join(&["q quit", "? help", "s"], 14), "q quit  ? help");
        assert_eq!(join(&["q quit", "? help", "s"], 12), "q quit  s");
    }

    #[test]
    fn no_text_acts_on_the_terminal() {
        assert_eq!(
            clean("a\x1b[2J\u{202e}b\nשלום ع"),
            r"a\u{1b}[2J\u{202e}b\n\u{5e9}\u{5dc}\u{5d5}\u{5dd} \u{639}"
        );
        assert_eq!(clean("größer 漢"), "größer 漢");
    }

    #[test]
    fn charts_show_the_last_values() {
        let chart = |values: &[f32], columns| sparkline(values.iter().copied(), columns, None);
        assert_eq!(chart(&[0.0, 1.0, 7.0], 5), "  ▁▂█");
        assert_eq!(chart(&[100.0, 0.0, 1.0, 7.0], 3), "▁▂█");
        assert_eq!(chart(&[5.0, f32::NAN, 5.0, f32::INFINITY], 4), "▁ ▁ ");
        assert_eq!(chart(&[-1.0, 1e30], 2), "▁█");
        assert_eq!((chart(&[], 3), chart(&[1.0], 0)), ("   ".to_owned(), String::new()));
        assert_eq!(chart(&[f32::MAX, f32::MIN, 0.0], 3), "▁▁▁");
        assert_eq!(sparkline([0.0, 50.0, 100.0].into_iter(), 3, Some((0.0, 100.0))), "▁▅█");
    }
}
