//! The cost of changing loaded classes; `bench` has the cost of calls.

use std::fs;
use std::time::{Duration, Instant};

use runtap_bytefrog::hq::Event;
use runtap_bytefrog_proto::{ClassOutcome, Configuration, JavaString};
use runtap_testkit::{Jdk, Skip, require};

use super::{Attached, Part};
use crate::common::{Listening, demo};

#[test]
#[ignore = "it measures"]
fn four_hundred_classes_are_changed() {
    require!(measure());
}

fn measure() -> Result<(), Skip> {
    for jdk in Part::Whole.jdks()? {
        for verify in ["", "-Xverify:all"] {
            changes(&jdk, verify)?;
        }
    }
    Ok(())
}

fn changes(jdk: &Jdk, verify: &str) -> Result<(), Skip> {
    let options: &[&str] = if verify.is_empty() { &[] } else { &[verify] };
    let (program, _) = Attached::start(jdk, options, &["demo.Loaded", "0", "400"])?;
    let mut best = Vec::new();
    for include in ["^none/", "^com/sun/org/apache/"] {
        let mut least: Option<Cost> = None;
        for _ in 0..7 {
            let inclusions = vec![JavaString::from(include)];
            let hq = Listening::with(Configuration { inclusions, ..demo() });
            let before = (Instant::now(), processor_time(program.pid()));
            program.load(&format!("port={},boot=yes", hq.hq.address().port())).unwrap();
            let middle = (Instant::now(), processor_time(program.pid()));
            program.load("detach").unwrap();
            let (end, used) = (Instant::now(), processor_time(program.pid()));
            hq.report();
            let heard = hq.heard.lock().unwrap();
            let changed =
                |event: &Event| matches!(event, Event::Class { outcome: ClassOutcome::Transformed, .. });
            let cost = Cost {
                attach: middle.0 - before.0,
                attach_used: middle.1.saturating_sub(before.1),
                detach: end - middle.0,
                detach_used: used.saturating_sub(middle.1),
                classes: heard.iter().filter(|(_, event)| changed(event)).count(),
            };
            if least.as_ref().is_none_or(|least| cost.attach < least.attach) {
                least = Some(cost);
            }
        }
        best.extend(least);
    }
    let [none, all] = &best[..] else { unreachable!("one of each") };
    println!(
        "JDK {} {verify}: {} classes: {:?} to attach, of which {:?} without a class; processor time {:?} and {:?}; \
         {:?} to detach, of which {:?} without a class; processor time {:?} and {:?}",
        jdk.major(),
        all.classes,
        all.attach,
        none.attach,
        all.attach_used,
        none.attach_used,
        all.detach,
        none.detach,
        all.detach_used,
        none.detach_used,
    );
    program.end();
    Ok(())
}

struct Cost {
    attach: Duration,
    attach_used: Duration,
    detach: Duration,
    detach_used: Duration,
    classes: usize,
}

/// Returns the processor time of a process, in hundredths of a second: user and system time are the 14th and 15th field.
fn processor_time(pid: u32) -> Duration {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap();
    let (_, fields) = stat.rsplit_once(')').unwrap();
    let ticks = fields.split_whitespace().skip(11).take(2);
    Duration::from_millis(ticks.map(|field| field.parse::<u64>().unwrap() * 10).sum())
}
