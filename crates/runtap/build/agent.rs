//! Builds the agent for JVMs, which the binary carries (docs/design/jvm-agent-place.md).
//!
//! Owns: the inner cargo, and the compile-time variable `RUNTAP_JVM_AGENT`: the path of the library, compressed (zlib). Without
//! a library (on systems other than Linux, in a package without its siblings, without the feature `jvm-agent`) that file is
//! empty.

use std::env;
use std::ffi::OsStr;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use super::{embed, variable};

/// The file that cargo leaves.
const LIBRARY: &str = "libruntap_jvm_agent.so";
/// The variable with the path of a prebuilt library, for targets that this machine has no linker for.
const GIVEN: &str = "RUNTAP_JVM_AGENT_LIBRARY";
/// What the outer cargo was told that holds for the inner one as well: where packages come from. All else of its variables
/// (flags, wrappers, the target directory) is meant for the binary.
const KEPT: [&str; 4] = ["CARGO_HOME", "CARGO_NET_", "CARGO_HTTP_", "CARGO_REGISTRIES_"];

pub(super) fn build() {
    println!("cargo::rerun-if-changed=build/agent.rs");
    println!("cargo::rerun-if-env-changed={GIVEN}");
    let library = library().map(|path| {
        fs::read(&path).unwrap_or_else(|error| panic!("cannot read {}: {error}", path.display()))
    });
    embed("RUNTAP_JVM_AGENT", library.as_deref());
}

fn library() -> Option<PathBuf> {
    if variable("CARGO_CFG_TARGET_OS") != "linux" || env::var_os("CARGO_FEATURE_JVM_AGENT").is_none() {
        return None;
    }
    if let Some(given) = env::var_os(GIVEN) {
        let given = PathBuf::from(given);
        println!("cargo::rerun-if-changed={}", given.display());
        return Some(given);
    }
    let manifest = Path::new(&variable("CARGO_MANIFEST_DIR")).join("../jvm/jvm-agent/Cargo.toml");
    if !manifest.is_file() {
        println!("cargo::warning=the sources of the agent for JVMs are not here: runtap is built without it");
        return None;
    }
    Some(run_cargo(&manifest))
}

fn run_cargo(manifest: &Path) -> PathBuf {
    let target = agent_target(&variable("TARGET"));
    // A development build does not wait for link-time optimization.
    let profile = if variable("PROFILE") == "release" { "agent" } else { "agent-dev" };
    println!("cargo::rustc-env=RUNTAP_JVM_AGENT_PROFILE={profile}");
    // The outer cargo holds the lock of its own target directory.
    let directory = Path::new(&variable("OUT_DIR")).join("agent");
    let mut cargo = Command::new(env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    cargo
        .args(["build", "--quiet", "--lib", "-p", "runtap-jvm-agent", "--profile", profile, "--locked"])
        .args(["--target", &target, "--manifest-path"])
        .arg(manifest)
        .arg("--target-dir")
        .arg(&directory);
    let linker = linker_variable(&target);
    println!("cargo::rerun-if-env-changed={linker}");
    for (name, _) in env::vars_os().filter(|(name, _)| *name != *linker && is_for_the_binary(name)) {
        cargo.env_remove(name);
    }
    let built = cargo.output().unwrap_or_else(|error| panic!("cannot run cargo for the agent: {error}"));
    assert!(
        built.status.success(),
        "the agent for JVMs can't be built for {target} (another build of it can be given with {GIVEN}):\n{}",
        String::from_utf8_lossy(&built.stderr)
    );
    // Not watched itself: it is newer than the start of this script, so the next build would start the script again.
    let library = directory.join(&target).join(profile).join(LIBRARY);
    watch(&library.with_extension("d"));
    watch_manifests(manifest);
    library
}

/// It is loaded into JVMs on glibc, whatever the binary runs on.
fn agent_target(target: &str) -> String {
    target.replace("-musl", "-gnu")
}

/// Where cargo reads which linker the agent's target has. It holds for every build for that target, so it is kept.
fn linker_variable(target: &str) -> String {
    format!("CARGO_TARGET_{}_LINKER", target.replace('-', "_").to_ascii_uppercase())
}

fn is_for_the_binary(name: &OsStr) -> bool {
    let name = name.to_string_lossy();
    let is_kept = KEPT.iter().any(|kept| name.starts_with(kept));
    name == "RUSTFLAGS" || name.starts_with("RUSTC") || name.starts_with("CARGO_") && !is_kept
}

/// The sources of the library, by what cargo has written beside it: `LIBRARY: SOURCE SOURCE…`, blanks in paths after a
/// backslash.
fn watch(dependencies: &Path) {
    let text = fs::read_to_string(dependencies).unwrap_or_default();
    let sources = text.lines().find_map(|line| line.split_once(": ")).map_or("", |(_, sources)| sources);
    for source in sources.replace("\\ ", "\0").split_ascii_whitespace() {
        println!("cargo::rerun-if-changed={}", source.replace('\0', " "));
    }
}

/// What chooses its dependencies and its profile.
fn watch_manifests(manifest: &Path) {
    println!("cargo::rerun-if-changed={}", manifest.display());
    // Above crates/runtap.
    let own = variable("CARGO_MANIFEST_DIR");
    let workspace = Path::new(&own).ancestors().nth(2).unwrap_or(manifest);
    for file in ["Cargo.toml", "Cargo.lock"].map(|name| workspace.join(name)) {
        // A file that is not there would have everything built each time.
        if file.is_file() {
            println!("cargo::rerun-if-changed={}", file.display());
        }
    }
}
