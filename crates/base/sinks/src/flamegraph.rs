//! A flame graph as a single SVG file, drawn by inferno, with zoom and search in a browser.
//!
//! | in the model | in the picture |
//! |---|---|
//! | process | title: `NAME (PID)` |
//! | view, total, duration, samples, threads | subtitle, with the meaning of the colors |
//! | thread | the boxes above the bottom row `all`, named `Thread (TID) NAME`, gray; none if threads are merged |
//! | frame | a box on its caller, sorted by name; all calls from the same caller are one box |
//! | weight | width; the tooltip has it in milliseconds, bytes or as a number, and as a percentage of the total |
//! | a sample without a stack | a box `[no stack]` on its thread |
//! | name | label: without the module, and readable for lambdas, local functions and asynchronous methods; the tooltip has the full name |
//! | origin | hue: blue for the runtime with its class libraries (CLR: `System.*`, `Microsoft.*`) and for libraries, green for native code, violet for the kernel, orange for everything else, gray for an address without a name |
//! | view | selects the samples; `cpu` by default |
//! | kind, times | not in the picture |
//!
//! Like in other flame graph tools, boxes narrower than 1/10,000 of the picture are not drawn; their weight is part of
//! the box below. Names are those of folded stacks, escaped for XML.

use crate::category::Category;
use crate::fold::Fold;
use crate::{Error, Options, text};
use inferno::flamegraph::color::{BackgroundColor, Color, PaletteMap};
use inferno::flamegraph::{self, TextTruncateDirection};
use runtap_model::{Frame, NO_STACK, Trace, Unit, View};
use std::io::{BufWriter, Write};

/// Minimum width of a box, as a percentage of the picture.
const LEAST_PERCENT: f64 = 0.01;

/// Maximum size of the text passed to inferno, which keeps several copies. If a picture needs more (thousands of stacks
/// with a thousand frames each), wider boxes are omitted too, down to what a screen can show.
const MOST_BYTES: usize = 128 << 20;

/// Writes `trace` as a flame graph.
pub fn write(trace: &Trace, w: impl Write, options: &Options) -> Result<(), Error> {
    // A thread whose branches are all too narrow ends a stack.
    let fold = Fold::new(trace, options)?.with_labels(text::leaf);
    // Half of inferno's threshold: only limits the number of lines, which inferno needs all at once.
    let mut least = fold.total_weight() / 20_000;
    let lines = loop {
        let (mut lines, mut bytes) = (Vec::new(), 0_usize);
        fold.walk(least, |stack, ns| {
            bytes = bytes.saturating_add(stack.len() + 24);
            if bytes <= MOST_BYTES {
                lines.push(format!("{stack} {ns}"));
            }
            Ok(())
        })?;
        if bytes <= MOST_BYTES || least > fold.total_weight() {
            break lines;
        }
        least = (least * 2).max(1);
    };

    let mut palette = palette(trace, &fold);
    let mut drawing = flamegraph::Options::default();
    drawing.title = text::plain(&trace.process().label());
    drawing.subtitle = Some(subtitle(trace, options.view, fold.total_weight()));
    drawing.bgcolors = Some(BackgroundColor::Flat(Color { r: 255, g: 255, b: 255 }));
    drawing.palette_map = Some(&mut palette);
    draw(&mut drawing, options.view, &lines, w)
}

/// Draws lines that are in tree order.
pub(crate) fn draw(
    drawing: &mut flamegraph::Options<'_>,
    view: View,
    lines: &[String],
    w: impl Write,
) -> Result<(), Error> {
    drawing.deterministic = true;
    drawing.text_truncate_direction = TextTruncateDirection::Right;
    drawing.min_width = LEAST_PERCENT;
    "Frame:".clone_into(&mut drawing.name_type);
    let (unit, factor) = unit(view);
    unit.clone_into(&mut drawing.count_name);
    drawing.factor = factor;
    // inferno sorts bytewise, which splits a box if a sibling's name starts with its name. In "flame chart" mode it
    // keeps the lines in order, from last to first.
    drawing.flame_chart = true;

    let mut picture = Vec::new();
    flamegraph::from_lines(drawing, lines.iter().rev().map(String::as_str), &mut picture)?;
    let mut w = BufWriter::with_capacity(1 << 16, w);
    write_with_readable_labels(&picture, &mut w)?;
    w.write_all(b"\n")?;
    w.flush()?;
    Ok(())
}

/// The code in inferno's script that makes a label from a tooltip.
const LABEL: &str = r#".textContent.replace(/\([^(]*\)$/,"")"#;
/// The replacement of [`LABEL`], which also removes the module and the generated parts of the names of lambdas, local
/// functions and resumed methods.
const READABLE: &str = r#".textContent.replace(/\([^(]*\)$/,"").replace(/^[^!(\s]+!/,"").replace(/<>c(__DisplayClass[\d_]+)?[.+]/,"").replace(/<([^<>]+)>d__[^.]*\.MoveNext/,"$1 [resumed]").replace(/<([^<>]+)>b__[\d_|]+/,"lambda in $1").replace(/<([^<>]+)>g__([^|]+)\|[\d_]+/,"$2 in $1")"#;

fn write_with_readable_labels(picture: &[u8], w: &mut impl Write) -> std::io::Result<()> {
    let picture = str::from_utf8(picture).map_err(std::io::Error::other)?;
    for (i, part) in picture.split(LABEL).enumerate() {
        if i > 0 {
            w.write_all(READABLE.as_bytes())?;
        }
        w.write_all(part.as_bytes())?;
    }
    Ok(())
}

/// Returns the unit of weights and the factor to convert them.
fn unit(view: View) -> (&'static str, f64) {
    match view.unit() {
        Unit::Nanoseconds => ("ms", 1e-6),
        Unit::Bytes => ("bytes", 1.0),
        _ => ("times", 1.0),
    }
}

/// `wall time of managed samples: 9.4 s · 5.0 s recorded · 4,987 samples · 4 threads · orange: program, blue: framework, …`
fn subtitle(trace: &Trace, view: View, total_weight: u64) -> String {
    let what = match view {
        View::ThreadTime => "all samples, running or waiting",
        View::Cpu => "wall time of managed samples",
        View::Alloc => "memory allocated",
        View::Exceptions => "exceptions thrown",
        View::Contention => "time waiting for locks",
        View::Gc => "pauses of the garbage collector",
        View::Jit => "time in the compiler",
        View::Async => "time of asynchronous operations, running or waiting",
        View::Request => "time of requests, running or waiting",
        other => other.name(),
    };
    let total = match view.unit() {
        Unit::Nanoseconds => time(total_weight),
        Unit::Bytes => format!("{} bytes", grouped(total_weight)),
        _ => grouped(total_weight),
    };
    let recorded = time(trace.duration_ns());
    let threads = trace.threads().filter(|(_, t)| t.weight(view) > 0).count() as u64;
    let samples = counted(trace.ticks(view), "sample");
    let threads = counted(threads, "thread");
    format!("{what}: {total} · {recorded} recorded · {samples} · {threads} · {}", colors(trace))
}

/// Describes the colors: those that always occur, and others if used.
fn colors(trace: &Trace) -> String {
    let has = |wanted| trace.all_frames().any(|(_, frame)| Category::of(frame) == wanted);
    let native = if has(Category::Native) { ", green: native" } else { "" };
    let kernel = if has(Category::Kernel) { ", violet: kernel" } else { "" };
    format!("orange: program, blue: framework{native}{kernel}, gray: no name")
}

/// Formats a duration in seconds (`12.3 s`), or in milliseconds below a second.
fn time(ns: u64) -> String {
    let (unit, name) = if ns < 1_000_000_000 { (1_000_000, "ms") } else { (1_000_000_000, "s") };
    format!("{}.{} {name}", grouped(ns / unit), ns % unit * 10 / unit)
}

/// Formats a number with a noun: `1 sample`, `4,987 samples`.
fn counted(number: u64, noun: &str) -> String {
    format!("{} {noun}{}", grouped(number), if number == 1 { "" } else { "s" })
}

/// Formats a number with thousands separators like inferno: `4,987`.
pub(crate) fn grouped(number: u64) -> String {
    let digits = number.to_string();
    let mut text = String::new();
    for (i, digit) in digits.chars().enumerate() {
        if i > 0 && (digits.len() - i).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

/// Returns a color for each name: hues show the category, and shades distinguish neighbors.
fn palette(trace: &Trace, fold: &Fold<'_>) -> PaletteMap {
    let mut palette = PaletteMap::default();
    for (handle, name) in fold.names() {
        palette.insert(name, color(trace.frame(handle), name));
    }
    // The row `all` has no name.
    for name in fold.labels().chain([NO_STACK, ""]) {
        palette.insert(name, GREY);
    }
    palette
}

const GREY: Color = Color { r: 200, g: 200, b: 200 };

/// Returns a color light enough for black text (contrast at least 7:1).
fn color(frame: Frame<'_>, name: &str) -> Color {
    // FNV-1a gives the same result on all platforms; it only determines the shade.
    let hash = name.bytes().fold(0x811c_9dc5_u32, |h, b| (h ^ u32::from(b)).wrapping_mul(0x0100_0193));
    let [low, high, ..] = (hash ^ hash >> 16).to_le_bytes();
    let (low, high) = (low % 48, high % 64);
    match Category::of(frame) {
        Category::Unknown => GREY,
        Category::Framework => Color { r: 110 + low, g: 180 + low, b: 190 + high },
        Category::Program => Color { r: 230 + low / 2, g: 145 + high, b: 60 + low },
        Category::Native => Color { r: 160 + low / 2, g: 200 + high / 2, b: 90 + low },
        Category::Kernel => Color { r: 200 + low / 2, g: 150 + high / 2, b: 225 + low / 2 },
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use runtap_model::Origin;
    use std::cmp::Ordering;

    #[test]
    fn numbers_are_grouped_in_threes() {
        let of = |n| counted(n, "sample");
        assert_eq!(
            [of(0), of(1), of(999), of(1000)],
            ["0 samples", "1 sample", "999 samples", "1,000 samples"]
        );
        assert_eq!(of(12_345_678), "12,345,678 samples");
    }

    /// Detects changes of inferno's script.
    #[test]
    fn labels_are_replaced() {
        let mut picture = Vec::new();
        let lines = ["T;app!A.<>c.<Run>b__0_0() 10".to_owned()];
        draw(&mut flamegraph::Options::default(), View::Cpu, &lines, &mut picture).unwrap();
        let picture = String::from_utf8(picture).unwrap();
        assert_eq!(picture.matches(READABLE).count(), 2, "both ways to make a label");
        assert_eq!(picture.matches(LABEL).count(), 2, "only at the start of the two labels");
        assert!(picture.contains("<title>app!A.&lt;&gt;c.&lt;Run&gt;b__0_0()"), "the tooltip has all of it");
    }

    #[test]
    fn hues_show_the_origin() {
        let hue = |frame: Frame<'_>| {
            let Color { r, g, b } = color(frame, frame.name);
            match (r.cmp(&b), r > g) {
                (Ordering::Equal, _) => "gray",
                (Ordering::Greater, true) => "orange",
                (Ordering::Greater, false) => "green",
                (Ordering::Less, true) => "violet",
                (Ordering::Less, false) => "blue",
            }
        };
        for name in ["A()", "read", "std::io::copy", "java.lang.String.hashCode"] {
            let frame = Frame::new(Some("m"), name);
            let hues = [Origin::Own, Origin::Unknown, Origin::Library, Origin::Runtime, Origin::Native]
                .map(|origin| hue(frame.of(origin)));
            assert_eq!(hues, ["orange", "orange", "blue", "blue", "green"], "{name}");
            assert_eq!(hue(frame.of(Origin::Kernel)), "violet", "{name}");
            assert_eq!(hue(frame.of(Origin::Runtime).address()), "gray", "{name}");
        }
    }

    /// Accessibility guidelines require this contrast.
    #[test]
    fn text_is_readable_on_every_color() {
        let linear = |channel: u8| {
            let share = f64::from(channel) / 255.0;
            if share <= 0.040_45 { share / 12.92 } else { ((share + 0.055) / 1.055).powf(2.4) }
        };
        for n in 0..500 {
            let name = format!("f{n}");
            for origin in [Origin::Own, Origin::Runtime, Origin::Native, Origin::Kernel] {
                let Color { r, g, b } = color(Frame::new(None, &name).of(origin), &name);
                let luminance = 0.2126 * linear(r) + 0.7152 * linear(g) + 0.0722 * linear(b);
                assert!((luminance + 0.05) / 0.05 >= 7.0, "{origin:?} {r} {g} {b}");
            }
        }
    }
}
