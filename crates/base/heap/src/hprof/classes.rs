//! Classes: their names, their fields, and where the references are in the data of an instance.

use std::ops::Range;

use crate::dense::{Map, small};
use crate::{GraphBuilder, ObjectId, TypeId};

/// The greatest number of superclasses. Longer chains are cycles.
const MAX_SUPERCLASSES: usize = 1 << 12;
/// The greatest number of classes and fields in all layouts together, each with its superclasses. Large applications have
/// a few million.
pub(super) const MAX_LAYOUT_FIELDS: u32 = 1 << 24;
/// The greatest number of dimensions of an array, which is that of the JVM.
const MAX_DIMENSIONS: usize = 255;
/// The greatest length of a name that is shown, in bytes.
const MAX_NAME: usize = 1 << 12;

/// The type of a field that contains a reference.
pub(super) const REFERENCE: u8 = 2;

/// Returns the size of a value of a basic type in bytes. `None` for references and unknown types.
pub(super) fn size_of_type(basic_type: u8) -> Option<u8> {
    Some(match basic_type {
        4 | 8 => 1,
        5 | 9 => 2,
        6 | 10 => 4,
        7 | 11 => 8,
        _ => return None,
    })
}

/// Returns the name of an array of a basic type.
pub(super) fn array_name(basic_type: u8) -> Option<&'static str> {
    Some(match basic_type {
        4 => "boolean[]",
        5 => "char[]",
        6 => "float[]",
        7 => "double[]",
        8 => "byte[]",
        9 => "short[]",
        10 => "int[]",
        11 => "long[]",
        _ => return None,
    })
}

/// What is special about the instances of a class.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Special {
    /// Nothing.
    No,
    /// It is a weak or phantom reference to the object at this offset of its data.
    Weak(u32),
    /// It is a `java.lang.String` with a coder (0 for Latin-1, 1 for UTF-16) at this offset, if there is one.
    Text(Option<u32>),
}

/// Where the references are in the data of an instance.
#[derive(Debug, Clone)]
pub(super) struct Layout {
    /// The range of their offsets, for [`Classes::offsets`].
    references: Range<u32>,
    /// The size of all fields in the dump, in bytes.
    pub(super) bytes: u32,
    /// The sum of the sizes of other fields in bytes.
    pub(super) value_bytes: u32,
    /// The number of fields with references.
    pub(super) reference_count: u32,
    pub(super) special: Special,
}

#[derive(Debug)]
struct Class {
    superclass: u64,
    /// Names and types.
    fields: Vec<(u64, u8)>,
}

/// All classes of a dump.
#[derive(Debug, Default)]
pub(super) struct Classes {
    names: Map<u64, Range<u32>>,
    /// The texts of all names.
    texts: Vec<u8>,
    /// The ids and name ids of loaded classes.
    loaded: Vec<(u64, u64)>,
    class_names: Map<u64, u64>,
    defined: Map<u64, Class>,
    layout_ids: Map<u64, u32>,
    /// Classes without a layout, and the class that has to be defined first. `None` if there can be no layout.
    failed: Map<u64, Option<u64>>,
    /// The number of classes and fields that were read for layouts.
    steps: u32,
    layouts: Vec<Layout>,
    offsets: Vec<u32>,
    last: Option<(u64, u32)>,
    id_bytes: u8,
}

impl Classes {
    pub(super) fn set_id_bytes(&mut self, bytes: u8) {
        self.id_bytes = bytes;
    }

    pub(super) fn add_name(&mut self, id: u64, text: &[u8]) {
        if self.texts.len().saturating_add(text.len()) < u32::MAX as usize {
            let start = small(self.texts.len());
            self.texts.extend_from_slice(text);
            self.names.insert(id, start..small(self.texts.len()));
        }
    }

    pub(super) fn name(&self, id: u64) -> &[u8] {
        let range = self.names.get(&id).cloned().unwrap_or_default();
        self.texts.get(range.start as usize..range.end as usize).unwrap_or_default()
    }

    pub(super) fn load(&mut self, class: u64, name: u64) {
        self.loaded.push((class, name));
        self.class_names.insert(class, name);
    }

    /// Gives the types that have objects their names, as in Java source. Types of classes with the same name become one.
    pub(super) fn name_types(&self, graph: &mut GraphBuilder) {
        let mut named: Map<u64, TypeId> = Map::default();
        for (class, name) in &self.loaded {
            // A class may be loaded again with another name.
            let is_current = self.class_names.get(class) == Some(name);
            let Some(type_id) = graph.known_type(*class).filter(|_| is_current) else { continue };
            let first = *named.entry(*name).or_insert_with(|| {
                graph.name_type(type_id, &source_name(self.name(*name)), None);
                type_id
            });
            graph.merge_type(type_id, first);
        }
    }

    /// States which classes objects represent: pairs of an object and the id of its class.
    pub(super) fn name_class_objects(&self, objects: &[(ObjectId, u64)], graph: &mut GraphBuilder) {
        // Any number of classes may have one name, which is stored once.
        let mut indexes: Map<u64, u32> = Map::default();
        for (object, class) in objects {
            let Some(name) = self.class_names.get(class).filter(|name| self.names.contains_key(*name)) else {
                continue;
            };
            let index =
                *indexes.entry(*name).or_insert_with(|| graph.add_root_name(source_name(self.name(*name))));
            graph.graph.represented.insert(*object, index);
        }
    }

    /// Returns the class `java.lang.Class`.
    pub(super) fn class_of_classes(&self) -> Option<u64> {
        let is_class = |name: u64| matches!(self.name(name), b"java/lang/Class" | b"java.lang.Class");
        self.loaded.iter().rfind(|(_, name)| is_class(*name)).map(|(class, _)| *class)
    }

    pub(super) fn define(&mut self, class: u64, superclass: u64, fields: Vec<(u64, u8)>) {
        self.defined.insert(class, Class { superclass, fields });
    }

    /// Returns the number of the layout of a class. `None` if the class or a superclass has not been described yet.
    #[inline]
    pub(super) fn layout_id(&mut self, class: u64) -> Option<u32> {
        match self.last {
            Some((last, id)) if last == class => Some(id),
            _ => self.find_layout(class),
        }
    }

    fn find_layout(&mut self, class: u64) -> Option<u32> {
        let id = if let Some(id) = self.layout_ids.get(&class) {
            *id
        } else {
            if self.failed.get(&class).is_some_and(|missing| !missing.is_some_and(|it| self.is_defined(it))) {
                return None;
            }
            if let Err(missing) = self.check_superclasses(class) {
                self.failed.insert(class, missing);
                return None;
            }
            let layout = self.lay_out(class);
            if self.has_too_many_fields() {
                self.failed.insert(class, None);
                return None;
            }
            let id = small(self.layouts.len());
            self.layouts.push(layout);
            self.layout_ids.insert(class, id);
            id
        };
        self.last = Some((class, id));
        Some(id)
    }

    pub(super) fn layout(&self, id: u32) -> Option<(&Layout, &[u32])> {
        let layout = self.layouts.get(id as usize)?;
        let range = layout.references.start as usize..layout.references.end as usize;
        Some((layout, self.offsets.get(range).unwrap_or_default()))
    }

    fn is_defined(&self, class: u64) -> bool {
        self.defined.contains_key(&class)
    }

    /// Whether there are more than [`MAX_LAYOUT_FIELDS`]; further classes have no layouts.
    pub(super) fn has_too_many_fields(&self) -> bool {
        self.steps >= MAX_LAYOUT_FIELDS
    }

    /// Checks that a class and all its superclasses are defined.
    ///
    /// # Errors
    /// The class that is not defined; `None` if there are too many.
    fn check_superclasses(&mut self, class: u64) -> Result<(), Option<u64>> {
        let (mut next, mut depth) = (class, 0);
        while next != 0 {
            depth += 1;
            self.steps = self.steps.saturating_add(1);
            if depth >= MAX_SUPERCLASSES || self.has_too_many_fields() {
                return Err(None);
            }
            next = self.defined.get(&next).ok_or(Some(next))?.superclass;
        }
        Ok(())
    }

    /// Computes the layout of a class whose superclasses are defined. The data starts with the fields of the class itself, followed by those of the
    /// superclass.
    fn lay_out(&mut self, class: u64) -> Layout {
        let (mut offset, mut value_bytes, mut reference_count) = (0u32, 0, 0);
        let mut offsets = Vec::new();
        let (mut referent, mut coder) = (None, None);
        let (mut is_weak, mut steps, mut next) = (false, self.steps, class);
        let is_text = self.class_name(class) == b"java/lang/String";
        while let Some(Class { superclass, fields }) = self.defined.get(&next).filter(|_| next != 0) {
            steps = steps.saturating_add(small(fields.len()));
            if steps >= MAX_LAYOUT_FIELDS {
                break;
            }
            let name = self.class_name(next);
            is_weak |= matches!(name, b"java/lang/ref/WeakReference" | b"java/lang/ref/PhantomReference");
            let is_reference = name == b"java/lang/ref/Reference";
            for (field, basic_type) in fields {
                let size = size_of_type(*basic_type);
                if let Some(size) = size {
                    value_bytes += u32::from(size);
                    if is_text && self.name(*field) == b"coder" {
                        coder = Some(offset);
                    }
                } else {
                    reference_count += 1;
                    if is_reference && self.name(*field) == b"referent" {
                        referent = Some(offset);
                    }
                    offsets.push(offset);
                }
                offset += u32::from(size.unwrap_or(self.id_bytes));
            }
            next = *superclass;
        }
        let special = match referent {
            Some(referent) if is_weak => {
                offsets.retain(|offset| *offset != referent);
                Special::Weak(referent)
            }
            _ if is_text => Special::Text(coder),
            _ => Special::No,
        };
        self.steps = steps;
        let start = small(self.offsets.len());
        self.offsets.extend(offsets);
        let references = start..small(self.offsets.len());
        Layout { references, bytes: offset, value_bytes, reference_count, special }
    }

    fn class_name(&self, class: u64) -> &[u8] {
        self.class_names.get(&class).map_or(&[], |name| self.name(*name))
    }
}

/// Turns the internal name of a class, such as `[Ljava/lang/String;`, into that of Java source, such as
/// `java.lang.String[]`.
pub(crate) fn source_name(internal: &[u8]) -> String {
    let dimensions = internal.iter().take(MAX_DIMENSIONS).take_while(|byte| **byte == b'[').count();
    let element = internal.get(dimensions..).unwrap_or_default();
    let text = String::from_utf8_lossy(element.get(..MAX_NAME).unwrap_or(element));
    let mut name = match (dimensions, &*text) {
        (1.., "Z") => "boolean".to_owned(),
        (1.., "C") => "char".to_owned(),
        (1.., "F") => "float".to_owned(),
        (1.., "D") => "double".to_owned(),
        (1.., "B") => "byte".to_owned(),
        (1.., "S") => "short".to_owned(),
        (1.., "I") => "int".to_owned(),
        (1.., "J") => "long".to_owned(),
        (1.., text) => {
            text.strip_prefix('L').and_then(|text| text.strip_suffix(';')).unwrap_or(text).replace('/', ".")
        }
        (0, text) => text.replace('/', "."),
    };
    (0..dimensions).for_each(|_| name.push_str("[]"));
    name
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_those_of_source() {
        for (internal, name) in [
            ("java/lang/String", "java.lang.String"),
            ("[Ljava/lang/String;", "java.lang.String[]"),
            ("[[J", "long[][]"),
            ("J", "J"),
            ("[", "[]"),
            ("a/B$1", "a.B$1"),
            ("[java.lang.Object", "java.lang.Object[]"),
        ] {
            assert_eq!(source_name(internal.as_bytes()), name, "{internal}");
        }
        assert_eq!(source_name(&b"[".repeat(65_535)).len(), MAX_NAME + 2 * MAX_DIMENSIONS);
    }

    #[test]
    fn a_class_that_is_its_own_superclass_has_no_layout() {
        let mut classes = Classes::default();
        classes.define(1, 1, vec![(0, REFERENCE)]);
        classes.define(2, 3, Vec::new());
        assert_eq!([1, 2, 3].map(|class| classes.layout_id(class)), [None; 3]);
    }

    #[test]
    fn a_class_without_a_layout_is_looked_up_once_until_its_superclass_is_defined() {
        let mut classes = Classes::default();
        classes.define(1, 1, Vec::new());
        classes.define(2, 3, Vec::new());
        let _ = [1, 2].map(|class| classes.layout_id(class));
        let steps = classes.steps;
        assert_eq!([1, 2].map(|class| classes.layout_id(class)), [None; 2]);
        assert_eq!(classes.steps, steps);
        classes.define(3, 0, vec![(0, REFERENCE)]);
        assert!(classes.layout_id(2).is_some());
    }

    #[test]
    fn all_layouts_together_have_a_limited_size() {
        let mut classes = Classes::default();
        classes.define(1, 0, vec![(0, REFERENCE); 65_535]);
        (2..400).for_each(|class| classes.define(class, 1, Vec::new()));
        let count = (2..400).filter(|class| classes.layout_id(*class).is_some()).count();
        assert_eq!(count, 255);
        assert!(classes.has_too_many_fields() && classes.offsets.len() <= MAX_LAYOUT_FIELDS as usize);
    }
}
