//! A hundred applications at once: checks that each gets its replies in time.

use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Result, bail};

use super::application::Measured;
use super::milliseconds;
use crate::output::{bar, line, median};

const MODULES: usize = 100;
/// Results of each application, with a pause between them: 0.5 s without any wait.
const RESULTS: usize = 100;
const PAUSE_US: u64 = 5_000;
const BOUND: Duration = Duration::from_secs(1);

pub(super) fn run(runtap: &Path) -> Result<()> {
    let folder = tempfile::tempdir()?;
    let measured = folder.path().join("measured");
    fs::create_dir(&measured)?;
    let own = std::env::current_exe()?;
    let mut command = Command::new(runtap);
    command.args(["test", "--output", "minimal", "-j", &MODULES.to_string()]);
    command.env("XDG_STATE_HOME", folder.path());
    for number in 0..MODULES {
        let module = folder.path().join(format!("module-{number}"));
        std::os::unix::fs::symlink(&own, &module)?;
        command.arg(module);
    }
    command.args(["--", "application", &RESULTS.to_string(), "1", "100", &PAUSE_US.to_string()]);
    command.arg(&measured).stdin(Stdio::null()).stdout(Stdio::null());
    let since = Instant::now();
    let status = command.status()?;
    let wall = since.elapsed();
    let all = Measured::read_all(&measured)?;
    if !status.success() || all.len() != MODULES {
        bail!("{status}, {} of {MODULES} applications came to their end", all.len());
    }
    let longest: Vec<_> = all.iter().map(|it| it.longest).collect();
    let most = longest.iter().max().copied().unwrap_or_default();
    line(format_args!(
        "\n{MODULES} applications at once, {RESULTS} results each: {} from start to exit; longest wait for a reply {} (median of the applications), {} (of all)",
        milliseconds(wall),
        milliseconds(median(longest)),
        milliseconds(most),
    ));
    bar("no reply takes longer than 1 s", most <= BOUND, &milliseconds(most));
    Ok(())
}
