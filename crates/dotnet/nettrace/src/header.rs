//! The Trace object: the process, its pointer size, and the clock of all time stamps.
//! Source: nettrace format, "Trace object", and "V6, blocks". Does not format dates.

use runtap_model::calendar::{date_of_day, day_of_date};
use runtap_wire::{DecodeError, DecodeErrorKind, Reader, Writer};

use crate::raw::Format;
use crate::raw::envelope::TRACE_VERSION;
use crate::text::{string, write_string};

const NS_PER_S: i128 = 1_000_000_000;

/// The most nanoseconds between the start of a recording and its first event, 146 years: half the range of 64 bits.
const MAX_DISTANCE_NS: u64 = i64::MAX.unsigned_abs() / 2;

/// The description of the stream before its first event.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct TraceHeader {
    /// The version of the format: 1 to 3 are `NetPerf`, 4 and 6 are Nettrace. ("Version 5" is recorded as 4.)
    pub version: u32,
    /// The UTC time at [`Self::sync_qpc`], in nanoseconds since 1970. `None` if the recorded date is invalid:
    /// such files exist.
    pub sync_time: Option<i64>,
    /// The recorded date, unchanged: year, month, day of week, day, hour, minute, second, millisecond.
    pub sync_systemtime: [u16; 8],
    /// Ticks of the target's clock at the start of the session.
    pub sync_qpc: i64,
    /// Ticks per second, at least 1.
    pub qpc_frequency: i64,
    /// The size of a pointer of the target in bytes: 4 or 8. Versions 1 and 2 lack it; only 64-bit targets wrote them.
    pub pointer_size: u32,
    /// The target's process id in its own pid namespace; 0 if unknown.
    pub process_id: u32,
    /// The number of processors of the target; 0 if unknown.
    pub processors: u32,
    /// The requested time between two CPU samples in nanoseconds; 0 if unknown.
    pub sampling_rate_ns: u32,
    /// All names and values at the start of a stream of version 6, including those of the three fields above.
    pub attributes: Vec<(String, String)>,
}

/// Names of [`TraceHeader::attributes`] with the values of fields of earlier versions.
mod attribute {
    pub(super) const PROCESS_ID: &str = "ProcessId";
    pub(super) const PROCESSORS: &str = "HardwareThreadCount";
    pub(super) const SAMPLING_RATE: &str = "ExpectedCPUSamplingRate";
}

impl TraceHeader {
    /// The encoded length of the object's data in bytes, in versions 3 and 4.
    pub(crate) const SIZE: u32 = 48;
    /// The encoded length in bytes, in versions 1 and 2.
    pub(crate) const SIZE_V1: u32 = 36;

    /// Creates the header of a stream to write: at the time `sync_time`, in nanoseconds since 1970 and UTC, the clock
    /// showed `sync_qpc` ticks and ran at `qpc_frequency` ticks per second (at least 1). The format keeps whole
    /// milliseconds of `sync_time`. The other fields describe a 64-bit process with no further information.
    pub fn new(sync_time: i64, sync_qpc: i64, qpc_frequency: i64) -> Self {
        Self {
            version: TRACE_VERSION,
            sync_time: Some(sync_time.saturating_sub(sync_time.rem_euclid(1_000_000))),
            sync_systemtime: systemtime(sync_time),
            sync_qpc,
            qpc_frequency: qpc_frequency.max(1),
            pointer_size: 8,
            process_id: 0,
            processors: 1,
            sampling_rate_ns: 1_000_000,
            attributes: Vec::new(),
        }
    }

    fn encode_clock(&self, w: &mut Writer) {
        for part in self.sync_systemtime {
            w.u16(part);
        }
        w.i64(self.sync_qpc).i64(self.qpc_frequency);
    }

    /// Writes the data of version 4.
    pub(crate) fn encode_v4(&self, w: &mut Writer) {
        self.encode_clock(w);
        w.u32(self.pointer_size).u32(self.process_id).u32(self.processors).u32(self.sampling_rate_ns);
    }

    /// Writes the data of version 6. Fields override attributes of their names; a field that is 0 is not written.
    pub(crate) fn encode_v6(&self, w: &mut Writer) {
        self.encode_clock(w);
        let fields = [
            (attribute::PROCESS_ID, self.process_id),
            (attribute::PROCESSORS, self.processors),
            (attribute::SAMPLING_RATE, self.sampling_rate_ns),
        ];
        let known = fields.iter().filter(|(_, n)| *n != 0).map(|(key, n)| ((*key).to_owned(), n.to_string()));
        let is_field = |key: &str| fields.iter().any(|(name, _)| *name == key);
        let others = self.attributes.iter().filter(|(key, _)| !is_field(key)).cloned();
        let attributes: Vec<_> = known.chain(others).collect();
        w.u32(self.pointer_size).u32(u32::try_from(attributes.len()).unwrap_or(u32::MAX));
        for (key, value) in attributes {
            write_string(&key, w);
            write_string(&value, w);
        }
    }

    /// Reads the data of the Trace object of a stream.
    pub(crate) fn decode(r: &mut Reader<'_>, format: Format, version: u32) -> Result<Self, DecodeError> {
        if format == Format::NetPerf1 {
            r.u32("end label")?;
        }
        let mut sync_systemtime = [0; 8];
        for part in &mut sync_systemtime {
            *part = r.u16("sync time")?;
        }
        let sync_qpc = r.i64("sync ticks")?;
        let mut before = r.clone();
        let qpc_frequency = r.i64("tick frequency")?;
        if qpc_frequency < 1 {
            let value = before.u64("tick frequency")?;
            return Err(DecodeError::new(
                r.offset() - 8,
                "tick frequency",
                DecodeErrorKind::Unexpected { value, expected: "1 or more" },
            ));
        }
        let mut header = Self {
            version,
            sync_time: unix_ns(sync_systemtime),
            sync_systemtime,
            sync_qpc,
            qpc_frequency,
            pointer_size: 8,
            process_id: 0,
            processors: 0,
            sampling_rate_ns: 0,
            attributes: Vec::new(),
        };
        if format == Format::NetPerf1 {
            return Ok(header);
        }
        let pointer_size = r.u32("pointer size")?;
        if pointer_size != 4 && pointer_size != 8 {
            let kind = DecodeErrorKind::Unexpected { value: pointer_size.into(), expected: "4 or 8" };
            return Err(DecodeError::new(r.offset() - 4, "pointer size", kind));
        }
        header.pointer_size = pointer_size;
        if format == Format::Nettrace6 {
            header.read_attributes(r)?;
        } else {
            header.process_id = r.u32("process id")?;
            header.processors = r.u32("number of processors")?;
            header.sampling_rate_ns = r.u32("sampling rate")?;
        }
        Ok(header)
    }

    fn read_attributes(&mut self, r: &mut Reader<'_>) -> Result<(), DecodeError> {
        for _ in 0..r.u32("number of attributes")? {
            let key = string(r, "name of an attribute")?.into_owned();
            let value = string(r, "value of an attribute")?.into_owned();
            // A value that is not a number is ignored.
            let number = value.parse().unwrap_or(0);
            match key.as_str() {
                attribute::PROCESS_ID => self.process_id = number,
                attribute::PROCESSORS => self.processors = number,
                attribute::SAMPLING_RATE => self.sampling_rate_ns = number,
                _ => {}
            }
            self.attributes.push((key, value));
        }
        Ok(())
    }

    /// Returns `"NetPerf"` or `"Nettrace"`.
    pub fn format_name(&self) -> &'static str {
        if self.version < TRACE_VERSION { "NetPerf" } else { "Nettrace" }
    }

    /// Returns this header with a start that is neither after `timestamp` nor [out of reach](Self::within_reach).
    #[must_use]
    pub fn started_by(self, timestamp: u64) -> Self {
        let is_late = i64::try_from(timestamp).is_ok_and(|start| start < self.sync_qpc);
        if is_late { self.started_at(timestamp) } else { self.within_reach(timestamp) }
    }

    /// Returns this header with its start moved to `timestamp` if the two are further apart than 64-bit nanoseconds can
    /// represent for the whole stream: the recorded start is wrong then, and all events would get one saturated time.
    #[must_use]
    pub fn within_reach(self, timestamp: u64) -> Self {
        let is_far = self.relative_ns(timestamp).unsigned_abs() > MAX_DISTANCE_NS;
        if is_far { self.started_at(timestamp) } else { self }
    }

    fn started_at(self, timestamp: u64) -> Self {
        match i64::try_from(timestamp) {
            Ok(start) => Self { sync_time: self.utc_ns(timestamp), sync_qpc: start, ..self },
            Err(_) => self,
        }
    }

    /// Converts a difference of ticks to nanoseconds, rounded down.
    pub fn ticks_to_ns(&self, ticks: i128) -> i128 {
        (ticks * NS_PER_S).div_euclid(i128::from(self.qpc_frequency.max(1)))
    }

    /// Returns the nanoseconds from the start of the session to `timestamp`; negative before the start, saturating.
    #[inline]
    pub fn relative_ns(&self, timestamp: u64) -> i64 {
        let since = u64::try_from(self.sync_qpc).ok().and_then(|start| timestamp.checked_sub(start));
        since.and_then(|ticks| self.short_ns(ticks)).unwrap_or_else(|| self.any_relative_ns(timestamp))
    }

    /// Converts ticks to nanoseconds if all intermediate values fit into 64 bits, which is many times faster than
    /// with 128 bits.
    fn short_ns(&self, ticks: u64) -> Option<i64> {
        const SECOND: u64 = 1_000_000_000;
        let frequency =
            u64::try_from(self.qpc_frequency).ok().filter(|n| (1..=u64::MAX / SECOND).contains(n))?;
        let rest = ticks % frequency * SECOND / frequency;
        i64::try_from((ticks / frequency).checked_mul(SECOND)?.checked_add(rest)?).ok()
    }

    fn any_relative_ns(&self, timestamp: u64) -> i64 {
        let ns = self.ticks_to_ns(i128::from(timestamp) - i128::from(self.sync_qpc));
        i64::try_from(ns).unwrap_or(if ns < 0 { i64::MIN } else { i64::MAX })
    }

    /// Returns the UTC time of `timestamp` in nanoseconds since 1970. `None` if the stream has no valid date, or if the
    /// result is outside of the years 1677 to 2262.
    pub fn utc_ns(&self, timestamp: u64) -> Option<i64> {
        let relative = self.ticks_to_ns(i128::from(timestamp) - i128::from(self.sync_qpc));
        i64::try_from(i128::from(self.sync_time?) + relative).ok()
    }
}

/// Converts a Windows SYSTEMTIME to nanoseconds since 1970. `None` if the date is invalid.
fn unix_ns([year, month, _weekday, day, hour, minute, second, ms]: [u16; 8]) -> Option<i64> {
    let days = day_of_date(year, month, day)?;
    if hour >= 24 || minute >= 60 || second >= 60 || ms >= 1000 {
        return None;
    }
    let seconds = days * 86_400 + i64::from(hour) * 3600 + i64::from(minute) * 60 + i64::from(second);
    (seconds * 1000 + i64::from(ms)).checked_mul(1_000_000)
}

/// The inverse of [`unix_ns`], in whole milliseconds.
fn systemtime(unix_ns: i64) -> [u16; 8] {
    let ms = unix_ns.div_euclid(1_000_000);
    let days = ms.div_euclid(86_400_000);
    let (year, month, day) = date_of_day(days);
    let ms = ms.rem_euclid(86_400_000);
    let parts = [
        year,
        month,
        (days + 4).rem_euclid(7),
        day,
        ms / 3_600_000,
        ms / 60_000 % 60,
        ms / 1000 % 60,
        ms % 1000,
    ];
    // 64-bit nanoseconds cover the years 1677 to 2262.
    parts.map(|part| u16::try_from(part).unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn dates_round_trip(ns: i64) {
            let header = TraceHeader::new(ns.max(i64::MIN + 1_000_000), 0, 1);
            prop_assert_eq!(unix_ns(header.sync_systemtime), header.sync_time);
        }
    }

    #[test]
    fn days_of_the_week() {
        assert_eq!(systemtime(1_561_031_019_754_999_999), [2019, 6, 4, 20, 11, 43, 39, 754]);
        assert_eq!(systemtime(-1), [1969, 12, 3, 31, 23, 59, 59, 999]);
    }

    #[test]
    fn dates() {
        assert_eq!(unix_ns([1970, 1, 4, 1, 0, 0, 0, 0]), Some(0));
        assert_eq!(unix_ns([2019, 6, 4, 20, 11, 43, 39, 754]), Some(1_561_031_019_754_000_000));
        assert_eq!(unix_ns([2024, 2, 0, 29, 23, 59, 59, 999]), Some(1_709_251_199_999_000_000));
        assert_eq!(unix_ns([1969, 12, 3, 31, 23, 59, 59, 999]), Some(-1_000_000));
        for bad in [
            [2023, 2, 0, 29, 0, 0, 0, 0],
            [2023, 0, 0, 1, 0, 0, 0, 0],
            [2023, 13, 0, 1, 0, 0, 0, 0],
            [2023, 1, 0, 0, 0, 0, 0, 0],
            [2023, 1, 0, 1, 24, 0, 0, 0],
            [2023, 1, 0, 1, 0, 0, 0, 1000],
            [0, 1, 0, 1, 0, 0, 0, 0],
            [30_000, 1, 0, 1, 0, 0, 0, 0],
        ] {
            assert_eq!(unix_ns(bad), None, "{bad:?}");
        }
    }

    #[test]
    fn ticks_become_time_without_overflow() {
        let header = TraceHeader { sync_time: Some(1_000), ..TraceHeader::new(0, 100, 10_000_000) };
        assert_eq!(header.relative_ns(103), 300);
        assert_eq!(header.relative_ns(0), -10_000);
        assert_eq!(header.relative_ns(u64::MAX), i64::MAX);
        assert_eq!(header.utc_ns(101), Some(1_100));
        assert_eq!(header.utc_ns(u64::MAX), None);
        let slow = TraceHeader { qpc_frequency: 3, sync_time: None, ..header };
        assert_eq!(slow.relative_ns(99), -333_333_334, "rounds down on both sides of zero");
        assert_eq!(slow.utc_ns(100), None);
    }

    #[test]
    fn the_start_is_not_after_the_first_event() {
        let header = TraceHeader { sync_time: Some(1_000), ..TraceHeader::new(0, 100, 1_000_000_000) };
        for after in [100, 101, u64::MAX] {
            assert_eq!(header.clone().started_by(after), header);
        }
        let earlier = header.clone().started_by(40);
        assert_eq!((earlier.sync_qpc, earlier.sync_time), (40, Some(940)));
        assert_eq!((earlier.relative_ns(100), earlier.utc_ns(100)), (60, header.utc_ns(100)));
    }

    #[test]
    fn the_start_is_within_reach_of_the_first_event() {
        for frequency in [1, 3, 10_000_000, 1_000_000_000, i64::MAX] {
            for start in [i64::MIN, i64::MIN + 1, i64::MIN / 2, -1, 0, i64::MAX / 2, i64::MAX] {
                let header = TraceHeader { sync_time: Some(1_000), ..TraceHeader::new(0, start, frequency) };
                for first in [0, 1_000, 1 << 40, 1 << 62] {
                    let second = first + u64::try_from(frequency).unwrap().min(1 << 61);
                    let expected = header.ticks_to_ns(i128::from(second - first));
                    for near in [header.clone().within_reach(first), header.clone().started_by(first)] {
                        let ns = i128::from(near.relative_ns(second)) - i128::from(near.relative_ns(first));
                        assert!((ns - expected).abs() <= 1, "{start} {frequency} {first}: {ns}");
                    }
                }
            }
        }
        let sound = TraceHeader::new(0, 500, 1_000_000_000);
        assert_eq!(sound.clone().within_reach(100), sound, "before the start, and near");
    }

    proptest! {
        #[test]
        fn the_fast_conversion_agrees_with_the_exact_one(
            frequency in prop_oneof![Just(1_000_000_000), Just(10_000_000), any::<i64>(), -1..20_i64],
            start in prop_oneof![any::<i64>(), 0..1_000_000_i64],
            timestamp in prop_oneof![any::<u64>(), 0..3_000_000_u64],
        ) {
            let header = TraceHeader { qpc_frequency: frequency, sync_qpc: start, ..TraceHeader::new(0, 0, 1) };
            prop_assert_eq!(header.relative_ns(timestamp), header.any_relative_ns(timestamp));
        }
    }
}
