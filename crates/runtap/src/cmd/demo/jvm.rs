//! `runtap demo jvm`: traces a built-in program that imitates a Java program with an agent.

use std::io;
use std::net::SocketAddr;
use std::process::Command;

use anyhow::Context;
use clap::ValueEnum as _;
use runtap_demo::Program;
use runtap_demo::jvm::Dialect;
use runtap_text::Output;

use crate::cli::{AgentVersion, DemoJvm, DemoJvmAgent, JvmHq};
use crate::exit;
use runtap_text::units::Things;

/// Runs the built-in program that imitates a Java program with an agent.
pub(super) fn run_agent(options: &DemoJvmAgent) -> anyhow::Result<u8> {
    let out = &mut io::stdout().lock();
    runtap_demo::jvm::serve(options.connect, dialect(options.version), options.seconds, out)?;
    Ok(exit::OK)
}

fn dialect(version: AgentVersion) -> Dialect {
    match version {
        AgentVersion::One => Dialect::V1,
        AgentVersion::Two => Dialect::V2,
        AgentVersion::Three => Dialect::V3,
        AgentVersion::Four => Dialect::V4,
        AgentVersion::F1 => Dialect::F1,
    }
}

/// Traces the built-in program like `jvm hq --once` does, and prints what it did.
pub(super) fn jvm(options: &DemoJvm, output: Output) -> anyhow::Result<u8> {
    let hq_options = JvmHq {
        listen: "127.0.0.1:0".to_owned(),
        // On a terminal, the live view stays until the user quits it.
        once: options.plain || output.json() || !crate::cmd::jvm::has_live_view(output),
        plain: options.plain,
        format: options.format.clone(),
        ..JvmHq::default()
    };
    let (seconds, version) = (options.duration, options.version);
    let start = move |hq: SocketAddr| -> anyhow::Result<Program> {
        let mut command = Command::new(std::env::current_exe().context("can't find the program's own file")?);
        let version =
            version.to_possible_value().map_or_else(String::new, |value| value.get_name().to_owned());
        let milliseconds = format!("{}ms", seconds.as_millis());
        command.args(["demo", "jvm-agent", "--connect", &hq.to_string(), "--seconds", &milliseconds]);
        command.args(["--version", &version]);
        let program = Program::start(command)?;
        output.note(format_args!("the built-in program runs as process {}, with an agent", program.pid()));
        Ok(program)
    };
    let (code, program) = crate::cmd::jvm::collect_from(hq_options, start, output)?;
    let truth = program.end()?;
    if output.json() {
        output.note(format_args!("What the demo program reported doing: {truth}"));
    } else {
        output.note(format_args!("The demo program reported {}", account(&truth)));
    }
    output.note("Next: 'runtap jvm run -- java …', or 'runtap jvm attach PID' for a running program.");
    Ok(code)
}

/// Formats the JSON summary of the built-in program, its calls and exceptions, as one line.
fn account(truth: &str) -> String {
    let number = |truth: &serde_json::Value, name: &str| truth.get(name).and_then(serde_json::Value::as_u64);
    let numbers = serde_json::from_str::<serde_json::Value>(truth)
        .ok()
        .and_then(|truth| Some((number(&truth, "entries")?, number(&truth, "exceptions")?)));
    match numbers {
        Some((calls, exceptions)) => {
            format!("{} and threw {}", Things(calls, "call"), Things(exceptions, "exception"))
        }
        None => truth.to_owned(),
    }
}
