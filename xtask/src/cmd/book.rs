//! `cargo xtask book`: builds the user guide with mdBook from `docs/` to `target/book`, after checking links.
//!
//! Every page of `docs/` must be in `docs/SUMMARY.md` exactly once, and every link in a Markdown file of the repository
//! must lead to an existing file and heading. Links from pages to files outside of `docs/` are changed to links to the
//! repository while building (`--preprocess`, called by mdBook; `book.toml`). Links to other sites are not checked.

mod links;
mod outside;
mod page;

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

use anyhow::{Context as _, Result, bail};

use crate::args::Args;
use crate::output;
use crate::process;
use crate::step::Outcome;
use crate::workspace::Workspace;

/// The tool that `.ci/run book` installs.
const MDBOOK: &str = "mdbook";
const HOW: &str =
    "mdbook is not installed (cargo install --locked mdbook --no-default-features --features search)";
const SUMMARY: &str = "docs/SUMMARY.md";

pub(crate) fn command(ws: &Workspace, args: &Args) -> Result<()> {
    if args.has("--preprocess") {
        return outside::preprocess(ws);
    }
    check_links(ws)?;
    if args.has("--check") {
        return Ok(());
    }
    match build(ws)? {
        Outcome::Skipped(why) => bail!("{why}"),
        _ => Ok(()),
    }
}

/// The step of `cargo xtask ci`, which only checks links, because building mdBook takes longer than all other installed
/// tools.
pub(crate) fn check(ws: &Workspace) -> Result<Outcome> {
    check_links(ws)?;
    Ok(Outcome::Passed)
}

fn build(ws: &Workspace) -> Result<Outcome> {
    if process::find(ws.root(), MDBOOK).is_none() {
        return Ok(Outcome::Skipped(HOW.to_owned()));
    }
    let place = ws.target().join("book");
    ws.tool(MDBOOK).args(&["build", "--dest-dir"]).arg(&place).run()?;
    output::note(&place.join("index.html").display().to_string());
    Ok(Outcome::Passed)
}

fn check_links(ws: &Workspace) -> Result<()> {
    let files = ws.files(&["*.md"])?;
    let files: Vec<&str> = files.iter().map(String::as_str).collect();
    let summary =
        fs::read_to_string(ws.root().join(SUMMARY)).with_context(|| format!("cannot read {SUMMARY}"))?;
    let mut wrong = summary_errors(&summary, &files);
    wrong.extend(links::errors(ws.root(), &files)?);
    for line in &wrong {
        output::note(line);
    }
    if !wrong.is_empty() {
        bail!("found {} wrong links or pages", wrong.len());
    }
    output::note(&format!("{} files without broken links", files.len()));
    Ok(())
}

/// Returns errors for pages of `docs/` that are missing in the summary or listed twice.
fn summary_errors(summary: &str, files: &[&str]) -> Vec<String> {
    let mut seen = BTreeSet::new();
    let mut wrong = Vec::new();
    for link in page::links(summary) {
        if !seen.insert(link.address.clone()) {
            wrong.push(format!("{SUMMARY}: {} is listed twice", link.address));
        }
    }
    for file in files {
        let Some(inner) = file.strip_prefix("docs/") else { continue };
        if inner != "SUMMARY.md" && !seen.contains(inner) && Path::new(inner).extension().is_some() {
            wrong.push(format!("{SUMMARY}: {inner} is missing"));
        }
    }
    wrong
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_summary_has_every_page_once() {
        let files = ["README.md", "docs/README.md", "docs/SUMMARY.md", "docs/a.md", "docs/design/b.md"];
        let summary = "# Summary\n\n[Start](README.md)\n\n- [A](a.md)\n  - [B](design/b.md)\n";
        assert_eq!(summary_errors(summary, &files), Vec::<String>::new());
        let twice = summary.replace("a.md", "design/b.md");
        let wrong = summary_errors(&twice, &files);
        assert_eq!(
            wrong,
            ["docs/SUMMARY.md: design/b.md is listed twice", "docs/SUMMARY.md: a.md is missing"]
        );
    }
}
