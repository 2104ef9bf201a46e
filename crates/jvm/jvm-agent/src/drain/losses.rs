//! The write limits of threads, and the reports of events that did not fit.

use std::io;
use std::sync::atomic::Ordering;

use runtap_bytefrog_proto::Mode;

use super::Drain;
use crate::clock;
use crate::ring::{CAPACITY, PAUSED};

impl Drain {
    /// Sets how far each thread may write.
    pub(super) fn give_room(&mut self) {
        let paused = self.session.mode() == Mode::Paused;
        let carrier_is_degraded = self.reading.carrier_is_degraded;
        for reader in &mut self.reading.readers {
            let limit = if paused {
                PAUSED
            } else if carrier_is_degraded && reader.ring.carries.load(Ordering::SeqCst) {
                // A full ring also switches to counting: calls of virtual threads that change carriers would be incomplete.
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

    /// Reports, at the end, the events that live threads have dropped.
    pub(super) fn report_remaining(&mut self) -> io::Result<()> {
        self.round(true)?;
        let stream = &mut self.reading.stream;
        // A thread that got room again has already written its dropped events to the ring.
        for reader in &mut self.reading.readers {
            reader.report_dropped(stream);
        }
        stream.end_round(true);
        stream.report_all_pending(stream.since_start(clock::now()));
        stream.report_all_missing();
        Ok(())
    }
}
