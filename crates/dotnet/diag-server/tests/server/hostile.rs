//! Clients that send garbage, a byte at a time, half a request and nothing more, or take no answer: a session loses nothing
//! beside them, and others are answered.

use std::io::{ErrorKind, Read, Write};
use std::net::Shutdown;
use std::os::unix::net::UnixStream;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{self, RecvTimeoutError};
use std::time::Duration;

use runtap_diag::Request;
use runtap_diag_server::Limits;

use crate::target::{Target, Trace};

/// What they cost and how long others wait: `cargo xtask bench clients`.
const CLIENTS: usize = 10_000;
/// The program's own work meanwhile: some thousand events a second.
const PORTION: usize = 20;
const EVERY: Duration = Duration::from_millis(1);

#[test]
fn hostile_clients_disturb_nobody() {
    let mut limits = Limits::default();
    // Only who makes room goes, nobody because time is over.
    (limits.request, limits.connections) = (Duration::from_hours(1), 64);
    let target = Target::with_limits(limits);
    let event = target.define(1, 0);
    let session = target.start();
    let id = session.id();
    let over = AtomicBool::new(false);
    let (stop, stopped) = mpsc::channel::<()>();
    let trace = std::thread::scope(|scope| {
        let reading = scope.spawn(|| Trace::of_session(session));
        let writing = scope.spawn(move || {
            let mut numbers = 0u32..;
            while let Err(RecvTimeoutError::Timeout) = stopped.recv_timeout(EVERY) {
                for n in numbers.by_ref().take(PORTION) {
                    event.write_here(&n.to_le_bytes());
                }
            }
            numbers.start
        });
        let asking = scope.spawn(|| {
            let mut answers = 0;
            while !over.load(Ordering::Relaxed) {
                target.client().process_info().unwrap();
                answers += 1;
            }
            answers
        });
        attack(&target);
        over.store(true, Ordering::Relaxed);
        drop(stop);
        assert!(asking.join().unwrap() > 0);
        let written = writing.join().unwrap();
        target.client().stop_session(id).unwrap();
        (reading.join().unwrap(), written)
    });
    let (trace, written) = trace;
    assert_eq!((trace.complete, trace.lost), (true, 0));
    assert!(trace.of("P").iter().map(|event| event.n).eq(0..written));
}

/// Connects so many times, in turns of all kinds; as many of them as descriptors allow stay.
fn attack(target: &Target) {
    let info = Request::ProcessEnvironment.to_bytes().unwrap();
    let mut staying: Vec<UnixStream> = Vec::new();
    for n in 0..CLIENTS {
        let mut stream = target.connect();
        // Whoever was hung up on has what it deserves.
        let _ = match n % 6 {
            0 => stream.write_all(&[0xa5; 3000]),
            1 => stream.write_all(&info[..n % info.len()]).and_then(|()| stream.shutdown(Shutdown::Write)),
            2 => stream.write_all(&info[..n % info.len()]),
            // No answer is taken.
            3 => stream.write_all(&info),
            4 => stream.write_all(b"DOTNET_IPC_V1\0\xff\xff\x02\x02\0\0"),
            _ => Ok(()),
        };
        if staying.len() < 300 {
            staying.push(stream);
        } else if n % 2 == 0 {
            let place = n % staying.len();
            // Another byte of one that is slow.
            if let Err(error) = staying[place].write(&[0]) {
                assert!(
                    matches!(error.kind(), ErrorKind::BrokenPipe | ErrorKind::ConnectionReset),
                    "{error}"
                );
            }
            staying[place] = stream;
        }
    }
    // One that was malformed has its answer, or was hung up on.
    for mut stream in staying {
        stream.set_nonblocking(true).unwrap();
        let _ = stream.read(&mut [0; 24]);
    }
}
