//! Sessions without a server: buffered, lost and blocked events.

use std::sync::atomic::AtomicU64;
use std::thread;

use runtap_diag_proto::{Level, Provider};

use super::*;
use crate::records::Record;

fn session(session_buffer: usize) -> Session {
    with(&Limits { session_buffer, ..Limits::default() }, Buffering::Drop)
}

fn with(limits: &Limits, buffering: Buffering) -> Session {
    let mut config = SessionConfig::new(vec![Provider::new("P", 1, Level::Verbose)]);
    config.buffering = buffering;
    Session::new(SessionId(1), 3, config, limits)
}

fn definition() -> Definition {
    Definition { index: 5, metadata: Metadata::new("P", 1, "E"), wanted_by: AtomicU64::new(0) }
}

fn push_at(session: &Session, buffer: &ThreadBuffer, payload: &[u8], time: u64) {
    let data = EventData { payload, ..EventData::default() };
    session.push_to(buffer, &definition(), &data, || time);
}

/// Threads and sequence numbers in order.
fn numbers(batch: &Batch) -> Vec<(u64, u32)> {
    batch.some(0, usize::MAX).map(|due| (due.capture_thread_id, due.event.record.sequence)).collect()
}

fn emptied(session: &Session, batch: &mut Batch, until: u64) -> Vec<(u64, u32)> {
    session.drain(batch, || until);
    let numbers = numbers(batch);
    session.give_back(batch.some(0, usize::MAX).map(|due| due.event.size()).sum());
    batch.clear();
    numbers
}

#[test]
fn lost_events_leave_a_gap_in_their_threads_numbers() {
    let session = session(3 * size_of::<Record>() + 30);
    let [one, two] = [1, 2].map(|thread| session.register(thread).unwrap());
    let mut batch = Batch::default();
    push_at(&session, &one, &[0; 10], 7);
    push_at(&session, &one, &[0; 1000], 7);
    push_at(&session, &two, &[1; 10], 7);
    push_at(&session, &one, &[2; 10], 7);
    push_at(&session, &two, &[], 7);
    let drained = session.drain(&mut batch, || 9);
    assert_eq!((drained.until, drained.last, drained.attempted), (9, false, vec![]));
    assert_eq!(numbers(&batch), [(1, 1), (1, 3), (2, 1)]);
    assert_eq!(batch.some(2, 1).next().unwrap().event.payload, [1; 10]);
    push_at(&session, &two, &[3; 30], 8);
    session.give_back(batch.some(0, usize::MAX).map(|due| due.event.size()).sum());
    batch.clear();
    push_at(&session, &two, &[3], 10);
    session.stop();
    push_at(&session, &two, &[4], 11);
    assert!(session.register(3).is_none());
    let drained = session.drain(&mut batch, || 12);
    assert!(drained.last);
    assert_eq!(drained.attempted, [(1, 3), (2, 4)]);
    assert_eq!(numbers(&batch), [(2, 4)], "none before there was room, and none after the stop");
}

#[test]
fn events_of_all_threads_are_in_the_order_of_time() {
    let session = session(1 << 20);
    let [one, two] = [1, 2].map(|thread| session.register(thread).unwrap());
    let mut batch = Batch::default();
    for time in [10, 30, 50] {
        push_at(&session, &one, &[], time);
    }
    for time in [20, 40, 60] {
        push_at(&session, &two, &[], time);
    }
    // An event that was written while the buffers were being emptied waits for older ones.
    assert_eq!(emptied(&session, &mut batch, 45), [(1, 1), (2, 1), (1, 2), (2, 2)]);
    push_at(&session, &one, &[], 55);
    assert_eq!(emptied(&session, &mut batch, 57), [(1, 3), (1, 4)]);
    session.stop();
    assert_eq!(emptied(&session, &mut batch, 57), [(2, 3)], "at the end all events are due");
}

#[test]
fn ended_threads_are_forgotten_and_their_numbers_continue() {
    let session = session(1 << 20);
    let thread = session.register(7).unwrap();
    push_at(&session, &thread, &[], 1);
    push_at(&session, &thread, &vec![0; MAX_PAYLOAD + 1], 1);
    drop(thread);
    let mut batch = Batch::default();
    let drained = session.drain(&mut batch, || 2);
    assert_eq!((drained.ended, batch.due()), (vec![], 1), "its events come first");
    batch.clear();
    let drained = session.drain(&mut batch, || 2);
    assert_eq!((drained.attempted, drained.ended), (vec![(7, 2)], vec![7]));
    batch.clear();
    let again = session.register(7).unwrap();
    push_at(&session, &again, &[], 3);
    assert_eq!(emptied(&session, &mut batch, 4), [(7, 3)]);
}

#[test]
fn payloads_that_the_format_cannot_carry_are_lost() {
    let session = session(1 << 20);
    let thread = session.register(1).unwrap();
    for size in [MAX_PAYLOAD, MAX_PAYLOAD + 1] {
        let payload = vec![0; size];
        let data = EventData { payload: &payload, stack: &[1; 200], ..EventData::default() };
        session.push_to(&thread, &definition(), &data, || 7);
    }
    let mut batch = Batch::default();
    session.drain(&mut batch, || 9);
    assert_eq!(batch.due(), 1);
    assert_eq!(batch.some(0, 1).next().unwrap().event.stack, [1; MAX_STACK_DEPTH]);
}

#[test]
fn sessions_without_stacks_keep_none() {
    let mut session = session(1 << 20);
    session.config.stackwalk = false;
    let thread = session.register(1).unwrap();
    session.push_to(&thread, &definition(), &EventData { stack: &[1, 2], ..EventData::default() }, || 7);
    let mut batch = Batch::default();
    session.drain(&mut batch, || 9);
    assert_eq!(batch.some(0, 1).next().unwrap().event.stack, [0; 0]);
}

#[test]
fn blocked_threads_wait_until_there_is_room_and_lose_nothing() {
    let limits = Limits { session_buffer: 1000, blocked_writer: Duration::from_mins(5), ..Limits::default() };
    let session = with(&limits, Buffering::Block);
    thread::scope(|scope| {
        let writing = scope.spawn(|| {
            let buffer = session.register(7).unwrap();
            for _ in 0..500 {
                push_at(&session, &buffer, &[0; 100], 1);
            }
        });
        let (mut batch, mut seen) = (Batch::default(), Vec::new());
        while !writing.is_finished() || seen.len() < 500 {
            seen.extend(emptied(&session, &mut batch, 1));
            thread::yield_now();
        }
        assert_eq!(seen, (1..=500).map(|n| (7, n)).collect::<Vec<_>>());
    });
}

#[test]
fn a_waiting_thread_is_released_by_the_stop() {
    let limits = Limits { session_buffer: 200, blocked_writer: Duration::from_mins(5), ..Limits::default() };
    let session = with(&limits, Buffering::Block);
    let buffer = session.register(7).unwrap();
    thread::scope(|scope| {
        scope.spawn(|| {
            while !buffer.lock().closed {
                push_at(&session, &buffer, &[0; 50], 1);
            }
        });
        session.stop();
    });
}

#[test]
fn after_a_wait_without_success_no_thread_waits_until_there_is_space() {
    // Space for one event.
    let event = size_of::<Record>() + 50;
    let limits =
        Limits { session_buffer: event + 50, blocked_writer: Duration::from_millis(1), ..Limits::default() };
    let session = with(&limits, Buffering::Block);
    let buffer = session.register(7).unwrap();
    // The thread that created the session does not wait.
    let writing = || {
        for _ in 0..1000 {
            push_at(&session, &buffer, &[0; 50], 1);
        }
    };
    thread::scope(|scope| scope.spawn(writing).join().unwrap());
    let mut batch = Batch::default();
    session.drain(&mut batch, || 1);
    assert!(session.overdue.load(Ordering::Relaxed));
    assert_eq!(numbers(&batch), [(7, 1)]);
    session.give_back(event);
    assert!(!session.overdue.load(Ordering::Relaxed));
}

#[test]
fn the_thread_that_empties_the_buffers_does_not_wait_for_itself() {
    let limits = Limits { session_buffer: 200, blocked_writer: Duration::from_hours(1), ..Limits::default() };
    let session = with(&limits, Buffering::Block);
    let buffer = session.register(current_thread_id()).unwrap();
    for _ in 0..3 {
        push_at(&session, &buffer, &[0; 50], 1);
    }
    assert_eq!(buffer.lock().sequence, 3);
}

#[test]
fn an_idle_thread_keeps_little_memory() {
    let session = session(1 << 20);
    let thread = session.register(1).unwrap();
    let mut batch = Batch::default();
    for _ in 0..2 {
        push_at(&session, &thread, &[0; 10_000], 1);
        emptied(&session, &mut batch, 1);
    }
    emptied(&session, &mut batch, 1);
    assert!(thread.lock().records.capacity() <= MAX_IDLE_BYTES);
}
