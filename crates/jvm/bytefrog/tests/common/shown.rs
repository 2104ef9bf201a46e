//! Formats call trees as lines, for the tests of the model.

use runtap_bytefrog::Model;

/// Returns a line for each node: `depth method calls/inclusive/own`, with `cut`, `open` and `thrown` where they apply.
pub(crate) fn tree(model: &Model) -> Vec<String> {
    let tree = model.call_tree(None);
    let unit = model.dialect().nanoseconds();
    let row = |row: &runtap_bytefrog::TreeRow| {
        let name = &tree.signatures[row.signature];
        let mut line =
            format!("{} {name} {}/{}/{}", row.depth, row.calls, row.inclusive / unit, row.own / unit);
        for (count, what) in [(row.cut, "cut"), (row.open, "open"), (row.thrown, "thrown")] {
            if count > 0 {
                line = format!("{line} {what} {count}");
            }
        }
        line
    };
    tree.rows.iter().map(row).collect()
}
