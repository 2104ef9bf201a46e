//! The page about platforms, with the table of what ran under Wine.

use std::fs;

use anyhow::{Context as _, Result, bail};

use crate::workspace::Workspace;

const PAGE: &str = "docs/platforms.md";
const FIRST: &str = "<!-- written by `cargo xtask wine` -->\n";
const LAST: &str = "<!-- end -->\n";

/// Writes the table to the page.
pub(super) fn write(ws: &Workspace, table: &str) -> Result<()> {
    let new = with(&read(ws)?, table)?;
    fs::write(ws.root().join(PAGE), new).with_context(|| format!("cannot write {PAGE}"))
}

/// Whether the page has this table.
pub(super) fn check(ws: &Workspace, table: &str) -> Result<()> {
    let page = read(ws)?;
    if with(&page, table)? != page {
        bail!("{PAGE} does not say what was run: `cargo xtask wine` writes it");
    }
    Ok(())
}

fn read(ws: &Workspace) -> Result<String> {
    fs::read_to_string(ws.root().join(PAGE)).with_context(|| format!("cannot read {PAGE}"))
}

fn with(page: &str, table: &str) -> Result<String> {
    insert(page, table).with_context(|| format!("{PAGE} has no place for the table"))
}

fn insert(page: &str, table: &str) -> Option<String> {
    let (before, rest) = page.split_once(FIRST)?;
    let (_, after) = rest.split_once(LAST)?;
    Some(format!("{before}{FIRST}\n{table}\n{LAST}{after}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_table_replaces_the_one_before() {
        let page = format!("a\n{FIRST}old\n{LAST}b\n");
        let new = insert(&page, "new\n").unwrap();
        assert_eq!(new, format!("a\n{FIRST}\nnew\n\n{LAST}b\n"));
        assert_eq!(insert(&new, "new\n").unwrap(), new);
        assert_eq!(insert("a\n", "new\n"), None);
    }
}
