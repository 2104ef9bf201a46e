//! Attached and detached a hundred times while the program works: nothing is left, and the speed is unchanged.

use runtap_bytefrog::Report;
use runtap_bytefrog::hq::{AgentId, Event};
use runtap_bytefrog_proto::{ClassOutcome, Configuration, Extension, JavaString, RecordMode, WhenSlow};
use runtap_testkit::{Jdk, Skip, eventually, require};

use super::{Attached, Part};
use crate::common::{Listening, demo};

/// An expression that no class matches.
const NOTHING: &str = "^none/";

/// The limit for the growth of resident memory per cycle without classes, in KiB, after the first cycles. It covers
/// the memory that the agent leaves, and the memory that the JVM leaves after loading an agent.
const MOST_OURS: u64 = 8;
/// The limit for the growth of resident memory per cycle with classes, in KiB, with old class versions collected. This is the
/// JVM's memory, and depends on its compilers' activity: 362 on a busy machine, 438 to 451 on a quiet one.
const MOST_KEPT: u64 = 600;
/// The number of cycles between full collections, which a working program has by itself: without one the JVM keeps
/// every version of a class.
const COLLECTS: usize = 10;
/// The limit per cycle beyond the memory that the JVM reports: pages that it had reserved before and did not use.
const MOST_BESIDE: u64 = 192;

#[test]
fn a_tenth_of_a_hundred_times() {
    require!(sweep(Part::Tenth));
}

#[test]
#[ignore = "minutes"]
fn a_hundred_times() {
    require!(sweep(Part::Whole));
}

fn sweep(part: Part) -> Result<(), Skip> {
    for jdk in part.jdks()? {
        without_classes(&jdk, part)?;
        with_classes(&jdk, part)?;
    }
    Ok(())
}

/// A fixed heap and permanent compiler threads, so that growth is due to the agent or to changed classes.
const OPTIONS: &[&str] = &[
    "-Xverify:all",
    "-XX:+UseSerialGC",
    "-Xms64m",
    "-Xmx64m",
    "-XX:+AlwaysPreTouch",
    "-XX:-UseDynamicNumberOfCompilerThreads",
    "-XX:NativeMemoryTracking=summary",
];

/// The remains of consecutive cycles: threads and files, which have to be constant from the second cycle on, and memory.
struct Growth {
    skipped: usize,
    cycles: usize,
    first: Option<(usize, usize, Memory)>,
}

impl Growth {
    /// Memory is measured after a fifth of the cycles.
    fn of(cycles: usize) -> Self {
        Self { skipped: cycles / 5, cycles: 0, first: None }
    }

    fn cycle(&mut self, program: &Attached) {
        eventually("no thread of the agent is left", || (!program.has_agent_threads()).then_some(()));
        self.cycles += 1;
        if let Some((threads, files, _)) = self.first.as_ref().filter(|_| self.cycles > self.skipped) {
            // The JVM closes the connection of the attaching tool shortly after it answers.
            let what = format!("cycle {}: {threads} threads and {files} files", self.cycles);
            eventually(&what, || {
                (program.threads().len() <= *threads && program.files() <= *files).then_some(())
            });
            return;
        }
        let least = self.first.as_ref().map_or((usize::MAX, usize::MAX), |first| (first.0, first.1));
        let (threads, files) = (program.threads().len().min(least.0), program.files().min(least.1));
        self.first = Some((threads, files, Memory::of(program)));
    }

    /// Returns KiB per cycle: resident memory, and the JVM's own account.
    fn each(&self, program: &Attached, what: &str) -> (u64, u64) {
        let (threads, files, first) = self.first.as_ref().unwrap();
        let (cycles, now) = ((self.cycles - self.skipped.max(1)) as u64, Memory::of(program));
        let resident = now.resident.saturating_sub(first.resident) / cycles;
        let taken = now.taken().saturating_sub(first.taken()) / cycles;
        println!(
            "{what}: {cycles} cycles, {threads} threads and {files} files in each; {resident} KiB a cycle, of which the JVM \
             says {taken}; in all: {}",
            now.since(first)
        );
        (resident, taken)
    }
}

/// Runs all steps except the change of classes, in a JVM that compiles nothing meanwhile.
fn without_classes(jdk: &Jdk, part: Part) -> Result<(), Skip> {
    let options = [OPTIONS, &["-Xint"]].concat();
    let (program, _) = Attached::start(jdk, &options, &["demo.Loaded", "0", "0"])?;
    let mut growth = Growth::of(part.of(100));
    for _ in 0..part.of(100) {
        assert_eq!(cycle_of(&program, RecordMode::Full, NOTHING), 0);
        growth.cycle(&program);
    }
    let (resident, _) = growth.each(&program, &format!("JDK {}, no class", jdk.major()));
    if part == Part::Whole {
        assert!(resident <= MOST_OURS, "{}: {resident} KiB a cycle", jdk.major());
    }
    program.end();
    Ok(())
}

fn with_classes(jdk: &Jdk, part: Part) -> Result<(), Skip> {
    let (major, cycles) = (jdk.major(), part.of(100));
    // The threads that parse are included.
    let classes = if part == Part::Whole { 200 } else { 50 };
    let (mut program, loaded) = Attached::start(jdk, OPTIONS, &["demo.Loaded", "1", &classes.to_string()])?;
    assert_eq!(loaded, classes.to_string());
    // In the whole sweep, the number that the compilers need when a loop becomes hot again after seconds.
    let asks = if part == Part::Whole { 500 } else { 8 };
    // This program only answers.
    let (mut other, _) = Attached::start(jdk, OPTIONS, &["demo.Loaded", "0", "0"])?;
    let before = steady(asks, &mut program, &mut other);
    let mut growth = Growth::of(cycles);
    for cycle in 0..cycles {
        let record = [RecordMode::Full, RecordMode::Counts, RecordMode::Coverage][cycle % 3];
        let changed = cycle_of(&program, record, "^com/sun/org/apache/");
        assert!(changed >= classes, "{major} {record:?}: {changed} classes were changed");
        if cycle % COLLECTS == COLLECTS - 1 {
            program.command("GC.run");
        }
        growth.cycle(&program);
    }
    let (resident, taken) = growth.each(&program, &format!("JDK {major}, {classes} classes"));
    if part == Part::Whole {
        let last = steady(asks, &mut program, &mut other);
        println!(
            "JDK {major}: {} ns a document before, {} after the last cycle; in a program beside it {} and {}",
            before[0], last[0], before[1], last[1]
        );
        assert!(resident <= taken + MOST_BESIDE, "{major}: {resident} KiB a cycle");
        assert!(resident <= MOST_KEPT, "{major}: {resident} KiB a cycle");
        let as_fast = before[0].max(last[1]);
        assert!(last[0] <= as_fast + as_fast / 10, "{major}: {last:?} after {before:?}");
    } else {
        // Interpreted code is twenty times as slow; when the compilers run depends on the machine.
        eventually("it is compiled again", || (program.ask("speed")[0] <= 3 * before[0]).then_some(()));
    }
    program.end();
    other.end();
    Ok(())
}

/// Returns the minimum processor time of a document, in ns, in the program and in one that is never attached to, measured
/// alternately, because other load slows both. The compilers need thousands of documents after a change of classes, as after
/// the start; they count as done when `asks` measurements have brought no improvement.
fn steady(asks: u32, program: &mut Attached, other: &mut Attached) -> [u64; 2] {
    let (mut best, mut since) = ([u64::MAX; 2], 0);
    while since < asks {
        let now = [program.ask("speed")[0], other.ask("speed")[0]];
        let better = now.iter().zip(best).any(|(now, best)| *now < best - best / 100);
        since = if better { 0 } else { since + 1 };
        best = [now[0].min(best[0]), now[1].min(best[1])];
    }
    best
}

/// Attaches, waits for calls if any are expected, and detaches. Returns the number of classes reported as changed.
fn cycle_of(program: &Attached, record: RecordMode, include: &str) -> usize {
    let extension =
        Extension { record, when_slow: WhenSlow::Drop, snapshot_interval: 20, ..Extension::default() };
    let inclusions = vec![JavaString::from(include)];
    let hq = Listening::with(Configuration { extension, inclusions, ..demo() });
    program.load(&format!("port={},boot=yes", hq.hq.address().port())).unwrap();
    let seen = |report: &Report| {
        report.methods.iter().any(|method| match record {
            RecordMode::Full => method.entries > 0,
            RecordMode::Counts => method.counted.is_some_and(|(calls, ..)| calls > 0),
            RecordMode::Coverage => method.has_run,
        })
    };
    if include != NOTHING {
        eventually("it sees calls", || hq.hq.report(AgentId(0)).ok().filter(seen));
    }
    program.load("detach").unwrap();
    let report = hq.report();
    assert_eq!(report.counters.orphans, 0);
    let heard = hq.heard.lock().unwrap();
    let changed = |event: &Event| matches!(event, Event::Class { outcome: ClassOutcome::Transformed, .. });
    heard.iter().filter(|(_, event)| changed(event)).count()
}

/// Memory in KiB.
#[derive(Debug, Clone)]
struct Memory {
    resident: u64,
    /// The memory that the JVM reports as committed, for its use.
    taken: Vec<(String, u64)>,
}

impl Memory {
    fn of(program: &Attached) -> Self {
        let said = program.command("VM.native_memory summary");
        // `-                     Class (reserved=1048709KB, committed=773KB)`
        let taken = said.lines().filter_map(|line| {
            let (name, rest) = line.trim_start_matches(['-', ' ']).split_once(" (reserved=")?;
            let (_, committed) = rest.split_once("committed=")?;
            let (kib, _) = committed.split_once("KB")?;
            line.starts_with('-').then_some((name.to_owned(), kib.parse().ok()?))
        });
        Self { resident: program.resident(), taken: taken.collect() }
    }

    fn taken(&self) -> u64 {
        self.taken.iter().map(|(_, kib)| kib).sum()
    }

    /// Returns the difference.
    fn since(&self, first: &Self) -> String {
        let taken = self.taken.iter().filter_map(|(name, kib)| {
            let (_, before) = first.taken.iter().find(|(other, _)| other == name)?;
            (kib != before).then(|| format!("{name} {:+}", kib.cast_signed() - before.cast_signed()))
        });
        let taken: Vec<_> = taken.collect();
        let resident = self.resident.cast_signed() - first.resident.cast_signed();
        format!("resident {resident:+} KiB; taken by the JVM: {}", taken.join(", "))
    }
}
