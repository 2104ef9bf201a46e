//! The graph of a heap as a few arrays: objects are numbers, references a single array in the order of objects.

use std::sync::Arc;

use crate::RootKind;
use crate::dense::{Map, at};

/// The number of an object in its graph, from 0.
pub type ObjectId = u32;

/// The number of a type in its graph, from 0.
pub type TypeId = u32;

/// The size of an object whose size is in the table of large ones.
pub(crate) const LARGE: u32 = u32::MAX;

/// The name of a type.
#[derive(Debug, Clone, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct TypeName {
    /// The full name. Empty if unknown.
    pub name: String,
    /// The file of the module that defines the type. `None` if unknown.
    pub module: Option<Arc<str>>,
}

/// A root: a reference from outside of the heap that keeps an object alive.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Root {
    /// The object.
    pub object: ObjectId,
    /// The kind of the root.
    pub kind: RootKind,
    /// The index of its name, for [`Graph::root_name`]. `None` if it has no name.
    pub(crate) name: Option<u32>,
}

/// The reasons why a graph does not contain the whole heap.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Incomplete {
    /// The input ends too early.
    #[error("truncated: the heap ends at offset {offset}, before its end marker")]
    Truncated {
        /// The number of readable bytes.
        offset: u64,
    },
    /// The input is damaged.
    #[error("damaged: {0}")]
    Damaged(runtap_wire::DecodeError),
    /// The runtime dropped events of the heap.
    #[error("the target dropped events of its heap: {blocks} blocks of {subject} are missing")]
    LostEvents {
        /// What the missing blocks contain.
        subject: &'static str,
        /// The number of missing blocks, at least.
        blocks: u64,
    },
    /// The source describes no heap.
    #[error("there are no events that describe a heap")]
    NoHeap,
    /// The collection during which a runtime describes its heap did not end.
    #[error("the recording ends before the heap was described completely")]
    NoEnd,
    /// There are more objects or references than a graph can have.
    #[error("the heap has more than {limit} {subject}; the rest was skipped")]
    TooMany {
        /// `objects`, `references`, or `fields of classes`.
        subject: &'static str,
        /// The greatest possible number.
        limit: u32,
    },
    /// References of objects are missing.
    #[error("{missing} references of objects are missing")]
    MissingReferences {
        /// The number of missing references.
        missing: u64,
    },
}

/// The objects of a heap with their types, references and roots.
#[derive(Debug, Clone, Default)]
pub struct Graph {
    pub(crate) types: Vec<TypeName>,
    pub(crate) type_of: Vec<TypeId>,
    pub(crate) sizes: Vec<u32>,
    /// The sizes of objects of at least 4 GiB.
    pub(crate) large: Map<ObjectId, u64>,
    pub(crate) addresses: Vec<u64>,
    /// Where the references of each object start, and the end of the last one's.
    pub(crate) starts: Vec<u32>,
    pub(crate) references: Vec<ObjectId>,
    /// The references that are dependent handles, sorted.
    pub(crate) dependent: Vec<(ObjectId, ObjectId)>,
    pub(crate) roots: Vec<Root>,
    pub(crate) root_names: Vec<String>,
    /// The indexes of the names of classes that objects represent.
    pub(crate) represented: Map<ObjectId, u32>,
    pub(crate) weak_references: u64,
    pub(crate) dangling_references: u64,
    pub(crate) repeated_addresses: u64,
    pub(crate) incomplete: Option<Incomplete>,
}

impl Graph {
    /// Creates a graph without objects, which states why.
    pub fn missing(why: Incomplete) -> Self {
        Self { incomplete: Some(why), ..Self::default() }
    }

    /// Returns the number of objects.
    pub fn object_count(&self) -> u32 {
        crate::dense::small(self.type_of.len())
    }

    /// Returns the number of references between objects.
    pub fn reference_count(&self) -> usize {
        self.references.len()
    }

    /// Returns the names of all types. The index of a name is the [`TypeId`].
    pub fn types(&self) -> &[TypeName] {
        &self.types
    }

    /// Returns the name of a type that is nearest to a misspelled one. `None` if none is near.
    pub fn nearest_type(&self, name: &str) -> Option<&str> {
        runtap_wire::nearest(name, self.types.iter().map(|it| it.name.as_str()))
    }

    /// Returns the type of an object.
    pub fn type_of(&self, object: ObjectId) -> TypeId {
        at(&self.type_of, object)
    }

    /// Returns the name of an object's type. `None` if there is no such object.
    pub fn type_name(&self, object: ObjectId) -> Option<&TypeName> {
        self.types.get(*self.type_of.get(object as usize)? as usize)
    }

    /// Returns the size of an object in bytes, without the objects that it references.
    #[inline]
    pub fn size_of(&self, object: ObjectId) -> u64 {
        match at(&self.sizes, object) {
            LARGE => self.large.get(&object).copied().unwrap_or_else(|| LARGE.into()),
            size => size.into(),
        }
    }

    /// Returns the sum of the sizes of all objects in bytes.
    pub fn total_bytes(&self) -> u64 {
        (0..self.object_count()).fold(0, |sum: u64, object| sum.saturating_add(self.size_of(object)))
    }

    /// Returns the address of an object, or its identifier in the file it was read from.
    pub fn address_of(&self, object: ObjectId) -> u64 {
        at(&self.addresses, object)
    }

    /// Returns the object at this address. Searches all objects.
    pub fn object_at(&self, address: u64) -> Option<ObjectId> {
        self.addresses.iter().position(|it| *it == address).map(crate::dense::small)
    }

    /// Returns the objects that an object references. A value of a dependent handle is referenced by its key.
    #[inline]
    pub fn references_of(&self, object: ObjectId) -> &[ObjectId] {
        let start = at(&self.starts, object) as usize;
        let end = at(&self.starts, object.saturating_add(1)) as usize;
        self.references.get(start..end).unwrap_or_default()
    }

    /// Whether a reference is a dependent handle, which keeps `to` alive as long as `from` is alive.
    pub fn is_dependent(&self, from: ObjectId, to: ObjectId) -> bool {
        self.dependent.binary_search(&(from, to)).is_ok()
    }

    /// Returns the number of dependent handles.
    pub fn dependent_count(&self) -> usize {
        self.dependent.len()
    }

    /// Returns the roots.
    pub fn roots(&self) -> &[Root] {
        &self.roots
    }

    /// Returns the name of a root, such as that of a static field. `None` if it has none.
    pub fn root_name(&self, root: &Root) -> Option<&str> {
        self.root_names.get(root.name? as usize).map(String::as_str)
    }

    /// Returns the name of the class that an object of type `java.lang.Class` represents. `None` if unknown, and for other
    /// objects.
    pub fn represented_class(&self, object: ObjectId) -> Option<&str> {
        self.root_names.get(*self.represented.get(&object)? as usize).map(String::as_str)
    }

    /// Returns the number of weak references, which do not keep objects alive and are not part of the graph.
    pub fn weak_references(&self) -> u64 {
        self.weak_references
    }

    /// Returns the number of references to addresses without an object. They are not part of the graph.
    pub fn dangling_references(&self) -> u64 {
        self.dangling_references
    }

    /// Returns the number of objects at an address that an earlier object has. No reference leads to them.
    pub fn repeated_addresses(&self) -> u64 {
        self.repeated_addresses
    }

    /// Whether it is known what keeps objects alive. Without roots, an incomplete graph does not state that.
    pub fn has_known_roots(&self) -> bool {
        self.incomplete.is_none() || !self.roots.is_empty()
    }

    /// Returns why the graph does not contain the whole heap. `None` if it does.
    pub fn incomplete(&self) -> Option<&Incomplete> {
        self.incomplete.as_ref()
    }

    /// Returns the memory that the graph occupies, in bytes, without the names of types and roots.
    pub fn memory_bytes(&self) -> usize {
        4 * (self.type_of.capacity() + self.sizes.capacity() + self.starts.capacity())
            + 4 * self.references.capacity()
            + 8 * (self.addresses.capacity() + self.dependent.capacity())
            + 16 * self.large.capacity()
            + size_of::<Root>() * self.roots.capacity()
    }
}
