//! Clients that send garbage, single bytes or half a request, or read no answer: a session loses nothing meanwhile, and
//! other clients are answered.

use std::io::{ErrorKind, Read, Write};
use std::net::Shutdown;
use std::os::unix::net::UnixStream;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::mpsc::{self, RecvTimeoutError};
use std::time::Duration;

use runtap_diag::Request;
use runtap_diag_server::Limits;

use crate::target::{Target, Trace};

/// The cost of hostile clients, and how long others wait: `cargo xtask bench clients`.
const CLIENTS: usize = 10_000;
/// The number of places for clients.
const PLACES: usize = 64;
/// The number of connections after which a request must have been answered. A client that is not scheduled while [`PLACES`]
/// others connect has waited for the longest, and is disconnected: during a request, fewer than that may connect.
const CONNECTIONS_PER_ANSWER: usize = PLACES / 2 - 2;
/// The number of events that the program writes every [`EVERY`] meanwhile.
const PORTION: usize = 20;
const EVERY: Duration = Duration::from_millis(1);

#[test]
fn hostile_clients_do_not_disturb_others() {
    let mut limits = Limits::default();
    // Clients are only disconnected to make room, never by a time limit.
    (limits.request, limits.connections) = (Duration::from_hours(1), PLACES);
    let target = Target::with_limits(limits);
    let event = target.define(1, 0);
    let session = target.start();
    let id = session.id();
    let (over, answers) = (AtomicBool::new(false), AtomicUsize::new(0));
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
            let mut result = Ok(());
            while result.is_ok() && !over.load(Ordering::Relaxed) {
                result = target.client().process_info().map(drop);
                answers.fetch_add(1, Ordering::Relaxed);
            }
            // After an error, the attack need not wait for an answer.
            over.store(true, Ordering::Relaxed);
            result
        });
        attack(&target, &answers, &over);
        over.store(true, Ordering::Relaxed);
        drop(stop);
        let asked = asking.join();
        let written = writing.join().unwrap();
        target.client().stop_session(id).unwrap();
        asked.unwrap().unwrap();
        (reading.join().unwrap(), written)
    });
    let (trace, written) = trace;
    assert_eq!((trace.complete, trace.lost), (true, 0));
    assert!(trace.of("P").iter().map(|event| event.n).eq(0..written));
}

/// Opens many connections of all kinds in turn; keeps as many of them as descriptors allow.
fn attack(target: &Target, answers: &AtomicUsize, over: &AtomicBool) {
    let info = Request::ProcessEnvironment.to_bytes().unwrap();
    let mut staying: Vec<UnixStream> = Vec::new();
    for n in 0..CLIENTS {
        if n % CONNECTIONS_PER_ANSWER == 0 {
            let before = answers.load(Ordering::Relaxed);
            while answers.load(Ordering::Relaxed) == before && !over.load(Ordering::Relaxed) {
                std::thread::yield_now();
            }
        }
        let mut stream = target.connect();
        // Clients that were disconnected are expected.
        let _ = match n % 6 {
            0 => stream.write_all(&[0xa5; 3000]),
            1 => stream.write_all(&info[..n % info.len()]).and_then(|()| stream.shutdown(Shutdown::Write)),
            2 => stream.write_all(&info[..n % info.len()]),
            // The answer is not read.
            3 => stream.write_all(&info),
            4 => stream.write_all(b"DOTNET_IPC_V1\0\xff\xff\x02\x02\0\0"),
            _ => Ok(()),
        };
        if staying.len() < 300 {
            staying.push(stream);
        } else if n % 2 == 0 {
            let place = n % staying.len();
            // Another byte of a slow request.
            if let Err(error) = staying[place].write(&[0]) {
                assert!(
                    matches!(error.kind(), ErrorKind::BrokenPipe | ErrorKind::ConnectionReset),
                    "{error}"
                );
            }
            staying[place] = stream;
        }
    }
    // A malformed request was answered, or its client disconnected.
    for mut stream in staying {
        stream.set_nonblocking(true).unwrap();
        let _ = stream.read(&mut [0; 24]);
    }
}
