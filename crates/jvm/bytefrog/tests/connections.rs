//! Data connections of one agent that are read at different times.

mod common;

use std::io::Write as _;
use std::net::TcpStream;
use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::mpsc::channel;
use std::thread;
use std::time::{Duration, Instant};

use common::{LONG, filters, finished, hq};
use runtap_bytefrog::Limits;
use runtap_bytefrog::hq::{AgentId, Options};
use runtap_bytefrog_proto::{Configuration, Dialect, Exit, Message, Mode, Rule, Stamp};
use runtap_testkit::fake_agent::{FakeAgent, Step, say};

fn event(id: u32) -> Vec<u8> {
    let at = Stamp { time: 0, sequence: id.into(), thread: 0 };
    let exit = Exit::Line(1);
    let (entry, exit) = (Message::Entry { at, method: 1 }, Message::Exit { at, method: 1, exit });
    say(Dialect::V1, if id.is_multiple_of(2) { &entry } else { &exit })
}

/// Returns calls of a method, in pieces of a thousand events.
fn calls(ids: Range<u32>) -> impl Iterator<Item = Vec<u8>> {
    ids.step_by(1000).map(move |from| (from..from + 1000).flat_map(event).collect())
}

/// Returns options without heartbeat time-outs.
fn patient() -> Options {
    let configuration = Configuration { heartbeat_interval: 60_000, ..filters() };
    Options { configuration, initial_mode: None, ..Options::default() }
}

fn agent(hq: &runtap_bytefrog::hq::Hq) -> (FakeAgent, [TcpStream; 2]) {
    let mut agent = FakeAgent::connect(hq.address(), Dialect::V1).expect("HQ listens");
    let steps = [Step::Hello, Step::AwaitConfiguration, Step::ConnectData, Step::ConnectData];
    agent.run(&steps).expect("served");
    let data = [0, 1].map(|number| agent.take_data(number).expect("connected"));
    (agent, data)
}

/// Waits until nothing has been written for a while, or everything has.
fn until_it_stands_still(written: &AtomicU32, all: u32) {
    let mut before = None;
    loop {
        let now = written.load(Ordering::SeqCst);
        if now == all || now > 0 && before == Some(now) {
            return;
        }
        before = Some(now);
        thread::sleep(Duration::from_millis(200));
    }
}

#[test]
fn a_connection_that_is_ahead_waits_for_the_one_behind() {
    // The window has 131,072 events.
    const BEHIND: u32 = 50_000;
    const ALL: u32 = 1_500_000;
    let (hq, heard) = hq(Options { gap_timeout: Duration::from_mins(5), ..patient() });
    let (mut agent, [mut ahead, mut behind]) = agent(&hq);
    let written = Arc::new(AtomicU32::new(0));
    let count = Arc::clone(&written);
    let writer = thread::spawn(move || {
        for piece in calls(BEHIND..ALL) {
            ahead.write_all(&piece).expect("HQ takes it");
            count.fetch_add(1000, Ordering::SeqCst);
        }
    });
    until_it_stands_still(&written, ALL - BEHIND);
    // Each piece has awaited events, and does not let a connection continue that is still too far ahead.
    for piece in calls(0..BEHIND) {
        behind.write_all(&piece).expect("HQ takes it");
        thread::sleep(Duration::from_millis(2));
    }
    writer.join().expect("it has written everything");
    drop(behind);
    agent.run(&[Step::Heartbeat(Mode::ShuttingDown), Step::CloseControl]).expect("served");
    assert_eq!(finished(&heard, 0), []);
    let report = hq.report(AgentId(0)).expect("it is kept");
    let counters = report.counters;
    assert_eq!((counters.entries, counters.exits), (u64::from(ALL) / 2, u64::from(ALL) / 2));
    assert_eq!((counters.missing, counters.repeated, counters.orphans), (0, 0, 0));
}

#[test]
fn missing_events_do_not_stop_the_analysis() {
    const LOST: u32 = 1000;
    const ALL: u32 = 300_000;
    let (hq, heard) = hq(patient());
    let (mut agent, [mut sending, idle]) = agent(&hq);
    for piece in calls(LOST..ALL) {
        sending.write_all(&piece).expect("HQ takes it");
    }
    drop((sending, idle));
    agent.run(&[Step::Heartbeat(Mode::ShuttingDown), Step::CloseControl]).expect("served");
    assert_eq!(finished(&heard, 0), []);
    let report = hq.report(AgentId(0)).expect("it is kept");
    assert_eq!(report.counters.missing, u64::from(LOST));
    assert_eq!(report.counters.entries, u64::from(ALL - LOST) / 2);
    assert!(report.findings.iter().any(|finding| finding.rule == Rule::SequenceGap), "{:?}", report.findings);
}

/// Returns limits with a window of this many events.
fn small(window: usize) -> Limits {
    Limits { window, ..Limits::default() }
}

/// A single chunk of one connection may be longer than the window, and an event may be beyond the window: nothing is given up
/// while another connection has the awaited events.
#[test]
fn what_is_beyond_the_window_waits_before_it_is_taken() {
    const BEHIND: u32 = 1000;
    const ALL: u32 = 12_000;
    // All remaining events in a chunk, and one event with nothing in between.
    for ahead in [(BEHIND..ALL).collect::<Vec<_>>(), vec![ALL - 1]] {
        let minutes = Duration::from_mins(5);
        let (hq, heard) = hq(Options { gap_timeout: minutes, limits: small(64), ..patient() });
        let (mut agent, [mut first, mut second]) = agent(&hq);
        let behind: Vec<Vec<u8>> = (0..ALL).filter(|id| !ahead.contains(id)).map(event).collect();
        first.write_all(&ahead.into_iter().flat_map(event).collect::<Vec<u8>>()).expect("HQ takes it");
        // The connection is read meanwhile, or shows nothing.
        thread::sleep(Duration::from_millis(200));
        second.write_all(&behind.concat()).expect("HQ takes it");
        drop((second, first));
        agent.run(&[Step::Heartbeat(Mode::ShuttingDown), Step::CloseControl]).expect("served");
        assert_eq!(finished(&heard, 0), []);
        let counters = hq.report(AgentId(0)).expect("it is kept").counters;
        assert_eq!((counters.missing, counters.repeated), (0, 0));
        assert_eq!((counters.entries, counters.exits), (u64::from(ALL) / 2, u64::from(ALL) / 2));
    }
}

/// A missing sequence id causes no delay once every connection has passed it.
#[test]
fn what_all_connections_are_beyond_is_given_up_at_once() {
    const PATIENCE: Duration = Duration::from_secs(1);
    const ALL: u32 = 40_000;
    let lost = |id: &u32| id % 2000 == 1000;
    let (hq, heard) = hq(Options { gap_timeout: PATIENCE, limits: small(64), ..patient() });
    let (mut agent, data) = agent(&hq);
    // Until no further connection is expected.
    thread::sleep(PATIENCE);
    let began = Instant::now();
    for (number, mut stream) in (0..).zip(data) {
        let own = (0..ALL).filter(|id| id / 100 % 2 == number && !lost(id));
        stream.write_all(&own.flat_map(event).collect::<Vec<u8>>()).expect("HQ takes it");
    }
    agent.run(&[Step::Heartbeat(Mode::ShuttingDown), Step::CloseControl]).expect("served");
    assert_eq!(finished(&heard, 0), []);
    assert!(began.elapsed() < PATIENCE * 10, "20 of them: {:?}", began.elapsed());
    let counters = hq.report(AgentId(0)).expect("it is kept").counters;
    assert_eq!((counters.missing, counters.repeated), (20, 0));
    assert_eq!(counters.entries + counters.exits, u64::from(ALL) - 20);
}

/// All open connections wait, and the connection with the awaited events opens last.
#[test]
fn a_connection_that_opens_late_loses_nothing() {
    let minutes = Duration::from_mins(5);
    let (hq, heard) = hq(Options { gap_timeout: minutes, limits: small(64), ..patient() });
    let (mut agent, [mut first, mut second]) = agent(&hq);
    first.write_all(&(1000..1100).flat_map(event).collect::<Vec<u8>>()).expect("HQ takes it");
    second.write_all(&(1100..1200).flat_map(event).collect::<Vec<u8>>()).expect("HQ takes it");
    thread::sleep(Duration::from_millis(200));
    agent.run(&[Step::ConnectData]).expect("served");
    let mut third = agent.take_data(2).expect("connected");
    third.write_all(&(0..1000).flat_map(event).collect::<Vec<u8>>()).expect("HQ takes it");
    drop((first, second, third));
    agent.run(&[Step::Heartbeat(Mode::ShuttingDown), Step::CloseControl]).expect("served");
    assert_eq!(finished(&heard, 0), []);
    let counters = hq.report(AgentId(0)).expect("it is kept").counters;
    assert_eq!((counters.missing, counters.repeated), (0, 0));
    assert_eq!(counters.entries + counters.exits, 1200);
}

/// HQ does not wait for connections that have sent nothing.
#[test]
fn closing_waits_for_no_event() {
    let minutes = Duration::from_mins(5);
    let (hq, _heard) = hq(Options { gap_timeout: minutes, limits: small(64), ..patient() });
    let (_agent, mut data) = agent(&hq);
    for stream in &mut data {
        stream.write_all(&event(1000)).expect("HQ takes it");
    }
    thread::sleep(Duration::from_millis(100));
    let (done, ends) = channel();
    thread::spawn(move || {
        hq.close();
        done.send(()).expect("it is waited for");
    });
    ends.recv_timeout(LONG).expect("it has closed");
}
