//! The performance counters of a virtual machine as series with familiar names.
//!
//! | group | counters | tags |
//! |---|---|---|
//! | `jvm.memory` | `used`, `committed`, `max` | `area`, `pool` |
//! | `jvm.gc` | `collections`, `time` | `collector` |
//! | others | the rows of [`ROWS`] | |
//!
//! Source: `openjdk/jdk` `src/hotspot/share`: `gc/shared/generationCounters.cpp`, `gc/shared/hSpaceCounters.cpp`,
//! `gc/shared/collectorCounters.cpp`, `memory/metaspaceCounters.cpp`, `services/threadService.cpp`,
//! `services/classLoadingService.cpp`, `runtime/safepoint.cpp`, `services/runtimeService.cpp`; and for sums what `jstat` shows
//! (`jdk.jcmd/share/classes/sun/tools/jstat/resources/jstat_options`).

use std::borrow::Cow;
use std::collections::BTreeMap;

use runtap_discover::{PerfCounter, PerfData, PerfValue};
use runtap_model::counters::{Counter, CounterKind, CounterValues, Reading, Tags};
use runtap_wire::DecodeError;

/// The groups, which take the place of providers.
pub(crate) const GROUPS: [&str; 8] = [
    "jvm.class",
    "jvm.compiler",
    "jvm.gc",
    "jvm.lock",
    "jvm.memory",
    "jvm.runtime",
    "jvm.safepoint",
    "jvm.thread",
];

/// The collectors and memory pools that are read: no virtual machine has more than five.
const MAX_INDEX: usize = 64;

/// A counter that is the sum of some of the machine's.
struct CounterDef {
    group: &'static str,
    name: &'static str,
    unit: &'static str,
    kind: CounterKind,
    sources: &'static [&'static str],
}

const fn row(
    group: &'static str,
    name: &'static str,
    unit: &'static str,
    kind: CounterKind,
    sources: &'static [&'static str],
) -> CounterDef {
    CounterDef { group, name, unit, kind, sources }
}

use CounterKind::{Gauge, Rate};

/// The counters without tags. Those in `ms` and `s` are ticks of the machine's clock.
const ROWS: [CounterDef; 21] = [
    row("jvm.class", "loaded", "{class}", Rate, &["java.cls.loadedClasses", "java.cls.sharedLoadedClasses"]),
    row(
        "jvm.class",
        "unloaded",
        "{class}",
        Rate,
        &["java.cls.unloadedClasses", "java.cls.sharedUnloadedClasses"],
    ),
    row("jvm.class", "loaded_size", "By", Rate, &["sun.cls.loadedBytes", "sun.cls.sharedLoadedBytes"]),
    row("jvm.class", "unloaded_size", "By", Rate, &["sun.cls.unloadedBytes", "sun.cls.sharedUnloadedBytes"]),
    row("jvm.class", "load_time", "ms", Rate, &["sun.cls.time"]),
    row("jvm.compiler", "compilations", "{compilation}", Rate, &["sun.ci.totalCompiles"]),
    row("jvm.compiler", "failed", "{compilation}", Rate, &["sun.ci.totalBailouts"]),
    row("jvm.compiler", "invalidated", "{compilation}", Rate, &["sun.ci.totalInvalidates"]),
    row("jvm.compiler", "time", "ms", Rate, &["java.ci.totalTime"]),
    row("jvm.lock", "contended", "{attempt}", Rate, &["sun.rt._sync_ContendedLockAttempts"]),
    row("jvm.lock", "parks", "{park}", Rate, &["sun.rt._sync_Parks"]),
    row("jvm.lock", "notifications", "{notification}", Rate, &["sun.rt._sync_Notifications"]),
    row("jvm.runtime", "uptime", "s", Gauge, &["sun.os.hrt.ticks"]),
    row("jvm.safepoint", "count", "{safepoint}", Rate, &["sun.rt.safepoints"]),
    row("jvm.safepoint", "time", "ms", Rate, &["sun.rt.safepointTime"]),
    row("jvm.safepoint", "sync_time", "ms", Rate, &["sun.rt.safepointSyncTime"]),
    row("jvm.safepoint", "application_time", "ms", Rate, &["sun.rt.applicationTime"]),
    row("jvm.thread", "live", "{thread}", Gauge, &["java.threads.live"]),
    row("jvm.thread", "daemon", "{thread}", Gauge, &["java.threads.daemon"]),
    row("jvm.thread", "peak", "{thread}", Gauge, &["java.threads.livePeak"]),
    row("jvm.thread", "started", "{thread}", Rate, &["java.threads.started"]),
];

/// The numbers of a memory pool, and the ends of their names.
const POOL: [(&str, &str); 3] = [("used", "used"), ("committed", "capacity"), ("max", "maxCapacity")];

/// The memory pools beside the heap, and their names in files.
const NON_HEAP: [(&str, &str); 2] =
    [("metaspace", "sun.gc.metaspace"), ("compressed_class_space", "sun.gc.compressedclassspace")];

/// The counters of one machine, with their previous totals.
#[derive(Debug, Default)]
pub(super) struct JvmSeries {
    previous: BTreeMap<String, i64>,
}

/// The readings of one moment.
#[derive(Debug, Default)]
pub(super) struct JvmReadings {
    pub(super) readings: Vec<Reading>,
    /// Why some counters could not be read.
    pub(super) error: Option<DecodeError>,
}

impl JvmSeries {
    /// Reads a file. `interval_s` is the time since the previous reading, if there was one.
    ///
    /// # Errors
    /// Returns an error if the file has no counters, or the machine is not ready.
    pub(super) fn read(
        &mut self,
        bytes: &[u8],
        interval_s: Option<f64>,
        utc_ns: Option<i64>,
    ) -> Result<JvmReadings, DecodeError> {
        let mut file = Counters::default();
        let mut all = JvmReadings::default();
        for counter in PerfData::new(bytes)? {
            match counter {
                Ok(PerfCounter { name, value: PerfValue::Number(number) }) => {
                    file.numbers.insert(name, number);
                }
                Ok(PerfCounter { name, value: PerfValue::Text(text) }) => {
                    file.texts.insert(name, text);
                }
                // While the machine adds a counter, the last one is incomplete.
                Err(error) => all.error = Some(error),
            }
        }
        let frequency = file.number("sun.os.hrt.frequency").filter(|frequency| *frequency > 0);
        let mut previous = std::mem::take(&mut self.previous);
        let mut add = |def: &CounterDef, number: i64, tags: Tags| {
            let per_second = match def.unit {
                "ms" => Some(1_000.0),
                "s" => Some(1.0),
                _ => None,
            };
            let scaled = |number: i64| match (per_second, frequency) {
                (None, _) => Some(float(number)),
                (Some(factor), Some(frequency)) => Some(float(number) * factor / float(frequency)),
                (Some(_), None) => None,
            };
            let Some(value) = scaled(number) else { return };
            let delta = (def.kind == Rate).then(|| {
                let key = format!("{}/{}/{}", def.group, def.name, tags.text());
                let before = previous.remove(&key);
                self.previous.insert(key, number);
                // A total never decreases.
                scaled(number.checked_sub(before?).filter(|delta| *delta >= 0)?)
            });
            let counter = Counter {
                provider: def.group.to_owned(),
                name: def.name.to_owned(),
                unit: def.unit.to_owned(),
                kind: def.kind,
                tags,
                ..Counter::default()
            };
            let values = CounterValues {
                value: Some(value),
                delta: delta.flatten(),
                interval_s,
                ..CounterValues::default()
            };
            all.readings.push(Reading { counter, values, utc_ns });
        };
        for def in &ROWS {
            let mut numbers = def.sources.iter().filter_map(|source| file.number(source));
            if let Some(first) = numbers.next() {
                add(def, numbers.fold(first, i64::saturating_add), Tags::default());
            }
        }
        for (pool, area, prefix) in file.pools() {
            for (name, source) in POOL {
                let tags = tags(&[("area", area), ("pool", &pool)]);
                if let Some(number) = file.number(&format!("{prefix}.{source}")) {
                    add(&row("jvm.memory", name, "By", Gauge, &[]), number, tags);
                }
            }
        }
        for (collector, prefix) in file.collectors() {
            for (name, unit, source) in
                [("collections", "{collection}", "invocations"), ("time", "ms", "time")]
            {
                if let Some(number) = file.number(&format!("{prefix}.{source}")) {
                    add(&row("jvm.gc", name, unit, Rate, &[]), number, tags(&[("collector", &collector)]));
                }
            }
        }
        Ok(all)
    }
}

/// The counters of a file by their names.
#[derive(Debug, Default)]
struct Counters<'a> {
    numbers: BTreeMap<Cow<'a, str>, i64>,
    texts: BTreeMap<Cow<'a, str>, Cow<'a, str>>,
}

impl Counters<'_> {
    fn number(&self, name: &str) -> Option<i64> {
        self.numbers.get(name).copied()
    }

    fn text(&self, name: &str) -> Option<&str> {
        self.texts.get(name).map(|text| &**text).filter(|text| !text.is_empty())
    }

    /// Returns the memory pools: name, area, and the beginning of the names of their counters.
    fn pools(&self) -> Vec<(String, &'static str, String)> {
        let mut pools = Vec::new();
        for generation in 0..MAX_INDEX {
            let prefix = format!("sun.gc.generation.{generation}");
            let Some(name) = self.text(&format!("{prefix}.name")) else { continue };
            for space in 0..MAX_INDEX {
                let prefix = format!("{prefix}.space.{space}");
                if self.number(&format!("{prefix}.used")).is_none() {
                    break;
                }
                // A generation with one space has the better name: `old`, whose space is named `space`.
                let is_only = space == 0
                    && self.number(&format!("sun.gc.generation.{generation}.space.1.used")).is_none();
                let own = self.text(&format!("{prefix}.name")).filter(|_| !is_only);
                pools.push((own.unwrap_or(name).to_owned(), "heap", prefix));
            }
        }
        pools.extend(NON_HEAP.map(|(name, prefix)| (name.to_owned(), "nonheap", prefix.to_owned())));
        pools
    }

    /// Returns the collectors: name, and the beginning of the names of their counters.
    fn collectors(&self) -> Vec<(String, String)> {
        let of = |index: usize| {
            let prefix = format!("sun.gc.collector.{index}");
            self.number(&format!("{prefix}.invocations"))?;
            let name = self.text(&format!("{prefix}.name")).map_or_else(|| index.to_string(), str::to_owned);
            Some((name, prefix))
        };
        (0..MAX_INDEX).filter_map(of).collect()
    }
}

fn tags(pairs: &[(&str, &str)]) -> Tags {
    let text: Vec<String> = pairs.iter().map(|(name, value)| format!("{name}={value}")).collect();
    let pairs = pairs.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned()));
    Tags::new(text.join(","), pairs.collect())
}

#[expect(clippy::cast_precision_loss, reason = "counters are numbers of one type")]
fn float(number: i64) -> f64 {
    number as f64
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// Builds a file of numbers and texts.
    fn file(numbers: &[(&str, i64)], texts: &[(&str, &str)]) -> Vec<u8> {
        let count = u32::try_from(numbers.len() + texts.len()).unwrap();
        let mut file = vec![0xca, 0xfe, 0xc0, 0xc0, 1, 2, 0, 1];
        file.extend([0; 16]);
        file.extend([32_u32.to_le_bytes(), count.to_le_bytes()].concat());
        let mut counter = |name: &str, kind: u8, elements: usize, value: &[u8]| {
            let at = (20 + name.len() + 1).next_multiple_of(8);
            let end = (at + value.len()).next_multiple_of(8);
            let word = |number: usize| u32::try_from(number).unwrap().to_le_bytes();
            let mut counter = [word(end), word(20), word(elements), [kind, 0, 0, 0], word(at)].concat();
            counter.extend(name.as_bytes());
            counter.resize(at, 0);
            counter.extend(value);
            counter.resize(end, 0);
            file.extend(counter);
        };
        for (name, number) in numbers {
            counter(name, b'J', 0, &number.to_le_bytes());
        }
        for (name, text) in texts {
            counter(name, b'B', text.len() + 1, &[text.as_bytes(), &[0]].concat());
        }
        file
    }

    const TEXTS: [(&str, &str); 5] = [
        ("sun.gc.generation.0.name", "young"),
        ("sun.gc.generation.0.space.0.name", "eden"),
        ("sun.gc.generation.0.space.1.name", "s0"),
        ("sun.gc.generation.1.name", "old"),
        ("sun.gc.collector.0.name", "G1 young\u{1b}[m"),
    ];

    const NUMBERS: [(&str, i64); 12] = [
        ("sun.os.hrt.frequency", 1_000_000_000),
        ("sun.os.hrt.ticks", 2_500_000_000),
        ("sun.gc.generation.0.space.0.used", 7),
        ("sun.gc.generation.0.space.0.capacity", 8),
        ("sun.gc.generation.0.space.1.used", 1),
        ("sun.gc.generation.1.space.0.used", 100),
        ("sun.gc.metaspace.used", 50),
        ("sun.gc.collector.0.invocations", 3),
        ("sun.gc.collector.0.time", 1_500_000),
        ("java.cls.loadedClasses", 40),
        ("java.cls.sharedLoadedClasses", 400),
        ("java.threads.live", 6),
    ];

    fn shown(readings: &[Reading]) -> Vec<String> {
        let number = |value: Option<f64>| value.map_or_else(|| "-".to_owned(), |value| value.to_string());
        let line = |Reading { counter, values, .. }: &Reading| {
            let Counter { provider, name, unit, tags, .. } = counter;
            format!(
                "{provider}/{name}{{{}}} {} {} {unit}",
                tags.text(),
                number(values.value),
                number(values.delta)
            )
        };
        readings.iter().map(line).collect()
    }

    #[test]
    fn counters_become_series() {
        let mut series = JvmSeries::default();
        let first = series.read(&file(&NUMBERS, &TEXTS), None, Some(7)).unwrap();
        assert_eq!((first.error, first.readings[0].utc_ns), (None, Some(7)));
        assert_eq!(
            shown(&first.readings),
            [
                "jvm.class/loaded{} 440 - {class}",
                "jvm.runtime/uptime{} 2.5 - s",
                "jvm.thread/live{} 6 - {thread}",
                "jvm.memory/used{area=heap,pool=eden} 7 - By",
                "jvm.memory/committed{area=heap,pool=eden} 8 - By",
                "jvm.memory/used{area=heap,pool=s0} 1 - By",
                "jvm.memory/used{area=heap,pool=old} 100 - By",
                "jvm.memory/used{area=nonheap,pool=metaspace} 50 - By",
                "jvm.gc/collections{collector=G1 young\u{1b}[m} 3 - {collection}",
                "jvm.gc/time{collector=G1 young\u{1b}[m} 1.5 - ms",
            ]
        );
        let mut later = NUMBERS;
        (later[7].1, later[8].1, later[9].1) = (5, 2_000_000, 39);
        let second = series.read(&file(&later, &TEXTS), Some(1.0), None).unwrap().readings;
        let of = |name: &str| shown(&second).into_iter().find(|line| line.starts_with(name)).unwrap();
        assert_eq!(
            of("jvm.gc/collections"),
            "jvm.gc/collections{collector=G1 young\u{1b}[m} 5 2 {collection}"
        );
        assert!(of("jvm.gc/time").ends_with(" 2 0.5 ms"));
        // A total that decreases is not an increment.
        assert_eq!(of("jvm.class/loaded"), "jvm.class/loaded{} 439 - {class}");
        assert!(second.iter().all(|reading| reading.values.interval_s == Some(1.0)));
        assert!(second.iter().all(|reading| GROUPS.contains(&&*reading.counter.provider)));
    }

    #[test]
    fn unknown_numbers_are_left_out() {
        let mut series = JvmSeries::default();
        let times = &file(&[("sun.cls.time", 5), ("java.threads.live", 1)], &[]);
        assert_eq!(
            shown(&series.read(times, None, None).unwrap().readings),
            ["jvm.thread/live{} 1 - {thread}"]
        );
        for frequency in [0, -1] {
            let times = &file(&[("sun.cls.time", 5), ("sun.os.hrt.frequency", frequency)], &[]);
            assert_eq!(series.read(times, None, None).unwrap().readings.len(), 0);
        }
        assert!(series.read(b"", None, None).is_err());
    }

    proptest! {
        #[test]
        fn any_damage_leaves_finite_numbers(at: usize, bytes in prop::collection::vec(any::<u8>(), 0..40), end: usize) {
            let mut damaged = file(&NUMBERS, &TEXTS);
            let from = at % damaged.len();
            let to = damaged.len().min(from + bytes.len());
            damaged.splice(from..to, bytes);
            damaged.truncate(end % (damaged.len() + 1));
            let mut series = JvmSeries::default();
            for _ in 0..2 {
                let Ok(all) = series.read(&damaged, Some(1.0), None) else { continue };
                prop_assert!(all.readings.iter().all(|it| it.values.value.is_some_and(f64::is_finite)));
                prop_assert!(series.previous.len() <= all.readings.len());
            }
        }
    }
}
