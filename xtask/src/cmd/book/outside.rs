//! mdBook's preprocessor, which changes links from pages to files outside of `docs/` to links to the repository.
//!
//! mdBook sends `[context, book]` as JSON on standard input and expects the book on standard output ("Preprocessors" in
//! mdBook's guide). Only the members `content` and `path` of chapters are used.

use std::io;
use std::path::Path;

use anyhow::{Context as _, Result, bail};
use serde_json::Value;

use super::{links, page};
use crate::output;
use crate::workspace::Workspace;

pub(super) fn preprocess(ws: &Workspace) -> Result<()> {
    let input: Value = serde_json::from_reader(io::stdin().lock()).context("standard input is not JSON")?;
    let Value::Array(parts) = input else { bail!("standard input is not what mdBook sends a preprocessor") };
    let mut book = parts.into_iter().nth(1).context("mdBook has sent no book")?;
    let repository = repository(ws)?;
    chapters(&mut book, &repository)?;
    output::raw(&serde_json::to_string(&book)?);
    Ok(())
}

fn repository(ws: &Workspace) -> Result<String> {
    let metadata = ws.metadata(&ws.root().join("Cargo.toml"))?;
    let packages = metadata["packages"].as_array().context("cargo metadata names no packages")?;
    let address = packages.iter().find_map(|package| package["repository"].as_str());
    Ok(address.context("no package names its repository")?.to_owned())
}

/// Rewrites every object with a path and a content, at any depth.
fn chapters(value: &mut Value, repository: &str) -> Result<()> {
    match value {
        Value::Array(items) => items.iter_mut().try_for_each(|item| chapters(item, repository)),
        Value::Object(members) => {
            let path = members.get("source_path").or_else(|| members.get("path")).and_then(Value::as_str);
            let changed = match (path, members.get("content").and_then(Value::as_str)) {
                (Some(path), Some(content)) => {
                    Some(rewritten(&Path::new("docs").join(path), content, repository)?)
                }
                _ => None,
            };
            if let Some(changed) = changed {
                members.insert("content".to_owned(), Value::String(changed));
            }
            members.values_mut().try_for_each(|member| chapters(member, repository))
        }
        _ => Ok(()),
    }
}

/// Returns the text of a page with paths that leave `docs/` replaced by addresses.
fn rewritten(page: &Path, text: &str, repository: &str) -> Result<String> {
    let mut text = text.to_owned();
    // Backwards, so that the positions of earlier links stay valid.
    for link in page::links(&text.clone()).into_iter().rev() {
        let Some((Some(path), anchor)) = links::split(page, &link.address) else { continue };
        if path.starts_with("docs") {
            continue;
        }
        let anchor = anchor.map(|anchor| format!("#{anchor}")).unwrap_or_default();
        let address = format!("{repository}/blob/HEAD/{}{anchor}", path.display());
        let source = text.get(link.place.clone()).context("a link lies in its page")?;
        let old = format!("]({}", link.address);
        let Some(at) = source.rfind(&old) else {
            bail!("{}: {}: write the address into the link itself", page.display(), link.address);
        };
        let start = link.place.start + at;
        text.replace_range(start..start + old.len(), &format!("]({address}"));
    }
    Ok(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_links_out_of_the_book_change() {
        let text =
            "[a](b.md) [s](../SECURITY.md#x), [`e`](../examples/e.rs \"t\") [w](https://example.org)\n";
        let wanted = "[a](b.md) [s](https://r/blob/HEAD/SECURITY.md#x), [`e`](https://r/blob/HEAD/examples/e.rs \"t\") [w](https://example.org)\n";
        assert_eq!(rewritten(Path::new("docs/p.md"), text, "https://r").unwrap(), wanted);
        let deeper =
            rewritten(Path::new("docs/design/p.md"), "[s](../../SECURITY.md) [r](../r.md)", "https://r");
        assert_eq!(deeper.unwrap(), "[s](https://r/blob/HEAD/SECURITY.md) [r](../r.md)");
        assert!(rewritten(Path::new("docs/p.md"), "[s][x]\n\n[x]: ../SECURITY.md\n", "https://r").is_err());
    }

    #[test]
    fn chapters_are_found_in_chapters() {
        let inner = serde_json::json!({ "Chapter": { "path": "d/b.md", "content": "[x](../../y)", "sub_items": [] } });
        let mut book = serde_json::json!({
            "items": [{ "Chapter": { "path": "a.md", "content": "[x](../y)", "sub_items": [inner] } }, "Separator"]
        });
        chapters(&mut book, "https://r").unwrap();
        let first = &book["items"][0]["Chapter"];
        assert_eq!(first["content"], "[x](https://r/blob/HEAD/y)");
        assert_eq!(first["sub_items"][0]["Chapter"]["content"], "[x](https://r/blob/HEAD/y)");
    }
}
