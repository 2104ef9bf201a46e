//! What there is in each tab, a row each, in the order in which it is shown.
//!
//! Owns: [`Item`], which is known again by its key when there is a new report, and the tree that opens and closes.

use std::cmp::Reverse;
use std::collections::{HashMap, HashSet};
use std::hash::{DefaultHasher, Hash as _, Hasher as _};

use runtap_bytefrog::{CallTree, MethodReport, Report, readable};

/// How a row can be opened.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Fold {
    /// There is nothing below it.
    Leaf,
    Open,
    Closed,
}

/// A row.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Item {
    /// The same for the same thing in every report.
    pub(super) key: u64,
    /// Its place in the report.
    pub(super) index: usize,
    pub(super) depth: usize,
    pub(super) fold: Fold,
}

impl Item {
    fn flat(index: usize, key: u64) -> Self {
        Self { key, index, depth: 0, fold: Fold::Leaf }
    }
}

/// The key of something below something else.
pub(super) fn key_of(parent: u64, name: &str) -> u64 {
    let mut hasher = DefaultHasher::new();
    (parent, name).hash(&mut hasher);
    hasher.finish()
}

/// By what methods are sorted, the largest first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) enum Sort {
    #[default]
    Own,
    Total,
    Calls,
    Thrown,
    Name,
}

impl Sort {
    pub(super) const ALL: [Self; 5] = [Self::Own, Self::Total, Self::Calls, Self::Thrown, Self::Name];

    pub(super) fn next(self) -> Self {
        let at = Self::ALL.iter().position(|sort| *sort == self).unwrap_or(0);
        Self::ALL.get((at + 1) % Self::ALL.len()).copied().unwrap_or_default()
    }
}

/// Numbers of a method or a node: calls, calls that an exception ended, time with and without callees.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct Numbers {
    pub(super) calls: u64,
    pub(super) thrown: u64,
    pub(super) total: u64,
    pub(super) own: u64,
}

impl Numbers {
    pub(super) fn of_method(method: &MethodReport) -> Self {
        Self {
            calls: method.calls(),
            thrown: method.thrown(),
            total: method.total().unwrap_or(0),
            own: method.own().unwrap_or(0),
        }
    }

    pub(super) fn of_row(tree: &CallTree, index: usize) -> Self {
        tree.rows.get(index).map_or_else(Self::default, |row| Self {
            calls: row.calls,
            thrown: row.thrown,
            total: row.total(),
            own: row.own.saturating_add(row.own_so_far),
        })
    }

    /// What came since then.
    pub(super) fn since(self, before: Option<&Self>) -> Self {
        let before = before.copied().unwrap_or_default();
        Self {
            calls: self.calls.saturating_sub(before.calls),
            thrown: self.thrown.saturating_sub(before.thrown),
            total: self.total.saturating_sub(before.total),
            own: self.own.saturating_sub(before.own),
        }
    }
}

/// What was there when somebody wanted to begin anew.
#[derive(Debug, Clone, Default)]
pub(super) struct Baseline {
    pub(super) methods: HashMap<u64, Numbers>,
    pub(super) nodes: HashMap<u64, Numbers>,
}

impl Baseline {
    pub(super) fn of(report: &Report, tree: Option<&CallTree>) -> Self {
        let methods = report
            .methods
            .iter()
            .map(|method| (key_of(0, &method.signature), Numbers::of_method(method)))
            .collect();
        let mut nodes = HashMap::new();
        if let Some(tree) = tree {
            let mut above = Vec::new();
            for index in 0..tree.rows.len() {
                nodes.insert(node_key(tree, index, &mut above), Numbers::of_row(tree, index));
            }
        }
        Self { methods, nodes }
    }
}

/// The key of a row; `above` has those of the rows that it is below, and gets its own.
fn node_key(tree: &CallTree, index: usize, above: &mut Vec<u64>) -> u64 {
    let Some(row) = tree.rows.get(index) else { return 0 };
    above.truncate(row.depth);
    let name = tree.signatures.get(row.signature).map_or("", String::as_str);
    let key = key_of(above.last().copied().unwrap_or(0), name);
    above.push(key);
    key
}

/// The rows of a tree that can be seen. What nobody has called is open from the beginning, everything else is closed;
/// `toggled` are those that are not as they were.
pub(super) fn tree(tree: &CallTree, toggled: &HashSet<u64>) -> Vec<Item> {
    let (mut items, mut above, mut index) = (Vec::new(), Vec::new(), 0);
    while let Some(row) = tree.rows.get(index) {
        let key = node_key(tree, index, &mut above);
        let depth = row.depth;
        let has_more = tree.rows.get(index + 1).is_some_and(|next| next.depth > depth);
        let is_open = (depth == 0) != toggled.contains(&key);
        let fold = match (has_more, is_open) {
            (false, _) => Fold::Leaf,
            (true, true) => Fold::Open,
            (true, false) => Fold::Closed,
        };
        items.push(Item { key, index, depth, fold });
        index += 1;
        if fold == Fold::Closed {
            let behind = tree.rows.iter().skip(index).position(|row| row.depth <= depth);
            index = behind.map_or(tree.rows.len(), |behind| index + behind);
        }
    }
    items
}

/// The next row behind `from`, or before it, whose method has this text in its name: the keys on the way to it, its own last.
pub(super) fn find_in_tree(tree: &CallTree, from: Option<usize>, text: &str, back: bool) -> Option<Vec<u64>> {
    let wanted: Vec<bool> = tree.signatures.iter().map(|signature| has(signature, text)).collect();
    let is_wanted =
        |index: &usize| tree.rows.get(*index).is_some_and(|row| wanted.get(row.signature) == Some(&true));
    let found = around(tree.rows.len(), from, back).find(is_wanted)?;
    // The last row before it of each depth above its own.
    let mut path = vec![found];
    let mut depth = tree.rows.get(found)?.depth;
    for index in (0..found).rev() {
        if depth == 0 {
            break;
        }
        if tree.rows.get(index).is_some_and(|row| row.depth + 1 == depth) {
            depth -= 1;
            path.push(index);
        }
    }
    let mut above = Vec::new();
    Some(path.into_iter().rev().map(|index| node_key(tree, index, &mut above)).collect())
}

/// All places but the first one, behind it or before it, and around.
pub(super) fn around(count: usize, from: Option<usize>, back: bool) -> impl Iterator<Item = usize> {
    (1..=count).map(move |step| match (from, back) {
        (Some(from), false) => (from + step) % count,
        (Some(from), true) => (from + count - step) % count,
        (None, false) => step - 1,
        (None, true) => count - step,
    })
}

/// Whether a signature has this text in it, in any case.
pub(super) fn has(signature: &str, text: &str) -> bool {
    readable(signature).to_lowercase().contains(&text.to_lowercase())
}

/// Methods that have run.
pub(super) fn methods(report: &Report, sort: Sort, since: Option<&Baseline>) -> Vec<Item> {
    let mut rows: Vec<(Numbers, Item)> = report
        .methods
        .iter()
        .enumerate()
        .filter(|(_, method)| method.has_run)
        .map(|(index, method)| {
            let key = key_of(0, &method.signature);
            let numbers = Numbers::of_method(method);
            let before = since.and_then(|since| since.methods.get(&key));
            (numbers.since(before), Item::flat(index, key))
        })
        .collect();
    // By signature they are already.
    rows.sort_by_key(|(numbers, _)| {
        let Numbers { calls, thrown, total, own } = *numbers;
        Reverse(match sort {
            Sort::Own => (own, total, calls),
            Sort::Total => (total, own, calls),
            Sort::Calls => (calls, own, total),
            Sort::Thrown => (thrown, calls, own),
            Sort::Name => (0, 0, 0),
        })
    });
    rows.into_iter().map(|(_, item)| item).collect()
}

/// Places of exceptions, the most frequent first.
pub(super) fn exceptions(report: &Report) -> Vec<Item> {
    let mut items: Vec<(u64, Item)> = report
        .exceptions
        .iter()
        .enumerate()
        .map(|(index, place)| {
            let name = format!("{:?} {:?} {}", place.fate, place.line, place.exception);
            (place.count, Item::flat(index, key_of(key_of(0, &name), &place.signature)))
        })
        .collect();
    items.sort_by_key(|(count, _)| Reverse(*count));
    items.into_iter().map(|(_, item)| item).collect()
}

/// So many rows that are known by their number.
pub(super) fn numbered(count: usize) -> Vec<Item> {
    (0..count).map(|index| Item::flat(index, index as u64)).collect()
}

#[cfg(test)]
mod tests {
    use runtap_bytefrog::TreeRow;

    use super::*;

    fn sample() -> CallTree {
        let row = |depth, signature| TreeRow {
            depth,
            signature,
            calls: 1,
            inclusive: 0,
            own: 0,
            thrown: 0,
            cut: 0,
            open: 0,
            so_far: 0,
            own_so_far: 0,
        };
        CallTree {
            signatures: ["a/A.a;1;()V", "a/B.b;1;()V", "a/C.c;1;()V"].map(str::to_owned).to_vec(),
            // a → b → c, a → c; b
            rows: vec![row(0, 0), row(1, 1), row(2, 2), row(1, 2), row(0, 1)],
        }
    }

    fn places(items: &[Item]) -> Vec<usize> {
        items.iter().map(|item| item.index).collect()
    }

    #[test]
    fn rows_open_and_close() {
        let rows = sample();
        let mut toggled = HashSet::new();
        let closed = tree(&rows, &toggled);
        assert_eq!(places(&closed), [0, 1, 3, 4]);
        let folds: Vec<Fold> = closed.iter().map(|item| item.fold).collect();
        assert_eq!(folds, [Fold::Open, Fold::Closed, Fold::Leaf, Fold::Leaf]);
        toggled.insert(closed[1].key);
        assert_eq!(places(&tree(&rows, &toggled)), [0, 1, 2, 3, 4]);
        toggled.insert(closed[0].key);
        assert_eq!(places(&tree(&rows, &toggled)), [0, 4]);
        // The same method below another one is another row.
        assert_ne!(closed[1].key, closed[3].key);
    }

    #[test]
    fn a_method_is_found_with_the_way_to_it() {
        let rows = sample();
        let way = find_in_tree(&rows, Some(0), "C.C(", false).unwrap();
        assert_eq!(way.len(), 3);
        assert_eq!(find_in_tree(&rows, Some(2), "c.c", false).unwrap().len(), 2);
        // Around, and back.
        assert_eq!(find_in_tree(&rows, Some(3), "c.c", false).unwrap(), way);
        assert_eq!(find_in_tree(&rows, Some(3), "c.c", true).unwrap(), way);
        assert_eq!(find_in_tree(&rows, None, "nothing", false), None);
        assert_eq!(find_in_tree(&CallTree::default(), None, "a", true), None);
    }

    #[test]
    fn sorts_go_around() {
        let mut sort = Sort::default();
        for _ in Sort::ALL {
            sort = sort.next();
        }
        assert_eq!(sort, Sort::Own);
    }
}
