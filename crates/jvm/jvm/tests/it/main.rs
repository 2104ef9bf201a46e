//! Coverage from events to files: what is counted, what is written, and who else can read it.

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

/// A file as text.
fn written(format: Format, coverage: &Coverage) -> String {
    let mut bytes = Vec::new();
    format.write(coverage, &mut bytes, &WriteOptions::default()).expect("a Vec takes all");
    String::from_utf8(bytes).expect("the format is UTF-8")
}
