//! A report requested in the middle of a stream covers what has been read, and does not change later results.

use runtap_clr::report::{
    Collect, Counters, CpuReport, Exceptions, Gc, Http, Jit, Locks, Logs, Loss, Report, ThreadPool,
};
use runtap_clr::{EventCounts, ProfileBuilder, ProfileOptions};
use runtap_model::View;
use runtap_nettrace::{Observe, Reader, StreamItem};
use runtap_testkit::{require, shared_data};
use serde_json::json;

/// Passes the first `most` items of a recording to `visit`. Returns their number.
fn read(bytes: &[u8], most: usize, mut visit: impl FnMut(&StreamItem<'_>)) -> usize {
    let mut reader = Reader::new();
    reader.feed(bytes);
    reader.finish();
    let mut items = 0;
    while items < most
        && let Some(item) = reader.next().unwrap()
    {
        visit(&item);
        items += 1;
    }
    items
}

/// Compares a collector that is queried at several points with collectors that have read only that much.
#[track_caller]
fn check<C: Observe, R: Report>(
    name: &str,
    bytes: &[u8],
    new: impl Fn() -> C,
    snapshot: impl Fn(&C) -> R,
    finish: impl Fn(C) -> R,
) {
    let seen = |most| {
        let mut collector = new();
        let items = read(bytes, most, |item| collector.item(item));
        (json!(finish(collector)), items)
    };
    let (all, items) = seen(usize::MAX);
    let places = [64, 16, 4, 2].map(|part| items / part);
    let (mut asked, mut at, mut answers) = (new(), 0, Vec::new());
    read(bytes, items, |item| {
        asked.item(item);
        at += 1;
        if places.contains(&at) {
            answers.push(json!(snapshot(&asked)));
        }
    });
    // Not `assert_eq`, whose output would be long.
    for (place, answer) in places.into_iter().zip(&answers) {
        assert!(*answer == seen(place).0, "{name}, after {place} items");
    }
    assert!(json!(snapshot(&asked)) == all && json!(finish(asked)) == all, "{name}, at the end");
    assert!(answers.iter().any(|answer| *answer != all), "{name} has nothing new behind these");
}

#[track_caller]
fn report<C: Collect>(name: &str) -> Result<(), runtap_testkit::Skip> {
    let bytes = shared_data(format!("nettrace/{name}.nettrace.zst"))?;
    check(name, &bytes, C::default, C::snapshot, C::finish);
    Ok(())
}

#[test]
fn reports_of_events() {
    require!(report::<Exceptions>("net8/exceptions"));
    require!(report::<Gc>("net8/gcverbose-allocs"));
    require!(report::<Jit>("net8/startup-suspended"));
    require!(report::<Locks>("net8/contention"));
    require!(report::<ThreadPool>("net9/threadpool"));
    require!(report::<Http>("net9/web"));
    require!(report::<Counters>("net10/eventcounters"));
    require!(report::<Logs>("net8/logs"));
    require!(report::<EventCounts>("net8/logs"));
}

#[test]
fn losses() {
    let name = "net10/storm-loss";
    let bytes = require!(shared_data(format!("nettrace/{name}.nettrace.zst")));
    check(name, &bytes, Loss::default, |loss| loss.report(7), |loss| loss.report(7));
}

#[test]
fn profiles() {
    for (name, view) in [("net10/killed", View::ThreadTime), ("net8/exceptions", View::Exceptions)] {
        let bytes = require!(shared_data(format!("nettrace/{name}.nettrace.zst")));
        let options = ProfileOptions::default();
        let report = |trace| CpuReport::new(&trace, view, false);
        check(
            name,
            &bytes,
            || ProfileBuilder::of(view),
            |builder| report(builder.snapshot(&options)),
            |builder| report(builder.finish(&options)),
        );
    }
}
