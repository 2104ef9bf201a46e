//! The order in which applications start if nothing is known about them: directory order, as in `dotnet test`. Any
//! arbitrary order is suitable, but not the order of names, in which the longest application may systematically be the
//! last.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use runtap_model::order;

/// Returns the indexes of the paths in directory order: the files of a directory before its subdirectories. Paths that
/// are not found in their directory come last.
pub(crate) fn of_directories(paths: &[&Path]) -> Vec<usize> {
    let mut folders: BTreeSet<&Path> = order::to_set(paths.iter().filter_map(|path| path.parent()));
    let top = common(&folders);
    let above: Vec<_> = folders.iter().flat_map(|folder| folder.ancestors()).collect();
    folders.extend(above.into_iter().filter(|folder| folder.starts_with(&top)));
    let mut found = Vec::new();
    visit(&top, &folders, &mut found);
    let place = |path: &Path| found.iter().position(|it| it == path).unwrap_or(usize::MAX);
    let mut order: Vec<usize> = (0..paths.len()).collect();
    order::sort_by_key(&mut order, |&at| paths.get(at).map(|path| place(path)));
    order
}

/// Returns the common ancestor of the folders.
fn common(folders: &BTreeSet<&Path>) -> PathBuf {
    let Some(first) = folders.first() else { return PathBuf::new() };
    let holds_all = |above: &&Path| folders.iter().all(|folder| folder.starts_with(above));
    first.ancestors().find(holds_all).map(Path::to_owned).unwrap_or_default()
}

/// Collects the files of a directory, then those of its subdirectories in `wanted`.
fn visit(folder: &Path, wanted: &BTreeSet<&Path>, found: &mut Vec<PathBuf>) {
    // The order of an unreadable directory is unknown.
    let Ok(entries) = fs::read_dir(folder) else { return };
    let (below, files): (Vec<_>, Vec<_>) =
        entries.filter_map(Result::ok).map(|entry| entry.path()).partition(|path| wanted.contains(&**path));
    found.extend(files);
    for folder in below {
        visit(&folder, wanted, found);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn modules_are_in_directory_order() {
        let place = tempfile::tempdir().unwrap();
        let names = ["z.dll", "b/deep/er/x", "b/a", "c/one", "c/two", "a.dll", "c/three"];
        let paths: Vec<PathBuf> = names.iter().map(|name| place.path().join(name)).collect();
        for path in &paths {
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, "").unwrap();
        }
        let given: Vec<&Path> = paths.iter().map(PathBuf::as_path).collect();
        let order = of_directories(&given);
        let at = |name: &str| order.iter().position(|&at| names[at] == name).unwrap();
        assert_eq!(order.iter().collect::<BTreeSet<_>>().len(), names.len());
        assert!(at("z.dll") < 2 && at("a.dll") < 2, "files before directories: {order:?}");
        assert_eq!(at("b/a") + 1, at("b/deep/er/x"), "a directory is contiguous");
        let listed: Vec<_> =
            fs::read_dir(place.path().join("c")).unwrap().map(|entry| entry.unwrap().file_name()).collect();
        let ours = order.iter().map(|&at| names[at]).filter_map(|name| name.strip_prefix("c/"));
        assert_eq!(ours.collect::<Vec<_>>(), listed, "as the system lists them");
        let gone = place.path().join("0/gone");
        assert_eq!(of_directories(&[&gone, given[0]]), [1, 0]);
        assert!(of_directories(&[]).is_empty());
    }
}
