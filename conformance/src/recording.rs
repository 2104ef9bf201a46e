//! The contents of a session's stream.

use anyhow::Context as _;
use runtap_nettrace::{Reader, StreamItem};

/// The provider of the events that a runtime sends when a session ends.
pub(crate) const RUNDOWN: &str = "Microsoft-Windows-DotNETRuntimeRundown";
/// The event of [`RUNDOWN`] with the name and address of a method.
pub(crate) const METHODS: u32 = 144;

/// An event of a stream.
#[derive(Debug)]
pub(crate) struct Seen {
    pub(crate) provider: String,
    pub(crate) id: u32,
    pub(crate) frames: usize,
    pub(crate) payload: Vec<u8>,
}

/// The stream of a session that was stopped.
#[derive(Debug)]
pub(crate) struct Recording {
    pub(crate) bytes: Vec<u8>,
}

impl Recording {
    /// Reads the stream; `None` if it ends before its end mark.
    pub(crate) fn events(&self) -> anyhow::Result<Option<Vec<Seen>>> {
        let mut reader = Reader::new();
        reader.feed(&self.bytes);
        reader.finish();
        let mut seen = Vec::new();
        while let Some(item) = reader.next().context("read the stream")? {
            if let StreamItem::Event(event) = item
                && let Some(metadata) = event.metadata
            {
                seen.push(Seen {
                    provider: metadata.provider.clone(),
                    id: metadata.event_id,
                    frames: event.stack.ips().count(),
                    payload: event.payload.to_vec(),
                });
            }
        }
        Ok(reader.is_complete().then_some(seen))
    }
}

/// Returns whether the payload contains `text` in UTF-16, the encoding of the runtime's events.
pub(crate) fn mentions(payload: &[u8], text: &str) -> bool {
    let wanted: Vec<u8> = text.encode_utf16().flat_map(u16::to_le_bytes).collect();
    payload.windows(wanted.len()).any(|window| window == wanted)
}
