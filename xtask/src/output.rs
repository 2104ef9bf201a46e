//! The only place of xtask that prints.
//!
//! Owns: headings, notes and tables on stdout, errors on stderr. Everything is flushed line by line, so that a tool's
//! own output stands below the heading it belongs to.
#![expect(clippy::print_stdout, clippy::print_stderr, reason = "the only module that prints")]

use std::time::Duration;

use crate::cmd::Command;
use crate::step::{Outcome, Report};

pub(crate) fn list(commands: &[Command]) {
    println!("usage: cargo xtask SUBCOMMAND\n");
    for command in commands {
        println!("  {:<28} {}", format!("{} {}", command.name, command.usage).trim_end(), command.about);
    }
}

pub(crate) fn heading(name: &str) {
    println!("\n=== {name} ===");
}

pub(crate) fn note(text: &str) {
    println!("{text}");
}

/// What another program reads: nothing is added.
pub(crate) fn raw(text: &str) {
    print!("{text}");
}

pub(crate) fn error(text: &str) {
    eprintln!("xtask: {text}");
}

/// One row a step. The wording of the last line is ours on purpose: the test runners above have already said how many
/// tests ran, and a count of steps must not look like one of tests.
pub(crate) fn summary(reports: &[Report], total: Duration) {
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
