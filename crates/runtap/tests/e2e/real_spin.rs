//! The main use case on a program with a known call tree: every frame has a name, every share is correct, the full time
//! is covered, and the result agrees with dotnet-trace.
//!
//! A share is an estimate from samples of the program's time, so it has an error: a thread that waits for a processor
//! stands still in one place, and each such wait counts as one draw. The spread between parts of the recording shows
//! how large that error is. On a busy machine the recording is extended until the error is small compared with the
//! allowed 3 points, independent of the shares themselves. If the longest recording is not enough, four times the error
//! is allowed: otherwise the test would measure the other load.

#![expect(clippy::cast_precision_loss, reason = "times of a minute in nanoseconds, and numbers of samples")]
#![expect(clippy::print_stderr, reason = "the figures are worth a look when one is wrong")]

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use runtap_nettrace::{Reader, StreamItem};
use runtap_testkit::{Peer, RealRuntime, Skip, run};

use crate::common::{Target, json};
use crate::speedscope::{self, Thread};

mod alone {
    use crate::common::alone_on;

    #[test]
    fn net8() {
        alone_on(8, super::the_known_call_tree_is_seen);
    }

    #[test]
    fn net9() {
        alone_on(9, super::the_known_call_tree_is_seen);
    }

    #[test]
    fn net10() {
        alone_on(10, super::the_known_call_tree_is_seen);
    }
}

/// Inclusive shares in percentage points, by thread and by the beginning of the frame's name.
const EXPECTED_SHARES: [(&str, &[(&str, f64)]); 3] = [
    (
        "spin-A",
        &[
            ("A.Round()", 100.0),
            ("A.Heavy()", 60.0),
            ("A.Light()", 20.0),
            ("B.Chain(int32)", 20.0),
            ("B.Inner(int32)", 20.0),
        ],
    ),
    (
        "spin-B",
        &[
            ("ThreadB.Round()", 100.0),
            ("Recursion.Down(int32)", 50.0),
            ("Gen`1[System.Int32].Do(", 12.5),
            ("Gen`1[System.__Canon].Do(", 12.5),
            ("ThreadB+<>c__DisplayClass0_0.<Round>b__0()", 25.0),
        ],
    ),
    (
        "spin-C",
        &[
            ("ThreadC.Round()", 100.0),
            ("ThreadC.<Round>g__Local|0_0(int32)", 25.0),
            ("ThreadC+<OuterAsync>d__1.MoveNext()", 50.0),
            ("ThreadC+<InnerAsync>d__2.MoveNext()", 50.0),
            ("ThreadC.Step()", 25.0),
        ],
    ),
];

/// Duration of the first recording in seconds: sufficient on an idle machine.
const SECONDS: f64 = 10.0;
/// Maximum duration in seconds, for busy machines.
const MAX_SECONDS: f64 = 40.0;
/// Maximum standard error of a share in percentage points: a quarter of the allowed deviation.
const MAX_STANDARD_ERROR: f64 = 0.75;

fn the_known_call_tree_is_seen(runtime: &RealRuntime) -> Result<(), Skip> {
    let dotnet_trace = Peer::available("dotnet-trace")?;
    let target = Target::start(runtime.program("spin", &["600"])?);
    let file = target.temp.path().join("spin.nettrace");
    let profile = target.temp.path().join("spin.speedscope.json");
    let record = |seconds: f64| {
        let duration = format!("{seconds:.1}s");
        let summary = json([
            "trace",
            "-p",
            &target.p(),
            "--duration",
            &duration,
            "--to",
            "nettrace",
            "--to",
            "speedscope",
            "-o",
            file.to_str().unwrap(),
            "--format",
            "json",
        ]);
        assert_eq!(
            (&summary["partial"], &summary["lost"]),
            (&serde_json::Value::Null, &0.into()),
            "{summary:#}"
        );
        speedscope::read(&profile)
    };
    let mut threads = record(SECONDS);
    let mut error = worst_error(&threads);
    eprintln!("standard error after {SECONDS} s: {error:.2} points");
    if error > MAX_STANDARD_ERROR {
        threads = record((SECONDS * (error / MAX_STANDARD_ERROR).powi(2)).min(MAX_SECONDS));
        error = worst_error(&threads);
        eprintln!("standard error after a longer recording: {error:.2} points");
    }

    frames_are_named(&threads);
    shares_are_right(&threads, 4.0 * error.max(MAX_STANDARD_ERROR));
    weights_are_the_time_recorded(&threads, &file);
    frames_are_those_of_dotnet_trace(&dotnet_trace, &file, &threads);
    target.still_answers();
    Ok(())
}

/// Splits `Thread (TID) NAME`.
fn tid_and_name(thread: &Thread) -> (u64, &str) {
    let (tid, name) = thread.name.strip_prefix("Thread (").and_then(|rest| rest.split_once(')')).unwrap();
    (tid.parse().unwrap(), name.trim())
}

fn called<'a>(threads: &'a [Thread], name: &str) -> &'a Thread {
    threads.iter().find(|thread| tid_and_name(thread).1 == name).unwrap_or_else(|| panic!("no thread {name}"))
}

/// Returns the largest standard error of the known shares in percentage points, from the spread of the recording's
/// parts.
fn worst_error(threads: &[Thread]) -> f64 {
    const PARTS: u32 = 20;
    let mut worst: f64 = 0.0;
    for (thread, shares) in EXPECTED_SHARES {
        for (frame, _) in shares {
            let parts = called(threads, thread).shares_in_parts(PARTS, |name| is(name, frame));
            let n = parts.len() as f64;
            let mean = parts.iter().sum::<f64>() / n;
            let variance = parts.iter().map(|part| (part - mean).powi(2)).sum::<f64>() / (n - 1.0);
            worst = worst.max(100.0 * (variance / n).sqrt());
        }
    }
    worst
}

fn is(name: &str, frame: &str) -> bool {
    name.strip_prefix("spin!").is_some_and(|name| name.starts_with(frame))
}

/// Checks that at least 99 of 100 frames, at any position and by their weight, have a name.
fn frames_are_named(threads: &[Thread]) {
    let (mut named, mut all) = (0.0, 0.0);
    for (stack, weight) in threads.iter().flat_map(|thread| &thread.slices) {
        for frame in stack {
            let (module, method) = frame.split_once('!').unwrap_or(("", frame));
            all += weight;
            if !module.is_empty() && module != "?" && !method.starts_with("0x") {
                named += weight;
            }
        }
    }
    assert!(named >= 0.99 * all, "{:.2} % of the frames have a name", 100.0 * named / all);
}

/// Checks the known shares, with this deviation in percentage points.
fn shares_are_right(threads: &[Thread], allowed: f64) {
    let mut wrong = Vec::new();
    for (thread, shares) in EXPECTED_SHARES {
        let inclusive = called(threads, thread).inclusive();
        for (frame, expected) in shares {
            let found: f64 = 100.0
                * inclusive.iter().filter(|(name, _)| is(name, frame)).map(|(_, share)| share).sum::<f64>();
            eprintln!("{thread}  {frame:<45} {expected:5.1} {found:6.2}");
            if (found - expected).abs() > allowed {
                wrong.push(format!("{frame} of {thread}: {found:.2} instead of {expected}"));
            }
        }
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
    let deepest = called(threads, "spin-B")
        .slices
        .iter()
        .map(|(stack, _)| stack.iter().filter(|name| is(name, "Recursion.Down")).count());
    assert_eq!(deepest.max(), Some(31), "the recursion is 31 frames deep");
}

/// A busy thread is in every tick of the sampler, so its weights add up to the time between the first and the last
/// tick, plus one period for the last. On a busy machine some milliseconds pass between the first ticks and the first
/// tick of a thread: a thread's weights follow its own samples, which span the recording.
fn weights_are_the_time_recorded(threads: &[Thread], file: &Path) {
    let samples = samples(file);
    let first = samples.values().map(|times| times[0]).min().unwrap();
    let last = samples.values().map(|times| times[times.len() - 1]).max().unwrap();
    let recorded = (last - first) as f64;
    for (name, _) in EXPECTED_SHARES {
        let thread = called(threads, name);
        let own = &samples[&tid_and_name(thread).0];
        let period = recorded / own.len() as f64;
        let span = (own[own.len() - 1] - own[0]) as f64;
        let total = thread.total();
        assert!(
            (total - span).abs() <= 2.0 * period,
            "{name}: {total} of {span} ns, a period is {period} ns"
        );
        assert!(recorded - span <= 0.005 * recorded, "{name}: seen for {span} of {recorded} ns");
    }
}

/// Returns the times of each thread's samples in nanoseconds, from the stream.
fn samples(file: &Path) -> BTreeMap<u64, Vec<i64>> {
    let mut reader = Reader::new();
    reader.feed(&fs::read(file).unwrap());
    reader.finish();
    let mut times: BTreeMap<u64, Vec<u64>> = BTreeMap::new();
    while let Some(item) = reader.next().unwrap() {
        if let StreamItem::Event(event) = item
            && event
                .metadata
                .is_some_and(|metadata| metadata.provider == "Microsoft-DotNETCore-SampleProfiler")
        {
            times.entry(event.thread_id).or_default().push(event.timestamp);
        }
    }
    let header = reader.header().unwrap();
    let relative = |times: Vec<u64>| times.into_iter().map(|time| header.relative_ns(time)).collect();
    times.into_iter().map(|(thread, times)| (thread, relative(times))).collect()
}

/// Checks that the ten frames with the largest inclusive time of each thread are those of dotnet-trace, with equal
/// shares.
fn frames_are_those_of_dotnet_trace(dotnet_trace: &Peer, file: &Path, threads: &[Thread]) {
    let theirs = file.with_file_name("theirs");
    let mut convert = dotnet_trace.command();
    convert.arg("convert").arg(file).args(["--format", "Speedscope", "-o"]).arg(&theirs);
    run(convert).expect_code(0);
    let theirs = speedscope::read(&theirs.with_extension("speedscope.json"));
    for (name, _) in EXPECTED_SHARES {
        let ours = called(threads, name);
        let tid = tid_and_name(ours).0;
        let theirs = theirs.iter().find(|thread| tid_and_name(thread).0 == tid).unwrap();
        let (ours, theirs) = (ours.inclusive(), theirs.inclusive());
        let theirs: BTreeMap<&str, f64> = theirs.into_iter().filter(|(name, _)| !is_pseudo(name)).collect();
        let (our_ten, their_ten) = (ten_largest(&ours), ten_largest(&theirs));
        for (frame, least, shares) in our_ten
            .0
            .iter()
            .map(|frame| (frame, their_ten.1, &theirs))
            .chain(their_ten.0.iter().map(|frame| (frame, our_ten.1, &ours)))
        {
            // Frames with the share of the tenth may be exchanged for it.
            let share = shares.get(frame).copied().unwrap_or_default();
            assert!(share >= least - 0.0005, "{frame} of {name}\nours: {our_ten:#?}\ntheirs: {their_ten:#?}");
            let (our, their) = (100.0 * ours[frame], 100.0 * theirs[frame]);
            assert!((our - their).abs() <= 1.0, "{frame} of {name}: {our:.2}, by dotnet-trace {their:.2}");
        }
    }
}

/// Returns whether dotnet-trace adds such frames.
fn is_pseudo(name: &str) -> bool {
    const PSEUDO: [&str; 4] = ["(Non-Activities)", "Threads", "CPU_TIME", "UNMANAGED_CODE_TIME"];
    PSEUDO.contains(&name) || name.starts_with("Process64 ") || name.starts_with("Thread (")
}

/// Returns the names of the ten largest, or of all if there are fewer, and the smallest share among them.
fn ten_largest<'a>(shares: &BTreeMap<&'a str, f64>) -> (Vec<&'a str>, f64) {
    let mut sorted: Vec<(&str, f64)> = shares.iter().map(|(name, share)| (*name, *share)).collect();
    sorted.sort_by(|a, b| b.1.total_cmp(&a.1));
    sorted.truncate(10);
    let least = sorted.last().map_or(0.0, |(_, share)| *share);
    (sorted.into_iter().map(|(name, _)| name).collect(), least)
}
