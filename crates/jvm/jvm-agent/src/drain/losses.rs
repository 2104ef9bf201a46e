//! How far threads may write, and what is told of those that had no room.

use std::io;
use std::sync::atomic::Ordering;

use runtap_bytefrog_proto::Mode;

use super::Drain;
use crate::clock;
use crate::ring::{CAPACITY, PAUSED};

impl Drain {
    /// Says how far threads may write.
    pub(super) fn give_room(&mut self) {
        let paused = self.session.mode() == Mode::Paused;
        let carrier_is_degraded = self.reading.carrier_is_degraded;
        for reader in &mut self.reading.readers {
            let limit = if paused {
                PAUSED
            } else if carrier_is_degraded && reader.ring.carries.load(Ordering::SeqCst) {
                // It only counts too, once it is full: calls that go from one to another would be cut.
                reader.limit
            } else {
                reader.tail + CAPACITY
            };
            if limit != reader.limit {
                reader.limit = limit;
                reader.ring.set_limit(limit);
            }
        }
    }

    /// At the end: what live threads have dropped.
    pub(super) fn tell_rest(&mut self) -> io::Result<()> {
        self.round(true)?;
        let stream = &mut self.reading.stream;
        // Who had got room again has written how much it had dropped into the ring.
        for reader in &mut self.reading.readers {
            reader.tell_dropped(stream);
        }
        stream.end_round(true);
        stream.tell_all_pending(stream.since_start(clock::now()));
        stream.tell_all_missing();
        Ok(())
    }
}
