//! The rows of each tab in display order.
//!
//! Owns: [`TabRow`], whose key identifies it across reports, and the tree whose rows expand and collapse.

use std::cmp::Reverse;
use std::collections::{HashMap, HashSet};
use std::hash::{DefaultHasher, Hash as _, Hasher as _};

use runtap_bytefrog::{CallTree, MethodReport, Report, readable};
use runtap_model::order;

/// Whether a row can be expanded.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Fold {
    /// The row has no children.
    Leaf,
    Open,
    Closed,
}

/// A row of a tab.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct TabRow {
    /// Identifies the row across reports.
    pub(super) key: u64,
    /// The index in the report.
    pub(super) index: usize,
    pub(super) depth: usize,
    pub(super) fold: Fold,
}

impl TabRow {
    fn flat(index: usize, key: u64) -> Self {
        Self { key, index, depth: 0, fold: Fold::Leaf }
    }
}

/// Returns the key of a row with this name below a parent.
pub(super) fn key_of(parent: u64, name: &str) -> u64 {
    let mut hasher = DefaultHasher::new();
    (parent, name).hash(&mut hasher);
    hasher.finish()
}

/// The order of methods, largest values first.
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

/// The numbers of a method or node: calls, calls ended by an exception, and time with and without callees.
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

    /// Returns the differences from earlier numbers.
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

/// The numbers at the time of the last reset.
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

/// Returns the key of a row of the tree. `above` has the keys of its ancestors, to which this key is added.
fn node_key(tree: &CallTree, index: usize, above: &mut Vec<u64>) -> u64 {
    let Some(row) = tree.rows.get(index) else { return 0 };
    above.truncate(row.depth);
    let name = tree.signatures.get(row.signature).map_or("", String::as_str);
    let key = key_of(above.last().copied().unwrap_or(0), name);
    above.push(key);
    key
}

/// Returns the visible rows of a tree. Roots are initially open and all other rows closed; `toggled` has the keys of rows in
/// the opposite state.
pub(super) fn tree(tree: &CallTree, toggled: &HashSet<u64>) -> Vec<TabRow> {
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
        items.push(TabRow { key, index, depth, fold });
        index += 1;
        if fold == Fold::Closed {
            let behind = tree.rows.iter().skip(index).position(|row| row.depth <= depth);
            index = behind.map_or(tree.rows.len(), |behind| index + behind);
        }
    }
    items
}

/// Finds the next row after `from`, or before it, whose method name contains the text. Returns the keys on the path to the row,
/// ending with its own.
pub(super) fn find_in_tree(tree: &CallTree, from: Option<usize>, text: &str, back: bool) -> Option<Vec<u64>> {
    let wanted: Vec<bool> = tree.signatures.iter().map(|signature| has(signature, text)).collect();
    let is_wanted =
        |index: &usize| tree.rows.get(*index).is_some_and(|row| wanted.get(row.signature) == Some(&true));
    let found = around(tree.rows.len(), from, back).find(is_wanted)?;
    // The ancestors are the last preceding rows of each smaller depth.
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

/// Returns all indexes except `from`, in either direction, wrapping around.
pub(super) fn around(count: usize, from: Option<usize>, back: bool) -> impl Iterator<Item = usize> {
    (1..=count).map(move |step| match (from, back) {
        (Some(from), false) => (from + step) % count,
        (Some(from), true) => (from + count - step) % count,
        (None, false) => step - 1,
        (None, true) => count - step,
    })
}

/// Returns whether a signature contains this text, ignoring case.
pub(super) fn has(signature: &str, text: &str) -> bool {
    readable(signature).to_lowercase().contains(&text.to_lowercase())
}

/// Returns the methods that have run.
pub(super) fn methods(report: &Report, sort: Sort, since: Option<&Baseline>) -> Vec<TabRow> {
    let mut rows: Vec<(Numbers, TabRow)> = report
        .methods
        .iter()
        .enumerate()
        .filter(|(_, method)| method.has_run)
        .map(|(index, method)| {
            let key = key_of(0, &method.signature);
            let numbers = Numbers::of_method(method);
            let before = since.and_then(|since| since.methods.get(&key));
            (numbers.since(before), TabRow::flat(index, key))
        })
        .collect();
    // The rows are already sorted by signature, and the sort is stable.
    order::sort_by_key(&mut rows, |(numbers, _)| {
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

/// Returns the places of exceptions, most frequent first.
pub(super) fn exceptions(report: &Report) -> Vec<TabRow> {
    let mut items: Vec<(u64, TabRow)> = report
        .exceptions
        .iter()
        .enumerate()
        .map(|(index, place)| {
            let name = format!("{:?} {:?} {}", place.fate, place.line, place.exception);
            (place.count, TabRow::flat(index, key_of(key_of(0, &name), &place.signature)))
        })
        .collect();
    order::sort_by_key(&mut items, |(count, _)| Reverse(*count));
    items.into_iter().map(|(_, item)| item).collect()
}

/// Returns rows that are identified by their index.
pub(super) fn numbered(count: usize) -> Vec<TabRow> {
    (0..count).map(|index| TabRow::flat(index, index as u64)).collect()
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

    fn indexes(items: &[TabRow]) -> Vec<usize> {
        items.iter().map(|item| item.index).collect()
    }

    #[test]
    fn rows_expand_and_collapse() {
        let rows = sample();
        let mut toggled = HashSet::new();
        let closed = tree(&rows, &toggled);
        assert_eq!(indexes(&closed), [0, 1, 3, 4]);
        let folds: Vec<Fold> = closed.iter().map(|item| item.fold).collect();
        assert_eq!(folds, [Fold::Open, Fold::Closed, Fold::Leaf, Fold::Leaf]);
        toggled.insert(closed[1].key);
        assert_eq!(indexes(&tree(&rows, &toggled)), [0, 1, 2, 3, 4]);
        toggled.insert(closed[0].key);
        assert_eq!(indexes(&tree(&rows, &toggled)), [0, 4]);
        // A method with two callers has two rows.
        assert_ne!(closed[1].key, closed[3].key);
    }

    #[test]
    fn a_method_is_found_with_the_path_to_its_row() {
        let rows = sample();
        let path = find_in_tree(&rows, Some(0), "C.C(", false).unwrap();
        assert_eq!(path.len(), 3);
        assert_eq!(find_in_tree(&rows, Some(2), "c.c", false).unwrap().len(), 2);
        // The search wraps around, in both directions.
        assert_eq!(find_in_tree(&rows, Some(3), "c.c", false).unwrap(), path);
        assert_eq!(find_in_tree(&rows, Some(3), "c.c", true).unwrap(), path);
        assert_eq!(find_in_tree(&rows, None, "nothing", false), None);
        assert_eq!(find_in_tree(&CallTree::default(), None, "a", true), None);
    }

    #[test]
    fn sort_orders_cycle() {
        let mut sort = Sort::default();
        for _ in Sort::ALL {
            sort = sort.next();
        }
        assert_eq!(sort, Sort::Own);
    }
}
