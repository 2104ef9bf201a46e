//! EventCounters: what is reported to whom, and when.

use std::collections::HashSet;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use runtap_events::{CounterSpec, EventCounters};
use serde_json::{Value, json};

use crate::{Target, named};

fn of<'a>(events: &'a [Value], counter: &str, series: &str) -> Vec<&'a Value> {
    let all = named(events, "EventCounters").into_iter().map(|event| &event["payload"]);
    all.filter(|payload| payload["Name"] == counter && payload["Series"] == series).collect()
}

#[test]
fn four_kinds_are_reported_at_the_interval_of_the_session() {
    let target = Target::new();
    let counters = EventCounters::new(&target.pipe, "Test-Counters").unwrap();
    let size = counters.event_counter(CounterSpec::new("size").display_name("Size").units("B"));
    let count = counters.incrementing(CounterSpec::new("count").rate_scale(Duration::from_secs(1)));
    counters.polling(CounterSpec::new("queue").metadata("owner", "demo"), || 42.0);
    let total = Arc::new(AtomicU32::new(1000));
    let read = Arc::clone(&total);
    counters.incrementing_polling(CounterSpec::new("total"), move || f64::from(read.load(Ordering::Relaxed)));
    size.record(1e9);
    count.increment(1e9);

    let mut recording = target.session(&["Test-Counters:0:4:EventCounterIntervalSec=0.05"]);
    for value in [10.0, 20.0, 30.0] {
        size.record(value);
    }
    count.increment(3.0);
    // Where the first interval begins is found out after the session has begun.
    recording.until(|events| !of(events, "total", "Interval=50").is_empty());
    total.fetch_add(7, Ordering::Relaxed);
    let events = recording.until(|events| {
        let seen = of(events, "total", "Interval=50");
        seen.len() >= 3 && seen.iter().any(|payload| payload["Increment"] != json!(0.0))
    });
    recording.stop();

    // What was recorded may have come in two intervals.
    let sum = |name: &str, value: &dyn Fn(&Value) -> f64| -> f64 {
        of(&events, name, "Interval=50").into_iter().map(value).sum()
    };
    let number = |payload: &Value, name: &str| payload[name].as_f64().unwrap();
    assert_eq!(sum("size", &|it| number(it, "Mean") * number(it, "Count")).round(), 60.0);
    assert_eq!(sum("size", &|it| number(it, "Count")), 3.0);
    assert_eq!(sum("count", &|it| number(it, "Increment")), 3.0);
    assert_eq!(sum("total", &|it| number(it, "Increment")), 7.0);
    let size = of(&events, "size", "Interval=50")[0];
    assert_eq!((&size["DisplayName"], &size["DisplayUnits"]), (&json!("Size"), &json!("B")));
    assert!(size["IntervalSec"].as_f64().unwrap() >= 0.05);
    let queue = of(&events, "queue", "Interval=50")[0];
    assert_eq!(
        (&queue["Mean"], &queue["Count"], &queue["Metadata"]),
        (&json!(42.0), &json!(1), &json!("owner:demo"))
    );
    let count = of(&events, "count", "Interval=50")[0];
    assert_eq!((&count["CounterType"], &count["DisplayRateTimeScale"]), (&json!("Sum"), &json!("00:00:01")));
}

#[test]
fn sessions_with_other_intervals_get_values_of_their_own() {
    let target = Target::new();
    let counters = EventCounters::new(&target.pipe, "Test-Counters").unwrap();
    let count = counters.incrementing(CounterSpec::new("count"));
    let mut slow = target.session(&["Test-Counters:0:4:EventCounterIntervalSec=0.3"]);
    let mut fast = target.session(&["Test-Counters:0:4:EventCounterIntervalSec=0.02"]);
    count.increment(5.0);
    let of_fast = fast.until(|events| {
        of(events, "count", "Interval=20").iter().any(|payload| payload["Increment"] == json!(5.0))
    });
    assert!(!of_fast.is_empty());
    fast.stop();
    // The other one goes on, at its own pace.
    let of_slow = slow.until(|events| of(events, "count", "Interval=300").len() >= 2);
    let increments: f64 =
        of(&of_slow, "count", "Interval=300").iter().filter_map(|it| it["Increment"].as_f64()).sum();
    assert_eq!(increments, 5.0);
    slow.stop();
}

/// The program holds a lock while it adds counters, and takes the same lock where a counter is read.
#[test]
fn what_is_read_may_wait_for_those_who_add_counters() {
    let target = Target::new();
    let counters = EventCounters::new(&target.pipe, "Test-Counters").unwrap();
    let lock = Arc::new(Mutex::new(()));
    let (taken, more) = (Arc::clone(&lock), counters.clone());
    let readers = Arc::new(Mutex::new(HashSet::new()));
    let seen = Arc::clone(&readers);
    counters.incrementing_polling(CounterSpec::new("outer"), move || {
        let _taken = taken.lock().unwrap();
        if seen.lock().unwrap().insert(std::thread::current().id()) {
            more.incrementing_polling(CounterSpec::new("inner"), || 1.0);
        }
        1.0
    });
    let held = lock.lock().unwrap();
    // The server answers, although what is read has to wait.
    let mut recording = target.session(&["Test-Counters:0:4:EventCounterIntervalSec=0.02"]);
    counters.incrementing_polling(CounterSpec::new("late"), || 1.0);
    drop(held);
    for name in ["outer", "inner", "late"] {
        recording.until(|events| !of(events, name, "Interval=20").is_empty());
    }
    recording.stop();
    assert_eq!(readers.lock().unwrap().len(), 1, "one thread reads");
}

#[test]
fn nothing_is_reported_without_an_interval() {
    let target = Target::new();
    let counters = EventCounters::new(&target.pipe, "Test-Counters").unwrap();
    counters.polling(CounterSpec::new("quiet"), || 1.0);
    let other = EventCounters::new(&target.pipe, "Test-Others").unwrap();
    other.polling(CounterSpec::new("loud"), || 2.0);
    let mut recording = target.session(&["Test-Counters", "Test-Others:0:4:EventCounterIntervalSec=0.02"]);
    let events = recording.until(|events| events.len() >= 3);
    recording.stop();
    assert!(events.iter().all(|event| event["provider"] == "Test-Others"), "{events:?}");
}
