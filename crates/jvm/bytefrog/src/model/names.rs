//! Names that agents give: signatures, exceptions, threads.
//!
//! Owns: [`Names`], which may come before or after the events that use them, twice, or never. All names together have a
//! limit in bytes.

use hashbrown::HashMap;
use runtap_bytefrog_proto::{JavaStr, JavaString};

type Table = HashMap<u32, JavaString, foldhash::fast::RandomState>;

/// What became of a name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Named {
    New,
    /// The same as before.
    Again,
    /// Another one than before, which it has replaced.
    Changed,
    /// There is no room for it.
    Full,
}

#[derive(Debug)]
pub(crate) struct Names {
    pub(crate) methods: Table,
    pub(crate) exceptions: Table,
    pub(crate) threads: Table,
    room: usize,
}

/// Which names.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    Method,
    Exception,
    Thread,
}

/// What an entry of a table takes besides its text, about.
const ENTRY: usize = 48;

fn size(name: JavaStr<'_>) -> usize {
    name.as_bytes().len() + ENTRY
}

impl Names {
    /// Names of so many bytes together.
    pub(crate) fn new(room: usize) -> Self {
        Self { methods: Table::default(), exceptions: Table::default(), threads: Table::default(), room }
    }

    /// Bytes of all names together.
    pub(crate) fn size(&self) -> usize {
        let tables = [&self.methods, &self.exceptions, &self.threads];
        tables.into_iter().flat_map(Table::values).map(|name| size(name.as_java_str())).sum()
    }

    /// Different signatures of methods.
    pub(crate) fn signatures(&self) -> usize {
        let mut all: Vec<&[u8]> = self.methods.values().map(|name| name.as_java_str().as_bytes()).collect();
        all.sort_unstable();
        all.dedup();
        all.len()
    }

    pub(crate) fn add(&mut self, kind: Kind, id: u32, name: JavaStr<'_>) -> Named {
        let table = match kind {
            Kind::Method => &mut self.methods,
            Kind::Exception => &mut self.exceptions,
            Kind::Thread => &mut self.threads,
        };
        let before = table.get(&id);
        if before.is_some_and(|before| before.as_java_str() == name) {
            return Named::Again;
        }
        let freed = before.map_or(0, |before| size(before.as_java_str()));
        let needed = size(name);
        let Some(room) = (self.room + freed).checked_sub(needed) else { return Named::Full };
        self.room = room;
        match table.insert(id, name.into()) {
            Some(_) => Named::Changed,
            None => Named::New,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_change_and_have_a_limit() {
        let mut names = Names::new(2 * (ENTRY + 1));
        let name = |text: &'static str| JavaStr::from_bytes(text.as_bytes());
        assert_eq!(names.add(Kind::Method, 1, name("a")), Named::New);
        assert_eq!(names.add(Kind::Method, 1, name("a")), Named::Again);
        assert_eq!(names.add(Kind::Method, 1, name("b")), Named::Changed);
        assert_eq!(names.add(Kind::Thread, 1, name("t")), Named::New);
        assert_eq!(names.add(Kind::Exception, 1, name("")), Named::Full);
        assert_eq!(names.add(Kind::Thread, 1, name("tt")), Named::Full);
        assert_eq!(names.threads[&1].to_string(), "t");
    }
}
