//! Without a live view: reading single keys from a terminal was not brought to Windows. There are lines instead.

use std::convert::Infallible;
use std::io;
use std::sync::Arc;

use runtap_bytefrog::hq::Hq;
use runtap_record::Stops;
use tokio::time::Instant;

use super::hq::watch::{Line, Watch};
use crate::output::Output;

/// A view that there is: none.
#[derive(Debug)]
pub(in crate::cmd) struct View(Infallible);

/// Whether there is a terminal for a live view.
pub(in crate::cmd) fn possible(_output: Output) -> Option<View> {
    None
}

impl View {
    #[expect(clippy::unused_async, reason = "the same as elsewhere")]
    pub(super) async fn show(
        self,
        _hq: &Arc<Hq>,
        _heard: &Arc<Watch>,
        _stops: &Stops,
        _over: Instant,
        _stays: bool,
    ) -> io::Result<Vec<Line>> {
        match self.0 {}
    }
}
