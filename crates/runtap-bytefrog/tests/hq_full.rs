//! HQ in a process that is out of descriptors. This file has one test: the limit is the process's.
#![cfg(unix)]

mod common;

use std::fs::File;
use std::net::SocketAddr;
use std::sync::mpsc::channel;
use std::thread;

use common::{LONG, hq, until};
use runtap_bytefrog::hq::{Event, Hq, Options, Refusal};
use rustix::net::{AddressFamily, SocketType, connect, socket};
use rustix::process::{Resource, Rlimit, setrlimit};

/// Takes all descriptors that are left.
fn fill() -> Vec<File> {
    std::iter::from_fn(|| File::open("/dev/null").ok()).collect()
}

fn closes(hq: Hq) {
    let (done, ends) = channel();
    thread::spawn(move || {
        hq.close();
        done.send(()).expect("it is waited for");
    });
    ends.recv_timeout(LONG).expect("it has closed");
}

#[test]
fn without_descriptors_it_closes_and_refuses() {
    setrlimit(Resource::Nofile, Rlimit { current: Some(64), maximum: Some(64) }).expect("less than before");
    let (idle, _heard) = hq(Options::default());
    let (hq, heard) = hq(Options::default());
    let client = socket(AddressFamily::INET, SocketType::STREAM, None).expect("a descriptor is left");
    let mut rest = fill();
    closes(idle);
    // Only the connection itself has one: it could not be shut when HQ closes, which would wait for it.
    rest.append(&mut fill());
    drop(rest.pop());
    let address: SocketAddr = hq.address();
    connect(&client, &address).expect("HQ listens");
    let all = until(&heard, |_, event| matches!(event, Event::Refused { .. }));
    let refused = |event: &Event| matches!(event, Event::Refused { peer, cause: Refusal::System } if peer.ip().is_loopback());
    assert!(all.iter().all(|(agent, event)| agent.is_none() && refused(event)), "{all:?}");
    rest.append(&mut fill());
    closes(hq);
}
