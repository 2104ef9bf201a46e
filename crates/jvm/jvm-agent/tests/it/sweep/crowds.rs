//! Two hundred threads at once, and an HQ that is slower than they are.

use std::io::{Read as _, Write as _};
use std::net::{Ipv4Addr, Shutdown, TcpListener, TcpStream};
use std::time::{Duration, Instant};

use runtap_bytefrog::Report;
use runtap_bytefrog_proto::{Configuration, Extension, WhenSlow};
use runtap_testkit::{Jdk, Skip, require};

use super::Part;
use crate::common::{Listening, demo, run_both};
use crate::counts::{Counts, expected, plain, seen};

/// Rounds of each thread, with twice as many events as its ring has room for.
const ROUNDS: u64 = 40;
const THREADS: u64 = 200;

#[test]
fn a_tenth_of_fifteen_runs() {
    require!(sweep(Part::Tenth));
}

#[test]
#[ignore = "minutes"]
fn fifteen_runs() {
    require!(sweep(Part::Whole));
}

fn sweep(part: Part) -> Result<(), Skip> {
    for jdk in part.jdks()? {
        for when_slow in [WhenSlow::Block, WhenSlow::Drop, WhenSlow::Counts] {
            let (mut longest, mut lost, mut runs) = (Duration::ZERO, 0, 0);
            for _ in 0..part.of(15) {
                let began = Instant::now();
                lost += run(&jdk, when_slow)?;
                longest = longest.max(began.elapsed());
                runs += 1;
            }
            println!(
                "JDK {}, {when_slow:?}: {runs} runs of {THREADS} threads, {lost} events told as lost or only counted, \
                 longest run {longest:.1?}",
                jdk.major()
            );
        }
    }
    Ok(())
}

/// Runs the program and returns how many events were not received as events.
fn run(jdk: &Jdk, when_slow: WhenSlow) -> Result<u64, Skip> {
    let extension = Extension { when_slow, ..Extension::default() };
    let hq = Listening::with(Configuration { extension, data_senders: 3, ..demo() });
    let port = slowed(hq.hq.address().port());
    let finished = run_both(jdk, port, "", &["demo.Counts", &THREADS.to_string(), &ROUNDS.to_string()])?;
    assert_eq!(finished.stderr, "", "{finished}");
    let report = hq.report();
    assert_eq!(report.counters.orphans, 0, "{when_slow:?}: {:?}", report.findings);
    let expected = expected(THREADS, ROUNDS);
    let major = jdk.major();
    match when_slow {
        WhenSlow::Block => {
            assert_eq!(plain(seen(&report)), plain(expected), "JDK {major}");
            assert_eq!(report.findings, []);
            Ok(0)
        }
        WhenSlow::Drop => {
            let counters = &report.counters;
            let came = counters.entries + counters.exits + counters.bubbles + counters.exceptions;
            assert_eq!(came + counters.dropped, events(&expected), "JDK {major}: {counters:?}");
            Ok(counters.dropped)
        }
        WhenSlow::Counts => {
            let (calls, counted) = calls(&report);
            assert_eq!(plain(calls), plain(only_calls(expected)), "JDK {major}: {:?}", report.counters);
            Ok(counted)
        }
    }
}

/// Returns the number of events of `demo.Counts`: each call has an entry and an end, and some throw.
fn events(expected: &Counts) -> u64 {
    let ends: u64 = expected.values().map(|(entries, exits, bubbles)| entries + exits + bubbles).sum();
    // Explicit throws: those of a third of the rounds, in `thrower`.
    let threes = (0..ROUNDS).filter(|round| round % 3 == 0).count() as u64;
    ends + THREADS * threes
}

fn only_calls(counts: Counts) -> Counts {
    counts.into_iter().map(|(name, (entries, ..))| (name, (entries, 0, 0))).collect()
}

/// Returns the calls of each method, recorded or counted, and how many were counted.
fn calls(report: &Report) -> (Counts, u64) {
    let mut sum = 0;
    let all = report.methods.iter().map(|method| {
        let (counted, ..) = method.counted.unwrap_or_default();
        sum += counted;
        (method.signature.clone(), (method.entries + counted, 0, 0))
    });
    let all = all.collect();
    (all, sum)
}

/// Starts a proxy that passes data to HQ in small pieces with pauses in between.
fn slowed(port: u16) -> u16 {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
    let ours = listener.local_addr().unwrap().port();
    std::thread::spawn(move || {
        for from in listener.incoming().flatten() {
            let Ok(to) = TcpStream::connect((Ipv4Addr::LOCALHOST, port)) else { return };
            let (back_from, back_to) = (to.try_clone().unwrap(), from.try_clone().unwrap());
            std::thread::spawn(move || pass(back_from, back_to, Duration::ZERO));
            std::thread::spawn(move || pass(from, to, Duration::from_millis(2)));
        }
    });
    ours
}

fn pass(mut from: TcpStream, mut to: TcpStream, rest: Duration) {
    let mut piece = vec![0; 32 << 10];
    while let Ok(count @ 1..) = from.read(&mut piece) {
        if to.write_all(&piece[..count]).is_err() {
            break;
        }
        std::thread::sleep(rest);
    }
    let _ = to.shutdown(Shutdown::Write);
}
