//! Describes the contents of a program as a `CycloneDX` 1.5 document (<https://cyclonedx.org/docs/1.5/json/>), with the
//! fields that the standard and the minimum elements of an SBOM (NTIA, 2021) require. Build tools and macros, which are
//! not linked, are omitted.

use std::collections::{BTreeMap, BTreeSet};

use anyhow::{Context as _, Result, bail};
use serde_json::{Value, json};
use sha2::{Digest as _, Sha256};

use super::source::Source;
use xtask::graph::{Graph, Package};

/// SHA-256 checksums of the packages in a lock file, by name and version.
pub(super) type Checksums = BTreeMap<(String, String), String>;

/// Reads the checksums from a `Cargo.lock`, in which each field is on a line of its own.
pub(super) fn checksums(lock: &str) -> Checksums {
    let field = |part: &str, name: &str| {
        let line = part.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(" = "));
        line.map(|value| value.trim_matches('"').to_owned())
    };
    let packages = lock.split("[[package]]").skip(1);
    packages
        .filter_map(|part| {
            let key = (field(part, "name")?, field(part, "version")?);
            Some((key, field(part, "checksum")?))
        })
        .collect()
}

pub(super) fn document(source: &Source, target: &str, graph: &Graph, checksums: &Checksums) -> Value {
    let (program, others): (Vec<&Package>, Vec<&Package>) =
        graph.packages.iter().partition(|package| package.name == "runtap");
    let mut components: Vec<Value> = others.iter().map(|package| component(package, checksums)).collect();
    let beside = beside_crates(source, target);
    let mut dependencies: Vec<Value> = Vec::new();
    for package in &graph.packages {
        let mut on: Vec<String> = graph.uses(package).map(reference).collect();
        if program.iter().any(|it| it.id == package.id) {
            on.extend(beside.iter().filter_map(|it| it["bom-ref"].as_str()).map(str::to_owned));
        }
        dependencies.push(json!({ "ref": reference(package), "dependsOn": on }));
    }
    dependencies.extend(beside.iter().map(|it| json!({ "ref": it["bom-ref"], "dependsOn": [] })));
    components.extend(beside);
    let mut application = program.first().map_or(Value::Null, |package| component(package, checksums));
    application["type"] = json!("application");
    application["properties"] = json!([
        { "name": "runtap:commit", "value": source.commit },
        { "name": "runtap:target", "value": target },
        { "name": "runtap:compiler", "value": source.compiler },
    ]);
    json!({
        "$schema": "http://cyclonedx.org/schema/bom-1.5.schema.json",
        "bomFormat": "CycloneDX",
        "specVersion": "1.5",
        "serialNumber": serial_number(source, target),
        "version": 1,
        "metadata": {
            "timestamp": source.iso_time(),
            "tools": { "components": [{ "type": "application", "name": "xtask", "version": source.version }] },
            "supplier": { "name": "The runtap developers" },
            "component": application,
        },
        "components": components,
        "dependencies": dependencies,
    })
}

/// Returns components that are linked but are not packages: what the linker takes from the compiler and the system.
/// Their versions are those of the compiler, or of the distribution on which the release is built.
fn beside_crates(source: &Source, target: &str) -> Vec<Value> {
    let compiler = source.compiler.split(' ').nth(1).unwrap_or_default();
    let component = |name: &str, version: &str, license: &str, address: &str| {
        json!({
            "type": "library",
            "bom-ref": name,
            "name": name,
            "version": version,
            "purl": format!("pkg:generic/{name}@{version}"),
            "licenses": [{ "expression": license }],
            "externalReferences": [{ "type": "vcs", "url": address }],
        })
    };
    let mut all =
        vec![component("rust-std", compiler, "MIT OR Apache-2.0", "https://github.com/rust-lang/rust")];
    let gcc = || {
        let license = "GPL-3.0-or-later WITH GCC-exception-3.1";
        component("libgcc", &source.gcc, license, "https://gcc.gnu.org/git/gcc.git")
    };
    if target.ends_with("-musl") {
        let of_rust = format!("rust-{compiler}");
        all.push(component("musl", &of_rust, "MIT", "https://git.musl-libc.org/git/musl"));
        let license = "Apache-2.0 WITH LLVM-exception";
        all.push(component("libunwind", &of_rust, license, "https://github.com/llvm/llvm-project"));
    } else if target.contains("-windows-gnu") {
        all.push(gcc());
        all.push(component("mingw-w64", &source.mingw, "ZPL-2.1", "https://git.code.sf.net/p/mingw-w64"));
    } else if target.contains("-linux-gnu") {
        all.push(gcc());
        let address = "https://sourceware.org/git/glibc.git";
        all.push(component("glibc", &source.glibc, "LGPL-2.1-or-later", address));
    }
    all
}

fn component(package: &Package, checksums: &Checksums) -> Value {
    let mut component = json!({
        "type": "library",
        "bom-ref": reference(package),
        "name": package.name,
        "version": package.version,
        "purl": reference(package),
    });
    if let Some(license) = &package.license {
        // The separator that cargo used before SPDX expressions.
        component["licenses"] = json!([{ "expression": license.replace('/', " OR ") }]);
    }
    if let Some(sum) = checksums.get(&(package.name.clone(), package.version.clone())) {
        component["hashes"] = json!([{ "alg": "SHA-256", "content": sum }]);
    }
    if let Some(address) = &package.repository {
        component["externalReferences"] = json!([{ "type": "vcs", "url": address }]);
    }
    component
}

/// Returns the package URL, which is unique because cargo links at most one package of a name and version.
fn reference(package: &Package) -> String {
    format!("pkg:cargo/{}@{}", package.name, package.version)
}

/// Returns a serial number that depends only on the commit, the target and the compiler.
fn serial_number(source: &Source, target: &str) -> String {
    let seed = format!("{} {} {target} {}", source.version, source.commit, source.compiler);
    let hash: Vec<String> = Sha256::digest(seed).iter().map(|byte| format!("{byte:02x}")).collect();
    let digits = hash.concat();
    let part = |from: usize, to: usize| digits.get(from..to).unwrap_or_default().to_owned();
    // Version 8 (RFC 9562, section 5.8) leaves the other digits to the application.
    format!("urn:uuid:{}-{}-8{}-8{}-{}", part(0, 8), part(8, 12), part(13, 16), part(17, 20), part(20, 32))
}

/// Checks what the schema requires, and what is needed to look up vulnerabilities.
pub(super) fn validate(document: &Value) -> Result<()> {
    let fixed =
        [("/bomFormat", "CycloneDX"), ("/specVersion", "1.5"), ("/metadata/component/type", "application")];
    for (pointer, wanted) in fixed {
        if document.pointer(pointer).and_then(Value::as_str) != Some(wanted) {
            bail!("SBOM: {pointer} is not {wanted}");
        }
    }
    let components = document["components"].as_array().context("SBOM: no components")?;
    let mut references = BTreeSet::new();
    for component in components.iter().chain([&document["metadata"]["component"]]) {
        for field in ["type", "name", "version", "bom-ref", "purl"] {
            if component[field].as_str().is_none_or(str::is_empty) {
                bail!("SBOM: a component without {field}: {component}");
            }
        }
        if component["licenses"].as_array().is_none_or(Vec::is_empty) {
            bail!("SBOM: a component without a license: {component}");
        }
        if !references.insert(component["bom-ref"].as_str().unwrap_or_default()) {
            bail!("SBOM: duplicate component: {component}");
        }
    }
    let dependencies = document["dependencies"].as_array().context("SBOM: no dependencies")?;
    for dependency in dependencies {
        let on = dependency["dependsOn"].as_array().into_iter().flatten();
        for reference in on.chain([&dependency["ref"]]) {
            if !reference.as_str().is_some_and(|it| references.contains(it)) {
                bail!("SBOM: {reference} is used, but is not a component");
            }
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::dist::source;

    fn sample() -> Value {
        let lock = "[[package]]\nname = \"a\"\nversion = \"1.0.0\"\nchecksum = \"ab12\"\n\n[[package]]\nname = \"runtap\"\nversion = \"0.1.0\"\n";
        let metadata = serde_json::from_str(include_str!("../../../xtask/src/graph_sample.json")).unwrap();
        let graph = Graph::parse(metadata, None, |_| true).unwrap();
        document(&source::tests::sample(), "x86_64-unknown-linux-gnu", &graph, &checksums(lock))
    }

    #[test]
    fn each_target_has_its_c_library() {
        let names = |target: &str| {
            let all = beside_crates(&source::tests::sample(), target);
            all.iter().filter_map(|it| it["name"].as_str().map(str::to_owned)).collect::<Vec<_>>()
        };
        assert_eq!(names("aarch64-unknown-linux-musl"), ["rust-std", "musl", "libunwind"]);
        assert_eq!(names("x86_64-pc-windows-gnu"), ["rust-std", "libgcc", "mingw-w64"]);
    }

    #[test]
    fn it_contains_linked_packages_with_checksums_and_edges() {
        let document = sample();
        validate(&document).unwrap();
        let names: Vec<&str> =
            document["components"].as_array().unwrap().iter().filter_map(|it| it["name"].as_str()).collect();
        assert_eq!(names, ["a", "b", "runtap-wire", "rust-std", "libgcc", "glibc"]);
        assert_eq!(document["components"][0]["hashes"][0]["content"], "ab12");
        assert_eq!(document["components"][0]["licenses"][0]["expression"], "MIT OR Apache-2.0");
        let of_runtap = document["dependencies"]
            .as_array()
            .unwrap()
            .iter()
            .find(|it| it["ref"] == "pkg:cargo/runtap@0.1.0");
        assert_eq!(
            of_runtap.unwrap()["dependsOn"],
            json!(["pkg:cargo/b@2.0.0", "pkg:cargo/runtap-wire@0.1.0", "rust-std", "libgcc", "glibc"])
        );
        let serial = document["serialNumber"].as_str().unwrap();
        assert_eq!((serial.len(), serial.matches('-').count()), ("urn:uuid:".len() + 36, 4), "{serial}");
    }

    #[test]
    fn missing_fields_are_reported() {
        for (pointer, value) in [
            ("/components/0/version", json!("")),
            ("/components/0/licenses", json!([])),
            ("/components/0/bom-ref", json!("pkg:cargo/b@2.0.0")),
            ("/dependencies/0/ref", json!("pkg:cargo/none@1.0.0")),
            ("/specVersion", json!("1.4")),
        ] {
            let mut document = sample();
            *document.pointer_mut(pointer).unwrap() = value;
            assert!(validate(&document).is_err(), "{pointer}");
        }
    }
}
