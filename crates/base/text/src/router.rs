//! Statistics of a router: `runtap.router/1` with its text.

use std::io;

use serde::Serialize;

use crate::units::{Bytes, Things};
use crate::{Print, TextOptions};

/// The document `runtap.router/1`.
#[derive(Debug, Default, Serialize)]
pub struct RouterDocument {
    schema: &'static str,
    /// Number of clients that connected.
    pub connections: u64,
    /// Number of requests forwarded to a runtime.
    pub forwarded: u64,
    /// Number of requests that the router rejected because they could harm a runtime.
    pub refused: u64,
    /// Number of clients that sent no request.
    pub silent: u64,
    /// Number of requests for which no runtime could be reached.
    pub not_reached: u64,
    /// Number of runtimes that connected.
    pub runtimes: u64,
    /// Number of runtimes that were disconnected because there were too many.
    pub without_place: u64,
    /// Maximum number of clients waiting at the same time.
    pub most_waiting: u64,
    /// Number of bytes sent to runtimes.
    pub bytes_to_runtimes: u64,
    /// Number of bytes sent to clients.
    pub bytes_to_clients: u64,
}

impl RouterDocument {
    /// Creates the document with all numbers 0.
    pub fn new() -> Self {
        Self { schema: "runtap.router/1", ..Self::default() }
    }
}

impl Print for RouterDocument {
    fn print(&self, out: &mut dyn io::Write, _: &TextOptions<'_>) -> io::Result<()> {
        let Self { connections, forwarded, refused, silent, not_reached, .. } = *self;
        writeln!(
            out,
            "{}, {} forwarded ({} to clients, {} to runtimes)",
            Things(connections, "connection"),
            Things(forwarded, "request"),
            Bytes(self.bytes_to_clients),
            Bytes(self.bytes_to_runtimes),
        )?;
        for (things, what) in [
            (Things(refused, "request"), "rejected by the router (malformed or unsupported)"),
            (Things(not_reached, "request"), "for which no runtime was reached"),
            (Things(silent, "client"), "without a request"),
        ] {
            if things.0 > 0 {
                writeln!(out, "{things} {what}")?;
            }
        }
        if self.without_place > 0 {
            writeln!(
                out,
                "{} of runtimes rejected because of too many runtimes",
                Things(self.without_place, "connection")
            )?;
        }
        if self.most_waiting > 0 {
            writeln!(out, "at most {} waiting at the same time", Things(self.most_waiting, "client"))?;
        }
        Ok(())
    }
}
