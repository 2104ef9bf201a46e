//! The stream around the blocks: first bytes, and headers and ends of objects.

use runtap_wire::Writer as Bytes;

use super::size_u32;
use crate::TraceHeader;
use crate::raw::envelope::{self, name};
use crate::raw::{ObjectKind, v6};

/// The version of the format to write.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
#[non_exhaustive]
pub enum Version {
    /// Nettrace 4, which all runtimes write and every tool reads.
    #[default]
    Nettrace4,
    /// `NetPerf` 3, which .NET Decoder 2.1 wrote, for the tools of that time: without sequence numbers, so that readers cannot
    /// detect lost events, and with time stamps that never decrease.
    NetPerf3,
    /// Nettrace 6, for threads of several processes, labels, and more detailed definitions.
    Nettrace6,
}

/// The bytes of a stream that were not taken yet.
#[derive(Debug)]
pub(super) struct Frames {
    version: Version,
    output: Bytes,
    /// The stream offset of the first byte of `output`.
    taken: u64,
}

impl Frames {
    /// Starts a stream.
    pub(super) fn start(header: &TraceHeader, version: Version) -> Self {
        let mut frames = Self { version, output: Bytes::new(), taken: 0 };
        if version != Version::NetPerf3 {
            frames.output.bytes(envelope::MAGIC);
        }
        match version {
            Version::Nettrace4 | Version::NetPerf3 => {
                frames.output.bytes(envelope::SERIALIZER);
                frames.begin_object(name::TRACE);
                header.encode_v4(&mut frames.output);
                frames.output.u8(envelope::END_OBJECT);
            }
            Version::Nettrace6 => {
                frames.output.u32(0).u32(v6::MAJOR).u32(0);
                let mut payload = Bytes::new();
                header.encode_v6(&mut payload);
                frames.block(ObjectKind::Trace, payload.as_bytes());
            }
        }
        frames
    }

    pub(super) fn version(&self) -> Version {
        self.version
    }

    /// Returns the stream offset of the next byte.
    pub(super) fn offset(&self) -> u64 {
        self.taken + self.output.len() as u64
    }

    /// Takes the bytes.
    pub(super) fn take(&mut self) -> Vec<u8> {
        self.taken = self.offset();
        std::mem::take(&mut self.output).into_bytes()
    }

    /// Writes the end marker.
    pub(super) fn end(&mut self) {
        match self.version {
            Version::Nettrace4 | Version::NetPerf3 => self.output.u8(envelope::NULL_REFERENCE),
            Version::Nettrace6 => self.output.u32(0),
        };
    }

    /// Writes a block.
    pub(super) fn block(&mut self, kind: ObjectKind, payload: &[u8]) {
        if self.version == Version::Nettrace6 {
            // The writer keeps blocks far below the limit of 24 bits.
            let [a, b, c, _] = size_u32(payload.len()).to_le_bytes();
            self.output.bytes(&[a, b, c, v6::kind_of(kind)]).bytes(payload);
            return;
        }
        self.begin_object(envelope::name_of(kind));
        self.output.u32(size_u32(payload.len()));
        for _ in 0..envelope::padding(self.offset()) {
            self.output.u8(0);
        }
        self.output.bytes(payload).u8(envelope::END_OBJECT);
    }

    fn begin_object(&mut self, name: &[u8]) {
        use envelope::{BEGIN_OBJECT, BEGIN_PRIVATE_OBJECT, BLOCK_VERSION, TRACE_VERSION};
        let trace = name == name::TRACE;
        // The tag, the version and the oldest reader's version.
        let (begin, version, min_reader) = match (self.version, trace) {
            (Version::NetPerf3, true) => (BEGIN_OBJECT, 3, 0),
            (Version::NetPerf3, false) => (BEGIN_OBJECT, 1, 0),
            (_, true) => (BEGIN_PRIVATE_OBJECT, TRACE_VERSION, TRACE_VERSION),
            (_, false) => (BEGIN_PRIVATE_OBJECT, BLOCK_VERSION, BLOCK_VERSION),
        };
        self.output
            .bytes(&[begin, begin, envelope::NULL_REFERENCE])
            .u32(version)
            .u32(min_reader)
            .u32(size_u32(name.len()))
            .bytes(name)
            .u8(envelope::END_OBJECT);
    }
}
