//! An event that may have to wait for earlier ones.

use runtap_bytefrog_proto::Stamp;

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) enum EventKind {
    #[default]
    Entry,
    Exit,
    Exception,
    Bubble,
    Visit,
    Marker,
}

/// An event that may have to wait for earlier ones. It has 20 bytes: the longer times of F1 are passed separately.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Event {
    pub(super) time: u32,
    pub(super) thread: u32,
    /// The method; for a marker, the index of its texts.
    pub(super) method: u32,
    /// The exception or the location.
    pub(super) more: u32,
    pub(super) line: u16,
    pub(super) kind: EventKind,
}

impl Event {
    #[inline]
    pub(super) fn new(kind: EventKind, at: &Stamp, method: u32, more: u32) -> Self {
        // In versions 1 to 4 a time has 32 bits; in F1 it is passed beside the event.
        let [.., a, b, c, d] = at.time.to_be_bytes();
        Self { time: u32::from_be_bytes([a, b, c, d]), thread: at.thread, method, more, line: 0, kind }
    }

    #[inline]
    pub(super) fn with_line(self, line: u16) -> Self {
        Self { line, ..self }
    }
}
