//! Checks the links of Markdown files: the file must exist in the repository, and the anchor must belong to one of its
//! headings. Pages of the book must not link to folders of `docs/`, for which the book has no page. Links to other
//! sites are not checked.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Component, Path, PathBuf};

use anyhow::{Context as _, Result};

use super::page;

/// Returns a line for each broken link, in the order of the files.
pub(super) fn errors(root: &Path, files: &[&str]) -> Result<Vec<String>> {
    let mut texts = BTreeMap::new();
    for file in files {
        let text = fs::read_to_string(root.join(file)).with_context(|| format!("cannot read {file}"))?;
        texts.insert(PathBuf::from(file), text);
    }
    let mut anchors: BTreeMap<PathBuf, Vec<String>> = BTreeMap::new();
    let mut wrong = Vec::new();
    for file in files {
        let text = texts.get(Path::new(file)).map_or("", String::as_str);
        for link in page::links(text) {
            let Some((path, anchor)) = split(Path::new(file), &link.address) else { continue };
            let said =
                |why: &str| format!("{file}:{}: {}: {why}", page::line(text, link.place.start), link.address);
            let Some(path) = path else {
                wrong.push(said("leads out of the repository"));
                continue;
            };
            if !root.join(&path).exists() {
                wrong.push(said("no such file"));
                continue;
            }
            if Path::new(file).starts_with("docs") && path.starts_with("docs") && root.join(&path).is_dir() {
                wrong.push(said("is a directory, for which the book has no page"));
            }
            let (Some(anchor), Some(target)) = (anchor, texts.get(&path)) else { continue };
            let known = anchors.entry(path).or_insert_with(|| page::anchors(target));
            if !known.contains(&anchor) {
                wrong.push(said("no heading there has this anchor"));
            }
        }
    }
    Ok(wrong)
}

/// Returns the file, relative to the root, and the anchor that an address in `from` refers to. The file is `None` if it
/// is outside of the root. `None` for addresses of other sites.
pub(super) fn split(from: &Path, address: &str) -> Option<(Option<PathBuf>, Option<String>)> {
    if address.contains("://") || address.starts_with("mailto:") {
        return None;
    }
    let (path, anchor) = match address.split_once('#') {
        Some((path, anchor)) => (path, Some(anchor.to_owned())),
        None => (address, None),
    };
    if path.is_empty() {
        return Some((Some(from.to_owned()), anchor));
    }
    let folder = from.parent().unwrap_or_else(|| Path::new(""));
    Some((plain(&folder.join(path)), anchor))
}

/// Resolves `.` and `..`. `None` if the path leads out of the root.
fn plain(path: &Path) -> Option<PathBuf> {
    let mut plain = PathBuf::new();
    for part in path.components() {
        match part {
            Component::Normal(name) => plain.push(name),
            Component::CurDir => {}
            Component::ParentDir => {
                if !plain.pop() {
                    return None;
                }
            }
            Component::RootDir | Component::Prefix(_) => return None,
        }
    }
    Some(plain)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn written(files: &[(&str, &str)]) -> tempfile::TempDir {
        let root = tempfile::tempdir().unwrap();
        for (name, text) in files {
            let path = root.path().join(name);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        }
        root
    }

    #[test]
    fn every_kind_of_broken_link_is_found() {
        let root = written(&[
            (
                "docs/a.md",
                "# Top\n\n[1](b.md) [2](b.md#here) [3](#top) [4](../x.rs) [5](https://example.org/#z)\n",
            ),
            (
                "docs/b.md",
                "## Here\n\n[1](c.md)\n[2](a.md#no)\n[3](#there)\n[4](../../y)\n[5](d/)\n[6](/etc)\n",
            ),
            ("docs/d/e.md", "[a](../a.md)\n"),
            ("x.rs", ""),
        ]);
        let found = errors(root.path(), &["docs/a.md", "docs/b.md", "docs/d/e.md"]).unwrap();
        assert_eq!(
            found,
            [
                "docs/b.md:3: c.md: no such file",
                "docs/b.md:4: a.md#no: no heading there has this anchor",
                "docs/b.md:5: #there: no heading there has this anchor",
                "docs/b.md:6: ../../y: leads out of the repository",
                "docs/b.md:7: d/: is a directory, for which the book has no page",
                "docs/b.md:8: /etc: leads out of the repository",
            ]
        );
    }
}
