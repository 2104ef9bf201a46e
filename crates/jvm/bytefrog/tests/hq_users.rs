//! An HQ on a loopback address with agents of several users, who share its slots; each user is granted some.
#![cfg(target_os = "linux")]

mod common;

use std::io::Read as _;
use std::net::{SocketAddr, TcpStream};
use std::thread;
use std::time::Instant;

use common::{Heard, LONG, entry, hq, until, violations};
use runtap_bytefrog::Limits;
use runtap_bytefrog::hq::{AgentId, Event, Hq, Options, RejectReason};
use runtap_bytefrog_proto::{Dialect, Mode};
use runtap_testkit::fake_agent::{FakeAgent, Step};
use runtap_testkit::{Skip, eventually, require};
use rustix::process::{Uid, geteuid};
use rustix::thread::set_thread_res_uid;

const OWN: u32 = 0;
const ONE: u32 = 65_534;
const OTHER: u32 = 65_533;

/// Skips the test unless run by root, who can act as other users.
fn root() -> Result<(), Skip> {
    let is_root = geteuid().as_raw() == OWN;
    if is_root { Ok(()) } else { Err(Skip::because("only root can act as other users")) }
}

/// Runs a function as a user, who owns the sockets that it opens.
fn as_user<T: Send>(user: u32, run: impl FnOnce() -> T + Send) -> T {
    thread::scope(|scope| {
        let thread = scope.spawn(|| {
            let user = Uid::from_raw(user);
            set_thread_res_uid(user, user, user).expect("the test runs as root");
            run()
        });
        thread.join().expect("it ends")
    })
}

fn of_users(options: Options) -> (Hq, Heard) {
    hq(Options { users: Some(vec![OWN, OWN, ONE, OTHER]), ..options })
}

/// Returns an agent of a user that has sent a heartbeat.
fn living(hq: &Hq, user: u32) -> FakeAgent {
    as_user(user, || {
        let mut agent = FakeAgent::connect(hq.address(), Dialect::V1).expect("HQ listens");
        agent
            .run(&[Step::Hello, Step::AwaitConfiguration, Step::Heartbeat(Mode::Initializing)])
            .expect("there is room");
        agent
    })
}

/// Waits until this many agents have sent a heartbeat.
fn live(heard: &Heard, mut count: usize) {
    until(heard, |_, event| {
        count -= usize::from(matches!(event, Event::Heartbeat { .. }));
        count == 0
    });
}

fn displaced(heard: &Heard) -> (u32, Event) {
    let all = until(heard, |_, event| matches!(event, Event::Displaced { .. } | Event::Rejected { .. }));
    all.into_iter().next_back().map(|(id, event)| (id.expect("an agent").0, event)).expect("the last")
}

#[test]
fn a_user_with_most_agents_gives_way_and_its_sums_are_kept() {
    require!(root());
    let (hq, heard) = of_users(Options { agents: 4, ..Options::default() });
    let mut agents: Vec<FakeAgent> = (0..4).map(|_| living(&hq, ONE)).collect();
    live(&heard, 4);
    let events = [entry(0, 1), entry(1, 2)].concat();
    as_user(ONE, || agents[3].run(&[Step::ConnectData, Step::Data(0, events)]).expect("served"));
    until(&heard, |_, event| *event == Event::Data(1));
    let _own = living(&hq, OWN);
    let made_room = Event::Displaced { user: Some(ONE), newcomer: Some(OWN), silent: false };
    assert_eq!(displaced(&heard), (3, made_room), "the newest");
    agents[3].run(&[Step::AwaitEnd]).expect("closed");
    let end = until(&heard, |agent, event| (agent, event) == (Some(AgentId(3)), &Event::Finished));
    assert_eq!(violations(&end), []);
    let (count, report) = hq.former(false).expect("kept");
    assert_eq!((count, report.counters.entries), (1, 2));
    assert!(hq.former(true).is_none(), "their sums are apart");
    // Each other user has one slot less than that user, who could reclaim it.
    let _other = living(&hq, OTHER);
    assert_eq!(displaced(&heard).0, 2);
    let mut refused = as_user(ONE, || FakeAgent::connect(hq.address(), Dialect::V1)).expect("HQ listens");
    refused.run(&[Step::Hello, Step::AwaitEnd]).expect("refused");
    let all = until(&heard, |_, event| matches!(event, Event::Rejected { .. }));
    assert!(matches!(all.last(), Some((None, Event::Rejected { cause: RejectReason::Agents(4), .. }))));
}

#[test]
fn own_agents_leave_for_no_other_user() {
    require!(root());
    let (hq, heard) = of_users(Options { agents: 3, ..Options::default() });
    let own: Vec<FakeAgent> = (0..3).map(|_| living(&hq, OWN)).collect();
    live(&heard, 3);
    let mut agent = as_user(ONE, || FakeAgent::connect(hq.address(), Dialect::V1)).expect("HQ listens");
    agent.run(&[Step::Hello, Step::AwaitEnd]).expect("refused");
    assert_eq!(agent.errors.len(), 1);
    assert!(hq.agents().iter().all(|state| !state.ended) && hq.agents().len() == own.len());
}

/// A finished trace keeps its own report until its slot is needed by a user with fewer slots.
#[test]
fn agents_that_are_over_stay_where_another_user_has_most() {
    require!(root());
    let (hq, heard) = of_users(Options { agents: 3, ..Options::default() });
    let close = |mut agent: FakeAgent| agent.run(&[Step::CloseControl]).expect("closed");
    close(living(&hq, OWN));
    common::finished(&heard, 0);
    let _crowd = [living(&hq, ONE), living(&hq, ONE)];
    live(&heard, 2);
    let mut third = as_user(ONE, || FakeAgent::connect(hq.address(), Dialect::V1)).expect("HQ listens");
    third.run(&[Step::Hello, Step::AwaitEnd]).expect("refused");
    assert!(hq.report(AgentId(0)).is_ok());
    close(living(&hq, OWN));
    assert!(hq.report(AgentId(0)).is_err(), "of the same user");
    common::finished(&heard, 3);
    let _other = living(&hq, OTHER);
    assert!(hq.former(true).is_some_and(|(count, _)| count == 2), "both of the own user");
}

/// An agent may have any number of data connections.
#[test]
fn a_user_with_most_connections_gives_way() {
    require!(root());
    let (hq, heard) = of_users(Options { connections: 8, ..Options::default() });
    let mut agent = living(&hq, ONE);
    live(&heard, 1);
    as_user(ONE, || agent.run(&[const { Step::ConnectData }; 7]).expect("there is room"));
    until(&heard, |_, event| *event == Event::Data(7));
    let _own = living(&hq, OWN);
    let made_room = Event::Displaced { user: Some(ONE), newcomer: Some(OWN), silent: false };
    assert_eq!(displaced(&heard), (0, made_room));
    agent.run(&[Step::AwaitEnd]).expect("closed");
}

/// Events that wait for a missing one occupy no slot when their agent has lost its own.
#[test]
fn an_agent_without_a_place_waits_for_no_event() {
    require!(root());
    let limits = Limits { window: 64, ..Limits::default() };
    let patience = LONG * 10;
    let (hq, heard) =
        of_users(Options { connections: 8, gap_timeout: patience, limits, ..Options::default() });
    let mut agent = living(&hq, ONE);
    live(&heard, 1);
    as_user(ONE, || agent.run(&[const { Step::ConnectData }; 7]).expect("there is room"));
    let in_order = [entry(0, 1), entry(1, 2)].concat();
    agent.run(&[Step::Data(0, [in_order, entry(1000, 3)].concat())]).expect("served");
    for number in 1..7 {
        agent
            .run(&[Step::Data(number, entry(1000 + u32::try_from(number).expect("small"), 3))])
            .expect("served");
    }
    // Two of these are counted when their connection waits.
    eventually("the events", || {
        hq.counters(AgentId(0)).is_ok_and(|(counted, _)| counted.entries == 2).then_some(())
    });
    agent.run(&[Step::CloseControl]).expect("closed");
    until(&heard, |_, event| *event == Event::ControlEnded);
    let began = Instant::now();
    let mut own = living(&hq, OWN);
    own.run(&[const { Step::ConnectData }; 7]).expect("there is room");
    // All eight slots belong to this user.
    let all = until(&heard, |_, event| *event == Event::Finished);
    assert!(!all.iter().any(|(_, event)| matches!(event, Event::Rejected { .. })), "{all:?}");
    assert!(began.elapsed() < LONG, "{:?}", began.elapsed());
    let (count, report) = hq.former(false).expect("kept");
    assert!(count == 1 && report.counters.entries >= 2, "{:?}", report.counters);
    // Before or after that end.
    let last = (Some(AgentId(1)), Event::Data(7));
    if !all.contains(&last) {
        until(&heard, |agent, event| (agent, event) == (last.0, &last.1));
    }
}

/// Silent connections of one user do not close those of another user.
#[test]
fn a_crowd_that_says_nothing_ends_only_its_own() {
    require!(root());
    let (hq, _heard) = of_users(Options { connections: 8, timeout: LONG * 10, ..Options::default() });
    let connect = |address: SocketAddr| TcpStream::connect(address).expect("HQ listens");
    let mut own = connect(hq.address());
    let crowd: Vec<TcpStream> = as_user(ONE, || (0..50).map(|_| connect(hq.address())).collect());
    // HQ has accepted all connections of the crowd when the first of them have closed.
    let mut byte = [0];
    assert_eq!((&crowd[40]).read(&mut byte).expect("the end"), 0);
    own.set_nonblocking(true).expect("a socket");
    assert_eq!(own.read(&mut byte).map_err(|error| error.kind()), Err(std::io::ErrorKind::WouldBlock));
}

/// One large trace is kept for each user.
#[test]
fn each_user_has_a_large_trace() {
    require!(root());
    let limits = Limits { methods: 16, ..Limits::default() };
    let (hq, heard) = of_users(Options { large: 3, limits, ..Options::default() });
    let events: Vec<u8> = (0..10).flat_map(|number| entry(number, number + 1)).collect();
    for (number, user, kept) in [(0, ONE, 10), (1, ONE, 2), (2, OTHER, 10), (3, OWN, 10), (4, OWN, 2)] {
        let mut agent = living(&hq, user);
        as_user(user, || {
            agent
                .run(&[
                    Step::ConnectData,
                    Step::Data(0, events.clone()),
                    Step::CloseData(0),
                    Step::CloseControl,
                ])
                .expect("served");
        });
        common::finished(&heard, number);
        assert_eq!(hq.report(AgentId(number)).expect("kept").methods.len(), kept, "agent {number}");
    }
}

/// Limits hold for any number of users and connections.
#[test]
fn one_large_trace_is_left_for_the_own_user() {
    require!(root());
    for users in [None, Some(vec![OWN, ONE, OTHER])] {
        let limits = Limits { methods: 16, ..Limits::default() };
        let (hq, heard) = hq(Options { large: 2, users, limits, ..Options::default() });
        let events: Vec<u8> = (0..10).flat_map(|number| entry(number, number + 1)).collect();
        for (number, user, kept) in [(0, ONE, 10), (1, ONE, 2), (2, OTHER, 2), (3, OWN, 10)] {
            let mut agent = living(&hq, user);
            as_user(user, || {
                agent
                    .run(&[
                        Step::ConnectData,
                        Step::Data(0, events.clone()),
                        Step::CloseData(0),
                        Step::CloseControl,
                    ])
                    .expect("served");
            });
            common::finished(&heard, number);
            assert_eq!(hq.report(AgentId(number)).expect("kept").methods.len(), kept, "agent {number}");
        }
    }
}

/// A collector that serves many programs has room for a tenth one.
#[test]
fn a_small_trace_that_has_ended_leaves_its_large_place_to_others() {
    let limits = Limits { methods: 16, frames: 800, ..Limits::default() };
    let (hq, heard) = hq(Options { large: 1, limits, ..Options::default() });
    // The second has a stack whose capacity is above the limit.
    for (number, calls, methods, kept) in
        [(0, 1, 1, 1), (1, 65, 1, 1), (2, 2, 2, 2), (3, 10, 10, 10), (4, 10, 10, 2)]
    {
        let events: Vec<u8> = (0..calls).flat_map(|call| entry(call, call % methods + 1)).collect();
        let mut agent = FakeAgent::connect(hq.address(), Dialect::V1).expect("HQ listens");
        let steps = [
            Step::Hello,
            Step::AwaitConfiguration,
            Step::Heartbeat(Mode::Initializing),
            Step::ConnectData,
            Step::Data(0, events),
            Step::CloseData(0),
            Step::CloseControl,
        ];
        agent.run(&steps).expect("served");
        common::finished(&heard, number);
        assert_eq!(hq.report(AgentId(number)).expect("kept").methods.len(), kept, "agent {number}");
    }
}
