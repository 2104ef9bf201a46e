//! Colors of a differential flame graph, by the change of each box including its callees.
//!
//! inferno only considers the innermost frame of each line, so a method is white although its callees take twice as
//! long, and red if it became the caller of existing ones. So the colors of the finished picture, and the changes in
//! the tooltips, are replaced here. Boxes are identified by row and start.

use std::collections::HashMap;
use std::fmt::Write as _;

/// Maps the row and start of each box with a width to its weights before and after.
pub(super) type Boxes = HashMap<(usize, u64), [u64; 2]>;

/// Computes the boxes of lines that are in tree order.
#[derive(Default)]
pub(super) struct Layout {
    boxes: Boxes,
    /// The frames of the last line with their sums so far, starting with the row `all`.
    open: Vec<Open>,
    at: u64,
}

struct Open {
    name: String,
    start: u64,
    weights: [u64; 2],
}

impl Layout {
    pub(super) fn line(&mut self, stack: &str, [before, after]: [u64; 2]) {
        let names = || std::iter::once("").chain(stack.split(';'));
        let same = self.open.iter().zip(names()).take_while(|(open, name)| open.name == *name).count();
        self.close(same);
        for name in names().skip(same) {
            self.open.push(Open { name: name.to_owned(), start: self.at, weights: [0, 0] });
        }
        for open in &mut self.open {
            open.weights = [open.weights[0] + before, open.weights[1] + after];
        }
        self.at += after;
    }

    fn close(&mut self, keep: usize) {
        for (row, open) in self.open.drain(keep..).enumerate() {
            if open.weights[1] > 0 {
                self.boxes.insert((keep + row, open.start), open.weights);
            }
        }
    }

    pub(super) fn finish(mut self) -> Boxes {
        self.close(0);
        self.boxes
    }
}

/// Height of a row in pixels.
const ROW: u64 = 16;

/// Replaces the colors of the boxes in a picture.
pub(super) fn shade(svg: &str, boxes: &Boxes) -> String {
    let change = |[before, after]: [u64; 2]| i128::from(after) - i128::from(before);
    let most = boxes.values().map(|weights| change(*weights).unsigned_abs()).max().unwrap_or(0).max(1);
    let total = boxes.get(&(0, 0)).map_or(1, |all| all[1].max(1));
    // The row `all` is the lowest.
    let lowest = svg.split("<g><title>").skip(1).filter_map(|it| number(it, " y=\"")).max().unwrap_or(0);
    let mut parts = svg.split("<g><title>");
    let mut shaded = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        shaded.push_str("<g><title>");
        let place = number(part, " y=\"").zip(number(part, "fg:x=\""));
        let row = |y: u64| usize::try_from((lowest - y) / ROW).unwrap_or(usize::MAX);
        let weights = place.and_then(|(y, x)| boxes.get(&(row(y), x)));
        match weights.and_then(|weights| repaint(part, change(*weights), most, total)) {
            Some(part) => shaded.push_str(&part),
            None => shaded.push_str(part),
        }
    }
    shaded
}

/// Returns the number that follows the first `key`.
fn number(text: &str, key: &str) -> Option<u64> {
    let (_, rest) = text.split_once(key)?;
    rest.split('"').next()?.parse().ok()
}

/// Returns a box with its new color, and its change as a percentage of the total.
#[expect(clippy::cast_precision_loss, reason = "shown with two digits")]
fn repaint(part: &str, change: i128, most: u128, total: u64) -> Option<String> {
    let (title, rest) = part.split_once("</title>")?;
    let (title, _) = title.rsplit_once("; ")?;
    let (head, color) = rest.split_once("fill=\"")?;
    let (_, tail) = color.split_once('"')?;
    let percent = change as f64 * 100.0 / total as f64;
    let mut text = title.to_owned();
    // Writing to a `String` cannot fail.
    let _ = match change {
        0 => write!(text, "; no change)"),
        _ => write!(text, "; {percent:+.2}%)"),
    };
    let _ = write!(text, "</title>{head}fill=\"{}\"{tail}", color_of(change, most));
    Some(text)
}

/// Returns white for no change, and shades of red for increases and of blue for decreases.
fn color_of(change: i128, most: u128) -> String {
    let strength = u8::try_from(change.unsigned_abs() * 150 / most).unwrap_or(150);
    let other = 250 - strength;
    match change {
        0 => "rgb(250,250,250)".to_owned(),
        1.. => format!("rgb(255,{other},{other})"),
        _ => format!("rgb({other},{other},255)"),
    }
}
