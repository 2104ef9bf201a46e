//! What each format makes of the sample run, as snapshots to read. Of the page only the data: the rest is in its own files.

use crate::{run, written};
use runtap_test_report::events::{self, Events, Stream};
use runtap_test_report::{Artifact, Format, Level, Message, Source as _, github};

fn text(write: impl FnOnce(&mut Vec<u8>) -> std::io::Result<()>) -> String {
    let mut bytes = Vec::new();
    write(&mut bytes).expect("a Vec takes all");
    String::from_utf8(bytes).expect("UTF-8")
}

#[test]
fn junit() {
    insta::assert_snapshot!(written(Format::Junit, &run::sample()));
}

#[test]
fn trx() {
    insta::assert_snapshot!(written(Format::Trx, &run::sample()));
}

#[test]
fn ctrf() {
    insta::assert_snapshot!(written(Format::Ctrf, &run::sample()));
}

#[test]
fn html() {
    let page = written(Format::Html, &run::sample());
    let data: Vec<&str> = page.split("<script type=\"application/json\" ").skip(1).collect();
    let data: Vec<&str> = data.iter().map(|part| part.split("</script>").next().unwrap()).collect();
    assert_eq!(data.len(), 3, "head, index, and one chunk");
    insta::assert_snapshot!(data.join("\n\n"));
}

#[test]
fn annotations() {
    let sample = run::sample();
    let mut options = github::Options::new("/src");
    options.errors = 5;
    insta::assert_snapshot!(text(|w| github::annotations(&sample, w, &options)));
}

#[test]
fn summary() {
    insta::assert_snapshot!(text(|w| github::summary(&run::sample(), w)));
}

#[test]
fn event_stream() {
    let sample = run::sample();
    let modules = sample.modules();
    let totals: Vec<_> = (0..modules.len()).map(|number| sample.totals(number).unwrap()).collect();
    let (orchard, press) = (&modules[0], &modules[1]);
    let mut events = Events::new(Vec::new());
    events.run_start(0, sample.run()).unwrap();
    events.module_start(1, orchard).unwrap();
    events.test_start(2, orchard, "p1", "PicksApples", 1).unwrap();
    for index in 0..sample.count(0) {
        events.test_result(3, orchard, &sample.result(0, index).unwrap()).unwrap();
    }
    events.test_result(4, press, &sample.result(1, 1).unwrap()).unwrap();
    events.output(5, press, Stream::Stderr, "half a line \x1b[1m").unwrap();
    events.artifact(6, orchard, &orchard.artifacts[0], None).unwrap();
    let artifact = Artifact { path: "/tmp/one".to_owned(), ..Artifact::default() };
    events.artifact(7, orchard, &artifact, Some("p1")).unwrap();
    events.message(8, orchard, &Message { level: Level::Error, text: "killed".to_owned() }).unwrap();
    events.module_end(9, orchard, &totals[0]).unwrap();
    events.run_end(10, sample.run(), modules, &totals).unwrap();
    let lines = String::from_utf8(events.into_inner()).unwrap();
    for line in lines.lines() {
        let event: serde_json::Value = serde_json::from_str(line).unwrap();
        assert!(event["type"].is_string() && event["ts_ns"].is_u64(), "{line}");
    }
    insta::assert_snapshot!(lines);
}

#[test]
fn summary_document() {
    let sample = run::sample();
    let totals: Vec<_> = (0..3).map(|number| sample.totals(number).unwrap()).collect();
    insta::assert_snapshot!(text(|w| events::summary(w, sample.run(), sample.modules(), &totals)));
}
