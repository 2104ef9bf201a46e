//! The streams of an agent, read piece by piece in the order of time.

use std::time::Duration;

use runtap_bytefrog::hq::Connection;
use runtap_bytefrog_proto::Side;

use crate::recording::error::Error;
use crate::recording::find::RecordedAgent;
use crate::recording::names::StreamName;
use crate::recording::stream::{Next, READ_SIZE, Stream};

/// A reader of all streams of an agent.
#[derive(Debug)]
pub(crate) struct MergedStreams {
    streams: Vec<Stream>,
    buffer: Vec<u8>,
    has_said_hello: bool,
}

/// A part of a stream, or its end.
#[derive(Debug)]
pub(crate) struct StreamChunk<'p> {
    /// The index of the stream, for [`MergedStreams::stop`].
    pub(crate) stream: usize,
    pub(crate) name: &'p StreamName,
    pub(crate) at: Duration,
    /// `None` at the end of the stream.
    pub(crate) bytes: Option<&'p [u8]>,
    /// Whether the times of the stream are known.
    pub(crate) has_index: bool,
}

impl MergedStreams {
    pub(crate) fn open(recorded: &RecordedAgent) -> Result<Self, Error> {
        let streams = recorded.streams.iter().map(Stream::open).collect::<Result<_, _>>()?;
        Ok(Self { streams, buffer: vec![0; READ_SIZE], has_said_hello: false })
    }

    pub(crate) fn streams(&self) -> &[Stream] {
        &self.streams
    }

    /// Reads the earliest piece. `None` if no stream has any more.
    ///
    /// # Errors
    /// Fails if a file cannot be read.
    pub(crate) fn next(&mut self) -> Result<Option<StreamChunk<'_>>, Error> {
        let Some((index, at)) = self.earliest() else { return Ok(None) };
        let Some(stream) = self.streams.get_mut(index) else { return Ok(None) };
        let bytes = if let Next::End(_) = stream.next() {
            stream.stop();
            None
        } else {
            let read = stream.read(&mut self.buffer);
            let path = || stream.files.bytes.clone();
            Some(read.map_err(|error| Error::Read { path: path(), error })?)
        };
        let name = &stream.files.name;
        let is_hello = (name.connection, name.side) == (Connection::Control, Side::Agent);
        self.has_said_hello |= is_hello && bytes.is_some_and(|bytes| !bytes.is_empty());
        Ok(Some(StreamChunk { stream: index, name, at, bytes, has_index: stream.has_index() }))
    }

    /// Skips the rest of a stream.
    pub(crate) fn stop(&mut self, stream: usize) {
        if let Some(stream) = self.streams.get_mut(stream) {
            stream.stop();
        }
    }

    /// Returns the stream with the earliest bytes or end.
    fn earliest(&self) -> Option<(usize, Duration)> {
        let each = self.streams.iter().enumerate().filter_map(|(index, stream)| {
            let (at, is_end) = match stream.next() {
                Next::Bytes(at) => (at, false),
                Next::End(at) => (at, true),
                Next::Nothing => return None,
            };
            let name = &stream.files.name;
            // HQ answers hello; otherwise its messages are never later than the agent's answers.
            let rank = match (name.connection, name.side) {
                (Connection::Control, Side::Hq) if self.has_said_hello => 0,
                (Connection::Control, Side::Agent) => 1,
                (Connection::Control, Side::Hq) => 2,
                (Connection::Data(_), _) => 3,
            };
            Some(((at, is_end, rank, index), index, at))
        });
        each.min_by_key(|(key, ..)| *key).map(|(_, index, at)| (index, at))
    }
}
