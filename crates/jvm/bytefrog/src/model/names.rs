//! The names that agents send: signatures, exceptions, threads.
//!
//! Names may arrive before or after the events that use them, twice, or never. The total size of all names is
//! limited.

use hashbrown::HashMap;
use runtap_bytefrog_proto::{JavaStr, JavaString};
use runtap_model::order;

type Table = HashMap<u32, JavaString, foldhash::fast::RandomState>;

/// The outcome of adding a name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum AddOutcome {
    New,
    /// The ID already has this name.
    Unchanged,
    /// The name replaced another one.
    Changed,
    /// There is no room for the name.
    Full,
}

#[derive(Debug)]
pub(crate) struct Names {
    pub(crate) methods: Table,
    pub(crate) exceptions: Table,
    pub(crate) threads: Table,
    remaining: usize,
}

/// The kind of a name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum NameKind {
    Method,
    Exception,
    Thread,
}

/// The approximate size of a table entry besides its text, in bytes.
const ENTRY_SIZE: usize = 48;

fn size(name: JavaStr<'_>) -> usize {
    name.as_bytes().len() + ENTRY_SIZE
}

impl Names {
    /// Creates tables for names with this total size in bytes.
    pub(crate) fn new(limit: usize) -> Self {
        Self {
            methods: Table::default(),
            exceptions: Table::default(),
            threads: Table::default(),
            remaining: limit,
        }
    }

    /// Returns the total size of all names, in bytes.
    pub(crate) fn size(&self) -> usize {
        let tables = [&self.methods, &self.exceptions, &self.threads];
        tables.into_iter().flat_map(Table::values).map(|name| size(name.as_java_str())).sum()
    }

    /// Returns the number of distinct method signatures.
    pub(crate) fn signatures(&self) -> usize {
        let mut all: Vec<&[u8]> = self.methods.values().map(|name| name.as_java_str().as_bytes()).collect();
        order::sort(&mut all);
        all.dedup();
        all.len()
    }

    pub(crate) fn add(&mut self, kind: NameKind, id: u32, name: JavaStr<'_>) -> AddOutcome {
        let table = match kind {
            NameKind::Method => &mut self.methods,
            NameKind::Exception => &mut self.exceptions,
            NameKind::Thread => &mut self.threads,
        };
        let before = table.get(&id);
        if before.is_some_and(|before| before.as_java_str() == name) {
            return AddOutcome::Unchanged;
        }
        let freed = before.map_or(0, |before| size(before.as_java_str()));
        let needed = size(name);
        let Some(remaining) = (self.remaining + freed).checked_sub(needed) else { return AddOutcome::Full };
        self.remaining = remaining;
        match table.insert(id, name.into()) {
            Some(_) => AddOutcome::Changed,
            None => AddOutcome::New,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_change_and_have_a_limit() {
        let mut names = Names::new(2 * (ENTRY_SIZE + 1));
        let name = |text: &'static str| JavaStr::from_bytes(text.as_bytes());
        assert_eq!(names.add(NameKind::Method, 1, name("a")), AddOutcome::New);
        assert_eq!(names.add(NameKind::Method, 1, name("a")), AddOutcome::Unchanged);
        assert_eq!(names.add(NameKind::Method, 1, name("b")), AddOutcome::Changed);
        assert_eq!(names.add(NameKind::Thread, 1, name("t")), AddOutcome::New);
        assert_eq!(names.add(NameKind::Exception, 1, name("")), AddOutcome::Full);
        assert_eq!(names.add(NameKind::Thread, 1, name("tt")), AddOutcome::Full);
        assert_eq!(names.threads[&1].to_string(), "t");
    }
}
