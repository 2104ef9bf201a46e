//! The names of failed tests, and the lines that may be the list of names.

use std::collections::HashMap;
use std::hash::{BuildHasher as _, RandomState};

use crate::formats::case::{MAX_NAME_BYTES, shortened};

/// The hashes of the names of all failed tests of a binary, with the index of the first test of each name. Searching
/// all names for each line of output would be too slow.
#[derive(Debug, Default)]
pub(super) struct FailedNames {
    hashes: RandomState,
    pub(super) places: HashMap<u64, usize>,
}

impl FailedNames {
    pub(super) fn insert(&mut self, name: &str, place: usize) {
        self.places.entry(self.hashes.hash_one(name)).or_insert(place);
    }

    /// Returns the index of the failed test with this name, or `None` if there is none.
    pub(super) fn get(&self, name: &str) -> Option<usize> {
        let name = shortened(name, MAX_NAME_BYTES);
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
