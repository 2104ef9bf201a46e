//! Perfetto's own trace format: track events in Protocol Buffers.
//!
//! | in the model | in the file |
//! |---|---|
//! | process, or each of several | a packet with a `TrackDescriptor`: `process`, with `pid`, `process_name` and `cmdline` |
//! | thread with weight in the view | a packet with `thread`: `pid`, `tid`, `thread_name` = `Thread (TID) NAME`; in the order of first use |
//! | frame | an interned event name, sent with its first event |
//! | consecutive samples with the same frame in the same position | `TYPE_SLICE_BEGIN` where it opens, `TYPE_SLICE_END` where it closes |
//! | overlapping events of a thread | on further tracks below the thread's |
//! | a sample without a stack | a slice named `[no stack]` |
//! | time, weight | `timestamp`: nanoseconds since the session's start |
//! | start of the session | a `ClockSnapshot` with the start according to `BOOTTIME` (0) and `REALTIME` |
//! | view | selects the samples; `thread-time` by default. Omitted samples are gaps |
//! | kind | not in the file |
//! | a sample without duration | not in the file: its time is part of the others |
//!
//! The packets of a thread are consecutive and in order; readers sort all packets by time, and keep the order of equal
//! times. All packets belong to one sequence. Processes with equal ids get different ones, see `processes.rs`.

mod message;

use self::message::{
    BOOTTIME, Clock, ClockSnapshot, EventName, InternedData, NEEDS_STATE, PACKET, ProcessDescriptor,
    REALTIME, SLICE_BEGIN, SLICE_END, STATE_CLEARED, ThreadDescriptor, TracePacket, TrackDescriptor,
    TrackEvent,
};
use crate::processes::{Numbered, Processes};
use crate::proto::Fields;
use crate::spans::{self, Change};
use crate::{Error, Options};
use runtap_model::text::Clean;
use runtap_model::{FrameHandle, NO_STACK, Thread, Trace, Unit};
use std::io::{BufWriter, Write};

/// Id of the only packet sequence.
const SEQUENCE: u32 = 1;
/// Writes `trace` for Perfetto.
pub fn write(trace: &Trace, w: impl Write, options: &Options) -> Result<(), Error> {
    if options.view.unit() != Unit::Nanoseconds {
        return Err(Error::NoTimeAxis(options.view));
    }
    let threads = crate::threads(trace, options.view)?;
    let processes = Processes::new(trace, &threads);

    let mut file = Fields::new(BufWriter::with_capacity(1 << 16, w));
    file.message(PACKET, &first(trace))?;
    // The tracks of processes are numbered from 1, followed by those of threads.
    let track_of = |place: usize| place as u64 + 1;
    for (place, process) in processes.iter().enumerate() {
        file.message(PACKET, &describe(process, track_of(place)))?;
    }
    // Whether each name was sent, by the index of the frame. The last is that of the missing stack.
    let no_stack = trace.frames().len();
    let mut sent = vec![false; no_stack + 1];
    let mut track = processes.iter().len() as u64;
    for (index, thread) in threads.iter().enumerate() {
        track += 1;
        let of_thread = track;
        file.message(
            PACKET,
            &description(thread, of_thread, processes.of(index), track_of(processes.place(index))),
        )?;
        for (number, lane) in spans::lanes(thread, options.view).iter().enumerate() {
            if number > 0 {
                track += 1;
                file.message(PACKET, &further_track(thread, track, of_thread))?;
            }
            spans::walk(trace, lane, |time_ns, change| {
                let event = TrackEvent { track_uuid: Some(track), ..TrackEvent::default() };
                let (event, names) = match change {
                    Change::Open(frame) => {
                        let index = frame.map_or(no_stack, FrameHandle::index);
                        let iid = Some(index as u64 + 1);
                        let new = !std::mem::replace(&mut sent[index], true);
                        let names = new.then(|| InternedData {
                            event_names: vec![EventName { iid, name: Some(name(trace, frame)) }],
                        });
                        (TrackEvent { r#type: Some(SLICE_BEGIN), name_iid: iid, ..event }, names)
                    }
                    Change::Close(_) => (TrackEvent { r#type: Some(SLICE_END), ..event }, None),
                };
                let packet = TracePacket {
                    timestamp: Some(time_ns),
                    track_event: Some(event),
                    interned_data: names,
                    ..packet()
                };
                file.message(PACKET, &packet)
            })?;
        }
    }
    file.into_inner().flush()?;
    Ok(())
}

/// Creates a packet of the sequence.
fn packet() -> TracePacket {
    TracePacket {
        trusted_packet_sequence_id: Some(SEQUENCE),
        sequence_flags: Some(NEEDS_STATE),
        ..TracePacket::default()
    }
}

/// Creates the packet that starts the sequence and sets the clocks.
fn first(trace: &Trace) -> TracePacket {
    let clock = |id, timestamp| Clock { clock_id: Some(id), timestamp: Some(timestamp) };
    let start = trace.start_unix_ns().and_then(|start| u64::try_from(start).ok());
    let clocks = [clock(BOOTTIME, 0)].into_iter().chain(start.map(|start| clock(REALTIME, start)));
    TracePacket {
        timestamp: Some(0),
        clock_snapshot: Some(ClockSnapshot { clocks: clocks.collect() }),
        sequence_flags: Some(STATE_CLEARED),
        ..packet()
    }
}

fn describe(process: Numbered<'_>, track: u64) -> TracePacket {
    let descriptor = ProcessDescriptor {
        pid: Some(number(process)),
        cmdline: process.process.command_line.iter().map(clean).collect(),
        process_name: process.process.name.as_ref().map(clean),
    };
    let track_descriptor =
        TrackDescriptor { uuid: Some(track), process: Some(descriptor), ..TrackDescriptor::default() };
    TracePacket { timestamp: Some(0), track_descriptor: Some(track_descriptor), ..packet() }
}

fn number(process: Numbered<'_>) -> i32 {
    i32::try_from(process.pid).unwrap_or(1)
}

fn description(thread: &Thread, track: u64, process: Numbered<'_>, parent: u64) -> TracePacket {
    let descriptor = ThreadDescriptor {
        pid: Some(number(process)),
        tid: Some(i64::try_from(thread.tid()).unwrap_or(i64::MAX)),
        thread_name: Some(clean(thread.own_label())),
    };
    let track_descriptor = TrackDescriptor {
        uuid: Some(track),
        parent_uuid: Some(parent),
        thread: Some(descriptor),
        ..TrackDescriptor::default()
    };
    TracePacket { timestamp: Some(0), track_descriptor: Some(track_descriptor), ..packet() }
}

/// Creates a track for events that overlap those on the thread's own track.
fn further_track(thread: &Thread, track: u64, of_thread: u64) -> TracePacket {
    let track_descriptor = TrackDescriptor {
        uuid: Some(track),
        name: Some(clean(thread.own_label())),
        parent_uuid: Some(of_thread),
        ..TrackDescriptor::default()
    };
    TracePacket { timestamp: Some(0), track_descriptor: Some(track_descriptor), ..packet() }
}

fn name(trace: &Trace, frame: Option<FrameHandle>) -> String {
    frame.map_or_else(|| NO_STACK.to_owned(), |f| clean(trace.frame(f).to_string()))
}

/// Readers print texts on terminals unchanged.
fn clean(text: impl AsRef<str>) -> String {
    Clean(text.as_ref()).to_string()
}
