//! Finds series that several instruments report and that the runtime does not distinguish.
//!
//! .NET 8 and older report neither ids of instruments nor tags of meters that distinguish two meters of one name and version. Their
//! instruments of one name then report series of equal identity, one after the other in each interval.

use std::collections::BTreeMap;

use runtap_model::counters::{Counter, Reading, SeriesKey};

/// The maximum number of series that are compared, and the maximum size of the texts of such a series in bytes.
const MAX_SERIES: usize = 10_000;
const MAX_TEXTS: usize = 1_024;

/// The series of the metrics sessions in a stream, with the number of instruments that report each.
#[derive(Debug, Clone, Default)]
pub(crate) struct SharedSeries {
    /// By series: the number of readings in the current interval, and the greatest number in an interval.
    counts: BTreeMap<SeriesKey, (u32, u32)>,
    /// Whether the current interval has readings.
    has_readings: bool,
    /// Whether the stream states intervals, without which a second reading may be that of a later one.
    has_intervals: bool,
}

impl SharedSeries {
    /// Starts the next interval.
    pub(crate) fn next_interval(&mut self) {
        self.has_intervals = true;
        if std::mem::take(&mut self.has_readings) {
            self.counts.values_mut().for_each(|(current, _)| *current = 0);
        }
    }

    /// Counts a reading of a meter, and adds the number of instruments if several report its series.
    pub(crate) fn reading(&mut self, reading: &mut Reading) {
        if !self.has_intervals || reading.counter.instance != 0 || texts(&reading.counter) > MAX_TEXTS {
            return;
        }
        let key = SeriesKey::of(0, &reading.counter);
        if self.counts.len() >= MAX_SERIES && !self.counts.contains_key(&key) {
            return;
        }
        self.has_readings = true;
        let (current, most) = self.counts.entry(key).or_default();
        *current += 1;
        *most = (*most).max(*current);
        if *most > 1 {
            reading.counter.instruments = Some(*most);
        }
    }
}

/// Returns the size of the texts that identify a series.
fn texts(counter: &Counter) -> usize {
    let names = [counter.provider.len(), counter.name.len(), counter.version.as_ref().map_or(0, String::len)];
    let tags = [&counter.provider_tags, &counter.counter_tags, &counter.tags].map(|tags| tags.text().len());
    names.into_iter().chain(tags).sum()
}
