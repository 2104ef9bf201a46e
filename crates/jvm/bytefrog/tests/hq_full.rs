//! An HQ in a process that is out of descriptors. This file has one test, because the limit applies to the process.
#![cfg(unix)]

mod common;

#[cfg(target_os = "linux")]
use std::fs;
use std::fs::File;
use std::sync::mpsc::channel;
use std::thread;

use common::{LONG, hq, until};
use runtap_bytefrog::hq::{Event, Hq, Options};
use rustix::io::write;
use rustix::net::{AddressFamily, SocketType, connect, socket};
use rustix::process::{Resource, Rlimit, setrlimit};

/// The limit of descriptors of the process.
const DESCRIPTORS: usize = 64;

/// Opens all remaining descriptors. A thread that waits in `accept` reserves a descriptor for each poll and frees it
/// afterwards, so a temporary failure does not mean that none is left.
#[cfg(target_os = "linux")]
fn fill(rest: &mut Vec<File>) {
    // Reading the folder needs one descriptor.
    drop(rest.pop());
    let all = fs::read_dir("/proc/self/fd").expect("a descriptor is left").flatten();
    let number = |entry: fs::DirEntry| entry.file_name().to_str()?.parse::<usize>().ok();
    // Descriptors above the limit were opened before it was set, and do not count.
    let held = all.filter_map(number).filter(|number| *number < DESCRIPTORS).count() - 1;
    let until = rest.len() + DESCRIPTORS - held;
    while rest.len() < until {
        match File::open("/dev/null") {
            Ok(file) => rest.push(file),
            Err(_reserved) => thread::yield_now(),
        }
    }
}

#[cfg(not(target_os = "linux"))]
fn fill(rest: &mut Vec<File>) {
    rest.extend(std::iter::from_fn(|| File::open("/dev/null").ok()));
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
fn without_descriptors_it_serves_and_closes() {
    let limit = Some(DESCRIPTORS as u64);
    setrlimit(Resource::Nofile, Rlimit { current: limit, maximum: limit }).expect("less than before");
    let (idle, _heard) = hq(Options::default());
    let (hq, heard) = hq(Options::default());
    let client = socket(AddressFamily::INET, SocketType::STREAM, None).expect("a descriptor is left");
    let mut rest = Vec::new();
    fill(&mut rest);
    closes(idle);
    // The connection itself has the only descriptor that is left.
    fill(&mut rest);
    drop(rest.pop());
    connect(&client, &hq.address()).expect("HQ listens");
    write(&client, &[0, 0xf1]).expect("taken");
    until(&heard, |_, event| matches!(event, Event::Connected { .. }));
    fill(&mut rest);
    closes(hq);
}
