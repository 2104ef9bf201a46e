//! Traces as profiles, as sinks receive them.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::slice::from_ref;

use runtap_bytefrog_proto::f1::{Batch, BatchEvent, BatchKind, Drop, DropReason, Process, Rows};
use runtap_bytefrog_proto::{Dialect, JavaStr, Message, to_bytes};
use runtap_jvm::recording::{
    CALLS, Difference, Options, Order, Part, ProfileKind, RecordedAgent, ReplayedAgent, SELF_TIME,
    TreeMeasure, find, profile, replay,
};
use runtap_model::{KindInfo, StackHandle, Trace, View};
use runtap_testkit::{require, shared_data, shared_dir};

fn view(trace: &Trace, info: KindInfo) -> View {
    let kind = trace.kinds().iter().find(|(_, known)| *known == info).expect("it is there").0;
    View::Kind(kind, info)
}

/// Returns the frames from the root, separated by `;`.
fn stack(trace: &Trace, stack: Option<StackHandle>) -> String {
    let frames = stack.into_iter().flat_map(|stack| trace.stacks().frames(stack));
    let mut names: Vec<String> = frames.map(|frame| trace.frame(frame).to_string()).collect();
    names.reverse();
    names.join(";")
}

/// Returns `THREAD;STACK WEIGHT`, summed and sorted, as folded stacks have it.
fn folded(trace: &Trace, info: KindInfo) -> Vec<String> {
    let mut sums: BTreeMap<String, u64> = BTreeMap::new();
    for (_, thread) in trace.threads() {
        for sample in thread.samples(view(trace, info)) {
            let path = format!("{};{}", thread.label(), stack(trace, sample.stack));
            *sums.entry(path).or_default() += sample.weight;
        }
    }
    sums.into_iter().map(|(path, sum)| format!("{path} {sum}")).collect()
}

/// Returns `FROM..UNTIL STACK` of each interval.
fn pieces(trace: &Trace) -> Vec<String> {
    let all = trace.threads().flat_map(|(_, thread)| thread.samples(view(trace, SELF_TIME)));
    let piece = |sample: runtap_model::Sample| {
        let (from, until) = (sample.time_ns, sample.time_ns + sample.weight);
        format!("{from}..{until} {}", stack(trace, sample.stack))
    };
    all.map(piece).collect()
}

fn text(text: &'static str) -> JavaStr<'static> {
    JavaStr::from_bytes(text.as_bytes())
}

/// Returns an F1 agent whose thread 3 calls `outer`, which calls `inner` twice, the second time across a loss.
fn made_by_hand(folder: &Path) -> RecordedAgent {
    let say = |message: &Message<'_>| to_bytes(message, Dialect::F1).expect("it fits");
    let event = |kind, method, delta| BatchEvent { kind, method, delta }.to_bytes();
    let (begin, end) = (BatchKind::Entry, BatchKind::Exit);
    let first = [
        event(begin, 1, 0),
        event(begin, 2, 10),
        event(end, 2, 40),
        event(begin, 2, 40),
        event(end, 2, 60),
        event(begin, 2, 70),
    ];
    let second = [event(begin, 2, 0), event(end, 2, 5)];
    let batch = |sequence, base, rows| {
        say(&Message::Batch(Batch { thread: 3, sequence, base, rows: Rows::new(rows) }))
    };
    let data = [
        vec![0x1e, 0],
        batch(0, 1000, &first),
        say(&Message::Drop(Drop { thread: 3, sequence: 6, time: 1080, count: 2, reason: DropReason(1) })),
        batch(6, 2000, &second),
        say(&Message::MapMethod { method: 1, signature: text("shop/Cart.outer;1;()V") }),
        say(&Message::MapMethod { method: 2, signature: text("java/util/List.inner;1;(I)V") }),
        say(&Message::MapThreadName { thread: 3, time: 0, name: text("worker") }),
    ];
    let process =
        Process { pid: 7, wall: 5_000_000_000, resolution: 1, jvm: text("25"), main: text("shop.Main") };
    let control = [vec![0, 0xf1], say(&Message::Process(process)), vec![8, b'X', 0, 0]];
    fs::write(folder.join("shop.ctl.a2h.bin"), control.concat()).expect("written");
    fs::write(folder.join("shop.data0.a2h.bin"), data.concat()).expect("written");
    find(&folder.join("shop")).expect("a recording").remove(0)
}

fn played(recorded: &RecordedAgent, part: &str) -> (Options, ReplayedAgent) {
    let whole = replay(recorded, &Options::default()).expect("read");
    assert_eq!((&whole.damage, &whole.violations), (&vec![], &vec![]));
    let part = if part.is_empty() { Part::Whole } else { Part::parse(part).expect("a part") };
    let part = part.resolve(&whole.model.report(), &recorded.marks).expect("there");
    let options = Options { part, ..Options::default() };
    let replayed = replay(recorded, &options).expect("read");
    (options, replayed)
}

#[test]
fn sums_are_those_of_the_call_tree() {
    let folder = tempfile::tempdir().expect("a folder");
    let recorded = made_by_hand(folder.path());
    let (options, replayed) = played(&recorded, "");
    let of = |sums| profile(&recorded, &replayed, &options, ProfileKind::Tree(sums)).expect("read");
    let trace = of(TreeMeasure::Time);
    assert_eq!(trace.process().label(), "shop.Main (7)");
    assert_eq!(trace.start_unix_ns(), Some(5_000_000_000));
    assert_eq!(
        folded(&trace, SELF_TIME),
        [
            "Thread (3) worker;java.util.List.inner(int) 5",
            // Until the loss, as in the timeline.
            "Thread (3) worker;shop.Cart.outer() 20",
            "Thread (3) worker;shop.Cart.outer();java.util.List.inner(int) 50"
        ]
    );
    assert_eq!(
        folded(&of(TreeMeasure::Calls), CALLS),
        [
            "Thread (3) worker;java.util.List.inner(int) 1",
            "Thread (3) worker;shop.Cart.outer() 1",
            "Thread (3) worker;shop.Cart.outer();java.util.List.inner(int) 3"
        ]
    );
}

#[test]
fn a_timeline_opens_and_closes_calls_and_bridges_no_loss() {
    let folder = tempfile::tempdir().expect("a folder");
    let recorded = made_by_hand(folder.path());
    let timeline = |part: &str, most| {
        let (options, replayed) = played(&recorded, part);
        profile(&recorded, &replayed, &options, ProfileKind::Timeline(most)).expect("read")
    };
    let trace = timeline("", 100);
    assert_eq!(trace.left_out(), 0);
    // Names came after the calls. A call that was cut as soon as it had begun has no time, and nothing bridges the loss.
    let (outer, inner) = ("shop.Cart.outer()", "java.util.List.inner(int)");
    assert_eq!(
        pieces(&trace),
        [
            format!("1000..1010 {outer}"),
            format!("1010..1040 {outer};{inner}"),
            format!("1040..1060 {outer};{inner}"),
            format!("1060..1070 {outer}"),
            format!("2000..2005 {inner}"),
        ]
    );
    assert_eq!(timeline("", 2).left_out(), 3);
    // The call started in the part, so all of it is included, with those of its callees that started in the part.
    let part = timeline("1us..1.02us", 100);
    assert_eq!(
        pieces(&part),
        [format!("1000..1010 {outer}"), format!("1010..1040 {outer};{inner}"), format!("1040..1070 {outer}")]
    );
}

#[test]
fn a_timeline_has_the_time_that_the_call_tree_has() {
    require!(shared_data("bytefrog/v1_basic.json").map(drop));
    let folder = shared_dir().expect("it was read").join("data/bytefrog");
    for scenario in ["v1_basic", "v1_pause", "v1_reconfigure", "v4_basic"] {
        let recorded = find(&folder.join(scenario)).expect("a recording").remove(0);
        let (options, replayed) = played(&recorded, "");
        let trace = |of| profile(&recorded, &replayed, &options, of).expect("read");
        let (sums, lines) =
            (trace(ProfileKind::Tree(TreeMeasure::Time)), trace(ProfileKind::Timeline(1_000_000)));
        assert_eq!(folded(&sums, SELF_TIME), folded(&lines, SELF_TIME), "{scenario}");
        let calls = trace(ProfileKind::Tree(TreeMeasure::Calls));
        let calls: u64 = folded(&calls, CALLS)
            .iter()
            .filter_map(|line| line.rsplit(' ').next()?.parse::<u64>().ok())
            .sum();
        assert_eq!(calls, replayed.model.report().counters.entries, "{scenario}");
    }
}

#[test]
fn a_difference_is_sorted_by_what_changed_most() {
    require!(shared_data("bytefrog/v1_basic.json").map(drop));
    let folder = shared_dir().expect("it was read").join("data/bytefrog");
    let report = |scenario: &str| {
        let recorded = find(&folder.join(scenario)).expect("a recording").remove(0);
        replay(&recorded, &Options::default()).expect("read").model.report()
    };
    let (basic, pause) = (report("v1_basic"), report("v1_pause"));
    let same = Difference::new(from_ref(&basic), from_ref(&basic), Some(Order::Own)).unwrap();
    assert_eq!((same.changed, same.methods.len()), (0, basic.methods.len()));
    let difference = Difference::new(from_ref(&basic), from_ref(&pause), Some(Order::Calls)).unwrap();
    let names: Vec<(&str, i128)> = difference
        .methods
        .iter()
        .take(3)
        .map(|method| (method.signature.split(';').next().expect("a name"), method.change(Order::Calls)))
        .collect();
    assert_eq!(names, [("demo/Counts.fib", -1973), ("demo/Counts.noop", -410), ("demo/Ticker.tick", 195)]);
    let sizes: Vec<u128> =
        difference.methods.iter().map(|method| method.change(Order::Calls).unsigned_abs()).collect();
    assert!(sizes.is_sorted_by(|a, b| a >= b));
    assert_eq!(difference.changed, difference.methods.len());
}
