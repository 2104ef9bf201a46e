//! The overhead of the runner for the start and exit of an application.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Result, bail};

use super::milliseconds;
use crate::output::{Table, bar, median};

const RUNS: usize = 41;
const MODULES: usize = 20;
const BAR: Duration = Duration::from_millis(5);

pub(super) fn run(runtap: &Path) -> Result<()> {
    let folder = tempfile::tempdir()?;
    let own = std::env::current_exe()?;
    let mut modules = Vec::new();
    for number in 0..MODULES {
        let module = folder.path().join(format!("module-{number}"));
        std::os::unix::fs::symlink(&own, &module)?;
        modules.push(module);
    }
    let measured = folder.path().join("measured");
    fs::create_dir(&measured)?;
    let words = ["application", "1", "1", "0", "0", "-"];
    let alone = || {
        let mut command = Command::new(&own);
        command.args(words);
        command
    };
    let under = |modules: &[PathBuf]| {
        let mut command = Command::new(runtap);
        command.args(["test", "-j", "1", "--output", "minimal"]).args(modules).arg("--").args(words);
        command.env("XDG_STATE_HOME", folder.path());
        command
    };
    let version = || {
        let mut command = Command::new(runtap);
        command.arg("version");
        command
    };
    let (mut own_start, mut base, mut one, mut all) = (Vec::new(), Vec::new(), Vec::new(), Vec::new());
    for round in 0..RUNS {
        own_start.push(time(alone())?);
        base.push(time(version())?);
        one.push(time(under(modules.get(..1).unwrap_or_default()))?);
        if round % 4 == 0 {
            all.push(time(under(&modules))?);
        }
    }
    let (own_start, base, one, all) = (median(own_start), median(base), median(one), median(all));
    let more = u32::try_from(MODULES - 1)?;
    let each = all.saturating_sub(one) / more;
    let mut table = Table::new(&["", "median", "more than alone"]);
    for (name, time) in [
        ("the application alone".to_owned(), own_start),
        ("runtap version".to_owned(), base),
        ("runtap test, one application".to_owned(), one),
        (format!("each further one of {MODULES}, one at a time"), each),
    ] {
        table.row(&[name, milliseconds(time), milliseconds(time.saturating_sub(own_start))]);
    }
    table.print("An application with one result, from start to exit");
    bar("a run adds at most 5 ms", one <= own_start + BAR, &milliseconds(one.saturating_sub(own_start)));
    bar(
        "each application at most 5 ms",
        each <= own_start + BAR,
        &milliseconds(each.saturating_sub(own_start)),
    );
    Ok(())
}

fn time(mut command: Command) -> Result<Duration> {
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    let since = Instant::now();
    let status = command.status()?;
    let took = since.elapsed();
    if !status.success() {
        bail!("{command:?}: {status}");
    }
    Ok(took)
}
