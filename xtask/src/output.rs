//! The only module of xtask that prints: headings, notes and tables to stdout, errors to stderr. Every line is flushed,
//! so that a tool's own output appears below its heading.
#![expect(clippy::print_stdout, clippy::print_stderr, reason = "the only module that prints")]

use std::time::Duration;

use crate::cmd::Command;
use crate::step::{Outcome, Report};

/// Prints the subcommands.
pub fn list(commands: &[Command]) {
    println!("usage: cargo xtask SUBCOMMAND\n");
    for command in commands {
        println!("  {:<28} {}", format!("{} {}", command.name, command.usage).trim_end(), command.about);
    }
}

/// Prints the heading of a step.
pub fn heading(name: &str) {
    println!("\n=== {name} ===");
}

/// Prints a line.
pub fn note(text: &str) {
    println!("{text}");
}

/// Prints output for another program: nothing is added.
pub fn raw(text: &str) {
    print!("{text}");
}

/// Prints an error.
pub fn error(text: &str) {
    eprintln!("xtask: {text}");
}

/// Prints one row for each step. The last line deliberately differs from that of test runners: they have already
/// printed how many tests ran, and a count of steps must not look like a count of tests.
pub fn summary(reports: &[Report], total: Duration) {
    heading("summary");
    for report in reports {
        let (word, detail) = match &report.outcome {
            Ok(Outcome::Passed) => ("ok", String::new()),
            Ok(Outcome::Skipped(why)) => ("skipped", why.clone()),
            Ok(Outcome::Told(what)) => ("told", what.clone()),
            Err(error) => ("FAILED", format!("{error:#}")),
        };
        let row = format!("{:<8} {:<12} {:>6.1} s  {}", word, report.name, report.time.as_secs_f64(), detail);
        println!("{}", row.trim_end());
    }
    let count = |wanted: fn(&Report) -> bool| reports.iter().filter(|report| wanted(report)).count();
    let failed = count(|report| report.outcome.is_err());
    let skipped = count(|report| matches!(report.outcome, Ok(Outcome::Skipped(_))));
    println!(
        "\nci: {} steps ok, {failed} failed, {skipped} skipped in {:.0} s",
        reports.len() - failed - skipped,
        total.as_secs_f64()
    );
}
