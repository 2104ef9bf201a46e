//! `cargo xtask dist --try`: runs the archive for this machine in an otherwise empty directory, as in a container.
//!
//! Prepares the root (an empty one with `/proc`, or a copy of the distribution in `RUNTAP_TRY_ROOT`) and its
//! namespaces, and checks the results: the demo's flame graph, and a real .NET that is found and recorded with its
//! frames. Requires root on Linux, `unshare` and `nsenter`. docs/releasing.md explains how to make roots of Debian and
//! Alpine. Nothing of the machine is used but the C library's files that .NET needs.

mod net;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, bail};
use serde_json::Value;

use super::contents;
use super::release::{self, RELEASES};
use super::source::Source;
use xtask::output;
use xtask::process::Tool;
use xtask::workspace::Workspace;

/// A prepared root, for example by debootstrap, or from an archive of Alpine.
const GIVEN: &str = "RUNTAP_TRY_ROOT";
/// Path in the root.
const PLACE: &str = "runtap";
/// Search path of the machine for `unshare` and `nsenter`.
const SEARCH: &str = "PATH=/usr/bin:/bin:/usr/sbin:/sbin";
const PATIENCE: Duration = Duration::from_mins(1);

/// With `may_lack_dotnet`, a missing .NET is reported but is not a failure.
pub(super) fn run(ws: &Workspace, source: &Source, dist: &Path, may_lack_dotnet: bool) -> Result<()> {
    let release =
        RELEASES.iter().find(|release| release.runs_here()).context("no release is for this machine")?;
    let name = release::name(&source.version, release);
    let archive = dist.join(format!("{name}.tar.xz"));
    if !archive.is_file() {
        bail!("there is no {}: `cargo xtask dist` makes it", archive.display());
    }
    let work = ws.target().join("dist-try");
    if work.exists() {
        fs::remove_dir_all(&work).with_context(|| format!("cannot remove {}", work.display()))?;
    }
    let root = Root::new(ws, work.join("root"))?;
    ws.tool("tar").args(&["--extract", "--file"]).arg(&archive).arg("--directory").arg(&work).run()?;
    fs::rename(work.join(&name), root.folder.join(PLACE))?;

    root.alone(ws, &["demo"]).run()?;
    let picture = root.folder.join("tmp/runtap-demo.svg");
    has(&picture, "<svg")?;
    output::note(&format!("demo: a flame graph, {} bytes", fs::metadata(&picture)?.len()));

    match net::install(ws, &root.folder)? {
        Some(why) if may_lack_dotnet => output::error(&format!("NOT TRIED with a real .NET: {why}")),
        Some(why) => bail!("not tried with a real .NET: {why} (use --without-dotnet to skip this)"),
        None => real(ws, &root)?,
    }
    package(ws, source, release.debian, dist, &work)?;
    fs::remove_dir_all(&work).with_context(|| format!("cannot remove {}", work.display()))
}

/// Runs `ps` and `trace` for a .NET program in the same root and namespaces.
fn real(ws: &Workspace, root: &Root) -> Result<()> {
    let mut program = Guest::start(root)?;
    let found = program.find(ws)?;
    output::note(&format!("ps: {} is {}, .NET {}", found["pid"], found["name"], found["runtime_version"]));
    let pid = found["pid"].to_string();
    program
        .inside(ws, &["trace", "-p", &pid, "--duration", "3s", "--to", "folded", "-o", "/tmp/spin.folded"])
        .run()?;
    let stacks = root.folder.join("tmp/spin.folded");
    has(&stacks, net::FRAME)?;
    let stacks = fs::read_to_string(&stacks)?;
    output::note(&format!("trace: {} stacks, with {}", stacks.lines().count(), net::FRAME));
    program.end()
}

/// Installs the Debian package into a directory with dpkg, if that is available.
fn package(
    ws: &Workspace,
    source: &Source,
    architecture: Option<&str>,
    dist: &Path,
    work: &Path,
) -> Result<()> {
    let Some(architecture) = architecture else { return Ok(()) };
    if !ws.tool("dpkg").arg("--version").works() {
        output::note("the Debian package: skipped because dpkg is not installed");
        return Ok(());
    }
    let package = dist.join(format!("runtap_{}-1_{architecture}.deb", source.version));
    let root = work.join("debian");
    contents::make(&root.join("var/lib/dpkg/info"))?;
    contents::write(&root.join("var/lib/dpkg/status"), "")?;
    ws.tool("dpkg").arg("--root").arg(&root).arg("--install").arg(&package).run()?;
    let said = ws.tool(&root.join("usr/bin/runtap").to_string_lossy()).arg("version").capture()?;
    ws.tool("dpkg").arg("--root").arg(&root).args(&["--verify", "runtap"]).run()?;
    ws.tool("dpkg").arg("--root").arg(&root).args(&["--purge", "runtap"]).run()?;
    if root.join("usr/bin/runtap").exists() {
        bail!("dpkg removed runtap, but the program still exists");
    }
    output::note(&format!("the Debian package: installed, verified, removed; {}", said.trim()));
    Ok(())
}

fn has(file: &Path, words: &str) -> Result<()> {
    let text = fs::read_to_string(file).with_context(|| format!("cannot read {}", file.display()))?;
    if !text.contains(words) {
        bail!("{} does not contain {words:?}", file.display());
    }
    Ok(())
}

/// The directory that is `/` for the programs that are tried.
#[derive(Debug)]
struct Root {
    folder: PathBuf,
}

impl Root {
    fn new(ws: &Workspace, folder: PathBuf) -> Result<Self> {
        contents::make(&folder)?;
        if let Some(given) = std::env::var_os(GIVEN) {
            ws.tool("cp").args(&["--archive", "--no-target-directory"]).arg(given).arg(&folder).run()?;
        }
        for inner in ["proc", "tmp", "dev"] {
            contents::make(&folder.join(inner))?;
        }
        for (device, minor) in [("null", "3"), ("urandom", "9")] {
            let device = folder.join("dev").join(device);
            if !device.exists() {
                let made =
                    ws.tool("mknod").args(&["-m", "666"]).arg(&device).args(&["c", "1", minor]).quiet();
                made.run().context("only root can make an empty root with devices")?;
            }
        }
        Ok(Self { folder })
    }

    /// Returns the words that run a command in the root, in a pid namespace with its own `/proc`.
    fn entering(&self) -> Vec<String> {
        let words = ["--fork", "--pid", "--kill-child", "--mount", "--mount-proc=/proc", "--wd=/tmp"];
        let root = format!("--root={}", self.folder.display());
        words.map(str::to_owned).into_iter().chain([root]).collect()
    }

    /// Returns a command that runs `runtap` in the otherwise empty root.
    fn alone(&self, ws: &Workspace, args: &[&str]) -> Tool {
        bare(ws, "unshare").args(&self.entering()).arg(format!("/{PLACE}/runtap")).args(args)
    }
}

/// Returns a command without this machine's environment variables, which refer to directories that the root lacks.
fn bare(ws: &Workspace, program: &str) -> Tool {
    ws.tool("env").args(&["--ignore-environment", "HOME=/tmp", SEARCH, program])
}

/// A .NET program in the root, which is stopped on drop.
#[derive(Debug)]
struct Guest {
    /// `unshare`, whose child is the program.
    outer: Child,
}

impl Guest {
    fn start(root: &Root) -> Result<Self> {
        let mut command = Command::new("unshare");
        command.args(root.entering()).args(net::COMMAND).env_clear().envs(net::ENVIRONMENT.iter().copied());
        let path = std::env::var_os("PATH").unwrap_or_default();
        command.env("PATH", path).stdin(Stdio::null()).stdout(Stdio::null());
        Ok(Self { outer: command.spawn().context("cannot start `unshare`")? })
    }

    /// Returns the program's id on this machine.
    fn pid(&self) -> Result<String> {
        let id = self.outer.id();
        let path = format!("/proc/{id}/task/{id}/children");
        let children = fs::read_to_string(&path).with_context(|| format!("cannot read {path}"))?;
        Ok(children.split_whitespace().next().context("the program has not started")?.to_owned())
    }

    /// Returns a command that runs `runtap` in the program's root and namespaces.
    fn inside(&self, ws: &Workspace, args: &[&str]) -> Tool {
        let pid = self.pid().unwrap_or_default();
        let tool = bare(ws, "nsenter").args(&["--target", &pid, "--mount", "--pid", "--root", "--wd"]);
        tool.arg(format!("/{PLACE}/runtap")).args(args)
    }

    /// Returns the row of the program in `runtap ps` when it responds.
    fn find(&mut self, ws: &Workspace) -> Result<Value> {
        let start = Instant::now();
        loop {
            if let Some(status) = self.outer.try_wait()? {
                bail!("the .NET program exited with {status}");
            }
            if self.pid().is_ok() {
                let said = self.inside(ws, &["ps", "--format", "json"]).quiet().capture()?;
                let said: Value = serde_json::from_str(&said).context("`runtap ps` did not print JSON")?;
                let rows = said["processes"].as_array().context("`runtap ps` lists no processes")?;
                let answers = |row: &&Value| row["name"] == net::NAME && row["runtime_version"].is_string();
                if let Some(row) = rows.iter().find(answers) {
                    return Ok(row.clone());
                }
            }
            if start.elapsed() > PATIENCE {
                bail!("`runtap ps` does not list the .NET program");
            }
            thread::sleep(Duration::from_millis(200));
        }
    }

    fn end(&mut self) -> Result<()> {
        self.outer.kill()?;
        self.outer.wait()?;
        Ok(())
    }
}

impl Drop for Guest {
    fn drop(&mut self) {
        // Its child is killed with it (`--kill-child`). Does nothing after `end`.
        drop(self.end());
    }
}
