//! The latest reading of every series, with totals, within limits of memory.

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;
use std::sync::Arc;

use super::{Counter, CounterKind, CounterValues, PAIR_SIZE, Reading, Tags};

/// The limits of a [`CounterBoard`]. A program may report any number of series with names of any length.
#[derive(Debug, Clone, Copy)]
pub struct BoardLimits {
    /// The maximum number of series.
    pub series: usize,
    /// The maximum size of the series in bytes, with their texts and quantiles.
    pub bytes: usize,
}

impl Default for BoardLimits {
    fn default() -> Self {
        Self { series: 100_000, bytes: 64 << 20 }
    }
}

/// What identifies a series, in the order in which series are shown.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct SeriesKey {
    process: u32,
    provider: String,
    version: Option<String>,
    provider_tags: String,
    name: String,
    tags: [String; 2],
    instance: u32,
}

impl SeriesKey {
    /// Returns the key of a series of a process.
    pub fn of(process: u32, counter: &Counter) -> Self {
        let tags = [&counter.counter_tags, &counter.tags];
        Self {
            process,
            provider: counter.provider.clone(),
            version: counter.version.clone(),
            provider_tags: counter.provider_tags.text().to_owned(),
            name: counter.name.clone(),
            tags: tags.map(|tags| tags.text().to_owned()),
            instance: counter.instance,
        }
    }

    /// Returns the approximate size of a series in bytes with the latest reading and all keys.
    fn size(&self, counter: &Counter, values: &CounterValues) -> usize {
        let names = [self.provider.len(), self.name.len(), self.version.as_ref().map_or(0, String::len)];
        let tags = self.tags.iter().map(String::len).sum::<usize>() + self.provider_tags.len();
        let levels = [&counter.provider_tags, &counter.counter_tags, &counter.tags];
        let tag_pairs = levels.into_iter().map(Tags::size).sum::<usize>();
        let quantiles = values.quantiles.iter().map(|(share, _)| share.len() + PAIR_SIZE).sum::<usize>();
        let others = counter.unit.len() + counter.display_name.as_ref().map_or(0, String::len);
        3 * names.iter().sum::<usize>() + tags + tag_pairs + quantiles + others + ROW_SIZE
    }
}

/// The approximate size of a series without texts and quantiles in bytes.
const ROW_SIZE: usize = 1_024;

/// What identifies the counter of a series, whatever its tags are.
#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
struct InstrumentKey {
    process: u32,
    instance: u32,
    provider: String,
    version: Option<String>,
    name: String,
}

impl InstrumentKey {
    fn of(process: u32, counter: &Counter) -> Self {
        let Counter { instance, provider, version, name, .. } = counter;
        Self {
            process,
            instance: *instance,
            provider: provider.clone(),
            version: version.clone(),
            name: name.clone(),
        }
    }
}

/// A series with its latest reading and its totals.
#[derive(Debug, Clone)]
pub struct CounterRow {
    /// A number that no other series of the board has or had.
    pub id: u64,
    /// The process id.
    pub process: u32,
    /// The series.
    pub counter: Counter,
    /// The numbers of the latest reading.
    pub values: CounterValues,
    /// The time of the latest reading in nanoseconds since 1970, UTC. `None` if unknown.
    pub utc_ns: Option<i64>,
    /// The sum of the increments in all readings. `None` without an increment.
    pub total: Option<f64>,
    /// The number of values in all readings. `None` if never reported.
    pub total_count: Option<u64>,
    /// The sum of the values in all readings. `None` if never reported.
    pub total_sum: Option<f64>,
    /// The [value](Self::value) of the reading before the latest one.
    pub previous: Option<f64>,
    /// The number of readings.
    pub readings: u64,
}

impl CounterRow {
    /// Returns the current value of a gauge, or the total of other kinds: as reported, or the sum of the increments so far if
    /// the source does not report totals.
    pub fn value(&self) -> Option<f64> {
        self.values.value.or(match self.counter.kind {
            CounterKind::Rate | CounterKind::Updown => self.total,
            CounterKind::Gauge | CounterKind::Histogram => None,
        })
    }

    /// Returns the increments per second in the latest interval.
    pub fn rate(&self) -> Option<f64> {
        let interval = self.values.interval_s.filter(|seconds| *seconds > 0.0)?;
        Some(self.values.delta? / interval)
    }

    fn add(&mut self, reading: Reading) {
        self.previous = self.value();
        let Reading { counter, values, utc_ns } = reading;
        self.total = both(self.total, values.delta, |a, b| a + b);
        self.total_count = both(self.total_count, values.count, u64::saturating_add);
        self.total_sum = both(self.total_sum, values.sum, |a, b| a + b);
        (self.counter, self.values, self.utc_ns) = (counter, values, utc_ns);
        self.readings += 1;
    }
}

fn both<T: Copy>(a: Option<T>, b: Option<T>, join: impl FnOnce(T, T) -> T) -> Option<T> {
    a.zip(b).map(|(a, b)| join(a, b)).or(a).or(b)
}

/// The latest readings of all series of some processes.
#[derive(Debug, Default)]
pub struct CounterBoard {
    limits: BoardLimits,
    rows: BTreeMap<Arc<SeriesKey>, CounterRow>,
    /// The series of each counter, so that removing them does not search all rows.
    instruments: BTreeMap<InstrumentKey, Vec<Arc<SeriesKey>>>,
    bytes: usize,
    omitted: u64,
    next_id: u64,
}

impl CounterBoard {
    /// Creates an empty board.
    pub fn new(limits: BoardLimits) -> Self {
        Self { limits, ..Self::default() }
    }

    /// Adds a reading, and returns its series. `None` if a limit is reached: then the series is new, or has longer texts than
    /// before.
    pub fn add(&mut self, process: u32, reading: Reading) -> Option<&CounterRow> {
        let count = self.rows.len();
        let key = Arc::new(SeriesKey::of(process, &reading.counter));
        let size = key.size(&reading.counter, &reading.values);
        match self.rows.entry(key) {
            Entry::Occupied(entry) => {
                let before = entry.key().size(&entry.get().counter, &entry.get().values);
                let bytes = self.bytes.saturating_sub(before) + size;
                if size > before && bytes > self.limits.bytes {
                    self.omitted += 1;
                    return None;
                }
                self.bytes = bytes;
                let row = entry.into_mut();
                row.add(reading);
                Some(row)
            }
            Entry::Vacant(entry) => {
                let bytes = self.bytes + size;
                if count >= self.limits.series || bytes > self.limits.bytes {
                    self.omitted += 1;
                    return None;
                }
                self.bytes = bytes;
                let instrument = InstrumentKey::of(process, &reading.counter);
                self.instruments.entry(instrument).or_default().push(Arc::clone(entry.key()));
                self.next_id += 1;
                let row = entry.insert(CounterRow {
                    id: self.next_id,
                    process,
                    counter: Counter::default(),
                    values: CounterValues::default(),
                    utc_ns: None,
                    total: None,
                    total_count: None,
                    total_sum: None,
                    previous: None,
                    readings: 0,
                });
                row.add(reading);
                Some(row)
            }
        }
    }

    /// Removes all series of a counter that the program no longer reports. The tags of the series are ignored. Returns whether
    /// there were any.
    pub fn end(&mut self, process: u32, counter: &Counter) -> bool {
        let keys = self.instruments.remove(&InstrumentKey::of(process, counter)).unwrap_or_default();
        for key in &keys {
            if let Some(row) = self.rows.remove(key) {
                self.bytes = self.bytes.saturating_sub(key.size(&row.counter, &row.values));
            }
        }
        !keys.is_empty()
    }

    /// Removes all series of a process.
    pub fn end_process(&mut self, process: u32) {
        let bytes = &mut self.bytes;
        self.rows.retain(|key, row| {
            let is_removed = key.process == process;
            if is_removed {
                *bytes = bytes.saturating_sub(key.size(&row.counter, &row.values));
            }
            !is_removed
        });
        self.instruments.retain(|key, _| key.process != process);
    }

    /// Returns all series, sorted by process, provider (with its version and tags), name and tags.
    pub fn rows(&self) -> impl ExactSizeIterator<Item = &CounterRow> {
        self.rows.values()
    }

    /// Returns how many readings were ignored because a limit was reached.
    pub fn omitted(&self) -> u64 {
        self.omitted
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::super::Tags;
    use super::*;

    fn reading(name: &str, tags: &str, delta: Option<f64>) -> Reading {
        let tags = Tags::new(tags, Vec::new());
        let counter = Counter { name: name.to_owned(), kind: CounterKind::Rate, tags, ..Counter::default() };
        let values = CounterValues { delta, interval_s: Some(2.0), ..CounterValues::default() };
        Reading { counter, values, utc_ns: None }
    }

    #[test]
    fn totals_are_reported_or_summed() {
        let mut board = CounterBoard::default();
        board.add(1, reading("a", "", Some(3.0)));
        let row = board.add(1, reading("a", "", Some(5.0))).unwrap();
        assert_eq!((row.value(), row.rate(), row.previous), (Some(8.0), Some(2.5), Some(3.0)));
        let mut reported = reading("a", "", Some(1.0));
        reported.values.value = Some(100.0);
        assert_eq!(board.add(1, reported).unwrap().value(), Some(100.0));
        // A missing number is neither 0 nor the number before.
        let row = board.add(1, reading("a", "", None)).unwrap();
        assert_eq!((row.value(), row.rate(), row.values.delta), (Some(9.0), None, None));
    }

    #[test]
    fn series_differ_by_process_version_and_tags() {
        let mut board = CounterBoard::default();
        board.add(1, reading("a", "x=1", None));
        board.add(1, reading("a", "x=2", None));
        board.add(2, reading("a", "x=1", None));
        let mut other = reading("a", "x=1", None);
        other.counter.version = Some("2".to_owned());
        board.add(1, other);
        assert_eq!(board.rows().len(), 4);
        board.end(1, &reading("a", "", None).counter);
        assert_eq!(board.rows().len(), 2);
        board.end_process(2);
        assert_eq!(board.rows().map(|row| row.counter.version.as_deref()).collect::<Vec<_>>(), [Some("2")]);
    }

    /// Texts and numbers that don't identify the series need memory, too.
    #[test]
    fn all_texts_and_quantiles_count() {
        let long = "x".repeat(2_000);
        let changes: [&dyn Fn(&mut Reading); 4] = [
            &|it| it.counter.unit.clone_from(&long),
            &|it| it.counter.display_name = Some(long.clone()),
            &|it| it.counter.tags = Tags::new("", vec![(String::new(), String::new()); 50]),
            &|it| it.values.quantiles = vec![(String::new(), 0.0); 50],
        ];
        for change in changes {
            let mut board = CounterBoard::new(BoardLimits { series: 10, bytes: 3_000 });
            let mut large = reading("a", "", Some(1.0));
            change(&mut large);
            assert!(board.add(1, reading("a", "", Some(1.0))).is_some());
            let before = board.bytes;
            // The known series can't grow beyond the limit, but still has new numbers.
            assert!(board.add(1, large.clone()).is_none());
            assert!(board.add(1, reading("a", "", Some(2.0))).is_some());
            assert_eq!((board.bytes, board.omitted()), (before, 1));
            board.limits.bytes = 10_000;
            assert!(board.add(1, large).is_some());
            assert!(board.bytes >= before + 2_000);
            board.end(1, &reading("a", "", None).counter);
            assert_eq!((board.rows().len(), board.bytes, board.instruments.len()), (0, 0, 0));
        }
    }

    /// A program may end unknown counters at any rate.
    #[test]
    fn ends_do_not_search_all_rows() {
        let mut board = CounterBoard::default();
        for index in 0..20_000 {
            board.add(1, reading("a", &index.to_string(), None));
        }
        let mut other = reading("a", "", None).counter;
        other.instance = 1;
        assert!((0..20_000).all(|_| !board.end(1, &other)));
        assert_eq!(board.rows().len(), 20_000);
    }

    proptest! {
        /// The memory is bounded, and removing all series returns all of it.
        #[test]
        fn limits_hold(names in prop::collection::vec(("[a-c]{0,40}", "[x-z]{0,40}", 0_u32..3), 0..60)) {
            let mut board = CounterBoard::new(BoardLimits { series: 10, bytes: 12_000 });
            for (name, tags, process) in &names {
                let is_known = board.rows().any(|row| {
                    row.process == *process && row.counter.name == *name && row.counter.tags.text() == tags
                });
                let omitted = board.omitted();
                let is_added = board.add(*process, reading(name, tags, Some(1.0))).is_some();
                prop_assert!(is_added || !is_known);
                prop_assert_eq!(board.omitted() - omitted, u64::from(!is_added));
                prop_assert!(board.rows().len() <= 10 && board.bytes <= 12_000);
            }
            (0..3).for_each(|process| board.end_process(process));
            prop_assert_eq!((board.rows().len(), board.bytes), (0, 0));
        }
    }
}
