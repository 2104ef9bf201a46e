//! Makes the manual of `runtap.exe` from that of the program for this machine, by removing the verbs that Windows does
//! not have, according to `crates/runtap/src/cli/missing.rs`. The program is not run, so that releases do not depend on
//! whether Wine is installed.

use std::fs;
use std::path::Path;

use anyhow::{Context as _, Result};

use super::contents;
use xtask::workspace::Workspace;

const MISSING: &str = "crates/runtap/src/cli/missing.rs";

/// Removes the pages of verbs that are missing on Windows, and mentions of them, from `man`.
pub(super) fn without_missing_verbs(ws: &Workspace, man: &Path) -> Result<()> {
    let source = ws.root().join(MISSING);
    // Without this file, Windows has all verbs.
    let missing = if source.is_file() { verbs(&fs::read_to_string(&source)?) } else { Vec::new() };
    for verb in &missing {
        for page in contents::files(man)? {
            let name = page.to_string_lossy();
            if name == format!("runtap-{verb}.1") || name.starts_with(&format!("runtap-{verb}-")) {
                fs::remove_file(man.join(&page)).with_context(|| format!("cannot remove {name}"))?;
            }
        }
    }
    let first = man.join("runtap.1");
    let text = fs::read_to_string(&first).context("cannot read the manual's first page")?;
    contents::write(&first, without_mentions(&text, &missing))
}

/// Returns the names of an enum's variants as clap derives them, or as specified by attributes.
fn verbs(source: &str) -> Vec<String> {
    let body = source.split_once("enum Missing {").map_or("", |(_, rest)| rest);
    let body = body.split_once("\n}").map_or(body, |(body, _)| body);
    let mut named = None;
    let mut verbs = Vec::new();
    for line in body.lines().map(str::trim) {
        if let Some((_, rest)) = line.split_once("name = \"") {
            named = rest.split_once('"').map(|(name, _)| name.to_owned());
        } else if let Some((variant, _)) = line.split_once('(').filter(|_| !line.starts_with(['#', '/'])) {
            verbs.push(named.take().unwrap_or_else(|| kebab(variant)));
        }
    }
    verbs
}

fn kebab(variant: &str) -> String {
    let mut name = String::new();
    for letter in variant.chars() {
        if letter.is_uppercase() && !name.is_empty() {
            name.push('-');
        }
        name.extend(letter.to_lowercase());
    }
    name
}

/// Removes entries from the list of verbs. An entry consists of `.TP`, the name of its page, and a description.
fn without_mentions(page: &str, missing: &[String]) -> String {
    let is_missing = |paragraph: &str| {
        let first = paragraph.lines().next().unwrap_or_default().replace('\\', "");
        missing.iter().any(|verb| first == format!("runtap-{verb}(1)"))
    };
    let mut kept = String::new();
    for (index, paragraph) in page.split(".TP\n").enumerate() {
        if index > 0 && is_missing(paragraph) {
            // The text after the list belongs to the last paragraph.
            if let Some((_, rest)) = paragraph.split_once("\n.SH ") {
                kept.push_str(".SH ");
                kept.push_str(rest);
            }
            continue;
        }
        if index > 0 {
            kept.push_str(".TP\n");
        }
        kept.push_str(paragraph);
    }
    kept
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn missing_verbs_are_read_from_the_program() {
        let source = "pub(crate) enum Missing {\n    /// Write (a) dump\n    #[command(hide = true)]\n    Dump(Words),\n    \
                      #[command(hide = true, name = \"perfmap\")]\n    PerfMap(Words),\n    SetAll(Words),\n}\n\nstruct X(u8);\n";
        assert_eq!(verbs(source), ["dump", "perfmap", "set-all"]);
        assert!(verbs("").is_empty());
    }

    #[test]
    fn only_their_paragraphs_are_removed() {
        let page = ".SH NAME\nx\n.SH SUBCOMMANDS\n.TP\nruntap\\-ps(1)\nList\n.TP\nruntap\\-dump(1)\nWrite\n.TP\n\
                    runtap\\-jvm(1)\nTrace\n.SH VERSION\nv1\n";
        let missing = ["dump".to_owned(), "jvm".to_owned()];
        let expected = ".SH NAME\nx\n.SH SUBCOMMANDS\n.TP\nruntap\\-ps(1)\nList\n.SH VERSION\nv1\n";
        assert_eq!(without_mentions(page, &missing), expected);
        assert_eq!(without_mentions(page, &[]), page);
    }
}
