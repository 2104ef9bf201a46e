//! The names of tests that have failed, and the lines that may be the list of them.

use std::collections::HashMap;
use std::hash::{BuildHasher as _, RandomState};

use crate::formats::case::{LONGEST_NAME, shortened};

/// The names of all failures of a binary, by their hashes, and where the first of each name is within those whose output is to
/// follow; at their end if it is not one of them. Looking through these for each line of output would take too long.
#[derive(Debug, Default)]
pub(super) struct FailedNames {
    hashes: RandomState,
    pub(super) places: HashMap<u64, usize>,
}

impl FailedNames {
    pub(super) fn insert(&mut self, name: &str, place: usize) {
        self.places.entry(self.hashes.hash_one(name)).or_insert(place);
    }

    /// `None` if no test of this name has failed.
    pub(super) fn get(&self, name: &str) -> Option<usize> {
        let name = shortened(name, LONGEST_NAME);
        self.places.get(&self.hashes.hash_one(name.as_str())).copied()
    }
}

/// The lines that look like the list of names.
#[derive(Debug, Default)]
pub(super) struct Names {
    pub(super) text: String,
    pub(super) lines: usize,
}

impl Names {
    pub(super) fn push(&mut self, line: &str) {
        self.text.push_str(line);
        self.text.push('\n');
        self.lines += 1;
    }
}
