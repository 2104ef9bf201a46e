//! `runtap trace --user-events` on systems other than Linux, where these tracepoints do not exist.

use runtap_record::providers::Request;
use runtap_text::Output;

use crate::cli::Trace;
use crate::exit::{self, expected};

#[allow(clippy::unused_async, reason = "the same as on Linux")]
pub(super) async fn run(_options: &Trace, _request: &Request, _output: Output) -> anyhow::Result<u8> {
    let hint = "record into a file, without --user-events".to_owned();
    Err(expected(exit::USAGE, "user_events are tracepoints of Linux: there are none here", hint))
}
