//! Coverage from events to files: the counts, the output, and third-party readers.

mod builds;
mod files;
mod foreign;
mod jars;
mod languages;
mod laws;
mod never;
mod program;
mod recordings;
mod trace;
mod xml;

#[path = "../../examples/sample_coverage/sample.rs"]
mod sample;

use runtap_jvm::coverage::{Coverage, Format, WriteOptions};

/// Returns a coverage file as text.
fn written(format: Format, coverage: &Coverage) -> String {
    let mut bytes = Vec::new();
    format.write(coverage, &mut bytes, &WriteOptions::default()).expect("a Vec takes all");
    String::from_utf8(bytes).expect("the format is UTF-8")
}
