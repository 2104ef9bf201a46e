//! The events of `System.Diagnostics.Metrics` in the versions of .NET 10. Numbers are texts, and empty if missing.

use std::fmt::Display;
use std::time::SystemTime;

use runtap_diag_server::{DefineError, EventPipe, Field, FieldType};

use super::histogram::{QUANTILES, Summary};
use super::instrument::{Instrument, InstrumentKind};
use super::session::Settings;
use crate::number::invariant;
use crate::payload::Payload;
use crate::provider::{Event, EventSpec, Provider};

pub(super) const PROVIDER: &str = "System.Diagnostics.Metrics";

/// Keywords of the provider: messages about its work; values; all instruments, recorded or not.
pub(super) const MESSAGES: u64 = 1;
pub(super) const VALUES: u64 = 2;
pub(super) const PUBLISHING: u64 = 4;

/// The .NET version of these layouts, for the event `Version`.
const LAYOUT: [i32; 3] = [10, 0, 0];

#[derive(Debug)]
pub(super) struct Events {
    message: Event,
    collection_start: Event,
    collection_stop: Event,
    counter: Event,
    gauge: Event,
    histogram: Event,
    begin: Event,
    end: Event,
    enumerated: Event,
    published: Event,
    series_limit: Event,
    histogram_limit: Event,
    callback_error: Event,
    other_session: Event,
    up_down: Event,
    other_settings: Event,
    version: Event,
}

impl Events {
    pub(super) fn new(pipe: &EventPipe) -> Result<Self, DefineError> {
        use FieldType::{DateTime, F64, I32, String};
        let provider = Provider::new(pipe, PROVIDER);
        let event = |spec: EventSpec, version: u8, keywords: u64, fields: Vec<Field>| {
            let spec = spec.version(version).keywords(keywords);
            provider
                .define(fields.into_iter().fold(spec, |spec, field| spec.field(field.name, field.field_type)))
        };
        let new = EventSpec::new;
        let strings = |names: &[&str]| names.iter().map(|name| Field::new(*name, String)).collect::<Vec<_>>();
        let numbered = |mut fields: Vec<Field>| {
            fields.push(Field::new("instrumentId", I32));
            fields
        };
        let session = || strings(&["sessionId"]);
        let interval = || {
            let times = ["intervalStartTime", "intervalEndTime"].map(|name| Field::new(name, DateTime));
            [session(), times.to_vec()].concat()
        };
        let series = |own: &[&str]| {
            let of_all = ["sessionId", "meterName", "meterVersion", "instrumentName", "unit", "tags"];
            strings(&[&of_all, own].concat())
        };
        let mut summary = series(&["quantiles"]);
        summary.extend([Field::new("count", I32), Field::new("sum", F64)]);
        let of_instrument = || {
            let mut fields = strings(&[
                "sessionId",
                "meterName",
                "meterVersion",
                "instrumentName",
                "instrumentType",
                "unit",
                "description",
                "instrumentTags",
                "meterTags",
                "meterScopeHash",
            ]);
            fields.extend([Field::new("instrumentId", I32), Field::new("meterTelemetrySchemaUrl", String)]);
            fields
        };
        let settings = [
            "clientId",
            "expectedMaxHistograms",
            "actualMaxHistograms",
            "expectedMaxTimeSeries",
            "actualMaxTimeSeries",
            "expectedRefreshInterval",
            "actualRefreshInterval",
        ];
        let version = ["Major", "Minor", "Patch"].map(|name| Field::new(name, I32)).to_vec();
        let rates = || numbered(series(&["rate", "value"]));
        let all = MESSAGES | VALUES | PUBLISHING;
        let error = [session(), strings(&["errorMessage"])].concat();
        Ok(Self {
            message: event(new(1, "Message"), 0, MESSAGES, strings(&["Message"]))?,
            collection_start: event(new(2, "CollectionStart").start(), 0, VALUES, interval())?,
            collection_stop: event(new(3, "CollectionStop").stop(), 0, VALUES, interval())?,
            counter: event(new(4, "CounterRateValuePublished"), 2, VALUES, rates())?,
            gauge: event(new(5, "GaugeValuePublished"), 2, VALUES, numbered(series(&["lastValue"])))?,
            histogram: event(new(6, "HistogramValuePublished"), 2, VALUES, numbered(summary))?,
            begin: event(new(7, "BeginInstrumentReporting"), 3, VALUES, of_instrument())?,
            end: event(new(8, "EndInstrumentReporting"), 3, VALUES, of_instrument())?,
            enumerated: event(
                new(10, "InitialInstrumentEnumerationComplete"),
                0,
                VALUES | PUBLISHING,
                session(),
            )?,
            published: event(new(11, "InstrumentPublished"), 3, PUBLISHING, of_instrument())?,
            series_limit: event(new(12, "TimeSeriesLimitReached"), 0, VALUES, session())?,
            histogram_limit: event(new(13, "HistogramLimitReached"), 0, VALUES, session())?,
            callback_error: event(new(14, "ObservableInstrumentCallbackError"), 0, VALUES, error)?,
            other_session: event(
                new(15, "MultipleSessionsNotSupportedError"),
                0,
                all,
                strings(&["runningSessionId"]),
            )?,
            up_down: event(new(16, "UpDownCounterRateValuePublished"), 2, VALUES, rates())?,
            other_settings: event(
                new(17, "MultipleSessionsConfiguredIncorrectlyError"),
                0,
                VALUES,
                strings(&settings),
            )?,
            version: event(new(18, "Version"), 0, MESSAGES, version)?,
        })
    }

    pub(super) fn message(&self, text: impl Display) {
        self.message.write(|out| {
            out.display(text);
        });
    }

    pub(super) fn version(&self) {
        let [major, minor, patch] = &LAYOUT;
        self.version.write(|out| {
            out.push(major).push(minor).push(patch);
        });
    }

    pub(super) fn collection(&self, session: &str, start: bool, from: SystemTime, to: SystemTime) {
        let event = if start { &self.collection_start } else { &self.collection_stop };
        event.write(|out| {
            out.push(session).push(&from).push(&to);
        });
    }

    pub(super) fn begin(&self, session: &str, instrument: &Instrument) {
        self.begin.write(|out| describe(out, session, instrument));
    }

    pub(super) fn end(&self, session: &str, instrument: &Instrument) {
        self.end.write(|out| describe(out, session, instrument));
    }

    pub(super) fn published(&self, session: &str, instrument: &Instrument) {
        self.published.write(|out| describe(out, session, instrument));
    }

    pub(super) fn enumerated(&self, session: &str) {
        self.enumerated.write(|out| {
            out.push(session);
        });
    }

    pub(super) fn series_limit(&self, session: &str) {
        self.series_limit.write(|out| {
            out.push(session);
        });
    }

    pub(super) fn histogram_limit(&self, session: &str) {
        self.histogram_limit.write(|out| {
            out.push(session);
        });
    }

    pub(super) fn callback_error(&self, session: &str, text: impl Display) {
        self.callback_error.write(|out| {
            out.push(session).display(text);
        });
    }

    pub(super) fn other_session(&self, running: &str) {
        self.other_session.write(|out| {
            out.push(running);
        });
    }

    pub(super) fn other_settings(&self, client: &str, expected: &Settings, actual: &Settings) {
        self.other_settings.write(|out| {
            out.push(client);
            out.display(expected.max_histograms).display(actual.max_histograms);
            out.display(expected.max_series).display(actual.max_series);
            let interval = |settings: &Settings| invariant(settings.interval.as_secs_f64());
            out.push(&interval(expected)).push(&interval(actual));
        });
    }

    /// Writes the value of a series in the form of its instrument's kind. `rate` is `None` at the first sample.
    pub(super) fn number(
        &self,
        session: &str,
        of: &Instrument,
        tags: &str,
        rate: Option<f64>,
        value: Option<f64>,
    ) {
        let text = |value: Option<f64>| value.map(invariant).unwrap_or_default();
        let event = match of.kind {
            InstrumentKind::Gauge | InstrumentKind::ObservableGauge => &self.gauge,
            InstrumentKind::UpDownCounter | InstrumentKind::ObservableUpDownCounter => &self.up_down,
            InstrumentKind::Counter | InstrumentKind::ObservableCounter | InstrumentKind::Histogram => {
                &self.counter
            }
        };
        event.write(|out| {
            series(out, session, of, tags);
            if !matches!(of.kind, InstrumentKind::Gauge | InstrumentKind::ObservableGauge) {
                out.push(&text(rate));
            }
            out.push(&text(value)).push(&of.id);
        });
    }

    pub(super) fn summary(&self, session: &str, of: &Instrument, tags: &str, summary: &Summary) {
        self.histogram.write(|out| {
            series(out, session, of, tags);
            let quantiles = summary.quantiles.iter().flat_map(|values| QUANTILES.iter().zip(values));
            let quantiles: Vec<_> =
                quantiles.map(|(quantile, value)| format!("{quantile}={}", invariant(*value))).collect();
            out.push(&quantiles.join(";"));
            out.push(&i32::try_from(summary.count).unwrap_or(i32::MAX)).push(&summary.sum).push(&of.id);
        });
    }
}

fn series(out: &mut Payload, session: &str, of: &Instrument, tags: &str) {
    out.push(session).push(&of.meter.name).push(&of.meter.version).push(&of.name).push(&of.unit).push(tags);
}

fn describe(out: &mut Payload, session: &str, of: &Instrument) {
    out.push(session).push(&of.meter.name).push(&of.meter.version).push(&of.name).push(of.kind.name());
    out.push(&of.unit).push(&of.description).push(&of.tags).push(&of.meter.tags);
    out.push("").push(&of.id).push(&of.meter.schema_url);
}
