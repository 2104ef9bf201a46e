//! The page about platforms with the tables of what ran. Each is between a marker that names the command that writes it
//! and an end marker.

use std::fs;

use anyhow::{Context as _, Result, bail};

use xtask::workspace::Workspace;

const PAGE: &str = "docs/platforms.md";
const LAST: &str = "<!-- end -->\n";

/// Writes the table of `cargo xtask COMMAND` to the page.
pub(crate) fn write(ws: &Workspace, command: &str, table: &str) -> Result<()> {
    let new = with(&read(ws)?, command, table)?;
    fs::write(ws.root().join(PAGE), new).with_context(|| format!("cannot write {PAGE}"))
}

/// Checks that the page contains this table.
pub(crate) fn check(ws: &Workspace, command: &str, table: &str) -> Result<()> {
    let page = read(ws)?;
    if with(&page, command, table)? != page {
        bail!("{PAGE} is out of date; `cargo xtask {command}` updates it");
    }
    Ok(())
}

fn read(ws: &Workspace) -> Result<String> {
    fs::read_to_string(ws.root().join(PAGE)).with_context(|| format!("cannot read {PAGE}"))
}

fn with(page: &str, command: &str, table: &str) -> Result<String> {
    let place = || format!("{PAGE} has no place for the table of `cargo xtask {command}`");
    insert(page, &first(command), table).with_context(place)
}

fn first(command: &str) -> String {
    format!("<!-- written by `cargo xtask {command}` -->\n")
}

fn insert(page: &str, first: &str, table: &str) -> Option<String> {
    let (before, rest) = page.split_once(first)?;
    let (_, after) = rest.split_once(LAST)?;
    Some(format!("{before}{first}\n{table}\n{LAST}{after}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_table_replaces_the_previous_one_of_the_same_command() {
        let [one, two] = ["one", "two"].map(first);
        let page = format!("a\n{one}old\n{LAST}b\n{two}old\n{LAST}c\n");
        let new = insert(&page, &two, "new\n").unwrap();
        assert_eq!(new, format!("a\n{one}old\n{LAST}b\n{two}\nnew\n\n{LAST}c\n"));
        assert_eq!(insert(&new, &two, "new\n").unwrap(), new);
        assert_eq!(insert("a\n", &one, "new\n"), None);
    }
}
