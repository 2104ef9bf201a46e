//! Delivery of written events, and the end of sessions.

use std::collections::BTreeSet;
use std::io::{Read, Write};
use std::net::Shutdown;
use std::os::unix::net::UnixStream;
use std::sync::{Barrier, Mutex, mpsc};
use std::time::Duration;

use runtap_diag::{
    Buffering, DEFAULT_RUNDOWN_KEYWORD, Format, Hresult, Level, Provider, Request, SessionConfig,
    SessionForm, SessionId,
};
use runtap_diag_server::{DiagnosticServer, EventData, EventPipe, Limits, Notice, current_thread_id};
use runtap_nettrace::{Metadata, Reader, StreamItem};

use crate::commands::refused;
use crate::target::{Target, Trace, all_of};

#[test]
fn a_session_delivers_what_was_written() {
    let target = Target::new();
    let events = [target.define(1, 0), target.define(2, 0x10), target.define(3, 0x20)];
    assert!(!events.iter().any(runtap_diag_server::Event::is_enabled));
    let config = SessionConfig::new(vec![Provider::new("P", 0x10, Level::Verbose)]);
    let session = target.client().start_session(&config).unwrap();
    assert_eq!(events.each_ref().map(runtap_diag_server::Event::is_enabled), [true, true, false]);

    let write = |n: u32| {
        let data = EventData {
            thread_id: Some(5),
            stack: &[u64::from(n), 0x1234],
            payload: &n.to_le_bytes(),
            ..EventData::default()
        };
        events[n as usize % 3].write(&data);
    };
    let threads: Vec<u64> = std::thread::scope(|scope| {
        let threads: Vec<_> = (0..3)
            .map(|_| {
                scope.spawn(|| {
                    (0..1000).for_each(write);
                    current_thread_id()
                })
            })
            .collect();
        threads.into_iter().map(|thread| thread.join().unwrap()).collect()
    });
    target.define(4, 0).write_here(&99u32.to_le_bytes());
    let stopping = session.stop();
    let trace = Trace::of_session(session);
    stopping.wait().unwrap();

    assert!(trace.complete);
    assert_eq!((trace.lost, trace.process_id), (0, std::process::id()));
    for thread in threads {
        let all = trace.of("P");
        let of_thread: Vec<_> = all.into_iter().filter(|event| event.capture_thread == thread).collect();
        let numbers: Vec<u32> = of_thread.iter().map(|event| event.n).collect();
        assert_eq!(numbers, (0..1000).filter(|n| n % 3 != 2).collect::<Vec<_>>());
        for event in of_thread {
            assert_eq!((event.thread, event.id), (5, 1 + event.n % 3));
            assert_eq!(event.stack, [u64::from(event.n), 0x1234]);
        }
    }
    let all = trace.of("P");
    assert_eq!(all.len(), 3 * 667 + 1);
    let late = all.iter().find(|event| event.id == 4).unwrap();
    assert_eq!((late.n, late.thread, late.stack.len()), (99, current_thread_id(), 0));
    assert_eq!(target.pipe.sessions(), 0);
    assert!(!events.iter().any(runtap_diag_server::Event::is_enabled));
}

#[test]
fn a_session_ends_with_process_and_rundown() {
    let target = Target::new();
    let rundown = target.pipe.define(Metadata::new("Rundown", 144, "")).unwrap();
    let mut special = Metadata::new("Rundown", 200, "");
    special.keywords = 0x4000_0000_0000;
    let special = target.pipe.define(special).unwrap();
    target.pipe.on_rundown(move |out| {
        out.write(&rundown, &[0xff, 0xff, 0, 0]);
        if out.keyword() == DEFAULT_RUNDOWN_KEYWORD {
            out.write(&rundown, &77u32.to_le_bytes());
        }
        out.write(&special, &[]);
    });
    for (keyword, expected) in [
        (DEFAULT_RUNDOWN_KEYWORD, &[(144, 0xffff), (144, 77)][..]),
        (0x4000_0000_0000, &[(144, 0xffff), (200, 0)]),
        (0, &[]),
    ] {
        let mut config = SessionConfig::new(vec![all_of("P")]);
        config.rundown_keyword = keyword;
        let session = target.client().start_session(&config).unwrap();
        session.stop().wait().unwrap();
        let trace = Trace::of_session(session);
        assert!(trace.complete);
        assert_eq!(trace.events[0].provider, "Microsoft-DotNETCore-EventPipe");
        let rundown: Vec<_> = trace.of("Rundown").into_iter().map(|event| (event.id, event.n)).collect();
        assert_eq!(rundown, expected, "{keyword:#x}");
    }
}

#[test]
fn stacks_can_be_disabled() {
    let target = Target::new();
    let event = target.define(1, 0);
    let mut config = SessionConfig::new(vec![all_of("P")]);
    config.stackwalk = false;
    let session = target.client().start_session(&config).unwrap();
    event.write(&EventData { stack: &[1, 2, 3], ..EventData::default() });
    session.stop().wait().unwrap();
    assert_eq!(Trace::of_session(session).of("P")[0].stack, [0; 0]);
}

#[test]
fn two_sessions_are_independent() {
    let target = Target::new();
    let (one, two) = (target.define(1, 0), target.define(2, 0x2));
    let narrow = SessionConfig::new(vec![Provider::new("P", 0x1, Level::Verbose)]);
    let narrow = target.client().start_session(&narrow).unwrap();
    one.write_here(&[]);
    let wide = target.start();
    two.write_here(&[]);
    narrow.stop().wait().unwrap();
    one.write_here(&[]);
    wide.stop().wait().unwrap();
    let ids = |trace: &Trace| trace.of("P").iter().map(|event| event.id).collect::<Vec<_>>();
    assert_eq!(ids(&Trace::of_session(narrow)), [1]);
    assert_eq!(ids(&Trace::of_session(wide)), [2, 1]);
}

#[test]
fn a_slow_reader_loses_events_and_can_count_them() {
    const STORM: u64 = 20_000;
    let target = Target::new();
    let (event, marker) = (target.define(1, 0), target.define(2, 0));
    let (mut stream, id) = target.start_unread(1);
    for _ in 0..STORM {
        event.write_here(&[7; 1000]);
    }
    // No other session waits for that reader.
    target.client().process_info().unwrap();

    let (tell, arrived) = mpsc::channel();
    let reader = std::thread::spawn(move || {
        let mut reader = Reader::new();
        let mut received = 0;
        let mut bytes = vec![0; 65536];
        loop {
            match stream.read(&mut bytes).unwrap() {
                0 => reader.finish(),
                n => reader.feed(&bytes[..n]),
            }
            while let Some(item) = reader.next().unwrap() {
                if let StreamItem::Event(event) = item
                    && let Some(metadata) = event.metadata
                    && metadata.provider == "P"
                {
                    received += 1;
                    if metadata.event_id == 2 {
                        // The receiver is gone once one has arrived.
                        let _ = tell.send(event.payload.to_vec());
                    }
                }
            }
            if reader.is_complete() {
                return (received, reader.lost());
            }
        }
    });
    // Losses after a thread's last event that arrives are not visible, so the last event must arrive.
    let mut written = STORM;
    loop {
        written += 1;
        marker.write_here(&written.to_le_bytes());
        if arrived.recv_timeout(Duration::from_millis(300)).is_ok_and(|n| n == written.to_le_bytes()) {
            break;
        }
        while arrived.try_recv().is_ok() {}
    }
    target.client().stop_session(id).unwrap();
    let (received, lost) = reader.join().unwrap();
    assert!(lost > STORM / 2, "{lost}");
    assert_eq!(received + lost, written);
}

#[test]
fn a_stop_waits_for_the_reader_of_its_own_session_only() {
    let target = Target::new();
    let event = target.define(1, 0);
    let (mut stream, id) = target.start_unread(256);
    for _ in 0..2000 {
        event.write_here(&[7; 1000]);
    }
    let client = target.client();
    let stop = std::thread::spawn(move || client.stop_session(id));
    for _ in 0..10 {
        target.client().process_info().unwrap();
        let session = target.start();
        session.stop().wait().unwrap();
        assert!(Trace::of_session(session).complete);
    }
    // More than a socket can hold is waiting for its reader.
    assert!(!stop.is_finished());
    let mut bytes = Vec::new();
    stream.read_to_end(&mut bytes).unwrap();
    stop.join().unwrap().unwrap();
    let trace = Trace::of_bytes(&bytes);
    assert!(trace.complete);
    assert_eq!((trace.of("P").len(), trace.lost), (2000, 0));
}

/// Ten thousand events of 1,000 bytes from two threads while the stream is not read, then the stream.
fn flooded(buffering: Buffering, blocked_writer: Duration) -> Trace {
    let mut limits = Limits::default();
    (limits.session_buffer, limits.blocked_writer) = (100_000, blocked_writer);
    let target = Target::with_limits(limits);
    let event = target.define(1, 0);
    let mut config = SessionConfig::new(vec![all_of("P")]);
    config.buffering = buffering;
    let session = target.client().start_session(&config).unwrap();
    assert_eq!((session.form(), session.downgrades()), (SessionForm::CollectTracing6, &[][..]));
    // Readers count the losses of a thread from the first event that they have seen.
    let both_are_known = Barrier::new(2);
    std::thread::scope(|scope| {
        let writing: Vec<_> = (0..2)
            .map(|_| {
                scope.spawn(|| {
                    for n in 0..5_000u32 {
                        if n == 1 {
                            both_are_known.wait();
                        }
                        let mut payload = vec![0; 1_000];
                        payload[..4].copy_from_slice(&n.to_le_bytes());
                        event.write_here(&payload);
                    }
                })
            })
            .collect();
        let reading = scope.spawn(|| Trace::of_session(session));
        for thread in writing {
            thread.join().unwrap();
        }
        // The first session of its server.
        target.client().stop_session(SessionId(1)).unwrap();
        reading.join().unwrap()
    })
}

#[test]
fn a_session_that_blocks_loses_nothing() {
    let trace = flooded(Buffering::Block, Duration::from_mins(5));
    assert_eq!((trace.complete, trace.lost), (true, 0));
    let events = trace.of("P");
    assert_eq!(events.len(), 10_000);
    let threads: BTreeSet<u64> = events.iter().map(|event| event.thread).collect();
    assert_eq!(threads.len(), 2);
    for thread in threads {
        let numbers = events.iter().filter(|event| event.thread == thread).map(|event| event.n);
        assert!(numbers.eq(0..5_000), "in order");
    }
}

#[test]
fn a_session_that_drops_events_reports_how_many() {
    let trace = flooded(Buffering::Drop, Duration::from_mins(5));
    let got = trace.of("P").len() as u64;
    assert_eq!((trace.complete, got + trace.lost), (true, 10_000), "{got} events");
}

#[test]
fn netperf_has_the_same_events() {
    let target = Target::new();
    let event = target.define(1, 0);
    let mut config = SessionConfig::new(vec![all_of("P")]);
    config.format = Format::NetPerf;
    let session = target.client().start_session(&config).unwrap();
    let threads: Vec<u64> = std::thread::scope(|scope| {
        let write = || {
            for n in 0..500u32 {
                event.write(&EventData { stack: &[7, 8], payload: &n.to_le_bytes(), ..EventData::default() });
            }
            current_thread_id()
        };
        let threads: Vec<_> = (0..3).map(|_| scope.spawn(write)).collect();
        threads.into_iter().map(|thread| thread.join().unwrap()).collect()
    });
    let stopping = session.stop();
    let mut bytes = Vec::new();
    let mut session = session;
    while let Some(chunk) = session.next_chunk().unwrap() {
        bytes.extend_from_slice(&chunk);
    }
    stopping.wait().unwrap();
    assert!(bytes.starts_with(b"\x14\0\0\0!FastSerialization.1"));
    let trace = Trace::of_bytes(&bytes);
    assert!(trace.complete);
    for thread in threads {
        let events = trace.events.iter().filter(|event| event.thread == thread);
        assert!(events.map(|event| (event.n, event.stack.clone())).eq((0..500).map(|n| (n, vec![7, 8]))));
    }
}

#[test]
fn large_streams_have_sequence_points() {
    let target = Target::new();
    let event = target.define(1, 0);
    let session = target.start();
    for n in 0..600u32 {
        let mut payload = vec![0; 60_000];
        payload[..4].copy_from_slice(&n.to_le_bytes());
        event.write(&EventData { stack: &[u64::from(n / 2)], payload: &payload, ..EventData::default() });
    }
    let stopping = session.stop();
    let trace = Trace::of_session(session);
    stopping.wait().unwrap();
    assert_eq!((trace.complete, trace.lost, trace.of("P").len()), (true, 0, 600));
    assert!(trace.of("P").iter().all(|event| event.stack == [u64::from(event.n / 2)]));
}

#[test]
fn a_client_that_vanishes_frees_its_session() {
    let target = Target::new();
    let event = target.define(1, 0);
    let (stream, _) = target.start_unread(1);
    assert!(event.is_enabled());
    drop(stream);
    while event.is_enabled() {
        std::thread::yield_now();
    }
    assert_eq!(target.pipe.sessions(), 0);
}

#[test]
fn a_client_that_closes_its_write_side_keeps_its_session() {
    let target = Target::new();
    let event = target.define(1, 0);
    let (mut stream, id) = target.start_unread(1);
    stream.shutdown(Shutdown::Write).unwrap();
    event.write_here(&[]);
    target.client().stop_session(id).unwrap();
    let mut bytes = Vec::new();
    stream.read_to_end(&mut bytes).unwrap();
    let trace = Trace::of_bytes(&bytes);
    assert_eq!((trace.complete, trace.of("P").len()), (true, 1));
}

#[test]
fn the_65th_session_is_rejected() {
    let target = Target::new();
    let mut sessions: Vec<_> = (0..64).map(|_| target.start()).collect();
    let config = SessionConfig::new(vec![all_of("P")]);
    assert_eq!(refused(target.client().start_session(&config).map(drop)), Hresult::E_FAIL);
    sessions.remove(0).stop().wait().unwrap();
    sessions.push(target.start());
}

#[test]
fn shutting_down_finishes_sessions() {
    let target = Target::new();
    let event = target.define(1, 0);
    let session = target.start();
    let _silent = target.connect();
    event.write_here(&[]);
    let path = target.server.path().to_owned();
    target.server.shut_down();
    assert!(!path.exists());
    let trace = Trace::of_session(session);
    assert_eq!((trace.complete, trace.of("P").len()), (true, 1));
    event.write_here(&[]);
}

#[test]
fn others_are_answered_during_a_rundown() {
    let target = Target::new();
    let (tell, asked) = mpsc::channel();
    let (answer, gate) = mpsc::channel::<()>();
    let gate = Mutex::new(gate);
    target.pipe.on_rundown(move |_| {
        tell.send(()).unwrap();
        // Until the test has seen that other clients are answered.
        let _ = gate.lock().unwrap().recv();
    });
    let session = target.start();
    let stopping = session.stop();
    let reading = std::thread::spawn(move || Trace::of_session(session));
    asked.recv().unwrap();
    target.client().process_info().unwrap();
    answer.send(()).unwrap();
    assert!(reading.join().unwrap().complete);
    stopping.wait().unwrap();
}

#[test]
fn a_panicking_watcher_does_not_end_a_session() {
    let target = Target::new();
    target.pipe.watch("P", |requests| assert!(requests.is_empty(), "as asked for"));
    let session = target.start();
    let stopping = session.stop();
    assert!(Trace::of_session(session).complete);
    stopping.wait().unwrap();
    assert_eq!(target.pipe.sessions(), 0);
}

#[test]
fn the_program_gets_a_notice_of_a_hanging_client() {
    let dir = tempfile::tempdir().unwrap();
    let (tell, told) = mpsc::channel();
    let mut limits = Limits::default();
    limits.blocked_writer = Duration::from_millis(1);
    let pipe = EventPipe::new();
    let event = pipe.define(Metadata::new("P", 1, "E")).unwrap();
    let builder = DiagnosticServer::builder().path(dir.path().join("s")).pipe(pipe).limits(limits);
    let tell_of = move |notice: &Notice| {
        if let Notice::Overdue { session } = notice {
            tell.send(*session).unwrap();
        }
    };
    let server = builder.on_notice(tell_of).spawn().unwrap();
    let mut config = SessionConfig::new(vec![all_of("P")]);
    (config.buffering, config.buffer_mb) = (Buffering::Block, 1);
    let request = Request::CollectTracing { form: SessionForm::CollectTracing6, config };
    let mut client = UnixStream::connect(server.path()).unwrap();
    client.write_all(&request.to_bytes().unwrap()).unwrap();
    // Only the answer is read.
    client.read_exact(&mut [0; 28]).unwrap();
    let payload = vec![0; 60_000];
    let session = loop {
        event.write_here(&payload);
        if let Ok(session) = told.try_recv() {
            break session;
        }
    };
    assert_eq!(session, SessionId(1));
}
