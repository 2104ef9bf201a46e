//! What the reports contain: as snapshots to read, as laws for any text, and at the edges.

mod edges;
mod ends;
mod laws;
mod schema;
mod snapshots;
mod spool;

#[path = "../../examples/sample_reports/run.rs"]
mod run;

use runtap_test_report::{Format, Source};

/// A report as text.
fn written(format: Format, source: &impl Source) -> String {
    let mut bytes = Vec::new();
    format.write(source, &mut bytes).expect("a Vec takes all");
    String::from_utf8(bytes).expect("the format is UTF-8")
}
