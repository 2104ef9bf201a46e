//! Peak memory of a run with much output, without and with all reports.

use std::fs;
use std::path::Path;
use std::process::Command;

use anyhow::Result;

use super::megabytes;
use crate::cost;
use crate::output::{Table, bar};

const RESULTS: &str = "100000";
const BYTES: &str = "1024";
const MAX_PEAK: u64 = 30_000_000;

pub(super) fn run(runtap: &Path) -> Result<()> {
    let folder = tempfile::tempdir_in(runtap_testkit::workspace_root().join("target"))?;
    let mut table = Table::new(&["", "peak resident", "CPU"]);
    let mut peak = 0;
    for reports in [&[][..], &["junit", "trx", "ctrf", "html"][..]] {
        let mut command = Command::new(runtap);
        command.arg("test").arg(std::env::current_exe()?);
        for format in reports {
            command.arg("--report").arg(format!("{format}={}", folder.path().join(format).display()));
        }
        // The largest temporary file needs a directory with enough space. The first run creates a history, so that
        // reading it is measured too.
        command.env("TMPDIR", folder.path());
        command.env("XDG_STATE_HOME", folder.path().join(format!("state-{}", reports.len())));
        command.args(["--", "application", RESULTS, "1", BYTES, "0", "-"]);
        let cost = cost::of(&command)?;
        // Classes occur only in the list of tests, so listing is part of the measurement.
        if reports.contains(&"junit") {
            let report = fs::read_to_string(folder.path().join("junit"))?;
            anyhow::ensure!(report.contains("Bench.Tests"), "the application has not listed its tests");
        }
        peak = peak.max(cost.peak);
        let name = if reports.is_empty() { "no report".to_owned() } else { reports.join(", ") };
        table.row(&[name, megabytes(cost.peak), format!("{:.2} s", cost.cpu.as_secs_f64())]);
    }
    table.print("100,000 results with 1 KiB of output each, one a message");
    bar("resident memory at most 30 MB", peak <= MAX_PEAK, &megabytes(peak));
    Ok(())
}
