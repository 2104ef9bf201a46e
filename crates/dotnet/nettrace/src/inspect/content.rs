//! The contents of one payload, up to the damage.

use runtap_wire::{DecodeError, Reader as Bytes};

use super::{Content, Events, Listed};
use crate::block::blob::Blobs;
use crate::block::label::pass_list;
use crate::block::netperf::{self, NetPerfEvent};
use crate::block::point::removed_thread;
use crate::raw::{Format, ObjectKind};
use crate::walk::FrameHeader;
use crate::{Limits, Metadata, SequencePoint, Thread, TraceHeader};

pub(super) struct BlockContent {
    pub(super) content: Content,
    pub(super) damage: Option<DecodeError>,
}

impl BlockContent {
    pub(super) fn read(&mut self, format: Format, head: &FrameHeader, payload: &[u8], offset: u64) {
        let mut r = Bytes::at(payload, offset);
        let result = match (head.kind, format) {
            (ObjectKind::Trace, _) => TraceHeader::decode(&mut r, format, head.version)
                .map(|header| self.content = Content::Trace(Box::new(header))),
            (ObjectKind::Event, Format::NetPerf3) => self.netperf_events(payload, offset),
            (ObjectKind::Event, _) => self.events(format, payload, offset),
            (ObjectKind::Metadata, Format::Nettrace6) => self.rows(&mut r),
            (ObjectKind::Metadata, _) => self.definitions(payload, offset),
            (ObjectKind::Stack, _) => self.counted(
                &mut r,
                |first_id, count| Content::Stacks { first_id, count },
                |r| {
                    let size = r.u32("stack length")?;
                    r.bytes(usize::try_from(size).unwrap_or(usize::MAX), "stack").map(|_| Some(()))
                },
            ),
            (ObjectKind::LabelList, _) => {
                self.counted(&mut r, |first_id, count| Content::Labels { first_id, count }, pass_list)
            }
            (ObjectKind::SequencePoint, _) => SequencePoint::decode(&mut r, format).map(|point| {
                let mut threads = Listed::default();
                point.threads.iter().for_each(|thread| threads.push(thread, 0));
                let (timestamp, flags) = (point.timestamp, point.flags);
                self.content = Content::SequencePoint { timestamp, flags, threads };
            }),
            (ObjectKind::Thread, _) => {
                let mut threads = Listed::default();
                let result = each(&mut r, |r| {
                    let size = r.u16("size of a thread")?;
                    threads.push(Thread::decode(r.sub(size.into(), "thread")?)?, size.into());
                    Ok(())
                });
                self.content = Content::Threads(threads);
                result
            }
            (ObjectKind::RemoveThread, _) => {
                let mut removed = Listed::default();
                let result = each(&mut r, |r| {
                    removed.push(removed_thread(r)?, 0);
                    Ok(())
                });
                self.content = Content::RemovedThreads(removed);
                result
            }
            (ObjectKind::Unknown, _) => Ok(()),
        };
        self.damage = result.err();
    }

    fn events(&mut self, format: Format, payload: &[u8], offset: u64) -> Result<(), DecodeError> {
        let mut events = Events::default();
        let mut blobs = Blobs::start(payload, offset)?;
        events.compressed = blobs.compressed();
        let mut r = Bytes::at(payload, offset);
        r.u32("block header")?;
        events.stated_times = Some((r.u64("least time stamp")?, r.u64("greatest time stamp")?));
        let result = loop {
            let advanced = match format {
                Format::Nettrace6 => blobs.advance::<true>(payload),
                _ => blobs.advance::<false>(payload),
            };
            match advanced {
                Ok(true) => {
                    let size = blobs.place.payload_range().len();
                    events.add(blobs.head.timestamp, blobs.head.sorted, size);
                }
                Ok(false) => break Ok(()),
                Err(fault) => break Err(fault.into_error(offset + payload.len() as u64)),
            }
        };
        self.content = Content::Events(events);
        result
    }

    fn netperf_events(&mut self, payload: &[u8], offset: u64) -> Result<(), DecodeError> {
        let mut events = Events::default();
        let (mut at, mut damage) = (0, None);
        while at < payload.len() {
            let place = match netperf::frame(payload, at) {
                Ok(place) => place,
                Err(fault) => {
                    damage.get_or_insert_with(|| fault.into_error(offset + payload.len() as u64));
                    break;
                }
            };
            match NetPerfEvent::decode(payload, &place) {
                Ok(event) => events.add_netperf(&event),
                Err(fault) => {
                    damage.get_or_insert_with(|| fault.into_error(offset + place.end as u64));
                }
            }
            at = place.end;
        }
        self.content = Content::Events(events);
        damage.map_or(Ok(()), Err)
    }

    /// Definitions of Nettrace 4.
    fn definitions(&mut self, payload: &[u8], offset: u64) -> Result<(), DecodeError> {
        let mut definitions = Listed::default();
        let mut blobs = Blobs::start(payload, offset)?;
        let result = loop {
            match blobs.advance::<false>(payload) {
                Ok(true) => {
                    let at = offset + blobs.place.payload_range().start as u64;
                    let record = blobs.place.payload(payload);
                    // A reader ignores the rest, too.
                    let most = record.len().min(Limits::default().max_definition);
                    let readable = record.get(..most).unwrap_or_default();
                    match Metadata::decode_v4(&mut Bytes::at(readable, at)) {
                        Ok(definition) => definitions.push(definition, readable.len()),
                        Err(error) => break Err(error),
                    }
                }
                Ok(false) => break Ok(()),
                Err(fault) => break Err(fault.into_error(offset + payload.len() as u64)),
            }
        };
        self.content = Content::Metadata(definitions);
        result
    }

    /// Definitions of Nettrace 6.
    fn rows(&mut self, r: &mut Bytes<'_>) -> Result<(), DecodeError> {
        let header = r.u16("size of the block header")?;
        r.bytes(header.into(), "block header")?;
        let mut definitions = Listed::default();
        let result = each(r, |r| {
            let size = r.u16("size of a definition")?;
            definitions.push(Metadata::decode_v6(&mut r.sub(size.into(), "definition")?)?, size.into());
            Ok(())
        });
        self.content = Content::Metadata(definitions);
        result
    }

    fn counted(
        &mut self,
        r: &mut Bytes<'_>,
        content: impl FnOnce(u32, u32) -> Content,
        mut entry: impl FnMut(&mut Bytes<'_>) -> Result<Option<()>, DecodeError>,
    ) -> Result<(), DecodeError> {
        let (first_id, stated) = (r.u32("first id")?, r.u32("number of entries")?);
        let mut count = 0;
        let mut result = Ok(());
        while count < stated {
            match entry(r) {
                Ok(Some(())) => count += 1,
                Ok(None) => break,
                Err(error) => {
                    result = Err(error);
                    break;
                }
            }
        }
        self.content = content(first_id, count);
        result
    }
}

/// Reads entries up to the end of the block.
fn each(
    r: &mut Bytes<'_>,
    mut one: impl FnMut(&mut Bytes<'_>) -> Result<(), DecodeError>,
) -> Result<(), DecodeError> {
    while !r.is_empty() {
        one(r)?;
    }
    Ok(())
}
