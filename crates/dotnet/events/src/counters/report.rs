//! The event `EventCounters`: one field without a name, which is an object with one member `Payload`, an object with the
//! values. The two forms differ in the order of their fields; the layouts are those of .NET 8 to 10.

use std::time::Duration;

use runtap_diag_server::{DefineError, EventPipe, Field, FieldType, Metadata};

use super::kinds::{Reading, Slot};
use crate::payload::{self, Payload};
use crate::provider::{Event, define, next_id};

/// The two forms of the event.
#[derive(Debug)]
pub(super) struct Reports {
    mean: Event,
    sum: Event,
}

impl Reports {
    pub(super) fn new(pipe: &EventPipe, provider: &str) -> Result<Self, DefineError> {
        use FieldType::{F32, F64, I32, String};

        let event = |fields: &[(&str, FieldType)]| {
            let fields = fields.iter().map(|(name, field_type)| Field::new(*name, field_type.clone()));
            let payload = Field::new("Payload", FieldType::Object(fields.collect()));
            let mut metadata = Metadata::new(provider, next_id(), "EventCounters");
            metadata.level = 0;
            metadata.fields = vec![Field::new("", FieldType::Object(vec![payload]))];
            define(pipe, metadata)
        };
        let mean = event(&[
            ("Name", String),
            ("DisplayName", String),
            ("Mean", F64),
            ("StandardDeviation", F64),
            ("Count", I32),
            ("Min", F64),
            ("Max", F64),
            ("IntervalSec", F32),
            ("Series", String),
            ("CounterType", String),
            ("Metadata", String),
            ("DisplayUnits", String),
        ])?;
        let sum = event(&[
            ("Name", String),
            ("DisplayName", String),
            ("DisplayRateTimeScale", String),
            ("Increment", F64),
            ("IntervalSec", F32),
            ("Metadata", String),
            ("Series", String),
            ("CounterType", String),
            ("DisplayUnits", String),
        ])?;
        Ok(Self { mean, sum })
    }

    pub(super) fn provider(&self) -> &str {
        &self.mean.metadata().provider
    }

    /// Writes the report of a counter for an interval.
    pub(super) fn write(&self, slot: &Slot, interval: u64, elapsed: Duration) {
        let Some(reading) = slot.read(interval) else { return };
        payload::with(|payload| {
            let event = match reading {
                Reading::Mean { .. } => &self.mean,
                Reading::Increment(_) => &self.sum,
            };
            fill(payload, slot, &reading, interval, elapsed);
            event.write_payload(payload.as_bytes());
        });
    }
}

fn fill(payload: &mut Payload, slot: &Slot, reading: &Reading, interval: u64, elapsed: Duration) {
    let spec = &slot.spec;
    payload.push(&spec.name).push(spec.display_name.as_ref().unwrap_or(&spec.name));
    match *reading {
        Reading::Mean { mean, deviation, count, min, max } => {
            payload.push(&mean).push(&deviation).push(&count).push(&min).push(&max);
            payload.push(&elapsed.as_secs_f32()).display(format_args!("Interval={interval}")).push("Mean");
            payload.push(&spec.metadata);
        }
        Reading::Increment(increment) => {
            match spec.rate_scale.filter(|scale| !scale.is_zero()) {
                Some(scale) => payload.display(time_span(scale)),
                None => payload.push(""),
            };
            payload.push(&increment).push(&elapsed.as_secs_f32()).push(&spec.metadata);
            payload.display(format_args!("Interval={interval}")).push("Sum");
        }
    }
    payload.push(&spec.units);
}

/// Formats a time span as .NET does: `[days.]hh:mm:ss[.fffffff]`.
fn time_span(span: Duration) -> String {
    let seconds = span.as_secs();
    let (days, hours, minutes) = (seconds / 86_400, seconds / 3600 % 24, seconds / 60 % 60);
    let days = if days == 0 { String::new() } else { format!("{days}.") };
    let ticks = span.subsec_nanos() / 100;
    let ticks = if ticks == 0 { String::new() } else { format!(".{ticks:07}") };
    format!("{days}{hours:02}:{minutes:02}:{:02}{ticks}", seconds % 60)
}

#[cfg(test)]
mod tests {
    use super::super::CounterSpec;
    use super::super::kinds::CounterKind;
    use super::*;

    fn hex(text: &str) -> Vec<u8> {
        let digits = text.as_bytes().as_chunks::<2>().0;
        digits
            .iter()
            .map(|pair| u8::from_str_radix(std::str::from_utf8(pair).unwrap(), 16).unwrap())
            .collect()
    }

    /// The bytes that .NET 10.0.12 wrote for an equal counter.
    #[test]
    fn the_mean_form_is_that_of_dotnet() {
        let spec = CounterSpec::new("queue").display_name("Queue Length");
        let slot = Slot {
            spec: spec.metadata("owner", "demo").metadata("kind", "fixed"),
            kind: CounterKind::mean(),
        };
        let reading = Reading::Mean { mean: 42.0, deviation: 0.0, count: 1, min: 42.0, max: 42.0 };
        let written = payload::with(|payload| {
            fill(payload, &slot, &reading, 1000, Duration::from_nanos(1_004_904_508));
            payload.as_bytes().to_vec()
        });
        let expected = hex("7100750065007500650000005100750065007500650020004c0065006e006700740068000000\
             00000000000045400000000000000000010000000000000000004540000000000000454\
             0b6a0803f49006e00740065007200760061006c003d00310030003000300000004d00650061006e000000\
             6f0077006e00650072003a00640065006d006f002c006b0069006e0064003a0066006900780065006400000\
             00000");
        assert_eq!(written, expected);
    }

    #[test]
    fn the_sum_form_is_that_of_dotnet() {
        let spec = CounterSpec::new("total").display_name("Total Work").units("items");
        let slot = Slot { spec: spec.rate_scale(Duration::from_mins(1)), kind: CounterKind::sum() };
        let written = payload::with(|payload| {
            fill(payload, &slot, &Reading::Increment(28.0), 1000, Duration::from_nanos(1_004_904_508));
            payload.as_bytes().to_vec()
        });
        let expected = hex("74006f00740061006c00000054006f00740061006c00200057006f0072006b000000\
             300030003a00300031003a00300030000000\
             0000000000003c40b6a0803f000049006e00740065007200760061006c003d0031003000300030000000\
             530075006d0000006900740065006d0073000000");
        assert_eq!(written, expected);
    }

    #[test]
    fn time_spans_are_those_of_dotnet() {
        assert_eq!(time_span(Duration::from_secs(1)), "00:00:01");
        assert_eq!(time_span(Duration::from_secs(90_061)), "1.01:01:01");
        assert_eq!(time_span(Duration::from_millis(1500)), "00:00:01.5000000");
    }
}
