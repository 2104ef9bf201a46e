//! The latest state of all series in the text format of Prometheus, version 0.0.4.
//!
//! | in the board | in the file |
//! |---|---|
//! | provider, name and unit | the name of the metric: `demo_shop_latency_milliseconds`; other characters than letters, digits and `_` become `_` |
//! | a rate | a `counter` with the total, named `…_total` |
//! | a histogram | a `summary`: the quantiles of the latest interval, `_sum` and `_count` of all intervals |
//! | other kinds | a `gauge` |
//! | process, version, tags | labels; tags of one name are joined by `;`, from those of the meter to those of the series |
//! | a missing number | no sample |
//!
//! Series with equal names and labels, such as those of different instruments, get the label `instance`. If a name belongs to
//! metrics of several kinds, the kind is added to the later names.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;

use runtap_model::counters::{Counter, CounterBoard, CounterKind, CounterRow};
use runtap_model::text::Clean;

use super::number::{Number, PROMETHEUS};

/// Labels that are not tags of the program.
const OWN: [&str; 5] = ["instance", "le", "pid", "quantile", "version"];

/// The units of OpenTelemetry that have another name in Prometheus.
const UNITS: [(&str, &str); 8] = [
    ("%", "percent"),
    ("B", "bytes"),
    ("By", "bytes"),
    ("MB", "megabytes"),
    ("ms", "milliseconds"),
    ("ns", "nanoseconds"),
    ("s", "seconds"),
    ("us", "microseconds"),
];

pub(super) fn write(board: &CounterBoard, out: &mut Vec<u8>) {
    // All samples of a metric must be adjacent.
    let mut families: BTreeMap<String, Vec<&CounterRow>> = BTreeMap::new();
    let mut names = BTreeMap::new();
    for row in board.rows() {
        families.entry(family(&row.counter, &mut names)).or_default().push(row);
    }
    let mut text = String::new();
    for (name, rows) in &families {
        let Some(first) = rows.first() else { continue };
        let kind = kind(first.counter.kind);
        let Counter { provider, name: counter, unit, .. } = &first.counter;
        let help = help(&format!("{provider}/{counter} {unit}"));
        // Writing to memory does not fail.
        let _ = write!(text, "# HELP {name} {help}\n# TYPE {name} {kind}\n");
        let all: Vec<String> = rows.iter().map(|row| labels(row)).collect();
        let mut groups: BTreeMap<&str, Vec<&CounterRow>> = BTreeMap::new();
        for (labels, row) in all.iter().zip(rows) {
            groups.entry(labels).or_default().push(row);
        }
        let mut used = BTreeMap::new();
        for (labels, row) in all.iter().zip(rows) {
            let same = groups.get(&**labels).map(Vec::as_slice).unwrap_or_default();
            if same.len() < 2 {
                samples(&mut text, name, row, labels);
                continue;
            }
            let instances = used.entry(&**labels).or_insert_with(|| Instances::of(same));
            let instance = instances.unused(row.counter.instance);
            samples(&mut text, name, row, &format!("{labels},instance=\"{instance}\""));
        }
    }
    out.extend_from_slice(text.as_bytes());
}

/// The numbers that distinguish series with equal labels.
struct Instances {
    used: BTreeSet<u64>,
    next: u64,
}

impl Instances {
    fn of(rows: &[&CounterRow]) -> Self {
        let last = rows.iter().map(|row| u64::from(row.counter.instance)).max().unwrap_or(0);
        Self { used: BTreeSet::new(), next: last + 1 }
    }

    /// Returns the number of the instrument, or another one if it was returned before.
    fn unused(&mut self, instance: u32) -> u64 {
        let instance = u64::from(instance);
        if self.used.insert(instance) {
            return instance;
        }
        self.next += 1;
        self.next - 1
    }
}

fn samples(text: &mut String, name: &str, row: &CounterRow, labels: &str) {
    let mut sample = |suffix: &str, more: &str, value: Option<f64>| {
        let Some(value) = value else { return };
        let value = Number { value, infinities: PROMETHEUS };
        let _ = writeln!(text, "{name}{suffix}{{{labels}{more}}} {value}");
    };
    if row.counter.kind != CounterKind::Histogram {
        return sample("", "", row.value());
    }
    for (share, value) in &row.values.quantiles {
        sample("", &format!(",quantile=\"{}\"", escaped(share)), Some(*value));
    }
    sample("_sum", "", row.total_sum);
    #[expect(clippy::cast_precision_loss, reason = "the format has one type of numbers")]
    sample("_count", "", row.total_count.map(|count| count as f64));
}

fn kind(kind: CounterKind) -> &'static str {
    match kind {
        CounterKind::Rate => "counter",
        CounterKind::Histogram => "summary",
        _ => "gauge",
    }
}

/// Returns a name of the metric that no metric of another kind has. `names` are the kinds by names so far.
fn family(counter: &Counter, names: &mut BTreeMap<String, &'static str>) -> String {
    let kind = kind(counter.kind);
    let mut name = name(counter);
    loop {
        let mut parts = vec![(name.clone(), kind)];
        if counter.kind == CounterKind::Histogram {
            parts.extend(["_sum", "_count"].map(|suffix| (format!("{name}{suffix}"), "part of a summary")));
        }
        if parts.iter().all(|(name, kind)| names.get(name).is_none_or(|known| known == kind)) {
            names.extend(parts);
            return name;
        }
        name = format!("{name}_{kind}");
    }
}

/// Returns the usual name of the metric.
fn name(counter: &Counter) -> String {
    let mut name = plain(&format!("{}_{}", counter.provider, counter.name)).to_ascii_lowercase();
    let known = UNITS.iter().find(|(unit, _)| *unit == counter.unit).map(|(_, name)| (*name).to_owned());
    let unit = known.or_else(|| {
        let is_word = !counter.unit.is_empty() && counter.unit.bytes().all(|b| b.is_ascii_alphabetic());
        is_word.then(|| counter.unit.to_ascii_lowercase())
    });
    if let Some(unit) = unit
        && !name.ends_with(&format!("_{unit}"))
    {
        name = format!("{name}_{unit}");
    }
    match counter.kind {
        CounterKind::Rate => format!("{name}_total"),
        CounterKind::Histogram if !name.ends_with("_total") => name,
        CounterKind::Histogram => format!("{name}_summary"),
        _ if name.ends_with("_total") => format!("{name}_value"),
        _ => name,
    }
}

/// Replaces characters that names can't contain.
fn plain(name: &str) -> String {
    let plain: String =
        name.chars().map(|c| if c.is_ascii_alphanumeric() || c == '_' { c } else { '_' }).collect();
    if plain.starts_with(|c: char| c.is_ascii_digit()) || plain.is_empty() {
        format!("_{plain}")
    } else {
        plain
    }
}

fn labels(row: &CounterRow) -> String {
    let mut tags: BTreeMap<String, String> = BTreeMap::new();
    for (name, value) in row.counter.all_tags() {
        let mut name = plain(name);
        // Names that start with two underscores are reserved.
        if OWN.contains(&&*name) || name.starts_with("__") {
            name = format!("tag_{name}");
        }
        let joined = tags.entry(name).or_default();
        let separator = if joined.is_empty() { "" } else { ";" };
        let _ = write!(joined, "{separator}{value}");
    }
    let mut labels = format!("pid=\"{}\"", row.process);
    let version = row.counter.version.as_deref().map(|version| ("version", version));
    for (name, value) in version.into_iter().chain(tags.iter().map(|(name, value)| (&**name, &**value))) {
        let _ = write!(labels, ",{name}=\"{}\"", escaped(value));
    }
    labels
}

fn escaped(value: &str) -> String {
    Clean(value).to_string().replace('\\', "\\\\").replace('"', "\\\"")
}

fn help(text: &str) -> String {
    Clean(text.trim()).to_string().replace('\\', "\\\\")
}
