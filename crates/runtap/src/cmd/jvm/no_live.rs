//! Substitute for the live view on Windows, where reading single keys is not implemented. Events are printed as lines instead.

use std::convert::Infallible;
use std::io;
use std::sync::Arc;

use runtap_bytefrog::hq::Hq;
use runtap_record::Stops;
use tokio::time::Instant;

use super::hq::watch::{Line, Watch};
use crate::output::Output;

/// A live view, which cannot be created.
#[derive(Debug)]
pub(in crate::cmd) struct View(Infallible);

/// Returns `None`: there is no live view.
pub(in crate::cmd) fn possible(_output: Output) -> Option<View> {
    None
}

impl View {
    #[expect(clippy::unused_async, reason = "the same as elsewhere")]
    pub(super) async fn show(
        self,
        _hq: &Arc<Hq>,
        _watch: &Arc<Watch>,
        _stops: &Stops,
        _over: Instant,
        _stays: bool,
    ) -> io::Result<Vec<Line>> {
        match self.0 {}
    }
}
