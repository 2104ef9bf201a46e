//! Splitting of one direction's bytes into segments that may be forwarded in a single write: complete frames, and bytes that are
//! not frames.

use std::io::{ErrorKind, Read};
use std::ops::ControlFlow;

use runtap_mtp_proto::{DecodeError, Frame, Limits};

/// The size of the read buffer in bytes.
const READ_SIZE: usize = 64 << 10;

/// Reads until the end, until `take` breaks, or until an error, which is returned as text.
pub(crate) fn read_to_end(
    mut from: impl Read,
    mut take: impl FnMut(&[u8]) -> ControlFlow<()>,
) -> Option<String> {
    let mut buffer = vec![0; READ_SIZE];
    loop {
        let bytes = match from.read(&mut buffer) {
            Ok(0) => return None,
            Ok(count) => buffer.get(..count).unwrap_or_default(),
            Err(error) if error.kind() == ErrorKind::Interrupted => continue,
            Err(error) => return Some(error.to_string()),
        };
        if take(bytes).is_break() {
            return None;
        }
    }
}

/// A segment that may be forwarded.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Segment {
    /// A complete frame with its length word.
    Frame(Vec<u8>),
    /// Bytes after an invalid length, where the start of the next frame is unknown.
    Bytes(Vec<u8>),
}

/// Splits a stream into segments. Buffers at most the bytes that were fed.
#[derive(Debug, Default)]
pub(crate) struct FrameSplitter {
    pending: Vec<u8>,
    limits: Limits,
    /// The error after which no frames can be found.
    broken: Option<DecodeError>,
}

impl FrameSplitter {
    /// Adds bytes, and returns the segments that they complete.
    pub(crate) fn feed(&mut self, bytes: &[u8]) -> Vec<Segment> {
        if self.broken.is_some() {
            return vec![Segment::Bytes(bytes.to_vec())];
        }
        self.pending.extend_from_slice(bytes);
        let (mut segments, mut at) = (Vec::new(), 0);
        loop {
            let rest = self.pending.get(at..).unwrap_or_default();
            match Frame::parse(rest, self.limits) {
                Ok((_, size)) => {
                    segments.push(Segment::Frame(rest.get(..size).unwrap_or_default().to_vec()));
                    at += size;
                }
                Err(error) if error.is_incomplete() => break,
                Err(error) => {
                    self.broken = Some(error);
                    segments.push(Segment::Bytes(rest.to_vec()));
                    at = self.pending.len();
                    break;
                }
            }
        }
        self.pending.drain(..at);
        segments
    }

    /// Takes the incomplete frame at the end of the stream.
    pub(crate) fn leftover(&mut self) -> Vec<u8> {
        std::mem::take(&mut self.pending)
    }

    /// Returns the error of an invalid length.
    pub(crate) fn error(&self) -> Option<&DecodeError> {
        self.broken.as_ref()
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn frame(body: &[u8]) -> Vec<u8> {
        let length = u32::try_from(body.len() + 4).unwrap();
        [&length.to_le_bytes()[..], &6_u32.to_le_bytes(), body].concat()
    }

    #[test]
    fn bytes_that_are_not_frames_pass_unchanged() {
        let mut splitter = FrameSplitter::default();
        let first = frame(b"a");
        let bad = [3, 0, 0, 0, 9];
        let fed = splitter.feed(&[&first[..], &bad].concat());
        assert_eq!(fed, [Segment::Frame(first), Segment::Bytes(bad.to_vec())]);
        assert!(splitter.error().is_some());
        assert_eq!(splitter.feed(b"xy"), [Segment::Bytes(b"xy".to_vec())]);
        assert!(splitter.leftover().is_empty());
    }

    #[test]
    fn an_incomplete_frame_is_left_over() {
        let mut splitter = FrameSplitter::default();
        let whole = frame(b"abc");
        assert_eq!(splitter.feed(&whole[..9]), []);
        assert_eq!(splitter.leftover(), whole[..9]);
    }

    proptest! {
        #[test]
        fn all_bytes_are_kept_however_the_stream_is_split(
            bodies in prop::collection::vec(prop::collection::vec(any::<u8>(), 0..40), 0..8),
            tail in prop::collection::vec(any::<u8>(), 0..20),
            cuts in prop::collection::vec(1_usize..30, 1..20),
        ) {
            let mut stream: Vec<u8> = bodies.iter().flat_map(|body| frame(body)).collect();
            stream.extend_from_slice(&tail);
            let (mut splitter, mut out, mut whole) = (FrameSplitter::default(), Vec::new(), 0);
            let (mut rest, mut cuts) = (&stream[..], cuts.iter().cycle());
            while !rest.is_empty() {
                let (chunk, next) = rest.split_at((*cuts.next().unwrap()).min(rest.len()));
                for segment in splitter.feed(chunk) {
                    match segment {
                        Segment::Frame(bytes) => { whole += 1; out.extend(bytes); }
                        Segment::Bytes(bytes) => out.extend(bytes),
                    }
                }
                rest = next;
            }
            out.extend(splitter.leftover());
            prop_assert_eq!(&out, &stream);
            prop_assert!(whole >= bodies.len());
        }
    }
}
