//! Records a process for five seconds and prints what happens as JSON Lines: a second sink for the same events.
//! `cargo run -p runtap-record --example json_lines PID`.

#![expect(clippy::print_stdout, reason = "it is a program")]

use std::time::Duration;

use runtap_record::providers::{Request, Selection};
use runtap_record::{Event, Prepared, Reporter, Specification, Stops, Target};
use runtap_target::TargetSpec;
use serde_json::json;

/// The sink.
fn report(event: Event) {
    let line = match event {
        Event::Started { name, pid, files } => {
            json!({"type": "started", "name": name, "pid": pid, "files": files})
        }
        Event::Progress(it) => json!({
            "type": "progress", "elapsed_s": it.elapsed.as_secs_f64(), "bytes": it.bytes, "events": it.events,
            "lost": it.lost, "stopping": it.is_stopping,
        }),
        Event::Downgraded(downgrade) => json!({"type": "downgraded", "what": downgrade.to_string()}),
        Event::NotResumed { process, error } => {
            json!({"type": "not-resumed", "process": process, "error": error.to_string()})
        }
        Event::Recorded => json!({"type": "recorded"}),
        Event::Kept(path) => json!({"type": "kept", "path": path}),
        // Those of commands, ports and conversions.
        other => json!({"type": "other", "event": format!("{other:?}")}),
    };
    println!("{line}");
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let pid = std::env::args().nth(1).ok_or("give a process id")?.parse()?;
    let subject = TargetSpec::Pid(pid).resolve(&()).await?;
    let mut spec = Specification::new(&Request::resolve(&Selection::default())?);
    spec.duration = Some(Duration::from_secs(5));
    let prepared =
        Prepared::open(spec, Stops::listen()?, Reporter::new(report)).await?.ok_or("interrupted")?;
    prepared.record(Target::Running(vec![subject]), |outcome| outcome.made).await?;
    Ok(())
}
