//! An event while it may have to wait for those before it.
//!
//! Owns: [`Event`] and its [`Kind`].

use runtap_bytefrog_proto::Stamp;

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) enum Kind {
    #[default]
    Entry,
    Exit,
    Exception,
    Bubble,
    Visit,
    Marker,
}

/// An event that may have to wait. 20 bytes: times of F1, which are longer, do not come this way.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Event {
    pub(super) time: u32,
    pub(super) thread: u32,
    /// For a marker, where its texts are.
    pub(super) method: u32,
    /// The exception, or the location.
    pub(super) more: u32,
    pub(super) line: u16,
    pub(super) kind: Kind,
}

impl Event {
    #[inline]
    pub(super) fn new(kind: Kind, at: &Stamp, method: u32, more: u32) -> Self {
        // In versions 1 to 4 a time has 32 bits; in F1 it is given beside the event.
        let [.., a, b, c, d] = at.time.to_be_bytes();
        Self { time: u32::from_be_bytes([a, b, c, d]), thread: at.thread, method, more, line: 0, kind }
    }

    #[inline]
    pub(super) fn with_line(self, line: u16) -> Self {
        Self { line, ..self }
    }
}
