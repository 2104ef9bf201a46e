//! Messages of versions 1 to 4: one for each event, numbered across all threads.

use runtap_bytefrog_proto::{Dialect, Exit, Message, Stamp};

use super::{Event, Stream};
use crate::ring::EventKind;

impl Stream {
    pub(super) fn event_numbered(&mut self, event: &Event) {
        // Later versions have no message for exceptions: the exit of a call has a flag instead.
        let has_flagged_exits = self.dialect != Dialect::V1 && self.dialect != Dialect::V1CodePulse;
        if has_flagged_exits && event.kind == EventKind::Throw {
            return;
        }
        let Some((_, thread)) = &self.current else { return };
        let connection = thread.connection;
        let time = self.wire_time(event.time);
        let at = Stamp { time, sequence: self.sequence.into(), thread: thread.wire };
        let method = event.method;
        let thrown = Exit::Thrown(u8::from(event.kind == EventKind::Bubble));
        let message = match event.kind {
            EventKind::Entry => Message::Entry { at, method },
            EventKind::Exit if self.dialect == Dialect::V1 => {
                Message::Exit { at, method, exit: Exit::Line(event.line) }
            }
            EventKind::Throw => {
                Message::Exception { at, method, exception: event.exception, line: event.line }
            }
            EventKind::Bubble if !has_flagged_exits => {
                Message::Bubble { at, method, exception: event.exception }
            }
            _ => Message::Exit { at, method, exit: thrown },
        };
        self.sequence = self.sequence.wrapping_add(1);
        self.write(connection, &message);
    }
}
