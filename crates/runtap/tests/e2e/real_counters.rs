//! `counters` on real runtimes: what the program `meters` did is what runtap reports, in every format, and what Microsoft's
//! own reader reports.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

use runtap_testkit::{Peer, RealRuntime, Running, Signal, Skip, eventually, run};
use serde_json::Value;
use tempfile::TempDir;

use crate::common::{Target, command, folder, runtap};

on_each_runtime!(
    totals_are_those_of_the_program,
    a_command_is_read_from_its_start,
    every_file_is_complete_after_a_kill,
    microsofts_reader_agrees,
);
on_the_newest_runtime!(
    other_settings_are_named_and_equal_ones_shared,
    limits_and_broken_instruments_are_reported,
    monitor_prints_lines_into_a_pipe,
    names_that_do_not_exist_are_named,
);

const ALL: &str = "Demo.Shop,Demo.Odd,Demo.Faulty,EventCounters\\Demo-Counters";
/// The rounds of the program.
const ROUNDS: f64 = 12.0;

/// Starts `meters`, which waits for a line on its stdin before its rounds of 50 ms.
fn meters(runtime: &RealRuntime, rounds: f64) -> Result<Target, Skip> {
    let rounds = rounds.to_string();
    Ok(Target::start(runtime.program("meters", &[&rounds, "50", "5", "--stdin", "--linger", "600"])?))
}

/// A running `counters collect`.
struct Collecting {
    running: Running,
    file: PathBuf,
    _folder: TempDir,
}

impl Collecting {
    fn start(target: &Target, format: &str, more: &[&str]) -> Self {
        let folder = folder();
        let file = folder.path().join("counters");
        let mut command =
            command(["counters", "collect", &target.p(), "--counters", ALL, "--to", format, "-o"]);
        command.arg(&file).args(more);
        Self { running: Running::start(command), file, _folder: folder }
    }

    /// Waits until the file contains a text.
    fn wait_for(&self, text: &str) {
        eventually("values in the file", || self.text().contains(text).then_some(()));
    }

    fn text(&self) -> String {
        fs::read_to_string(&self.file).unwrap_or_default()
    }
}

fn lines(text: &str) -> Vec<Value> {
    text.lines()
        .map(|line| serde_json::from_str(line).unwrap_or_else(|error| panic!("{error}: {line}")))
        .collect()
}

/// A series in JSON Lines: provider, version, name and tags.
type Key = (String, String, String, String);

fn key(line: &Value) -> Key {
    let text = |name: &str| line[name].as_str().unwrap_or_default().to_owned();
    (text("provider"), text("version"), text("name"), text("tags_text"))
}

/// Returns the last line of each series, and the sum of its deltas.
fn by_series(lines: &[Value]) -> BTreeMap<Key, (Value, f64)> {
    let mut all: BTreeMap<Key, (Value, f64)> = BTreeMap::new();
    for line in lines {
        let (last, sum) = all.entry(key(line)).or_insert_with(|| (Value::Null, 0.0));
        *last = line.clone();
        *sum += line["delta"].as_f64().unwrap_or(0.0);
    }
    all
}

/// Returns the series of the meter Demo.Shop with this version, name and tags.
#[track_caller]
fn shop<'a>(all: &'a BTreeMap<Key, (Value, f64)>, version: &str, name: &str, tags: &str) -> &'a (Value, f64) {
    let key = ["Demo.Shop", version, name, tags].map(str::to_owned);
    let [provider, version, name, tags] = key;
    let key = (provider, version, name, tags);
    all.get(&key).unwrap_or_else(|| panic!("{key:?} is not among {:#?}", all.keys()))
}

/// Checks that the totals are those of the program after all rounds.
#[track_caller]
fn check_totals(all: &BTreeMap<Key, (Value, f64)>, is_from_start: bool) {
    let number = |line: &Value, name: &str| line[name].as_f64();
    for (version, name, tags, total) in [
        ("1.2.3", "orders", "shop=a", 3.0 * ROUNDS),
        ("1.2.3", "orders", "shop=b", 2.0 * ROUNDS),
        ("1.2.3", "revenue", "", 1.25 * ROUNDS),
        ("1.2.3", "queue.length", "", 2.0 * ROUNDS),
        ("2.0", "orders", "", ROUNDS),
    ] {
        let (last, sum) = shop(all, version, name, tags);
        assert_eq!((number(last, "value"), *sum), (Some(total), total), "{name} {tags}: {last:#}");
    }
    let (ticks, sum) = shop(all, "1.2.3", "ticks", "");
    assert_eq!((number(ticks, "value"), &ticks["kind"]), (Some(10.0 * ROUNDS), &"rate".into()));
    // The first reading of an observable counter has no increment.
    assert!(*sum <= 10.0 * ROUNDS && (is_from_start || *sum == 10.0 * ROUNDS), "{sum}");
    let (balance, _) = shop(all, "1.2.3", "balance", "");
    assert_eq!((number(balance, "value"), &balance["kind"]), (Some(100.0 - ROUNDS), &"updown".into()));
    let (latency, _) = shop(all, "1.2.3", "latency", "route=/a");
    assert_eq!(
        (number(latency, "total_count"), number(latency, "total_sum"), &latency["kind"]),
        (Some(100.0 * ROUNDS), Some(5_050.0 * ROUNDS), &"histogram".into())
    );
    let (cold, _) = shop(all, "1.2.3", "temperature", "room=cold store");
    assert_eq!(
        (number(cold, "value"), &cold["unit"], &cold["kind"]),
        (Some(-3.25), &"Cel".into(), &"gauge".into())
    );
    assert_eq!(cold["meter_tags"], serde_json::json!({"region": "eu", "tier": "1"}));
    let (revenue, _) = shop(all, "1.2.3", "revenue", "");
    assert_eq!(revenue["instrument_tags"], serde_json::json!({"currency": "EUR"}));
}

fn totals_are_those_of_the_program(runtime: &RealRuntime) -> Result<(), Skip> {
    let mut target = meters(runtime, ROUNDS)?;
    let collecting = Collecting::start(&target, "jsonl", &[]);
    collecting.wait_for("temperature");
    collecting.wait_for("Queue Length");
    target.program.begin();
    let truth = target.program.truth();
    assert_eq!(truth["orders_a"].as_f64(), Some(3.0 * ROUNDS));
    // The readings of the last interval.
    let all = eventually("the last readings", || {
        let all = by_series(&lines(&collecting.text()));
        let value = |name: &str| {
            let of_name = all.iter().filter(|((.., known, _), _)| known == name);
            of_name.map(|(_, (last, _))| last["value"].as_f64().unwrap_or(-1.0)).fold(f64::MAX, f64::min)
        };
        let ended = value("balance") == 100.0 - ROUNDS && value("total") == 7.0 * ROUNDS;
        (ended && value("ticks") == 10.0 * ROUNDS).then_some(all)
    });
    check_totals(&all, false);
    let lines = lines(&collecting.text());
    // Quantiles of every interval with values.
    let with_values: Vec<&Value> = lines
        .iter()
        .filter(|line| line["tags_text"] == "route=/a" && line["count"].as_u64() > Some(0))
        .collect();
    assert!(!with_values.is_empty());
    for line in with_values {
        assert_eq!(line["quantiles"], serde_json::json!({"0.5": 51, "0.95": 96, "0.99": 100}), "{line:#}");
    }
    let odd: Vec<&Value> = lines.iter().filter(|line| line["name"] == "a,b=c \"q\" é中😀").collect();
    assert!(
        odd.iter().any(|line| line["tags"]["uni"] == "é😀" && line["tags"]["quote"] == "\"x\""),
        "{odd:#?}"
    );
    let sizes: Vec<&Value> = lines.iter().filter(|line| line["name"] == "req-size").collect();
    for line in &sizes {
        let expected = if line["count"] == 0 {
            serde_json::json!([null, null, null])
        } else {
            serde_json::json!([20, 10, 30])
        };
        assert_eq!(serde_json::json!([line["value"], line["min"], line["max"]]), expected, "{line:#}");
    }
    assert!(sizes.iter().any(|line| line["count"].as_u64() > Some(0)));
    let counts: u64 = sizes.iter().filter_map(|line| line["count"].as_u64()).sum();
    assert_eq!(counts, 36);
    let queue = lines.iter().find(|line| line["name"] == "queue").unwrap();
    assert_eq!((&queue["value"], &queue["tags"]["owner"]), (&serde_json::json!(42), &"demo".into()));
    collecting.running.signal(Signal::INT);
    let done = collecting.running.wait();
    done.expect_code(0).says("an observable instrument");
    // Neither for counters.
    assert!(!done.stderr.contains("stacks") && !done.stderr.contains("distinguish"), "{done}");
    target.still_answers();
    Ok(())
}

/// The session starts before the program, so its totals are those of the program, and its exit code is returned.
fn a_command_is_read_from_its_start(runtime: &RealRuntime) -> Result<(), Skip> {
    let folder = folder();
    let file = folder.path().join("counters.jsonl");
    let rounds = ROUNDS.to_string();
    let launch = runtime.program("meters", &[&rounds, "50", "0", "--linger", "3"])?.command();
    let mut command = command(["counters", "collect", "--counters", ALL, "--to", "jsonl", "-o"]);
    command.arg(&file).env("TMPDIR", folder.path()).env_remove("DOTNET_DiagnosticPorts");
    command.arg("--").arg(launch.get_program()).args(launch.get_args());
    for (name, value) in launch.get_envs() {
        command.env(name, value.unwrap_or_default());
    }
    run(command).expect_code(0);
    check_totals(&by_series(&lines(&fs::read_to_string(&file).unwrap())), true);
    Ok(())
}

/// Returns the rows of a CSV file, which this program writes without line breaks in cells.
fn records(text: &str) -> Vec<Vec<String>> {
    let cells = |line: &str| {
        let (mut cells, mut cell, mut quoted) = (Vec::new(), String::new(), false);
        for c in line.chars() {
            match c {
                '"' => quoted = !quoted,
                ',' if !quoted => cells.push(std::mem::take(&mut cell)),
                c => cell.push(c),
            }
        }
        cells.push(cell);
        cells
    };
    text.lines().map(cells).collect()
}

fn every_file_is_complete_after_a_kill(runtime: &RealRuntime) -> Result<(), Skip> {
    let mut target = meters(runtime, ROUNDS)?;
    let [csv, json, prometheus] =
        ["csv", "json", "prometheus"].map(|format| Collecting::start(&target, format, &[]));
    for collecting in [&csv, &json, &prometheus] {
        collecting.wait_for("cold store");
    }
    target.program.begin();
    target.program.truth();
    csv.wait_for(&format!("[region=eu;tier=1;shop=a],Total,{}", 3.0 * ROUNDS));
    let ticks = format!("{}", 10.0 * ROUNDS);
    eventually("the last readings", || {
        let last = |text: String| text.lines().any(|line| line.ends_with(&format!(" {ticks}")));
        let total = format!("\"value\": {ticks} ");
        (last(prometheus.text()) && json.text().contains(&total)).then_some(())
    });
    for collecting in [&csv, &json, &prometheus] {
        collecting.running.signal(Signal::KILL);
    }
    // CSV.
    let text = csv.text();
    let rows = records(&text);
    assert_eq!(rows[0].join(","), "Timestamp,Provider,Counter Name,Counter Type,Mean/Increment");
    assert!(rows.iter().all(|row| row.len() == 5), "{text}");
    let rate: f64 = rows
        .iter()
        .filter(|row| row[2] == "orders ({order} / 1 sec)[region=eu;tier=1;shop=a]" && row[3] == "Rate")
        .map(|row| row[4].parse::<f64>().unwrap())
        .sum();
    assert_eq!(Some(rate), Some(3.0 * ROUNDS));
    let percentile = |name: &str| rows.iter().find(|row| row[2].ends_with(name)).map(|row| row[4].as_str());
    assert_eq!(percentile("route=/a;Percentile=95]"), Some("96"));
    // JSON.
    let document: Value = serde_json::from_str(&json.text()).unwrap();
    assert_eq!(document["TargetProcess"], "meters");
    let events = document["Events"].as_array().unwrap();
    let of = |name: &str, tags: &str, kind: &str| {
        let of_name = events.iter().filter(|it| it["name"] == name && it["tags"] == tags);
        let values = of_name.filter(|it| it["counterType"] == kind).map(|it| it["value"].as_f64().unwrap());
        values.collect::<Vec<_>>()
    };
    let rate: f64 = of("orders ({order} / 1 sec)", "shop=b", "Rate").iter().sum();
    assert_eq!(Some(rate), Some(2.0 * ROUNDS));
    assert_eq!(of("orders ({order})", "shop=b", "Total").last(), Some(&(2.0 * ROUNDS)));
    assert_eq!(of("latency.count", "route=/a", "Total").last(), Some(&(100.0 * ROUNDS)));
    // Prometheus.
    let text = prometheus.text();
    let pid = target.pid();
    let labels = format!("pid=\"{pid}\",version=\"1.2.3\",region=\"eu\"");
    for line in [
        format!("demo_shop_orders_total{{{labels},shop=\"a\",tier=\"1\"}} {}", 3.0 * ROUNDS),
        format!(
            "demo_shop_latency_milliseconds_count{{{labels},route=\"/a\",tier=\"1\"}} {}",
            100.0 * ROUNDS
        ),
        "# TYPE demo_shop_latency_milliseconds summary".to_owned(),
        format!("demo_shop_temperature_cel{{{labels},room=\"cold store\",tier=\"1\"}} -3.25"),
    ] {
        assert!(text.lines().any(|known| known == line), "{line} is not in {text}");
    }
    for collecting in [csv, json, prometheus] {
        collecting.running.wait();
    }
    target.still_answers();
    Ok(())
}

/// What both readers report of a series: provider, counter, unit, tags, and its kind.
type Described = BTreeSet<(String, String, String, String)>;

fn microsofts_reader_agrees(runtime: &RealRuntime) -> Result<(), Skip> {
    let peer = Peer::available("mspipe")?;
    let mut target = meters(runtime, 600.0)?;
    target.program.begin();
    let counters = "Demo.Shop,EventCounters\\Demo-Counters,System.Runtime";
    let mut theirs = peer.command();
    theirs.args(["counters", "--pid", &target.p(), "--counters", counters, "--seconds", "5"]);
    theirs.env("TMPDIR", target.temp.path());
    let theirs = run(theirs);
    let theirs = lines(theirs.expect_code(0).text());
    let words = [
        "counters",
        "collect",
        &target.p(),
        "--counters",
        counters,
        "--to",
        "jsonl",
        "-o",
        "-",
        "--duration",
        "5",
    ];
    let ours = lines(runtap(words).expect_code(0).text());
    let text = |line: &Value, name: &str| line[name].as_str().unwrap_or_default().to_owned();
    let described = |lines: &[Value]| -> Described {
        let of = |line: &Value| (text(line, "provider"), text(line, "name"), text(line, "unit"));
        lines
            .iter()
            .filter(|line| !text(line, "name").is_empty())
            .map(|line| {
                let (provider, name, unit) = of(line);
                let tags =
                    if line["is_meter"] == false { "" } else { line["tags"].as_str().unwrap_or_default() };
                let tags = line["tags_text"].as_str().unwrap_or(tags).to_owned();
                let is_event_counter = line["display_name"].is_string() && line["tags_text"].is_string();
                (provider, name, unit, if is_event_counter { String::new() } else { tags })
            })
            .collect()
    };
    let names = |all: &Described| -> BTreeSet<(String, String)> {
        all.iter().map(|(provider, name, ..)| (provider.clone(), name.clone())).collect()
    };
    let (their_series, our_series) = (described(&theirs), described(&ours));
    // Their library delivers the event counters beside the meter of their name, and counts what its own session caused.
    let of = |all: &Described, is_runtime: bool| -> BTreeSet<(String, String)> {
        names(all).into_iter().filter(|(provider, _)| (provider == "System.Runtime") == is_runtime).collect()
    };
    assert_eq!(of(&their_series, false), of(&our_series, false));
    let (theirs_of_runtime, ours_of_runtime) = (of(&their_series, true), of(&our_series, true));
    assert!(ours_of_runtime.len() > 10 && ours_of_runtime.is_subset(&theirs_of_runtime));
    // Values that do not change with time: gauges with constants, and quantiles.
    let find = |lines: &[Value], name: &str, tags: &str| {
        let tag = |line: &Value| ["tags_text", "tags"].iter().any(|member| line[*member] == tags);
        lines.iter().rev().find(|line| line["name"] == name && tag(line)).cloned().unwrap_or_default()
    };
    for tags in ["room=1", "room=cold store"] {
        let (theirs, ours) = (find(&theirs, "temperature", tags), find(&ours, "temperature", tags));
        assert_eq!(
            (&theirs["value"], &theirs["unit"]),
            (&ours["value"], &ours["unit"]),
            "{theirs:#} {ours:#}"
        );
    }
    let their_quantiles: BTreeMap<String, f64> = theirs
        .iter()
        .filter(|line| line["name"] == "latency" && text(line, "tags").contains("route=/a"))
        .flat_map(|line| line["quantiles"].as_array().cloned().unwrap_or_default())
        .filter_map(|pair| Some((pair[0].to_string(), pair[1].as_f64()?)))
        .collect();
    let ours = find(&ours, "latency", "route=/a");
    let our_quantiles: BTreeMap<String, f64> = ours["quantiles"]
        .as_object()
        .unwrap_or_else(|| panic!("{ours:#}"))
        .iter()
        .map(|(share, value)| (share.clone(), value.as_f64().unwrap()))
        .collect();
    assert_eq!(their_quantiles, our_quantiles);
    target.still_answers();
    Ok(())
}

fn other_settings_are_named_and_equal_ones_shared(runtime: &RealRuntime) -> Result<(), Skip> {
    let target = meters(runtime, ROUNDS)?;
    let first = Collecting::start(&target, "jsonl", &["--refresh-interval", "2"]);
    first.wait_for("temperature");
    let collect = |more: &[&str]| {
        let words = ["counters", "collect", &target.p(), "--counters", ALL, "--to", "jsonl", "-o", "-"];
        let done = runtap([&words[..], &["--duration", "5"], more].concat());
        done.expect_code(0);
        done
    };
    let refused = collect(&[]);
    refused.says("--refresh-interval 2 --maxTimeSeries 1000 --maxHistograms 10");
    // Event counters need no metrics session.
    assert!(!refused.text().contains("temperature") && refused.text().contains("Queue Length"), "{refused}");
    let shared = collect(&["--refresh-interval", "2"]);
    assert!(shared.text().contains("temperature"), "{shared}");
    first.running.signal(Signal::INT);
    first.running.wait().expect_code(0);
    target.still_answers();
    Ok(())
}

fn limits_and_broken_instruments_are_reported(runtime: &RealRuntime) -> Result<(), Skip> {
    let mut target = meters(runtime, 200.0)?;
    target.program.begin();
    let words = ["counters", "collect", &target.p(), "--counters", ALL, "-o", "-", "--duration", "3"];
    let limited = runtap([&words[..], &["--maxTimeSeries", "3"]].concat());
    limited.expect_code(0).says("has reached the limit of time series");
    let all = runtap(words);
    assert!(!all.expect_code(0).stderr.contains("limit"), "{all}");
    assert_eq!(all.stderr.matches("gauge failed").count(), 1, "{all}");
    Ok(())
}

fn monitor_prints_lines_into_a_pipe(runtime: &RealRuntime) -> Result<(), Skip> {
    let target = meters(runtime, ROUNDS)?;
    let monitor = |more: &[&str]| {
        let words = ["counters", &target.p(), "--counters", "Demo.Shop[temperature]", "--duration", "3"];
        let done = runtap([&words[..], more].concat());
        done.expect_code(0);
        done
    };
    let text = monitor(&[]);
    assert!(
        text.text().contains("Demo.Shop 1.2.3/temperature{region=eu,tier=1,room=1} (Cel)  20.5\n"),
        "{text}"
    );
    assert!(!text.text().contains("balance"), "{text}");
    let json = lines(monitor(&["--format", "json"]).text());
    assert!(json.iter().all(|line| line["type"] == "counter" && line["name"] == "temperature"), "{json:#?}");
    assert!(!json.is_empty());
    // By default, the counters of the runtime.
    let runtime = runtap(["counters", "monitor", &target.p(), "--duration", "3", "--format", "json"]);
    let runtime = lines(runtime.expect_code(0).text());
    assert!(runtime.iter().all(|line| line["provider"] == "System.Runtime") && !runtime.is_empty());
    Ok(())
}

fn names_that_do_not_exist_are_named(runtime: &RealRuntime) -> Result<(), Skip> {
    let target = meters(runtime, ROUNDS)?;
    let words = ["counters", &target.p(), "--counters", "Demo.Shop[temperature],Nope", "--duration", "2"];
    let done = runtap(words);
    done.expect_code(0).says("no values of Nope were received");
    assert!(!done.stderr.contains("from Demo.Shop"), "{done}");
    for (list, error) in [
        ("Demo.Shop,EventCounters\\Demo.Shop", "both with and without the prefix"),
        ("Demo.Shop[a", "missing closing ']'"),
    ] {
        runtap(["counters", &target.p(), "--counters", list]).expect_code(2).says(error);
    }
    let missing = Path::new("/nonexistent/folder/x.csv");
    let mut command = command(["counters", "collect", &target.p(), "-o"]);
    run({
        command.arg(missing);
        command
    })
    .expect_code(2)
    .says("/nonexistent");
    Ok(())
}
