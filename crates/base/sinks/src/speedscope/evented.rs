//! Evented profiles: frames that open and close.

use super::Frames;
use crate::json::{number, string};
use crate::spans::{self, Change, Lane};
use runtap_model::Trace;
use std::io::{self, Write};

/// Writes a profile named `label`.
pub(super) fn write(
    trace: &Trace,
    label: &str,
    lane: &Lane<'_>,
    frames: &Frames,
    w: &mut impl Write,
) -> io::Result<()> {
    w.write_all(br#"{"type":"evented","name":"#)?;
    string(w, label)?;
    let (mut start_ns, mut end_ns) = (None, 0);
    for sample in lane.samples().filter(|s| s.weight > 0) {
        start_ns.get_or_insert(sample.time_ns);
        end_ns = sample.time_ns.saturating_add(sample.weight);
    }
    let start_ns = start_ns.unwrap_or_default();
    write!(w, r#","unit":"nanoseconds","startValue":{start_ns},"endValue":{end_ns},"events":["#)?;
    let mut first = true;
    spans::walk(trace, lane, |at_ns, change| {
        if !std::mem::take(&mut first) {
            w.write_all(b",")?;
        }
        let (kind, frame): (&[u8], _) = match change {
            Change::Open(frame) => (br#"{"type":"O","frame":"#, frame),
            Change::Close(frame) => (br#"{"type":"C","frame":"#, frame),
        };
        w.write_all(kind)?;
        number(w, frames.index(frame))?;
        w.write_all(br#","at":"#)?;
        number(w, at_ns)?;
        w.write_all(b"}")
    })?;
    w.write_all(b"]}")
}
