//! `cargo xtask layers`: checks the dependencies between crates, according to `cargo metadata`. A dependency must be in
//! a lower layer (ARCHITECTURE.md has the picture), and every crate must have a layer. Also checks that paths in
//! ARCHITECTURE.md exist, and the limits on the size of the workspace.

mod limits;

use std::fs;
use std::path::PathBuf;

use anyhow::{Context as _, Result, bail};
use serde::Deserialize;

use crate::args::Args;
use crate::output;
use crate::step::Outcome;
use crate::workspace::Workspace;

/// All crates that others may use, with their layers.
const LAYERS: &[(&str, u8)] = &[
    ("runtap-wire", 0),
    ("runtap-model", 0),
    ("runtap-bytefrog-proto", 1),
    ("runtap-classfile", 1),
    ("runtap-diag-proto", 1),
    ("runtap-heap", 1),
    ("runtap-mtp-proto", 1),
    ("runtap-nettrace", 1),
    ("runtap-test", 1),
    ("runtap-os", 2),
    ("runtap-unwind", 2),
    ("runtap-transcript", 3),
    ("runtap-transport", 3),
    ("runtap-bytefrog", 4),
    ("runtap-clr", 4),
    ("runtap-discover", 4),
    ("runtap-jvm-attach", 4),
    ("runtap-mtp", 4),
    ("runtap-mtp-host", 4),
    ("runtap-sinks", 4),
    ("runtap-test-report", 3),
    ("runtap-convert", 5),
    ("runtap-diag", 5),
    ("runtap-diag-server", 5),
    ("runtap-events", 6),
    ("runtap-jvm", 6),
    ("runtap-target", 6),
    ("runtap-demo", 7),
    ("runtap-jvm-agent", 7),
    ("runtap-record", 7),
    ("runtap-route", 7),
    ("runtap-text", 7),
    ("runtap", 8),
];

/// Crates outside of the layers, which may use any crate and may only be used in tests.
const BESIDE: &[&str] =
    &["runtap-testkit", "runtap-benches", "runtap-conformance", "axum-service", "xtask", "xtask-dist"];

/// The feature of the test kit that includes runtap's server.
const FAKE: &str = "fake";

/// Dependencies within a layer that only tests have: the two sides of a protocol are tested with each other.
const SIDEWAYS_IN_TESTS: &[(&str, &str)] = &[("runtap-diag-server", "runtap-diag")];

/// Crates that may use only some of the lower crates: interpretation uses bytes, files and the model but no sessions;
/// sinks use only the model; texts are made from results.
const NARROW: &[(&str, &[&str])] = &[
    ("runtap-model", &["runtap-wire"]),
    ("runtap-clr", &["runtap-wire", "runtap-diag-proto", "runtap-nettrace", "runtap-model", "runtap-heap"]),
    ("runtap-sinks", &["runtap-model"]),
    ("runtap-test-report", &["runtap-test"]),
    (
        "runtap-text",
        &[
            "runtap-nettrace",
            "runtap-convert",
            "runtap-heap",
            "runtap-model",
            "runtap-clr",
            "runtap-bytefrog-proto",
            "runtap-bytefrog",
            "runtap-jvm",
            "runtap-mtp",
            "runtap-os",
            "runtap-test",
            "runtap-test-report",
            "runtap-transcript",
        ],
    ),
];

/// The highest layer that uses no sockets, files, clocks or threads.
const PURE: u8 = 1;

/// External crates that these layers may use.
const PURE_OUTSIDE: &[&str] = &["thiserror", "bitflags", "uuid", "hashbrown", "foldhash", "object"];

/// Further external crates for single crates of these layers: test plans are text and JSON, test commands print JSON
/// and XML, a jar is a zip file of deflated classes, and misspelled names are compared with known ones.
const PURE_OUTSIDE_OF: &[(&str, &[&str])] = &[
    ("runtap-classfile", &["flate2", "rawzip"]),
    ("runtap-test", &["quick-xml", "regex-lite", "serde", "serde_json", "toml"]),
    ("runtap-wire", &["strsim"]),
];

/// Prefixes of paths in ARCHITECTURE.md.
const FOLDERS: [&str; 6] = ["crates/", "xtask/", "xtask-dist/", "conformance/", "fuzz/", "docs/"];

#[derive(Debug, Deserialize)]
struct Metadata {
    packages: Vec<Package>,
}

#[derive(Debug, Deserialize)]
struct Package {
    name: String,
    manifest_path: PathBuf,
    dependencies: Vec<Dependency>,
}

#[derive(Debug, Deserialize)]
struct Dependency {
    name: String,
    #[serde(default)]
    features: Vec<String>,
    /// `None` for normal dependencies, otherwise `dev` or `build`.
    kind: Option<String>,
}

pub(crate) fn command(ws: &Workspace, _: &Args) -> Result<()> {
    check(ws)?;
    Ok(())
}

pub(crate) fn check(ws: &Workspace) -> Result<Outcome> {
    let metadata = ws.metadata(&ws.root().join("Cargo.toml"))?;
    let metadata: Metadata = serde_json::from_value(metadata).context("cargo metadata has another shape")?;
    let wrong = violations(&metadata.packages);
    for line in &wrong {
        output::note(line);
    }
    if !wrong.is_empty() {
        bail!("{} dependencies are not allowed (see the layers in ARCHITECTURE.md)", wrong.len());
    }
    let gone = gone(ws)?;
    if !gone.is_empty() {
        bail!("paths in ARCHITECTURE.md do not exist: {}", gone.join(", "));
    }
    let (exceeded, lower) = limits::check(ws, &metadata.packages)?;
    for line in exceeded.iter().chain(&lower) {
        output::note(line);
    }
    if !exceeded.is_empty() {
        bail!("{} limits are exceeded", exceeded.len());
    }
    output::note(&format!("{} crates with valid dependencies", metadata.packages.len()));
    Ok(Outcome::Passed)
}

/// Returns the paths in ARCHITECTURE.md that do not exist.
fn gone(ws: &Workspace) -> Result<Vec<String>> {
    let text = fs::read_to_string(ws.root().join("ARCHITECTURE.md")).context("ARCHITECTURE.md")?;
    // Every other part is between backquotes.
    let quoted = text.split('`').skip(1).step_by(2);
    let is_path = |text: &&str| FOLDERS.iter().any(|folder| text.starts_with(folder)) && !text.contains(' ');
    Ok(quoted.filter(is_path).filter(|path| !ws.root().join(path).exists()).map(str::to_owned).collect())
}

fn violations(packages: &[Package]) -> Vec<String> {
    let mut wrong = Vec::new();
    for package in packages {
        if BESIDE.contains(&package.name.as_str()) {
            continue;
        }
        let Some(layer) = layer(&package.name) else {
            wrong.push(format!("{} has no layer: give it one in xtask/src/cmd/layers.rs", package.name));
            continue;
        };
        let edges = package.dependencies.iter();
        wrong.extend(edges.filter_map(|dependency| {
            let why = if is_ours(packages, &dependency.name) {
                inside(&package.name, layer, dependency)
            } else {
                outside(&package.name, layer, dependency)
            };
            why.map(|why| format!("{} → {}: {why}", package.name, dependency.name))
        }));
    }
    wrong
}

/// Returns what is wrong with a dependency on a crate of the workspace.
fn inside(from: &str, layer_of_from: u8, to: &Dependency) -> Option<String> {
    let test_only = to.kind.as_deref() == Some("dev");
    let (to, features) = (to.name.as_str(), &to.features);
    if BESIDE.contains(&to) {
        if !test_only {
            return Some(format!("{to} may only be a dev-dependency"));
        }
        let high = layer_of_from <= PURE && features.iter().any(|feature| feature == FAKE);
        return high.then(|| {
            format!("the tests of layers 0 and 1 need nothing above them: without the feature {FAKE}")
        });
    }
    // Cargo permits a crate as a dev-dependency of itself, for its features.
    if from == to && test_only {
        return None;
    }
    if let Some((_, allowed)) = NARROW.iter().find(|(name, _)| *name == from)
        && !allowed.contains(&to)
    {
        return Some(format!("{from} may only use {}", allowed.join(", ")));
    }
    let layer_of_to = layer(to)?;
    if layer_of_to > layer_of_from {
        return Some(format!("an arrow from layer {layer_of_from} up to layer {layer_of_to}"));
    }
    let sideways = test_only && SIDEWAYS_IN_TESTS.contains(&(from, to));
    if layer_of_to == layer_of_from && !sideways {
        return Some(format!("both are in layer {layer_of_from}"));
    }
    None
}

/// Returns what is wrong with a dependency on a crate of the registry.
fn outside(from: &str, layer: u8, to: &Dependency) -> Option<String> {
    if layer > PURE || to.kind.is_some() || PURE_OUTSIDE.contains(&to.name.as_str()) {
        return None;
    }
    let besides = PURE_OUTSIDE_OF.iter().find(|(name, _)| *name == from);
    if besides.is_some_and(|(_, besides)| besides.contains(&to.name.as_str())) {
        return None;
    }
    Some(format!("layers 0 and 1 may only use {} from outside", PURE_OUTSIDE.join(", ")))
}

pub(crate) fn layer(name: &str) -> Option<u8> {
    LAYERS.iter().find(|(known, _)| *known == name).map(|(_, layer)| *layer)
}

fn is_ours(packages: &[Package], name: &str) -> bool {
    packages.iter().any(|package| package.name == name)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn package(name: &str, dependencies: Vec<Dependency>) -> Package {
        Package { name: name.to_owned(), manifest_path: PathBuf::new(), dependencies }
    }

    /// A workspace of all crates with one dependency: on `CRATE` or `CRATE+FEATURE`.
    fn with_edge(from: &str, to: &str, kind: Option<&str>) -> Vec<Package> {
        let names = LAYERS.iter().map(|(name, _)| *name).chain(BESIDE.iter().copied());
        let mut packages: Vec<Package> = names.map(|name| package(name, Vec::new())).collect();
        let (to, features) =
            to.split_once('+').map_or((to, Vec::new()), |(to, one)| (to, vec![one.to_owned()]));
        let edge = Dependency { name: to.to_owned(), features, kind: kind.map(str::to_owned) };
        packages.iter_mut().find(|package| package.name == from).unwrap().dependencies.push(edge);
        packages
    }

    #[track_caller]
    fn allowed(from: &str, to: &str, kind: Option<&str>) {
        assert_eq!(violations(&with_edge(from, to, kind)), Vec::<String>::new());
    }

    #[track_caller]
    fn refused(from: &str, to: &str, kind: Option<&str>, why: &str) {
        let wrong = violations(&with_edge(from, to, kind));
        assert_eq!(wrong.len(), 1, "{wrong:?}");
        assert!(wrong[0].contains(why) && wrong[0].contains(from), "{wrong:?}");
    }

    #[test]
    fn dependencies_are_in_lower_layers() {
        allowed("runtap", "runtap-wire", None);
        allowed("runtap-diag", "runtap-transport", None);
        refused("runtap-transport", "runtap-diag", None, "from layer 3 up to layer 5");
        refused("runtap-diag", "runtap-diag-server", None, "both are in layer 5");
        refused("runtap-wire", "runtap-nettrace", None, "from layer 0 up to layer 1");
        refused("runtap-nettrace", "runtap-clr", Some("dev"), "up to layer 4");
    }

    #[test]
    fn the_sides_of_a_protocol_may_use_each_other_in_tests() {
        for (from, to) in SIDEWAYS_IN_TESTS {
            allowed(from, to, Some("dev"));
            refused(from, to, None, "both are in layer");
            refused(to, from, Some("dev"), "both are in layer");
        }
    }

    #[test]
    fn interpretation_uses_no_session_and_a_sink_only_the_model() {
        allowed("runtap-clr", "runtap-nettrace", None);
        refused("runtap-clr", "runtap-diag", None, "may only use");
        refused("runtap-clr", "runtap-transport", None, "may only use");
        allowed("runtap-sinks", "runtap-model", None);
        refused("runtap-sinks", "runtap-clr", None, "may only use runtap-model");
        refused("runtap-model", "runtap-nettrace", None, "may only use");
    }

    #[test]
    fn crates_outside_the_layers_are_for_tests() {
        allowed("runtap-wire", "runtap-testkit", Some("dev"));
        allowed("runtap", "runtap-testkit+fake", Some("dev"));
        refused("runtap-wire", "runtap-testkit+fake", Some("dev"), "without the feature fake");
        refused("runtap", "runtap-testkit", None, "dev-dependency");
        refused("runtap", "xtask", Some("build"), "dev-dependency");
        allowed("xtask", "runtap", None);
        allowed("runtap-testkit", "runtap-diag", None);
    }

    #[test]
    fn the_lowest_layers_use_few_external_crates() {
        allowed("runtap-nettrace", "hashbrown", None);
        allowed("runtap-nettrace", "proptest", Some("dev"));
        refused("runtap-nettrace", "tokio", None, "layers 0 and 1 may only use thiserror");
        allowed("runtap-test", "toml", None);
        refused("runtap-test", "tokio", None, "layers 0 and 1 may only use thiserror");
        refused("runtap-nettrace", "serde", None, "layers 0 and 1 may only use thiserror");
        allowed("runtap-transport", "tokio", None);
    }

    #[test]
    fn a_crate_without_a_layer_is_reported() {
        let packages = vec![package("runtap-core", Vec::new())];
        let wrong = violations(&packages);
        assert!(wrong[0].starts_with("runtap-core has no layer"), "{wrong:?}");
    }
}
