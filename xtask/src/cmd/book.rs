//! `cargo xtask book`: the user guide, built by mdBook from `docs/` to `target/book`, after its links were checked.
//!
//! Owns: what a page must satisfy: every page of `docs/` is in `docs/SUMMARY.md`, once, and every link in a Markdown file of
//! the repository leads to a file, and to a heading of it, that is there. Links of pages to files outside of `docs/` become
//! links to the repository while the book is made (`--preprocess`, which mdBook calls; `book.toml`).
//! Refuses to: look at links to other sites, which nobody here decides on.

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

/// The tool, as `.ci/run book` installs it.
const MDBOOK: &str = "mdbook";
const HOW: &str =
    "mdbook is not there (cargo install --locked mdbook --no-default-features --features search)";
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

/// The step of `cargo xtask ci`: the links. mdBook takes longer to build than everything else that the checks install.
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
    let files = ws.tool("git").args(&["ls-files", "-co", "--exclude-standard", "*.md"]).quiet().capture()?;
    // A file that is removed and not yet committed is listed too.
    let files: Vec<&str> = files.lines().filter(|file| ws.root().join(file).is_file()).collect();
    let summary =
        fs::read_to_string(ws.root().join(SUMMARY)).with_context(|| format!("cannot read {SUMMARY}"))?;
    let mut wrong = summary_errors(&summary, &files);
    wrong.extend(links::errors(ws.root(), &files)?);
    for line in &wrong {
        output::note(line);
    }
    if !wrong.is_empty() {
        bail!("{} links or pages are wrong", wrong.len());
    }
    output::note(&format!("{} files: every link leads somewhere", files.len()));
    Ok(())
}

/// Pages of `docs/` that the summary lacks, or has more than once.
fn summary_errors(summary: &str, files: &[&str]) -> Vec<String> {
    let mut seen = BTreeSet::new();
    let mut wrong = Vec::new();
    for link in page::links(summary) {
        if !seen.insert(link.address.clone()) {
            wrong.push(format!("{SUMMARY}: {} is there twice", link.address));
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
            ["docs/SUMMARY.md: design/b.md is there twice", "docs/SUMMARY.md: a.md is missing"]
        );
    }
}
