//! What a router has carried: `runtap.router/1` with its text.

use std::io;

use serde::Serialize;

use crate::units::{Bytes, Things};
use crate::{Print, TextOptions};

/// `runtap.router/1`
#[derive(Debug, Default, Serialize)]
pub struct RouterDocument {
    schema: &'static str,
    /// Clients that have connected.
    pub connections: u64,
    /// Requests that a runtime got.
    pub forwarded: u64,
    /// Requests that the router has answered, because a runtime could be harmed by them.
    pub refused: u64,
    /// Clients that have asked for nothing.
    pub silent: u64,
    /// Requests for which no runtime could be reached.
    pub not_reached: u64,
    /// Runtimes that were there.
    pub runtimes: u64,
    /// How often a runtime was disconnected for lack of a place.
    pub without_place: u64,
    /// The most clients that have waited at one time.
    pub most_waiting: u64,
    /// Bytes to the runtimes.
    pub bytes_to_runtimes: u64,
    /// Bytes to the clients.
    pub bytes_to_clients: u64,
}

impl RouterDocument {
    /// Of one that has carried nothing.
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
            (Things(refused, "request"), "answered by the router: malformed, or not supported"),
            (Things(not_reached, "request"), "for which no runtime was reached"),
            (Things(silent, "client"), "without a request"),
        ] {
            if things.0 > 0 {
                writeln!(out, "{things} {what}")?;
            }
        }
        if self.without_place > 0 {
            writeln!(out, "{} of runtimes without a place", Things(self.without_place, "connection"))?;
        }
        if self.most_waiting > 0 {
            writeln!(out, "at most {} waited at the same time", Things(self.most_waiting, "client"))?;
        }
        Ok(())
    }
}
