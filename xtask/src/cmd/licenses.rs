//! `cargo xtask licenses`: writes the list behind `runtap licenses` (`crates/runtap/licenses.txt`) with the licenses of
//! everything that is linked into the binary. `--check` fails if the list does not match Cargo.lock.
//!
//! Chooses a license if several are offered. Crates are read where cargo unpacked them, for all released systems; what
//! is in no lock file (the standard library, the C library) is in [`OTHERS`]. A license that is not in [`KNOWN`], and a
//! crate without its text, are errors.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::fs;
use std::path::Path;

use anyhow::{Context as _, Result, bail};

use crate::args::Args;
use crate::graph::{Graph, Package};
use crate::output;
use crate::step::Outcome;
use crate::workspace::Workspace;

const LIST: &str = "crates/runtap/licenses.txt";

/// The released targets.
const TARGETS: [&str; 3] =
    ["x86_64-unknown-linux-gnu", "aarch64-unknown-linux-musl", "x86_64-pc-windows-gnu"];

/// Permitted licenses in order of preference: the identifier, and words of its text.
const KNOWN: &[(&str, &str)] = &[
    ("MIT", "Permission is hereby granted, free of charge"),
    ("Zlib", "without any express or implied warranty"),
    ("BSD-2-Clause", "Redistributions in binary form"),
    ("BSD-3-Clause", "Redistributions in binary form"),
    ("ISC", "Permission to use, copy, modify"),
    ("Apache-2.0", "Apache License"),
    ("Unicode-3.0", "UNICODE LICENSE V3"),
    ("CDDL-1.0", "COMMON DEVELOPMENT AND DISTRIBUTION LICENSE"),
];

/// Linked software besides crates: name, version, repository, license, and paths of the texts in the workspace.
const OTHERS: &[(&str, &str, &str, &str, &[&str])] = &[
    (
        "runtap",
        env!("CARGO_PKG_VERSION"),
        env!("CARGO_PKG_REPOSITORY"),
        "MIT OR Apache-2.0",
        &["LICENSE-MIT", "LICENSE-APACHE"],
    ),
    (
        "the Rust standard library, with addr2line, adler2, cfg-if, compiler_builtins, gimli, hashbrown, libc, memchr, \
         miniz_oxide, object and rustc-demangle",
        "",
        "https://github.com/rust-lang/rust",
        "Apache-2.0 OR MIT; tables of Unicode: Unicode-3.0",
        &["LICENSE-APACHE", "xtask/licenses/Unicode-3.0.txt"],
    ),
    (
        "the GNU C library (in files for GNU/Linux; they can be linked anew from the sources of runtap)",
        "",
        "https://sourceware.org/glibc/",
        "LGPL-2.1-or-later",
        &["xtask/licenses/LGPL-2.1.txt"],
    ),
    ("musl (in files for Linux with musl)", "", "https://musl.libc.org", "MIT", &["xtask/licenses/musl.txt"]),
    (
        "libgcc (in files for GNU/Linux and for Windows)",
        "",
        "https://gcc.gnu.org",
        "GPL-3.0-or-later WITH GCC-exception-3.1",
        &["xtask/licenses/GCC-exception-3.1.txt"],
    ),
    (
        "libunwind of LLVM (in files for Linux with musl)",
        "",
        "https://github.com/llvm/llvm-project",
        "Apache-2.0 WITH LLVM-exception",
        &["LICENSE-APACHE", "xtask/licenses/LLVM-exception.txt"],
    ),
    (
        "the runtime of mingw-w64 (in files for Windows)",
        "",
        "https://www.mingw-w64.org",
        "ZPL-2.1",
        &["xtask/licenses/mingw-w64.txt"],
    ),
];

pub(crate) fn command(ws: &Workspace, args: &Args) -> Result<()> {
    if args.has("--check") {
        check(ws)?;
        return Ok(());
    }
    fs::write(ws.root().join(LIST), list(ws)?).with_context(|| format!("cannot write {LIST}"))
}

pub(crate) fn check(ws: &Workspace) -> Result<Outcome> {
    let wanted = list(ws)?;
    let there = fs::read_to_string(ws.root().join(LIST)).with_context(|| format!("cannot read {LIST}"))?;
    let lines = |text: &str| text.lines().map(str::to_owned).collect::<BTreeSet<String>>();
    let (wanted_lines, there_lines) = (lines(&wanted), lines(&there));
    for (sign, line) in there_lines
        .difference(&wanted_lines)
        .map(|line| ('-', line))
        .chain(wanted_lines.difference(&there_lines).map(|line| ('+', line)))
    {
        output::note(&format!("{sign} {line}"));
    }
    if wanted != there {
        bail!("{LIST} does not match Cargo.lock: run `cargo xtask licenses`");
    }
    Ok(Outcome::Passed)
}

/// Returns the list: a line for each package (name, version, repository, license, numbers of texts, separated by tabs),
/// then the texts, each after a line `%%%% NUMBER`.
fn list(ws: &Workspace) -> Result<String> {
    let mut texts = Texts::default();
    let mut table = String::new();
    for (name, version, repository, license, files) in OTHERS {
        let mut numbers = Vec::new();
        for file in *files {
            numbers.push(texts.number(&read(&ws.root().join(file))?));
        }
        row(&mut table, [name, version, repository, license], &numbers)?;
    }
    for package in linked(ws)? {
        let license =
            package.license.as_deref().with_context(|| format!("{} names no licence", package.name))?;
        let taken = take(license).with_context(|| format!("{}: {license}", package.name))?;
        let folder = Path::new(&package.manifest_path).parent().context("a manifest lies in a folder")?;
        let text = text_of(folder, taken).with_context(|| format!("{} {}", package.name, package.version))?;
        let repository = package.repository.as_deref().unwrap_or_default();
        row(&mut table, [&package.name, &package.version, repository, license], &[texts.number(&text)])?;
    }
    for (index, text) in texts.0.iter().enumerate() {
        write!(table, "%%%% {}\n{text}", index + 1)?;
    }
    Ok(table)
}

fn row(table: &mut String, columns: [&str; 4], numbers: &[usize]) -> Result<()> {
    let numbers: Vec<String> = numbers.iter().map(ToString::to_string).collect();
    Ok(writeln!(table, "{}\t{}", columns.join("\t"), numbers.join(" "))?)
}

/// Returns the crates that are linked into `runtap` on any released system, sorted. The crates of the workspace count
/// as one package.
fn linked(ws: &Workspace) -> Result<Vec<Package>> {
    let mut all = BTreeMap::new();
    for target in TARGETS {
        let packages = Graph::of(ws, target)?.packages;
        let others = packages.into_iter().filter(|package| package.source.is_some());
        all.extend(others.map(|package| ((package.name.clone(), package.version.clone()), package)));
    }
    Ok(all.into_values().collect())
}

/// Chooses a license from an expression.
fn take(license: &str) -> Result<&'static str> {
    let offered: Vec<&str> = license.split(" OR ").flat_map(|part| part.split('/')).collect();
    let taken = KNOWN.iter().find(|(id, _)| offered.contains(id));
    taken.map(|(id, _)| *id).context("no licence of it is known: extend KNOWN in xtask/src/cmd/licenses.rs")
}

/// Returns the text of a license in the folder of a crate: in a file with such a name, or in `LICENSES` (reuse.software).
fn text_of(folder: &Path, id: &str) -> Result<String> {
    let words = KNOWN.iter().find(|(known, _)| *known == id).map_or("", |(_, words)| words);
    let reuse = folder.join(format!("LICENSES/{id}.txt"));
    if reuse.is_file() {
        return read(&reuse);
    }
    let mut files: Vec<_> = fs::read_dir(folder)?.collect::<Result<_, _>>()?;
    files.sort_by_key(fs::DirEntry::file_name);
    for file in files {
        let name = file.file_name().to_string_lossy().to_uppercase();
        let other = name.contains("LLVM") || !(name.starts_with("LICEN") || name.starts_with("COPYING"));
        if other || !file.path().is_file() {
            continue;
        }
        let text = read(&file.path())?;
        if text.split_whitespace().collect::<Vec<_>>().join(" ").contains(words) {
            return Ok(text);
        }
    }
    bail!("no text of {id} found")
}

/// Reads a file without trailing blanks, and with one line break at the end.
fn read(path: &Path) -> Result<String> {
    let text = fs::read_to_string(path).with_context(|| format!("cannot read {}", path.display()))?;
    let lines: Vec<&str> = text.lines().map(str::trim_end).collect();
    Ok(format!("{}\n", lines.join("\n").trim_matches('\n')))
}

/// Texts that differ in more than blanks, in the order in which they were added.
#[derive(Debug, Default)]
struct Texts(Vec<String>);

impl Texts {
    fn number(&mut self, text: &str) -> usize {
        let same = |other: &String| other.split_whitespace().eq(text.split_whitespace());
        let index = self.0.iter().position(same).unwrap_or_else(|| {
            self.0.push(text.to_owned());
            self.0.len() - 1
        });
        index + 1
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_simplest_of_several_licenses_is_chosen() {
        for (license, taken) in [
            ("MIT", "MIT"),
            ("Apache-2.0 OR MIT", "MIT"),
            ("MIT/Apache-2.0", "MIT"),
            ("Apache-2.0 WITH LLVM-exception OR Apache-2.0 OR MIT", "MIT"),
            ("Unlicense OR Apache-2.0", "Apache-2.0"),
        ] {
            assert_eq!(take(license).unwrap(), taken, "{license}");
        }
        for license in ["GPL-3.0-only", "(MIT OR Apache-2.0) AND Unicode-3.0", "MIT AND ISC", ""] {
            assert!(take(license).is_err(), "{license}");
        }
    }

    #[test]
    fn texts_are_kept_once() {
        let mut texts = Texts::default();
        assert_eq!(texts.number("a b\n"), 1);
        assert_eq!(texts.number("a\nc\n"), 2);
        assert_eq!(texts.number(" a\nb\n"), 1);
        assert_eq!(texts.0.len(), 2);
    }

    #[test]
    fn a_license_is_found_by_its_words() {
        let folder = tempfile::tempdir().unwrap();
        let write = |name: &str, text: &str| fs::write(folder.path().join(name), text).unwrap();
        write("LICENSE-APACHE", "Apache License \nx\n");
        assert!(text_of(folder.path(), "MIT").is_err());
        write("license.md", "\n\nPermission is hereby granted,\r\n  free of charge \n\n\n");
        assert_eq!(
            text_of(folder.path(), "MIT").unwrap(),
            "Permission is hereby granted,\n  free of charge\n"
        );
        assert_eq!(text_of(folder.path(), "Apache-2.0").unwrap(), "Apache License\nx\n");
    }
}
