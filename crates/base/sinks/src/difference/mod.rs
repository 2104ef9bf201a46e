//! Changes between two traces, as folded stacks with two numbers and as a differential flame graph.
//!
//! | in the model | in the folded file | in the flame graph |
//! |---|---|---|
//! | a stack with weight in either trace | a line `root;…;leaf BEFORE AFTER` | a box on its caller |
//! | weight before | `BEFORE`, scaled so that both traces have the same total, or unchanged ([`Options::absolute`]) | together with `AFTER` the color of a box: red for an increase including callees, blue for a decrease |
//! | weight after | `AFTER` | width |
//! | thread | omitted: thread ids differ between runs | omitted |
//! | a sample without a stack | a line `[no stack] BEFORE AFTER` | a box `[no stack]` |
//! | names of the traces, numbers of samples | not in the file | title and subtitle |
//!
//! The lines are ordered like [folded stacks](crate::folded) and can be read by `flamegraph.pl` and inferno. Stacks
//! that are only in the first trace have no width in the flame graph; to see them, swap the traces.

mod shade;

use self::shade::Layout;
use crate::fold::{Names, Tree};
use crate::{Error, text};
use inferno::flamegraph;
use inferno::flamegraph::color::{BackgroundColor, Color};
use runtap_model::{Comparison, Unit};
use std::io::{self, BufWriter, Write};

/// Options for writing a difference.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Options {
    /// Whether to compare absolute weights instead of shares of their traces.
    pub absolute: bool,
    /// Names of the two traces.
    pub names: [String; 2],
}

/// Writes folded stacks with two numbers each.
pub fn write_folded(comparison: &Comparison, w: impl Write, options: &Options) -> Result<(), Error> {
    let mut w = BufWriter::with_capacity(1 << 16, w);
    walk(comparison, options, |stack, [before, after]| writeln!(w, "{stack} {before} {after}"))?;
    w.flush()?;
    Ok(())
}

/// Writes a differential flame graph.
pub fn write_flamegraph(comparison: &Comparison, w: impl Write, options: &Options) -> Result<(), Error> {
    if comparison.after().stacks().total_weight() == 0 {
        return Err(nothing(comparison));
    }
    let (mut lines, mut layout) = (Vec::new(), Layout::default());
    walk(comparison, options, |stack, [before, after]| {
        layout.line(stack, [before, after]);
        lines.push(format!("{stack} {before} {after}"));
        Ok(())
    })?;
    let mut drawing = flamegraph::Options::default();
    let [before, after] = options.names.each_ref().map(|name| text::plain(name));
    drawing.title = format!("{before} → {after}");
    drawing.subtitle = Some(subtitle(comparison, options));
    // Unchanged boxes are white, so the background is gray.
    drawing.bgcolors = Some(BackgroundColor::Flat(Color { r: 222, g: 222, b: 228 }));
    let mut drawn = Vec::new();
    crate::flamegraph::draw(&mut drawing, comparison.view(), &lines, &mut drawn)?;
    let mut w = BufWriter::with_capacity(1 << 16, w);
    w.write_all(shade::shade(&String::from_utf8_lossy(&drawn), &layout.finish()).as_bytes())?;
    w.flush()?;
    Ok(())
}

/// `cpu · 4,987 → 5,120 samples · shares of each recording · red: more, blue: less`
fn subtitle(comparison: &Comparison, options: &Options) -> String {
    let number = |ticks| crate::flamegraph::grouped(ticks);
    let [before, after] = [comparison.before(), comparison.after()].map(|side| number(side.stacks().ticks()));
    let noun = if comparison.view().is_sampled() { "samples" } else { "events" };
    let what = match (options.absolute, comparison.view().unit()) {
        (false, _) => "shares of each recording",
        (true, Unit::Nanoseconds) => "times as recorded",
        (true, _) => "numbers as recorded",
    };
    format!("{} · {before} → {after} {noun} · {what} · red: more, blue: less", comparison.view())
}

fn nothing(comparison: &Comparison) -> Error {
    Error::NoSamples { view: comparison.view(), recorded: 0, left_out: 0 }
}

/// Calls `line` with each stack and its weights in both traces.
fn walk(
    comparison: &Comparison,
    options: &Options,
    mut line: impl FnMut(&str, [u64; 2]) -> io::Result<()>,
) -> Result<(), Error> {
    let sides = [comparison.before().stacks(), comparison.after().stacks()];
    let [of_before, of_after] = sides.map(runtap_model::StackWeights::total_weight);
    if of_before == 0 && of_after == 0 {
        return Err(nothing(comparison));
    }
    if of_before.checked_add(of_after).is_none_or(|sum| sum > 1 << 63) {
        return Err(Error::TooLarge(comparison.view().unit()));
    }
    let scaled = !options.absolute && of_before > 0 && of_after > 0;
    let names = Names::new(comparison.tables());
    Tree::new(comparison.tables(), &names, sides, 0).walk("", |stack, [before, after]| {
        let before = if scaled { scale(before, of_after, of_before) } else { before };
        if before == 0 && after == 0 { Ok(()) } else { line(stack, [before, after]) }
    })?;
    Ok(())
}

/// Returns `number` × `times` ÷ `by`, rounded.
fn scale(number: u64, times: u64, by: u64) -> u64 {
    let product = u128::from(number) * u128::from(times) + u128::from(by / 2);
    u64::try_from(product / u128::from(by)).unwrap_or(u64::MAX)
}
