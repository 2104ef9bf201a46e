//! Records a process for five seconds, and shows the way it goes: `cargo run -p runtap-record --example watched PID`.

#![expect(clippy::print_stdout, clippy::print_stderr, reason = "it is a program")]

use std::time::Duration;

use runtap_record::providers::{Request, Selection};
use runtap_record::{Prepared, Reporter, Specification, Stops, Target};
use runtap_sinks::Format;
use runtap_target::TargetSpec;

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let pid = std::env::args().nth(1).ok_or("give a process id")?.parse()?;
    let subject = TargetSpec::Pid(pid).resolve(&()).await?;
    let mut spec = Specification::new(&Request::resolve(&Selection::default())?);
    spec.formats = vec![Format::Speedscope.into()];
    spec.duration = Some(Duration::from_secs(5));
    let reporter = Reporter::new(|event| eprintln!("{event:?}"));
    let prepared = Prepared::open(spec, Stops::listen()?, reporter).await?.ok_or("interrupted")?;
    let target = Target::Running(vec![subject]);
    let (files, _) = prepared.record(target, |outcome| outcome.made).await?;
    for file in files.iter().flat_map(|made| &made.files) {
        println!("{}", file.path.display());
    }
    Ok(())
}
