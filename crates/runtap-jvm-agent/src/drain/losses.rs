//! How far threads may write, and what is told of those that had no room.

use std::io;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use runtap_bytefrog_proto::Mode;
use runtap_bytefrog_proto::f1::{Drop as DropMessage, DropReason};

use super::Drain;
use crate::ring::{CAPACITY, PAUSED, Ring};

impl Drain {
    /// Says how far threads may write.
    pub(super) fn give_room(&mut self) {
        let paused = self.session.mode() == Mode::Paused;
        for reader in &mut self.readers {
            let limit = if paused {
                PAUSED
            } else if self.carrier_degraded && reader.ring.carries.load(Ordering::SeqCst) {
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
        if self.carrier_degraded {
            self.stream.lose_of_virtual();
        }
    }

    pub(super) fn tell_dropped(&mut self, ring: &Ring) {
        let dropped = ring.dropped.swap(0, Ordering::Relaxed);
        if dropped > 0 {
            if ring.carries.load(Ordering::SeqCst) {
                self.stream.lose_of_virtual();
            }
            let time = self.stream.since_start(ring.dropped_since.load(Ordering::Relaxed));
            self.stream.drop_events(ring.tid, Some(&ring.name), time, dropped, DropReason::FULL);
        }
    }

    pub(super) fn tell_degraded(&mut self) {
        for reader in &mut self.readers {
            let degraded = reader.ring.degraded.load(Ordering::Acquire);
            if degraded && !reader.degraded && reader.ring.head() == reader.tail {
                reader.degraded = true;
                self.any_degraded = true;
                if reader.ring.carries.load(Ordering::SeqCst) {
                    self.carrier_degraded = true;
                    self.stream.lose_of_virtual();
                }
                let time = self.stream.since_start(reader.ring.dropped_since.load(Ordering::Relaxed));
                let (tid, name) = (reader.tid, Some(reader.ring.name.as_slice()));
                self.stream.drop_events(tid, name, time, DropMessage::UNKNOWN, DropReason::DEGRADED);
            }
        }
    }

    /// At the end: what live threads have dropped.
    pub(super) fn tell_rest(&mut self) -> io::Result<()> {
        let rings: Vec<_> = self.readers.iter().map(|reader| Arc::clone(&reader.ring)).collect();
        for ring in rings {
            self.tell_dropped(&ring);
        }
        // Who had got room again has written it into the ring.
        self.round(true)?;
        self.stream.tell_all_missing();
        Ok(())
    }
}
