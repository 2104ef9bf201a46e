//! Counters as a table that is redrawn, and as lines.

use std::fmt::Write as _;
use std::io;

use runtap_model::UtcNs;
use runtap_model::counters::{Counter, CounterBoard, CounterKind, CounterRow, Tags};

use crate::units::Count;
use crate::{Clean, Column, Print, Table, TextOptions};

/// The table of all series.
#[derive(Debug, Clone, Copy)]
pub struct CounterTable<'a> {
    /// The series.
    pub board: &'a CounterBoard,
    /// Whether a column has the increments of the latest interval.
    pub deltas: bool,
}

impl CounterTable<'_> {
    /// Returns the table as text, to be written at once.
    pub fn to_text(&self, options: &TextOptions<'_>) -> String {
        let mut text = Vec::new();
        // Writing to memory does not fail.
        let _ = self.print(&mut text, options);
        String::from_utf8_lossy(&text).into_owned()
    }
}

/// A number of a series, or a heading.
pub(crate) struct SeriesRow {
    pub(crate) value: Option<f64>,
    pub(crate) delta: Option<f64>,
    pub(crate) rate: Option<f64>,
    /// The name with tags.
    pub(crate) name: String,
    /// The unit of the value. Empty if unknown.
    pub(crate) unit: String,
}

impl Print for CounterTable<'_> {
    fn print(&self, out: &mut dyn io::Write, options: &TextOptions<'_>) -> io::Result<()> {
        let first = self.board.rows().next().map(|row| row.process);
        let several = self.board.rows().any(|row| Some(row.process) != first);
        let mut all: Vec<SeriesRow> = Vec::new();
        let mut last = None;
        for row in self.board.rows() {
            let heading = heading(row, several);
            if last.as_ref() != Some(&heading) {
                let (name, unit) = (heading.clone(), String::new());
                all.push(SeriesRow { value: None, delta: None, rate: None, name, unit });
                last = Some(heading);
            }
            let series = rows(row, "  ", &[&row.counter.counter_tags, &row.counter.tags]);
            all.extend(series);
        }
        let [value, delta, rate, name] = [
            Column::number("VALUE"),
            Column::number("LAST DELTA"),
            Column::number("PER SECOND"),
            Column::text("COUNTER"),
        ];
        if self.deltas {
            let mut table = Table::new("counter", [value, delta, rate, name]);
            table.fill(all.into_iter(), options, |row| {
                [row.value(), blank(row.delta), blank(row.rate), row.text()]
            });
            table.print(out, options)
        } else {
            let mut table = Table::new("counter", [value, rate, name]);
            table.fill(all.into_iter(), options, |row| [row.value(), blank(row.rate), row.text()]);
            table.print(out, options)
        }
    }
}

impl SeriesRow {
    /// Returns the cell with the value, which is empty in a heading.
    fn value(&self) -> String {
        if self.name.starts_with(' ') { number(self.value) } else { String::new() }
    }

    /// Returns the name with the unit.
    fn text(self) -> String {
        if self.unit.is_empty() { self.name } else { format!("{} ({})", self.name, self.unit) }
    }
}

/// Returns the heading of a provider: `[PID: ]PROVIDER[ VERSION]{TAGS}`.
pub(crate) fn heading(row: &CounterRow, several: bool) -> String {
    let process = if several { format!("{}: ", row.process) } else { String::new() };
    let version = row.counter.version.as_ref().map_or_else(String::new, |version| format!(" {version}"));
    format!("{process}{}{version}{}", row.counter.provider, braced(&[&row.counter.provider_tags]))
}

/// Returns tags in braces. Empty without tags.
fn braced(levels: &[&Tags]) -> String {
    let tags: Vec<String> =
        levels.iter().flat_map(|tags| tags.pairs()).map(|(name, value)| format!("{name}={value}")).collect();
    if tags.is_empty() { String::new() } else { format!("{{{}}}", tags.join(",")) }
}

/// Returns the rows of a series: one, or one for each quantile of a histogram and one for the number of its values. Names are
/// `PREFIX`, the counter, these tags, and what the number is.
pub(crate) fn rows(row: &CounterRow, prefix: &str, tags: &[&Tags]) -> Vec<SeriesRow> {
    let counter = row.counter.display_name.as_deref().unwrap_or(&row.counter.name);
    let name = |suffix: &str| format!("{prefix}{counter}{}{suffix}", braced(tags));
    if row.counter.kind != CounterKind::Histogram {
        let delta = row.values.delta.or_else(|| Some(row.value()? - row.previous?));
        let unit = row.counter.unit.clone();
        return vec![SeriesRow { value: row.value(), delta, rate: row.rate(), name: name(""), unit }];
    }
    #[expect(clippy::cast_precision_loss, reason = "shown rounded")]
    let float = |count: u64| count as f64;
    let delta = row.values.count.map(float);
    let rate = delta.zip(row.values.interval_s).map(|(delta, seconds)| delta / seconds);
    let (value, unit) = (row.total_count.map(float), String::new());
    let count = SeriesRow { value, delta, rate, name: name(" count"), unit };
    let quantiles = row.values.quantiles.iter().map(|(share, value)| SeriesRow {
        value: Some(*value),
        delta: None,
        rate: None,
        name: name(&format!(" q{share}")),
        unit: row.counter.unit.clone(),
    });
    std::iter::once(count).chain(quantiles).collect()
}

/// Returns the latest reading of a series as a line without control characters.
pub fn counter_line(row: &CounterRow, several: bool, deltas: bool) -> String {
    let time = row.utc_ns.map_or_else(String::new, |ns| {
        let time = UtcNs(ns).to_string();
        format!("{}Z  ", time.get(..23).unwrap_or_default())
    });
    let Counter { provider, version, provider_tags, counter_tags, tags, .. } = &row.counter;
    let process = if several { format!("{}: ", row.process) } else { String::new() };
    let version = version.as_ref().map_or_else(String::new, |version| format!(" {version}"));
    let prefix = format!("{process}{provider}{version}/");
    let mut lines = String::new();
    for series in rows(row, &prefix, &[provider_tags, counter_tags, tags]) {
        let SeriesRow { value, delta, rate, .. } = series;
        let name = series.text();
        let delta = delta.filter(|_| deltas).map_or_else(String::new, |it| format!("  {} last", signed(it)));
        let rate = rate.map_or_else(String::new, |rate| format!("  {}/s", number(Some(rate))));
        // Writing to memory does not fail.
        let _ = writeln!(lines, "{time}{}  {}{delta}{rate}", Clean(&name), number(value));
    }
    lines
}

fn signed(value: f64) -> String {
    let sign = if value > 0.0 { "+" } else { "" };
    format!("{sign}{}", number(Some(value)))
}

/// Returns a cell that is empty if the kind of the counter has no such number.
pub(crate) fn blank(value: Option<f64>) -> String {
    value.map_or_else(String::new, |value| number(Some(value)))
}

/// Returns a number with three decimals, or three digits if it is smaller; `-` if it is missing.
pub(crate) fn number(value: Option<f64>) -> String {
    let Some(value) = value else { return "-".to_owned() };
    let size = value.abs();
    if !value.is_finite() {
        return value.to_string();
    }
    if size != 0.0 && !(1e-3..1e15).contains(&size) {
        return format!("{value:.2e}");
    }
    let text = format!("{size:.3}");
    let (whole, fraction) = text.split_once('.').unwrap_or((&text, ""));
    let whole = whole.parse().map_or_else(|_| whole.to_owned(), |whole| Count(whole).to_string());
    let fraction = fraction.trim_end_matches('0');
    let sign = if value < 0.0 { "-" } else { "" };
    let point = if fraction.is_empty() { "" } else { "." };
    format!("{sign}{whole}{point}{fraction}")
}

#[cfg(test)]
mod tests {
    use runtap_model::counters::{CounterValues, Reading};

    use super::*;

    fn board() -> CounterBoard {
        let counter = |name: &str, kind, unit: &str, tags: &[(&str, &str)]| Counter {
            provider: "Demo.Shop".to_owned(),
            name: name.to_owned(),
            unit: unit.to_owned(),
            kind,
            tags: Tags::new("t", tags.iter().map(|(n, v)| ((*n).to_owned(), (*v).to_owned())).collect()),
            ..Counter::default()
        };
        let mut board = CounterBoard::default();
        let mut add = |counter: Counter, values: CounterValues| {
            let values = CounterValues { interval_s: Some(2.0), ..values };
            board.add(7, Reading { counter, values, utc_ns: Some(1_793_266_957_123_456_789) });
        };
        add(
            counter("orders", CounterKind::Rate, "{order}", &[("shop", "a,\u{1b}[2J")]),
            CounterValues { value: Some(1_234_567.0), delta: Some(3.0), ..CounterValues::default() },
        );
        add(
            counter("latency", CounterKind::Histogram, "s", &[]),
            CounterValues {
                count: Some(100),
                sum: Some(5.0),
                quantiles: vec![("0.5".to_owned(), 0.000_412), ("0.99".to_owned(), f64::NAN)],
                ..CounterValues::default()
            },
        );
        add(counter("queue", CounterKind::Gauge, "", &[]), CounterValues::default());
        add(
            counter("load", CounterKind::Gauge, "%", &[]),
            CounterValues { value: Some(f64::NEG_INFINITY), ..CounterValues::default() },
        );
        board
    }

    #[test]
    fn a_table_of_all_series() {
        let print = |deltas, width| {
            let board = board();
            CounterTable { board: &board, deltas }.to_text(&TextOptions { width, ..TextOptions::default() })
        };
        insta::assert_snapshot!(print(true, None), @r"
            VALUE  LAST DELTA  PER SECOND  COUNTER
                                           Demo.Shop
              100         100          50    latency count
          4.12e-4                            latency q0.5 (s)
              NaN                            latency q0.99 (s)
             -inf                            load (%)
        1,234,567           3         1.5    orders{shop=a,\u{1b}[2J} ({order})
                -                            queue
        ");
        insta::assert_snapshot!(print(false, Some(50)), @r"
            VALUE  PER SECOND  COUNTER
                               Demo.Shop
              100          50    latency count
          4.12e-4                latency q0.5 (s)
              NaN                latency q0.99 (s)
             -inf                load (%)
        1,234,567         1.5    orders{shop=a,\u{1b}[2J}…
                -                queue
        ");
    }

    #[test]
    fn readings_as_lines() {
        let board = board();
        let lines: String = board.rows().map(|row| counter_line(row, true, true)).collect();
        insta::assert_snapshot!(lines, @r"
        2026-10-29T09:42:37.123Z  7: Demo.Shop/latency count  100  +100 last  50/s
        2026-10-29T09:42:37.123Z  7: Demo.Shop/latency q0.5 (s)  4.12e-4
        2026-10-29T09:42:37.123Z  7: Demo.Shop/latency q0.99 (s)  NaN
        2026-10-29T09:42:37.123Z  7: Demo.Shop/load (%)  -inf
        2026-10-29T09:42:37.123Z  7: Demo.Shop/orders{shop=a,\u{1b}[2J} ({order})  1,234,567  +3 last  1.5/s
        2026-10-29T09:42:37.123Z  7: Demo.Shop/queue  -
        ");
    }

    #[test]
    fn small_and_large_numbers_keep_their_digits() {
        for (value, text) in [
            (0.0, "0"),
            (0.000_412, "4.12e-4"),
            (0.25, "0.25"),
            (-1_234.567_8, "-1,234.568"),
            (1e18, "1.00e18"),
            (f64::INFINITY, "inf"),
            (f64::NAN, "NaN"),
        ] {
            assert_eq!(number(Some(value)), text);
        }
        assert_eq!(number(None), "-");
    }
}
