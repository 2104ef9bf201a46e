//! Runs test applications and prints what happens: `cargo run -p runtap-mtp --example run -- PATH…`.

#![expect(clippy::print_stdout, reason = "a program, not a library")]

use std::env;

use runtap_mtp::{RunEvent, RunSpec, Stop, find_dotnet, find_modules, run};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let wanted: Vec<_> = env::args().skip(1).collect();
    let mut spec = RunSpec::new(find_modules(&env::current_dir()?, &wanted)?.modules);
    spec.application.dotnet = find_dotnet().ok();
    let outcome = run(&spec, &Stop::new(), |event| match event {
        RunEvent::TestEnded { result, .. } => println!("{:9} {}", result.execution.state.name(), result.name),
        RunEvent::LaunchEnded { end, .. } => println!("{:?} {:?}", end.exit, end.failures),
        _ => {}
    })?;
    println!("{:?}", outcome.totals);
    std::process::exit(outcome.exit_code);
}
