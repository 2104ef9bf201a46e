//! Records a process for five seconds, and shows the way it goes: `cargo run -p runtap-record --example record PID`.

#![expect(clippy::print_stdout, clippy::print_stderr, reason = "it is a program")]

use std::time::Duration;

use runtap_diag::Client;
use runtap_providers::{Request, Selection};
use runtap_record::{Prepared, Reporter, Specification, Stops, Subject, Target};
use runtap_sinks::Format;

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let pid = std::env::args().nth(1).ok_or("give a process id")?.parse()?;
    let process = runtap_discover::process(pid)?;
    let client = Client::new(process.endpoint().ok_or("it has no socket")?);
    let mut spec = Specification::new(&Request::resolve(&Selection::default())?);
    spec.formats = vec![Format::Speedscope.into()];
    spec.duration = Some(Duration::from_secs(5));
    let reporter = Reporter::new(|event| eprintln!("{event:?}"));
    let prepared = Prepared::open(spec, Stops::listen()?, reporter).await?.ok_or("interrupted")?;
    let target = Target::Running(vec![Subject::new(client, Some(process))]);
    let (files, _) = prepared.record(target, |outcome| outcome.made).await?;
    for file in files.iter().flat_map(|made| &made.files) {
        println!("{}", file.path.display());
    }
    Ok(())
}
