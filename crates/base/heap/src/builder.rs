//! Building graphs from addresses, in the order in which runtimes and files describe objects.

use std::sync::Arc;

use crate::addresses::{AddressIndex, Cursor};
use crate::dense::{Map, set, small};
use crate::graph::LARGE;
use crate::{Graph, Incomplete, Root, RootKind, TypeId, TypeName};

/// The greatest number of objects, and that of references.
const MAX_COUNT: u32 = u32::MAX - 1;
/// The number of references per allocation. Each allocation is freed when its references are resolved.
const CHUNK: usize = 1 << 16;

/// Builds a [`Graph`].
///
/// ```
/// use runtap_heap::{GraphBuilder, RootKind};
///
/// let mut builder = GraphBuilder::default();
/// let list = builder.type_of(0x10);
/// builder.name_type(list, "List", None);
/// builder.object(0x1000, list, 24);
/// builder.reference(0x1018);
/// builder.object(0x1018, list, 24);
/// builder.root(0x1000, RootKind::Stack, None);
/// let graph = builder.finish();
/// assert_eq!(graph.references_of(0), [1]);
/// ```
#[derive(Debug, Default)]
pub struct GraphBuilder {
    pub(crate) graph: Graph,
    type_ids: Map<u64, TypeId>,
    /// Types that become part of others.
    merged_types: Vec<(TypeId, TypeId)>,
    /// The last type that was looked up.
    last_type: Option<(u64, TypeId)>,
    targets: Vec<Vec<u64>>,
    target_count: u64,
    /// The number of references that the objects have.
    declared: u32,
    roots: Vec<(u64, RootKind, Option<u32>)>,
    dependents: Vec<(u64, u64)>,
}

impl GraphBuilder {
    /// Returns the type with this identifier. A new type has no name.
    #[inline]
    pub fn type_of(&mut self, id: u64) -> TypeId {
        match self.last_type {
            Some((last, found)) if last == id => found,
            _ => self.find_type(id),
        }
    }

    fn find_type(&mut self, id: u64) -> TypeId {
        let new = small(self.graph.types.len());
        let found = *self.type_ids.entry(id).or_insert(new);
        if found == new {
            self.graph.types.push(TypeName::default());
        }
        self.last_type = Some((id, found));
        found
    }

    /// Creates a type without an identifier.
    pub fn add_type(&mut self, name: &str, module: Option<Arc<str>>) -> TypeId {
        self.graph.types.push(TypeName { name: name.to_owned(), module });
        small(self.graph.types.len() - 1)
    }

    /// Returns the type with this identifier. `None` if it is new.
    pub(crate) fn known_type(&self, id: u64) -> Option<TypeId> {
        self.type_ids.get(&id).copied()
    }

    /// Makes the objects of a type those of another one.
    pub(crate) fn merge_type(&mut self, id: TypeId, into: TypeId) {
        if id != into {
            self.merged_types.push((id, into));
        }
    }

    /// Names a type.
    pub fn name_type(&mut self, id: TypeId, name: &str, module: Option<Arc<str>>) {
        set(&mut self.graph.types, id, TypeName { name: name.to_owned(), module });
    }

    /// Returns the number of objects so far.
    pub fn object_count(&self) -> u32 {
        small(self.graph.type_of.len())
    }

    /// Adds an object with a size in bytes.
    #[inline]
    pub fn object(&mut self, address: u64, type_id: TypeId, bytes: u64) {
        self.object_with(address, type_id, bytes, 0);
    }

    /// Adds an object whose references are added later, by [`Self::target`], in the order of objects.
    #[inline]
    pub fn object_with(&mut self, address: u64, type_id: TypeId, bytes: u64, references: u32) {
        let object = self.object_count();
        let Some(declared) = self.declared.checked_add(references).filter(|all| *all <= MAX_COUNT) else {
            return self.too_many("references");
        };
        if object >= MAX_COUNT {
            return self.too_many("objects");
        }
        let size = u32::try_from(bytes).unwrap_or(LARGE);
        if size == LARGE {
            self.graph.large.insert(object, bytes);
        }
        self.graph.addresses.push(address);
        self.graph.type_of.push(type_id);
        self.graph.sizes.push(size);
        self.graph.starts.push(self.declared);
        self.declared = declared;
    }

    #[cold]
    fn too_many(&mut self, subject: &'static str) {
        self.incomplete(Incomplete::TooMany { subject, limit: MAX_COUNT });
    }

    /// Adds a reference of the last object.
    #[inline]
    pub fn reference(&mut self, target: u64) {
        if self.declared >= MAX_COUNT {
            return self.too_many("references");
        }
        if !self.graph.starts.is_empty() {
            self.declared += 1;
            self.target(target);
        }
    }

    /// Adds the target of the next reference of objects that were added with [`Self::object_with`].
    #[inline]
    pub fn target(&mut self, target: u64) {
        if let Some(chunk) = self.targets.last_mut().filter(|chunk| chunk.len() < CHUNK) {
            chunk.push(target);
        } else {
            let mut chunk = Vec::with_capacity(CHUNK);
            chunk.push(target);
            self.targets.push(chunk);
        }
        self.target_count += 1;
    }

    /// Adds a root.
    pub fn root(&mut self, address: u64, kind: RootKind, name: Option<String>) {
        let name = name.map(|name| self.add_root_name(name));
        self.named_root(address, kind, name);
    }

    /// Adds a name that several roots may have. Returns its index.
    pub(crate) fn add_root_name(&mut self, name: String) -> u32 {
        self.graph.root_names.push(name);
        small(self.graph.root_names.len() - 1)
    }

    /// Adds a root with the name at this index.
    pub(crate) fn named_root(&mut self, address: u64, kind: RootKind, name: Option<u32>) {
        self.roots.push((address, kind, name));
    }

    /// Adds a dependent handle, which keeps `value` alive as long as `key` is alive.
    pub fn dependent(&mut self, key: u64, value: u64) {
        self.dependents.push((key, value));
    }

    /// Counts a weak reference, which keeps nothing alive.
    pub fn weak_reference(&mut self) {
        self.graph.weak_references += 1;
    }

    /// Records why the graph lacks a part of the heap. Only the first reason is kept.
    pub fn incomplete(&mut self, why: Incomplete) {
        self.graph.incomplete.get_or_insert(why);
    }

    /// Resolves all addresses and returns the graph.
    pub fn finish(mut self) -> Graph {
        self.merge_types();
        let Self { mut graph, targets, target_count, declared, roots, dependents, .. } = self;
        graph.starts.push(declared);
        for array in [&mut graph.type_of, &mut graph.sizes, &mut graph.starts] {
            array.shrink_to_fit();
        }
        graph.addresses.shrink_to_fit();
        let (index, mut cursor) = (AddressIndex::new(&graph.addresses), Cursor::default());
        let mut find = |address| index.find(address, &mut cursor);
        let repeated = graph.addresses.len().saturating_sub(index.address_count());
        graph.repeated_addresses = u64::try_from(repeated).unwrap_or(u64::MAX);
        let mut resolved: Vec<(u32, u32)> = Vec::with_capacity(dependents.len());
        for (key, value) in dependents {
            match (find(key), find(value)) {
                (Some(key), Some(value)) => resolved.push((key, value)),
                _ => graph.dangling_references += 1,
            }
        }
        resolved.sort_unstable();
        resolved.dedup();
        graph.dependent = resolved;

        let expected = usize::try_from(target_count.min(declared.into())).unwrap_or_default();
        let mut references = Vec::with_capacity(expected + graph.dependent.len());
        let mut targets = targets.into_iter().flatten();
        let mut dependent = graph.dependent.iter().copied().peekable();
        let (mut missing, mut end) = (0u64, 0);
        for object in 0..small(graph.addresses.len()) {
            let start = end;
            end = graph.starts.get(object as usize + 1).copied().unwrap_or(start);
            set(&mut graph.starts, object, small(references.len()));
            for n in start..end {
                let Some(target) = targets.next() else {
                    missing += u64::from(end - n);
                    break;
                };
                match find(target) {
                    Some(target) => references.push(target),
                    None => graph.dangling_references += 1,
                }
            }
            while let Some((_, value)) = dependent.next_if(|(key, _)| *key == object) {
                references.push(value);
            }
        }
        for (address, kind, name) in roots {
            match find(address) {
                Some(object) => graph.roots.push(Root { object, kind, name }),
                None => graph.dangling_references += 1,
            }
        }
        drop(index);
        if let Some(last) = graph.starts.last_mut() {
            *last = small(references.len());
        }
        graph.references = references;
        if missing > 0 {
            graph.incomplete.get_or_insert(Incomplete::MissingReferences { missing });
        }
        graph
    }

    /// Merges types with equal names: a runtime may describe a type more than once.
    fn merge_types(&mut self) {
        let mut first: Map<&TypeName, TypeId> = Map::default();
        let mut numbers = Vec::with_capacity(self.graph.types.len());
        for (id, name) in (0..).zip(&self.graph.types) {
            numbers.push(if name.name.is_empty() { id } else { *first.entry(name).or_insert(id) });
        }
        for (id, into) in &self.merged_types {
            let into = numbers.get(*into as usize).copied().unwrap_or(*into);
            set(&mut numbers, *id, into);
        }
        if (0..).zip(&numbers).any(|(id, number): (u32, _)| id != *number) {
            for id in &mut self.graph.type_of {
                *id = numbers.get(*id as usize).copied().unwrap_or(*id);
            }
        }
    }
}
