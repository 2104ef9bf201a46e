//! `cargo xtask lint`: runs clippy without warnings, and further checks.
//!
//! Every Rust file must start with a `//!` doc and should have one job: above 400 lines it is reported, above 800 it
//! fails. Product files must not construct paths into another process's root themselves, but use the module that
//! symbolic links cannot escape.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result, bail};

use crate::args::Args;
use crate::output;
use crate::step::Outcome;
use crate::workspace::Workspace;

const SOFT_CAP: usize = 400;
const HARD_CAP: usize = 800;
const FOLDERS: [&str; 6] = ["crates", "xtask", "xtask-dist", "tests", "benches", "fuzz"];
/// The files that implement access to the files of other processes, or only display paths.
const DOOR: [&str; 6] = [
    "crates/base/transport/src/linux/root.rs",
    "crates/base/transport/src/linux/process.rs",
    "crates/base/transport/src/linux/location.rs",
    "crates/dotnet/discover/src/linux/view.rs",
    "crates/dotnet/target/src/doctor/diagnose.rs",
    // Output paths, which use that access for other processes.
    "crates/base/os/src/output/place.rs",
];
/// Text that indicates a path into a process's file system.
const WAYS_IN: [&str; 4] = ["\"root\"", "\"cwd\"", "}/root", "}/cwd"];
/// Folders of generated or foreign files.
const LEFT_OUT: [&str; 4] = ["target", "generated", "node_modules", "corpus"];

pub(crate) fn command(ws: &Workspace, _: &Args) -> Result<()> {
    clippy(ws)?;
    files(ws)?;
    Ok(())
}

pub(crate) fn clippy(ws: &Workspace) -> Result<Outcome> {
    ws.cargo(&["clippy", "--workspace", "--all-targets", "--", "-D", "warnings"]).run()?;
    // As the alias `demo` builds it.
    ws.cargo(&["clippy", "--package", "runtap", "--no-default-features", "--", "-D", "warnings"]).run()?;
    Ok(Outcome::Passed)
}

pub(crate) fn files(ws: &Workspace) -> Result<Outcome> {
    let mut paths = Vec::new();
    for folder in FOLDERS {
        collect(&ws.root().join(folder), &mut paths)?;
    }
    paths.sort();
    let mut failed = 0;
    for path in &paths {
        let shown = path.strip_prefix(ws.root()).unwrap_or(path).display();
        let text = fs::read_to_string(path).with_context(|| format!("cannot read {shown}"))?;
        let name = path.strip_prefix(ws.root()).unwrap_or(path).to_string_lossy();
        let way_in = if is_product(&name) { way_in(&text) } else { None };
        for finding in look_at(&text).into_iter().chain(way_in) {
            output::note(&format!("{shown}: {finding}"));
            failed += usize::from(finding.fails());
        }
    }
    if failed > 0 {
        bail!("{failed} findings in {} files", paths.len());
    }
    output::note(&format!("checked {} files", paths.len()));
    Ok(Outcome::Passed)
}

#[derive(Debug, PartialEq, Eq)]
enum Finding {
    NoDoc,
    Long(usize),
    TooLong(usize),
    /// The line.
    WayIn(usize),
}

impl Finding {
    fn fails(&self) -> bool {
        !matches!(self, Self::Long(_))
    }
}

impl std::fmt::Display for Finding {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::NoDoc => write!(f, "does not open with a `//!` doc that says what the file is for"),
            Self::Long(lines) => write!(f, "{lines} lines (above {SOFT_CAP}): does it have one job?"),
            Self::WayIn(line) => write!(
                f,
                "line {line}: a path into another process's root or working directory; a link in it leads out again. \
                 FileView and Endpoint open what is there"
            ),
            Self::TooLong(lines) => write!(f, "{lines} lines: above {HARD_CAP} a file must be split"),
        }
    }
}

fn look_at(text: &str) -> Vec<Finding> {
    let mut found = Vec::new();
    // Fuzz targets must start with an attribute, and other files may.
    let first = text.lines().find(|line| !line.trim().is_empty() && !line.starts_with("#!["));
    if !first.is_some_and(|line| line.starts_with("//!")) {
        found.push(Finding::NoDoc);
    }
    match text.lines().count() {
        lines if lines > HARD_CAP => found.push(Finding::TooLong(lines)),
        lines if lines > SOFT_CAP => found.push(Finding::Long(lines)),
        _ => {}
    }
    found
}

/// Returns whether a file is part of the product and not of [`DOOR`].
fn is_product(path: &str) -> bool {
    path.starts_with("crates/")
        && path.contains("/src/")
        && !path.contains("testkit")
        && !DOOR.contains(&path)
}

/// Returns the first line that contains a path into another process's root. Tests at the end of a file are ignored.
fn way_in(text: &str) -> Option<Finding> {
    let product = text.lines().take_while(|line| !line.starts_with("#[cfg(test)]"));
    let is_comment = |line: &str| line.trim_start().starts_with("//");
    // A C string names a field or method of the JVM, never a path.
    let spells = |line: &str| WAYS_IN.iter().any(|way| line.replace("c\"", "").contains(way));
    let mut lines = product.enumerate();
    let found = lines.find(|(_, line)| !is_comment(line) && spells(line));
    found.map(|(n, _)| Finding::WayIn(n + 1))
}

fn collect(folder: &Path, paths: &mut Vec<PathBuf>) -> Result<()> {
    if !folder.is_dir() {
        return Ok(());
    }
    for entry in fs::read_dir(folder).with_context(|| format!("cannot list {}", folder.display()))? {
        let path = entry?.path();
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        if path.is_dir() && !LEFT_OUT.contains(&name.as_ref()) {
            collect(&path, paths)?;
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            paths.push(path);
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lines(n: usize) -> String {
        format!("//! doc\n{}", "x\n".repeat(n - 1))
    }

    #[test]
    fn length_is_a_note_first_and_a_failure_later() {
        assert_eq!(look_at(&lines(400)), []);
        assert_eq!(look_at(&lines(401)), [Finding::Long(401)]);
        assert!(!Finding::Long(401).fails());
        assert_eq!(look_at(&lines(801)), [Finding::TooLong(801)]);
        assert!(Finding::TooLong(801).fails());
    }

    #[test]
    fn a_path_into_a_root_is_found() {
        let join = "//! doc\n// dir.join(\"root\")\nlet path = dir.join(\"root\");\n";
        assert_eq!(way_in(join), Some(Finding::WayIn(3)));
        assert_eq!(way_in("format!(\"/proc/{pid}/root/tmp\")"), Some(Finding::WayIn(1)));
        assert_eq!(way_in("jvm.call_static(class, c\"root\", c\"()V\")"), None);
        assert_eq!(way_in("let x = 1;\n#[cfg(test)]\nmod tests { \"root\" }"), None);
        assert!(is_product("crates/runtap/src/cmd/dump/mod.rs"));
        for other in
            [DOOR[0], "crates/runtap/tests/e2e/common.rs", "xtask/src/main.rs", "crates/testkit/src/lib.rs"]
        {
            assert!(!is_product(other), "{other}");
        }
    }

    #[test]
    fn a_file_starts_with_its_doc() {
        assert_eq!(look_at("#![no_main]\n//! doc\n"), []);
        assert_eq!(look_at("// not a doc\n//! doc\n"), [Finding::NoDoc]);
        assert_eq!(look_at(""), [Finding::NoDoc]);
    }
}
