//! What of a payload that is cut or damaged can be kept: the entries before the damage. Pure functions of its bytes.

use runtap_wire::{DecodeError, Reader as Bytes};

use crate::block::blob::Blobs;
use crate::block::label::pass_list;
use crate::block::netperf::{self, NetPerfEvent};
use crate::block::point::removed_thread;
use crate::raw::{Format, Kind};
use crate::{Error, Metadata, SequencePoint, Thread};

/// What of a payload is kept.
pub(super) enum Keep {
    All,
    Nothing(Option<Error>),
    Shortened(Vec<u8>, Option<Error>),
}

/// What of a payload can be read.
pub(super) fn keep(format: Format, kind: Kind, payload: &[u8], offset: u64) -> Keep {
    let mut r = Bytes::at(payload, offset);
    match (kind, format) {
        (Kind::Event, Format::NetPerf3) => netperf_events(payload, offset),
        (Kind::Event, _) | (Kind::Metadata, Format::Nettrace4) => blobs(format, payload, offset),
        (Kind::Metadata, Format::Nettrace6) => {
            let header =
                r.u16("size of the block header").and_then(|size| r.bytes(size.into(), "block header"));
            if let Err(error) = header {
                return Keep::Nothing(Some(error.into()));
            }
            rows(payload, r, |r| {
                let size = r.u16("size of a definition")?;
                Metadata::decode_v6(&mut r.sub(size.into(), "definition")?)
            })
        }
        (Kind::Thread, _) => rows(payload, r, |r| {
            let size = r.u16("size of a thread")?;
            Thread::decode(r.sub(size.into(), "thread")?)
        }),
        (Kind::RemoveThread, _) => rows(payload, r, removed_thread),
        (Kind::Stack, _) => counted(payload, &mut r, |r| {
            let size = r.u32("stack length")?;
            r.bytes(usize::try_from(size).unwrap_or(usize::MAX), "stack").map(|_| Some(()))
        }),
        (Kind::LabelList, _) => counted(payload, &mut r, pass_list),
        (Kind::SequencePoint, _) => match SequencePoint::decode(&mut r, format) {
            Ok(_) => Keep::All,
            // Without a sequence point, stack ids would mean what they meant before: one that names no thread.
            Err(error) => match payload.first_chunk::<8>() {
                Some(timestamp) => {
                    let mut point = timestamp.to_vec();
                    point.resize(if format == Format::Nettrace6 { 16 } else { 12 }, 0);
                    Keep::Shortened(point, Some(error.into()))
                }
                None => Keep::Nothing(Some(error.into())),
            },
        },
        _ => Keep::Nothing(None),
    }
}

/// Events, or definitions of Nettrace 4: up to the first that cannot be read.
fn blobs(format: Format, payload: &[u8], offset: u64) -> Keep {
    let mut blobs = match Blobs::start(payload, offset) {
        Ok(blobs) => blobs,
        Err(error) => return Keep::Nothing(Some(error.into())),
    };
    let mut any = false;
    loop {
        let advanced = match format {
            Format::Nettrace6 => blobs.advance::<true>(payload),
            _ => blobs.advance::<false>(payload),
        };
        match advanced {
            Ok(true) => any = true,
            Ok(false) => return Keep::All,
            Err(fault) => {
                let error = Some(fault.into_error(offset + payload.len() as u64).into());
                let kept = payload.get(..blobs.position()).unwrap_or_default();
                return if any { Keep::Shortened(kept.to_vec(), error) } else { Keep::Nothing(error) };
            }
        }
    }
}

/// Events of `NetPerf` 3: those that can be read.
fn netperf_events(payload: &[u8], offset: u64) -> Keep {
    let (mut kept, mut at, mut first_error) = (Vec::new(), 0, None);
    while at < payload.len() {
        let place = match netperf::frame(payload, at) {
            Ok(place) => place,
            Err(fault) => {
                first_error.get_or_insert_with(|| fault.into_error(offset + payload.len() as u64).into());
                break;
            }
        };
        match NetPerfEvent::decode(payload, &place) {
            Ok(_) => kept.extend_from_slice(payload.get(place.clone()).unwrap_or_default()),
            Err(fault) => {
                first_error.get_or_insert_with(|| fault.into_error(offset + place.end as u64).into());
            }
        }
        at = place.end;
    }
    match first_error {
        None => Keep::All,
        error if kept.is_empty() => Keep::Nothing(error),
        error => Keep::Shortened(kept, error),
    }
}

/// Rows of Nettrace 6: up to the first that cannot be read.
fn rows<T>(
    payload: &[u8],
    mut r: Bytes<'_>,
    mut row: impl FnMut(&mut Bytes<'_>) -> Result<T, DecodeError>,
) -> Keep {
    while !r.is_empty() {
        let before = r.clone();
        if let Err(error) = row(&mut r) {
            let kept = payload.get(..payload.len() - before.remaining()).unwrap_or_default();
            return Keep::Shortened(kept.to_vec(), Some(error.into()));
        }
    }
    Keep::All
}

/// A block that counts its entries in its second field: up to the first that cannot be read, or that nobody knows.
fn counted(
    payload: &[u8],
    r: &mut Bytes<'_>,
    mut entry: impl FnMut(&mut Bytes<'_>) -> Result<Option<()>, DecodeError>,
) -> Keep {
    let count = match r.u32("first id").and_then(|_first| r.u32("number of entries")) {
        Ok(count) => count,
        Err(error) => return Keep::Nothing(Some(error.into())),
    };
    let (mut whole, mut end, mut damage) = (0_u32, payload.len() - r.remaining(), None);
    while whole < count {
        match entry(r) {
            Ok(Some(())) => {}
            Ok(None) => break,
            Err(error) => {
                damage = Some(error.into());
                break;
            }
        }
        whole += 1;
        end = payload.len() - r.remaining();
    }
    if whole == count {
        return Keep::All;
    }
    if whole == 0 {
        return Keep::Nothing(damage);
    }
    let mut kept = payload.get(..end).unwrap_or_default().to_vec();
    if let Some(place) = kept.get_mut(4..8) {
        place.copy_from_slice(&whole.to_le_bytes());
    }
    Keep::Shortened(kept, damage)
}
