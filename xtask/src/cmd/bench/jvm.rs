//! `cargo xtask bench jvm`: measures the cost of the JVM agent as it is shipped. Builds the library with its own
//! profile and runs the agent's tests, which start JVMs and measure, and the rewriting of classes. Results are
//! reported, not judged, except for a mark if a goal is missed.

use std::env;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result};

use crate::output;
use crate::workspace::{SHIPPED, Workspace};

pub(super) fn run(ws: &Workspace) -> Result<()> {
    ws.cargo(&["build", "--package", "runtap-jvm-agent", "--lib", "--profile", "agent"]).run()?;
    let library = ws.target().join("agent/libruntap_jvm_agent.so");
    let load = std::fs::read_to_string("/proc/loadavg").unwrap_or_default();
    output::note(&format!("load of the machine: {}", load.trim()));
    let tests = ["test", "--profile", SHIPPED, "--package", "runtap-jvm-agent", "--test", "it", "--"];
    let mut tool = ws.cargo(&tests).env("RUNTAP_JVM_AGENT", &library);
    if let Some(shared) = ws.shared()? {
        tool = tool.env("RUNTAP_SHARED", shared);
    }
    let of_them = ["--ignored", "--nocapture", "--test-threads", "1", "bench::", "sweep::speed"];
    tool.args(&of_them).run()?;
    rewriting(ws)
}

/// Measures the time to rewrite a class in microseconds, with the classes of `java.xml`.
fn rewriting(ws: &Workspace) -> Result<()> {
    let Some(jimage) = jimage() else {
        output::note(
            "skipped: rewriting of classes, because jimage was not found (JAVA_HOME, or javac on the PATH)",
        );
        return Ok(());
    };
    let home = jimage.parent().and_then(Path::parent).context("a JDK has folders")?;
    let classes = ws.target().join("bench-classes");
    let (modules, folder) = (home.join("lib/modules"), classes.to_string_lossy().into_owned());
    let jimage = ws.tool(&jimage.to_string_lossy());
    let include = ["extract", "--include", "regex:/java.xml/.*", "--dir", &folder];
    jimage.args(&include).arg(modules).run()?;
    let example = ["run", "--profile", SHIPPED, "--package", "runtap-classfile", "--example", "rewriting"];
    ws.cargo(&example).args(&["--", &folder, "10"]).run()
}

/// Returns the path of a JDK's `jimage`. `None` if no JDK with tools is found.
fn jimage() -> Option<PathBuf> {
    let path = env::var_os("PATH").unwrap_or_default();
    let homes = env::var_os("JAVA_HOME").map(|home| PathBuf::from(home).join("bin")).into_iter();
    let tool =
        |folder: PathBuf| folder.join("javac").canonicalize().ok()?.parent().map(|bin| bin.join("jimage"));
    homes.chain(env::split_paths(&path)).filter_map(tool).find(|tool| tool.is_file())
}
