//! The sizes of objects in a JVM. A dump states the fields and the lengths of arrays, not the sizes: those depend on
//! headers, on compressed references and on the order of fields.
//!
//! `HotSpot` writes objects in the order of addresses, one directly behind the other (`heapDumper.cpp`), so the
//! distances between addresses show which headers and references the JVM has, and how large the instances of a class
//! are. Where no distance is known, the size is computed from the fields without gaps between them.

use crate::Graph;
use crate::TypeId;
use crate::dense::{at, set};
use crate::graph::LARGE;

/// The alignment of objects in bytes.
const ALIGNMENT: u64 = 8;
/// The greatest number of bytes of gaps between fields, and of fields that the JVM adds.
const MAX_GAPS: u64 = 64;
/// What `@Contended` adds: 128 bytes before the fields and 128 behind them (`-XX:ContendedPaddingWidth`).
const PADDING: u64 = 256;
/// The headers of arrays: compact or of a 32-bit JVM; with compressed class pointers; without, from JDK 23 on; before.
const ARRAY_HEADERS: [u64; 4] = [12, 16, 20, 24];
const REFERENCES: [u64; 2] = [4, 8];

/// What the objects of a type consist of.
#[derive(Debug, Clone, Copy)]
pub(super) enum Shape {
    /// Fields.
    Instance { references: u32, value_bytes: u32 },
    /// Elements of a basic type.
    Values { element_bytes: u8 },
    /// Elements that are references.
    References,
    /// A class, with its static fields.
    Class,
}

/// Collects what determines the sizes of objects.
#[derive(Debug, Default)]
pub(super) struct Sizes {
    /// By type.
    shapes: Vec<Option<Shape>>,
    /// The number of references and the bytes of other values in the static fields of classes, by object in order.
    static_fields: Vec<(u32, u32, u32)>,
}

/// The object layout of a JVM, in bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Jvm {
    array_header: u64,
    header: u64,
    reference: u64,
}

impl Sizes {
    #[inline]
    pub(super) fn set_shape(&mut self, type_id: TypeId, shape: Shape) {
        let index = type_id as usize;
        if self.shapes.get(index).is_some_and(Option::is_some) {
            return;
        }
        if self.shapes.len() <= index {
            self.shapes.resize(index + 1, None);
        }
        if let Some(place) = self.shapes.get_mut(index) {
            *place = Some(shape);
        }
    }

    pub(super) fn add_static_fields(&mut self, object: u32, references: u32, value_bytes: u32) {
        self.static_fields.push((object, references, value_bytes));
    }

    /// Replaces the lengths of arrays by the sizes of all objects. `class_type` is the type of instances of
    /// `java.lang.Class` that are no loaded classes.
    pub(super) fn apply(&self, graph: &mut Graph, id_bytes: u8, class_type: Option<TypeId>) {
        let jvm = self.measure(graph, id_bytes);
        let mut distances = vec![u64::MAX; self.shapes.len()];
        for (object, distance) in distances_of(graph) {
            if let Some(least) = distances.get_mut(graph.type_of(object) as usize) {
                *least = distance.min(*least);
            }
        }
        let instance = |type_id: TypeId, references: u32, value_bytes: u32| {
            let least = jvm.instance(references, value_bytes);
            let distance = distances.get(type_id as usize).copied().unwrap_or(u64::MAX);
            let is_size = |least: u64| (least..=least + MAX_GAPS).contains(&distance);
            if is_size(least) || is_size(least + PADDING) { distance } else { least }
        };
        let class = match class_type.and_then(|id| Some((id, (*self.shapes.get(id as usize)?)?))) {
            Some((id, Shape::Instance { references, value_bytes })) => instance(id, references, value_bytes),
            _ => jvm.header,
        };
        let mut static_fields = self.static_fields.iter();
        let lengths = std::mem::take(&mut graph.large);
        for object in 0..graph.object_count() {
            let length = match at(&graph.sizes, object) {
                LARGE => lengths.get(&object).copied().unwrap_or_else(|| LARGE.into()),
                length => length.into(),
            };
            let type_id = graph.type_of(object);
            let size = match self.shapes.get(type_id as usize).copied().flatten() {
                Some(Shape::Instance { references, value_bytes }) => {
                    instance(type_id, references, value_bytes)
                }
                Some(Shape::Values { element_bytes }) => jvm.array(length, element_bytes.into()),
                Some(Shape::References) => jvm.array(length, jvm.reference),
                Some(Shape::Class) => {
                    let fields = static_fields.next().filter(|fields| fields.0 == object);
                    let (_, references, value_bytes) = fields.copied().unwrap_or_default();
                    aligned(class + u64::from(references) * jvm.reference + u64::from(value_bytes))
                }
                None => jvm.header,
            };
            let short = u32::try_from(size).unwrap_or(LARGE);
            if short == LARGE {
                graph.large.insert(object, size);
            }
            set(&mut graph.sizes, object, short);
        }
    }

    /// Determines the layout of objects from the distances between arrays and the objects behind them.
    fn measure(&self, graph: &Graph, id_bytes: u8) -> Jvm {
        let arrays = |shape: fn(Shape) -> Option<u64>| {
            distances_of(graph).filter_map(move |(object, distance)| {
                let element = shape((*self.shapes.get(graph.type_of(object) as usize)?)?)?;
                Some((u64::from(at(&graph.sizes, object)), element, distance))
            })
        };
        let mut headers = ARRAY_HEADERS.map(|header| (0u64, header));
        for (length, element, distance) in arrays(|shape| match shape {
            Shape::Values { element_bytes } => Some(element_bytes.into()),
            _ => None,
        }) {
            for (count, header) in &mut headers {
                *count += u64::from(aligned(*header + length * element) == distance);
            }
        }
        let usual = if id_bytes == 4 { 12 } else { 16 };
        let array_header = best(&headers, usual);
        let mut sizes = REFERENCES.map(|reference| (0u64, reference));
        for (length, _, distance) in arrays(|shape| matches!(shape, Shape::References).then_some(0)) {
            for (count, reference) in &mut sizes {
                *count += u64::from(aligned(array_header + length * *reference) == distance);
            }
        }
        let reference = if id_bytes == 4 { 4 } else { best(&sizes, 4) };
        let header = match array_header {
            12 => 8,
            16 => 12,
            _ => 16,
        };
        Jvm { array_header, header, reference }
    }
}

/// Returns the value that fits most often, preferably the usual one.
fn best(candidates: &[(u64, u64)], usual: u64) -> u64 {
    let best = candidates.iter().max_by_key(|(count, value)| (*count, *value == usual));
    best.map_or(usual, |(_, value)| *value)
}

impl Jvm {
    fn instance(self, references: u32, value_bytes: u32) -> u64 {
        aligned(self.header + u64::from(references) * self.reference + u64::from(value_bytes))
    }

    fn array(self, length: u64, element: u64) -> u64 {
        aligned(self.array_header + length * element)
    }
}

fn aligned(size: u64) -> u64 {
    size.next_multiple_of(ALIGNMENT)
}

/// Returns the objects for which the next object in the dump has a greater address, with the distance in bytes.
fn distances_of(graph: &Graph) -> impl Iterator<Item = (u32, u64)> {
    let distances = graph.addresses.windows(2).map(|two| match *two {
        [one, next] => next.saturating_sub(one),
        _ => 0,
    });
    (0..).zip(distances).filter(|(_, distance)| *distance > 0)
}
