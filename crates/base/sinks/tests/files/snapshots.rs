//! What each sink writes of the sample recording, as snapshots to read.
//!
//! Of the SVG only what comes from the model is kept: the rest is inferno's.

#[path = "../../examples/sample_files/trace.rs"]
mod trace;

use crate::read::{firefox, perfetto, pprof};
use runtap_model::View;
use runtap_sinks::{Format, Options};
use std::collections::BTreeMap;
use std::fmt::Write;

fn options(view: View) -> Options {
    let mut options = Options::new(view);
    "runtap 0.0.0".clone_into(&mut options.exporter);
    options
}

fn written(format: Format, view: View) -> String {
    written_with(format, &options(view))
}

fn written_with(format: Format, options: &Options) -> String {
    String::from_utf8(bytes(format, options)).expect("the format is UTF-8")
}

fn bytes(format: Format, options: &Options) -> Vec<u8> {
    let mut bytes = Vec::new();
    format.write(&trace::trace(), &mut bytes, options).expect("a Vec takes all");
    bytes
}

/// The title, the subtitle, and of each box its name, place, width and colour.
fn drawn(svg: &str) -> String {
    let text = |id: &str| {
        let (_, from) = svg.split_once(&format!(r#"<text id="{id}""#)).expect("the text is there");
        let (_, from) = from.split_once('>').expect("the tag ends");
        from.split_once('<').expect("the text ends").0.to_owned()
    };
    let mut drawn = format!("title: {}\nsubtitle: {}\n", text("title"), text("subtitle"));
    for group in svg.split("<g><title>").skip(1) {
        let (name, rest) = group.split_once("</title>").expect("the title ends");
        let (rect, _) = rest.split_once("/>").expect("the box ends");
        let value = |key: &str| {
            let (_, from) = rect.split_once(&format!(" {key}=\"")).expect("the attribute is there");
            from.split_once('"').expect("the attribute ends").0
        };
        let [x, width, y, fill] = ["x", "width", "y", "fill"].map(value);
        writeln!(drawn, "{x:>9} {width:>9} y{y:<4} {fill:<16} {name}").expect("a String takes all");
    }
    drawn
}

#[test]
fn speedscope() {
    insta::assert_snapshot!(written(Format::Speedscope, View::ThreadTime));
}

#[test]
fn speedscope_cpu() {
    insta::assert_snapshot!(written(Format::Speedscope, View::Cpu));
}

#[test]
fn folded() {
    insta::assert_snapshot!(written(Format::Folded, View::Cpu));
}

#[test]
fn folded_thread_time() {
    insta::assert_snapshot!(written(Format::Folded, View::ThreadTime));
}

#[test]
fn flamegraph() {
    insta::assert_snapshot!(drawn(&written(Format::Flamegraph, View::Cpu)));
}

#[test]
fn flamegraph_thread_time() {
    insta::assert_snapshot!(drawn(&written(Format::Flamegraph, View::ThreadTime)));
}

#[test]
fn flamegraph_of_merged_threads() {
    let mut options = options(View::ThreadTime);
    options.merge_threads = true;
    insta::assert_snapshot!(drawn(&written_with(Format::Flamegraph, &options)));
}

/// Merged threads are the lines of all, without the thread, added up.
#[test]
fn folded_of_merged_threads() {
    let sums = |text: &str, is_merged: bool| {
        let mut sums = BTreeMap::new();
        for line in text.lines() {
            let (stack, weight) = line.rsplit_once(' ').expect("a weight");
            let stack = if is_merged { stack } else { stack.split_once(';').map_or(stack, |(_, rest)| rest) };
            *sums.entry(stack.to_owned()).or_insert(0) += weight.parse::<u64>().expect("a number");
        }
        sums
    };
    let mut options = options(View::ThreadTime);
    let beside = sums(&written_with(Format::Folded, &options), false);
    options.merge_threads = true;
    let merged = written_with(Format::Folded, &options);
    assert_eq!(sums(&merged, true), beside);
    assert_eq!(merged.lines().count(), beside.len(), "each stack once");
}

#[test]
fn speedscope_evented() {
    let mut options = options(View::ThreadTime);
    options.evented = true;
    insta::assert_snapshot!(written_with(Format::Speedscope, &options).replace("},{\"type", "},\n{\"type"));
}

#[test]
fn chrome() {
    insta::assert_snapshot!(written(Format::Chrome, View::ThreadTime));
}

#[test]
fn perfetto() {
    let read = perfetto::read(&bytes(Format::Perfetto, &options(View::ThreadTime)));
    let mut text = format!("clocks {:?}\nprocess {:?}\n", read.clocks, read.process);
    for event in read.events {
        let what = event.begin.as_deref().unwrap_or(".");
        writeln!(text, "{:>10} {} {what}", event.time, event.thread).expect("a String takes all");
    }
    insta::assert_snapshot!(text);
}

#[test]
fn pprof() {
    let pprof::Profile {
        types,
        default_type,
        period,
        start_ns,
        duration_ns,
        comments,
        mappings,
        samples,
        ..
    } = pprof::read(&bytes(Format::Pprof, &options(View::ThreadTime)));
    let mut text = format!("types {types:?}\ndefault {default_type:?}\nperiod {period:?}\n");
    write!(text, "start {start_ns} duration {duration_ns}\n{comments:?}\n{mappings:?}\n").expect("a String");
    for sample in samples {
        writeln!(text, "{:?} {:?}\n    {}", sample.values, sample.labels, sample.stack.join("\n    "))
            .expect("a String");
    }
    insta::assert_snapshot!(text);
}

#[test]
fn firefox() {
    let json = firefox::json(&bytes(Format::Firefox, &options(View::ThreadTime)));
    let mut text = format!("{:#}\n", json["meta"]);
    for thread in firefox::read(&bytes(Format::Firefox, &options(View::ThreadTime))) {
        writeln!(text, "{} ({})", thread.name, thread.weight_type).expect("a String takes all");
        for row in thread.rows {
            let stack = row.stack.map_or_else(|| ".".to_owned(), |stack| stack.join("\n        "));
            writeln!(text, "    {} weight {} cpu {:?}\n        {stack}", row.time, row.weight, row.cpu)
                .expect("a String takes all");
        }
    }
    insta::assert_snapshot!(text);
}
