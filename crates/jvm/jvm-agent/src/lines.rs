//! Ids of lines by method, assigned once per process.
//!
//! Owns: [`Lines`], and the position of each line's byte in the coverage memory. Locked while a class is loaded, and for each
//! snapshot.

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::sync::Mutex;

use crate::ring::MAX_METHODS;
use crate::session::locked;

/// The number of lines that coverage has room for.
pub(crate) const MAX_LINES: u32 = 1 << 22;
/// The number of bytes of coverage: one for each method, then one for each line.
pub(crate) const COVERAGE_BYTES: usize = MAX_METHODS as usize + MAX_LINES as usize;

/// A line of a method.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct Line {
    pub(crate) method: u32,
    pub(crate) number: u16,
}

/// Lines, with ids from 0.
#[derive(Debug, Default)]
pub(crate) struct Lines(Mutex<Inner>);

#[derive(Debug, Default)]
struct Inner {
    ids: HashMap<Line, u32>,
    list: Vec<Line>,
}

/// Returns the position of a line's byte, by the line's id.
pub(crate) fn place(id: usize) -> usize {
    MAX_METHODS as usize + id
}

impl Lines {
    /// Returns the number of the byte that a line's probe marks. `None` if the maximum number of lines is reached.
    pub(crate) fn mark(&self, line: Line) -> Option<i32> {
        let mut inner = locked(&self.0);
        let Inner { ids, list } = &mut *inner;
        let id = match ids.entry(line) {
            Entry::Occupied(known) => *known.get(),
            Entry::Vacant(new) => {
                let id = u32::try_from(list.len()).ok().filter(|id| *id < MAX_LINES)?;
                list.push(line);
                *new.insert(id)
            }
        };
        i32::try_from(place(id as usize)).ok()
    }

    /// Appends the lines that are missing from a list of all earlier lines.
    pub(crate) fn append_new(&self, known: &mut Vec<Line>) {
        known.extend_from_slice(locked(&self.0).list.get(known.len()..).unwrap_or_default());
    }

    /// Returns the number of lines.
    pub(crate) fn count(&self) -> usize {
        locked(&self.0).list.len()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_has_one_byte_behind_those_of_methods() {
        let lines = Lines::default();
        let mut known = Vec::new();
        let (first, second) = (Line { method: 7, number: 3 }, Line { method: 8, number: 3 });
        assert_eq!(lines.mark(first), Some(1 << 20));
        lines.append_new(&mut known);
        assert_eq!(lines.mark(second), Some((1 << 20) + 1));
        assert_eq!(lines.mark(first), Some(1 << 20));
        lines.append_new(&mut known);
        assert_eq!((known, lines.count()), (vec![first, second], 2));
    }
}
