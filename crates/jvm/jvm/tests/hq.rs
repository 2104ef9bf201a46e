//! Recordings by HQ: a replay has the results of the live trace.

use std::net::{Ipv4Addr, SocketAddr};
use std::os::unix::fs::PermissionsExt as _;
use std::sync::Arc;
use std::sync::mpsc::channel;
use std::time::Duration;

use runtap_bytefrog::hq::{AgentId, Event, Hq, Options, Recorder};
use runtap_bytefrog::{Report, Selection};
use runtap_bytefrog_proto::{Configuration, Dialect, Exit, JavaStr, Message, Mode, Stamp};
use runtap_jvm::recording::{Error, Part, RecordingWriter, find, replay};
use runtap_testkit::fake_agent::{FakeAgent, Step, recorded, say};
use runtap_testkit::require;

fn options() -> Options {
    Options {
        configuration: Configuration {
            inclusions: vec!["^demo/".into()],
            // Longer than a machine may be stopped for a few seconds.
            heartbeat_interval: 60_000,
            ..Configuration::default()
        },
        ..Options::default()
    }
}

/// Runs agents one after the other at an HQ that records into `folder`.
fn record(
    folder: &Arc<RecordingWriter>,
    agents: &[(Dialect, Vec<Step>)],
    between: impl Fn(&Hq, usize),
) -> Vec<Report> {
    let (sender, receiver) = channel();
    let recorder: Arc<dyn Recorder> = Arc::clone(folder) as Arc<dyn Recorder>;
    let options = Options { recorder: Some(recorder), ..options() };
    let loopback = SocketAddr::from((Ipv4Addr::LOCALHOST, 0));
    let hq = Hq::listen(loopback, options, move |_, event| {
        let _ = sender.send(event);
    })
    .expect("a free port");
    for (number, (dialect, steps)) in agents.iter().enumerate() {
        between(&hq, number);
        let mut agent = FakeAgent::connect(hq.address(), *dialect).expect("HQ listens");
        agent.run(steps).expect("served");
        loop {
            let event = receiver.recv_timeout(Duration::from_secs(20)).expect("it comes to its end");
            assert!(!matches!(event, Event::RecordingFailed { .. }), "{event:?}");
            if event == Event::Finished {
                break;
            }
        }
    }
    between(&hq, agents.len());
    (0..).zip(agents).map(|(id, _)| hq.report(AgentId(id)).expect("kept")).collect()
}

/// Removes the parts of a report that depend on the times when calls ended.
fn timeless(mut report: Report) -> Report {
    for method in &mut report.methods {
        (method.own, method.inclusive, method.own_so_far, method.so_far) = (0, 0, 0, 0);
    }
    report.slow_calls.clear();
    report
}

#[test]
fn what_is_recorded_comes_to_what_was_live() {
    let names = ["v1_basic", "v1_reconfigure", "v4_suspend"];
    let mut agents = Vec::new();
    for name in names {
        agents.push(require!(recorded(name)));
    }
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("new");
    let recording = Arc::new(RecordingWriter::create(&path).expect("it can be made"));
    let live = record(&recording, &agents, |_, _| {});
    let found = find(&path).expect("a recording");
    assert_eq!(found.iter().map(|it| it.agent.as_str()).collect::<Vec<_>>(), ["agent0", "agent1", "agent2"]);
    for (recorded, live) in found.iter().zip(&live) {
        let replayed = replay(recorded, &runtap_jvm::recording::Options::default()).expect("it can be read");
        assert_eq!(replayed.damage, []);
        assert_eq!(replayed.unfinished, []);
        assert_eq!(replayed.violations, []);
        let mut report = replayed.model.report();
        // Whether a break comes before its events depends on threads.
        report.findings.clear();
        let live = Report { findings: Vec::new(), ..live.clone() };
        assert_eq!(report.methods.len(), live.methods.len());
        // Which calls are truncated by the break also depends on threads: their durations are known or not.
        let [report, live] = [report, live]
            .map(|report| if report.counters.data_breaks > 0 { timeless(report) } else { report });
        assert_eq!(report, live);
        for stream in &recorded.streams {
            let mode = std::fs::metadata(&stream.bytes).expect("it is there").permissions().mode();
            assert_eq!(mode & 0o777, 0o600, "{}", stream.bytes.display());
        }
    }
    assert!(matches!(RecordingWriter::create(&path), Err(Error::AlreadyRecorded(_))));
}

/// One agent of version 1 that calls method 1 with a marker on both sides of the second call.
fn three_calls(method: u32) -> (Dialect, Vec<Step>) {
    let mut events = Vec::new();
    let mut sequence = 0;
    let mut at = |time| {
        sequence += 1;
        Stamp { time, sequence: sequence - 1, thread: 0 }
    };
    let text = |text: &'static str| JavaStr::from_bytes(text.as_bytes());
    let say = |message: &Message<'_>| say(Dialect::V1, message);
    events.extend(say(&Message::MapMethod { method, signature: text("a/B.m;1;()V") }));
    for (time, value) in [(0, ""), (5, "S"), (5, "E")] {
        let Stamp { time, sequence, .. } = at(time);
        events.extend(if value.is_empty() {
            say(&Message::Entry { at: Stamp { time, sequence, thread: 0 }, method: 9 })
        } else {
            let (key, value) = (text("request"), text(value));
            say(&Message::Marker { time, sequence, thread: None, key, value })
        });
        events.extend(say(&Message::Entry { at: at(5), method }));
        events.extend(say(&Message::Exit { at: at(5), method, exit: Exit::Line(1) }));
    }
    let steps = vec![
        Step::Hello,
        Step::AwaitConfiguration,
        Step::ConnectData,
        Step::Data(0, events),
        Step::Heartbeat(Mode::ShuttingDown),
        Step::CloseData(0),
        Step::CloseControl,
    ];
    (Dialect::V1, steps)
}

#[test]
fn parts_by_marker_time_and_name() {
    let folder = tempfile::tempdir().expect("a folder");
    let recording = Arc::new(RecordingWriter::create(folder.path()).expect("it can be made"));
    record(&recording, &[three_calls(1), three_calls(2)], |hq, agent| {
        // Before its start, the end of a recording is rejected.
        assert_eq!(hq.mark("second", agent == 1).is_ok(), agent > 0);
    });
    let found = find(folder.path()).expect("a recording");
    let calls = |agent: usize, part: &str| {
        let whole = replay(&found[agent], &runtap_jvm::recording::Options::default()).expect("read");
        let part = Part::parse(part).expect("a part");
        let part = part.resolve(&whole.model.report(), &found[agent].marks)?;
        let options = runtap_jvm::recording::Options { part, ..Default::default() };
        let report = replay(&found[agent], &options).expect("read").model.report();
        let of =
            |name: &str| report.methods.iter().find(|it| it.signature == name).map_or(0, |it| it.entries);
        Ok::<_, runtap_jvm::recording::UnknownPart>((of("a/B.m;1;()V"), of("(method 9)")))
    };
    // By ids: the markers have the millisecond of all calls but one.
    assert_eq!(calls(0, "request=S"), Ok((1, 0)));
    assert_eq!(calls(0, "request="), Ok((1, 0)));
    assert_eq!(calls(0, "request=S.."), Ok((2, 0)));
    assert_eq!(calls(0, "..request=S"), Ok((1, 1)));
    assert_eq!(calls(0, "request=E.."), Ok((1, 0)));
    assert_eq!(calls(0, "1ms.."), Ok((3, 0)));
    assert_eq!(calls(0, "..1ms"), Ok((0, 1)));
    assert_eq!(calls(0, "..5ms"), Ok((0, 1)));
    assert_eq!(calls(0, "5ms..5.000001ms"), Ok((3, 0)));
    assert_eq!(calls(0, "second"), Ok((0, 0)));
    assert_eq!(calls(1, "second"), Ok((3, 1)));
    let unknown = calls(0, "request=X").expect_err("there is none");
    assert_eq!(unknown.to_string(), "there is no segment request=X; the recording has request=S");
    assert_eq!(
        calls(0, "third").expect_err("none").to_string(),
        "no part is named 'third'; the recording has second"
    );
    assert_eq!(
        Part::parse("5ms..")
            .expect("a part")
            .resolve(
                &replay(&found[0], &runtap_jvm::recording::Options::default()).expect("read").model.report(),
                &found[0].marks
            )
            .map(|it| it.selection),
        Ok(Selection::Times(vec![(5_000_000, i64::MAX)]))
    );
}
