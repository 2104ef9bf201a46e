//! Uses `cargo metadata` to find the packages that are linked into `runtap` and into the embedded JVM agent for one
//! target. Build tools, macros and packages used only by tests are excluded. `licenses` checks their licences, `dist`
//! lists them.

use std::collections::BTreeSet;

use anyhow::{Context as _, Result};
use serde::Deserialize;
use serde_json::Value;

use crate::workspace::Workspace;

/// The package of the JVM agent.
const AGENT: &str = "runtap-jvm-agent";

/// A linked package.
#[derive(Clone, Debug, Deserialize)]
pub struct Package {
    /// The id in the metadata.
    pub id: String,
    /// The package's name.
    pub name: String,
    /// The package's version.
    pub version: String,
    /// The license expression.
    pub license: Option<String>,
    /// `None` for packages of this workspace.
    pub source: Option<String>,
    /// The address of the source code.
    pub repository: Option<String>,
    /// The path of `Cargo.toml`.
    pub manifest_path: String,
    targets: Vec<Target>,
}

#[derive(Clone, Debug, Deserialize)]
struct Target {
    kind: Vec<String>,
}

#[derive(Debug, Deserialize)]
struct Node {
    id: String,
    deps: Vec<Edge>,
}

#[derive(Debug, Deserialize)]
struct Edge {
    pkg: String,
    dep_kinds: Vec<EdgeKind>,
}

#[derive(Debug, Deserialize)]
struct EdgeKind {
    /// `None` for an ordinary dependency, otherwise `dev` or `build`.
    kind: Option<String>,
}

/// Packages and their dependencies.
#[derive(Debug)]
pub struct Graph {
    /// Sorted by name and version; contains `runtap` and the libraries of this workspace.
    pub packages: Vec<Package>,
    edges: Vec<(String, String)>,
}

impl Graph {
    /// The packages that are linked into `runtap` for `target`.
    pub fn of(ws: &Workspace, target: &str) -> Result<Self> {
        let cargo = ws.cargo(&["metadata", "--format-version", "1", "--locked"]);
        let text = cargo.args(&["--filter-platform", target]).quiet().capture()?;
        let metadata = serde_json::from_str(&text).context("cargo metadata printed no JSON")?;
        // On other targets the program does not embed an agent.
        let carried = target.contains("-linux-").then_some(AGENT);
        let programs = ["runtap"].into_iter().chain(carried).flat_map(|name| ["--package", name]);
        let tree =
            ws.cargo(&["tree", "--locked", "--edges", "normal", "--prefix", "none", "--target", target]);
        let tree = tree.args(&programs.collect::<Vec<_>>()).quiet().capture()?;
        // Each line is "name vVERSION" and more. The metadata also contain what only the features of tests need.
        let lines = tree.lines().filter_map(|line| line.split_once(" v"));
        let version = |rest: &'_ str| rest.split(' ').next().unwrap_or_default().to_owned();
        let linked: BTreeSet<_> = lines.map(|(name, rest)| (name.to_owned(), version(rest))).collect();
        Self::parse(metadata, carried, |package| {
            linked.contains(&(package.name.clone(), package.version.clone()))
        })
    }

    /// Reads the output of `cargo metadata`. `carried` is a separate file that is embedded in the program and includes its
    /// own dependencies.
    pub fn parse(
        mut metadata: Value,
        carried: Option<&str>,
        is_needed: impl Fn(&Package) -> bool,
    ) -> Result<Self> {
        let all: Vec<Package> = serde_json::from_value(metadata["packages"].take())?;
        let nodes: Vec<Node> = serde_json::from_value(metadata["resolve"]["nodes"].take())?;
        let package = |id: &str| all.iter().find(|package| package.id == id);
        let is_linked = |id: &str| {
            let is_macro = |it: &Target| it.kind.iter().any(|kind| kind == "proc-macro");
            package(id).is_some_and(|package| !package.targets.iter().any(is_macro) && is_needed(package))
        };
        let named = |name: &str| {
            let found = all.iter().find(|package| package.name == name);
            found.with_context(|| format!("there is no {name}"))
        };
        let root = named("runtap")?;
        let mut seen = BTreeSet::new();
        let mut edges = Vec::new();
        let mut open = vec![root.id.as_str()];
        if let Some(carried) = carried {
            let carried = named(carried)?;
            edges.push((root.id.clone(), carried.id.clone()));
            open.push(&carried.id);
        }
        while let Some(id) = open.pop() {
            if !seen.insert(id.to_owned()) {
                continue;
            }
            let uses = nodes.iter().filter(|node| node.id == id).flat_map(|node| &node.deps);
            let ordinary = uses.filter(|edge| edge.dep_kinds.iter().any(|it| it.kind.is_none()));
            for edge in ordinary.filter(|edge| is_linked(&edge.pkg)) {
                edges.push((id.to_owned(), edge.pkg.clone()));
                open.push(&edge.pkg);
            }
        }
        let mut packages: Vec<Package> =
            all.into_iter().filter(|package| seen.contains(&package.id)).collect();
        packages.sort_by(|a, b| (&a.name, &a.version).cmp(&(&b.name, &b.version)));
        Ok(Self { packages, edges })
    }

    /// The dependencies of a package, in the order of [`packages`](Self::packages).
    pub fn uses<'a>(&'a self, package: &'a Package) -> impl Iterator<Item = &'a Package> {
        self.packages
            .iter()
            .filter(move |other| self.edges.iter().any(|(from, to)| *from == package.id && *to == other.id))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_is_linked_is_in_it() {
        let metadata = serde_json::from_str(include_str!("graph_sample.json")).unwrap();
        let graph = Graph::parse(metadata, None, |_| true).unwrap();
        let names: Vec<&str> = graph.packages.iter().map(|package| package.name.as_str()).collect();
        assert_eq!(names, ["a", "b", "runtap", "runtap-wire"]);
        let root = graph.packages.iter().find(|package| package.name == "runtap").unwrap();
        let uses: Vec<&str> = graph.uses(root).map(|package| package.name.as_str()).collect();
        assert_eq!(uses, ["b", "runtap-wire"]);
    }
}
