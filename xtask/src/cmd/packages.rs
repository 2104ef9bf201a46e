//! `cargo xtask packages`: checks that every crate can be published and has a useful page on docs.rs: its metadata, and
//! that cargo can package all crates. Nothing is published or compiled, and no registry is contacted.

use std::fs;
use std::path::Path;

use anyhow::{Context as _, Result, bail};
use serde::Deserialize;

use crate::args::Args;
use crate::output;
use crate::step::Outcome;
use crate::workspace::Workspace;

/// Permitted lengths of a description in characters.
const DESCRIPTION: std::ops::RangeInclusive<usize> = 20..=300;

#[derive(Debug, Deserialize)]
struct Package {
    name: String,
    description: Option<String>,
    documentation: Option<String>,
    license: Option<String>,
    repository: Option<String>,
    rust_version: Option<String>,
    readme: Option<String>,
    /// Empty if the crate is not published.
    publish: Option<Vec<String>>,
    targets: Vec<Target>,
}

#[derive(Debug, Deserialize)]
struct Target {
    kind: Vec<String>,
    src_path: String,
}

pub(crate) fn command(ws: &Workspace, _: &Args) -> Result<()> {
    check(ws)?;
    Ok(())
}

pub(crate) fn check(ws: &Workspace) -> Result<Outcome> {
    let mut metadata = ws.metadata(&ws.root().join("Cargo.toml"))?;
    let all: Vec<Package> = serde_json::from_value(metadata["packages"].take())?;
    let (own, published): (Vec<Package>, Vec<Package>) =
        all.into_iter().partition(|package| package.publish.as_ref().is_some_and(Vec::is_empty));
    let mut wrong = Vec::new();
    for package in &published {
        let library =
            package.targets.iter().find(|target| target.kind.iter().any(|kind| kind.ends_with("lib")));
        let docs = library.map(|target| read(Path::new(&target.src_path))).transpose()?;
        wrong.extend(
            errors(package, docs.as_deref()).into_iter().map(|why| format!("{}: {why}", package.name)),
        );
    }
    for line in &wrong {
        output::note(line);
    }
    if !wrong.is_empty() {
        bail!("found {} crates or fields that cannot be published", wrong.len());
    }
    let mut cargo =
        ws.cargo(&["package", "--workspace", "--no-verify", "--offline", "--allow-dirty", "--quiet"]);
    for package in &own {
        cargo = cargo.args(&["--exclude", &package.name]);
    }
    // A separate folder, to avoid waiting for cargo's lock.
    let place = ws.target().join("packages");
    cargo.arg("--target-dir").arg(&place).quiet().run()?;
    fs::remove_dir_all(&place).with_context(|| format!("cannot remove {}", place.display()))?;
    output::note(&format!("{} crates can be packaged, {} are not published", published.len(), own.len()));
    Ok(Outcome::Passed)
}

fn read(path: &Path) -> Result<String> {
    fs::read_to_string(path).with_context(|| format!("cannot read {}", path.display()))
}

/// Returns errors in the metadata of a crate, and in the docs of its library, if it has one.
fn errors(package: &Package, library: Option<&str>) -> Vec<String> {
    let mut errors = Vec::new();
    let description = package.description.as_deref().unwrap_or_default();
    if !DESCRIPTION.contains(&description.len()) || description.ends_with('.') {
        errors.push(format!("the description is not a sentence without a full stop: {description:?}"));
    }
    for (field, value) in [
        ("license", &package.license),
        ("repository", &package.repository),
        ("rust-version", &package.rust_version),
    ] {
        if value.as_deref().is_none_or(str::is_empty) {
            errors.push(format!("no {field}"));
        }
    }
    match library {
        Some(text) => {
            let page = format!("https://docs.rs/{}", package.name);
            if package.documentation.as_ref() != Some(&page) {
                errors.push(format!("documentation is not {page:?}"));
            }
            if text.lines().take_while(|line| line.starts_with("//!")).count() < 2 {
                errors.push("the docs of the crate are shorter than two lines".to_owned());
            }
        }
        None if package.readme.is_none() => errors.push("a program without a readme".to_owned()),
        None => {}
    }
    errors
}

#[cfg(test)]
mod tests {
    use super::*;

    fn package(json: serde_json::Value) -> Package {
        serde_json::from_value(json).unwrap()
    }

    fn complete() -> serde_json::Value {
        serde_json::json!({
            "name": "x", "description": "Reads what has to be read", "documentation": "https://docs.rs/x",
            "license": "MIT", "repository": "https://example.org", "rust_version": "1.95", "readme": null,
            "publish": null, "targets": []
        })
    }

    #[test]
    fn missing_fields_are_reported() {
        let docs = "//! One.\n//!\n//! Two.\n";
        assert_eq!(errors(&package(complete()), Some(docs)), Vec::<String>::new());
        assert_eq!(errors(&package(complete()), None), ["a program without a readme"]);
        for field in ["description", "documentation", "license", "repository", "rust_version"] {
            let mut some = complete();
            some[field] = serde_json::Value::Null;
            assert_eq!(errors(&package(some), Some(docs)).len(), 1, "{field}");
        }
        assert_eq!(errors(&package(complete()), Some("//! One.\n\nuse x;\n")).len(), 1);
    }
}
