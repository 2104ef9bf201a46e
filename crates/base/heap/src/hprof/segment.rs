//! The parts of the heap in a dump: roots, classes, instances and arrays.

use runtap_wire::{DecodeError, DecodeErrorKind, Reader};

use crate::hprof::classes::{Classes, MAX_LAYOUT_FIELDS, REFERENCE, Special, array_name, size_of_type};
use crate::hprof::frames::Frames;
use crate::hprof::sizes::{Shape, Sizes};
use crate::hprof::texts::Texts;
use crate::hprof::{HeapDump, beyond_record};
use crate::{GraphBuilder, Incomplete, ObjectId, RootKind, TypeId};

/// The greatest size of the data of an instance in bytes. A class has at most 65,535 fields in each of its superclasses.
const MAX_INSTANCE: u32 = 1 << 24;

const CLASS: u8 = 0x20;
const INSTANCE: u8 = 0x21;
const REFERENCE_ARRAY: u8 = 0x22;
const VALUE_ARRAY: u8 = 0x23;
/// Android: an array without its contents.
const BARE_ARRAY: u8 = 0xc3;
/// Android: the name of the heap of the following objects.
const HEAP_INFO: u8 = 0xfe;
/// Android: an object that no root reaches.
const UNREACHABLE: u8 = 0x90;

/// Returns the kind of a root, and the number of bytes behind its id that do not depend on the size of ids.
fn root_kind(tag: u8) -> Option<(RootKind, usize)> {
    Some(match tag {
        0x01 => (RootKind::JniGlobal, 0),
        0x02 => (RootKind::JniLocal, 8),
        0x03 => (RootKind::Stack, 8),
        0x04 => (RootKind::NativeStack, 4),
        0x05 => (RootKind::SystemClass, 0),
        0x06 => (RootKind::ThreadBlock, 4),
        0x07 => (RootKind::Monitor, 0),
        0x08 => (RootKind::Thread, 8),
        0x89 => (RootKind::InternedString, 0),
        0x8a => (RootKind::Finalizer, 0),
        0x8b..=0x8d => (RootKind::Vm, 0),
        0x8e => (RootKind::Monitor, 8),
        0xff => (RootKind::Unknown, 0),
        _ => return None,
    })
}

/// Builds a heap dump from its parts.
#[derive(Debug, Default)]
pub(super) struct DumpBuilder {
    pub(super) graph: GraphBuilder,
    pub(super) classes: Classes,
    pub(super) frames: Frames,
    /// Whether the heap is in a record that needs no end marker.
    pub(super) is_old_dump: bool,
    sizes: Sizes,
    texts: Texts,
    id_bytes: u8,
    /// The types of arrays of basic types.
    array_types: [Option<TypeId>; 12],
    class_type: Option<TypeId>,
    /// Instances that are in the dump before their class: address, class, data and the offset of that in the file.
    early: Vec<(u64, u64, Box<[u8]>, u64)>,
    /// The objects that represent classes, with the ids of these classes.
    class_objects: Vec<(ObjectId, u64)>,
    /// The elements of an array of references that have not been read yet.
    elements_left: u64,
    /// The bytes of an array that are not needed.
    skip: u64,
}

impl DumpBuilder {
    pub(super) fn set_id_bytes(&mut self, bytes: u8) {
        self.id_bytes = bytes;
        self.classes.set_id_bytes(bytes);
    }

    pub(super) fn id_bytes(&self) -> u8 {
        self.id_bytes
    }

    #[inline]
    pub(super) fn id(&self, r: &mut Reader<'_>, what: &'static str) -> Result<u64, DecodeError> {
        if self.id_bytes == 8 {
            Ok(u64::from_be_bytes(r.array(what)?))
        } else {
            Ok(u32::from_be_bytes(r.array(what)?).into())
        }
    }

    /// Reads the available bytes of a part of the heap whose remaining size is `left`. Returns the size that then remains.
    pub(super) fn read(&mut self, r: &mut Reader<'_>, left: u64) -> Result<u64, DecodeError> {
        let start = r.offset();
        let is_last = left <= r.remaining() as u64;
        let part = if is_last { usize::try_from(left).unwrap_or(usize::MAX) } else { r.remaining() };
        let mut part = Reader::at(r.rest().get(..part).unwrap_or_default(), start);
        let result = loop {
            self.arrays(&mut part)?;
            if part.is_empty() || self.skip > 0 || self.elements_left > 0 {
                break Ok(());
            }
            let mut next = part.clone();
            match self.object(&mut next) {
                Ok(()) => part = next,
                Err(error) if error.is_incomplete() && is_last => break Err(beyond_record(&error)),
                Err(error) if error.is_incomplete() => break Ok(()),
                Err(error) => break Err(error),
            }
        };
        let read = part.offset() - start;
        if result.is_ok() && is_last && (self.skip > 0 || self.elements_left > 0) {
            return Err(part.error("array", DecodeErrorKind::Invalid("extends beyond its record")));
        }
        r.bytes(usize::try_from(read).unwrap_or(usize::MAX), "heap")?;
        result.map(|()| left - read)
    }

    /// Reads the elements of the current array.
    fn arrays(&mut self, r: &mut Reader<'_>) -> Result<(), DecodeError> {
        if self.skip > 0 {
            let n = self.skip.min(r.remaining() as u64);
            r.bytes(usize::try_from(n).unwrap_or(usize::MAX), "array")?;
            self.skip -= n;
        }
        while self.elements_left > 0 && r.remaining() >= usize::from(self.id_bytes) {
            let target = self.id(r, "element")?;
            if target != 0 {
                self.graph.reference(target);
            }
            self.elements_left -= 1;
        }
        Ok(())
    }

    /// Reads an object or a root. Changes nothing if that is incomplete.
    #[inline]
    fn object(&mut self, r: &mut Reader<'_>) -> Result<(), DecodeError> {
        match r.u8("tag in a heap")? {
            INSTANCE => self.instance(r),
            VALUE_ARRAY => self.value_array(r, true),
            REFERENCE_ARRAY => self.reference_array(r),
            CLASS => self.class(r),
            BARE_ARRAY => self.value_array(r, false),
            HEAP_INFO => {
                r.bytes(4, "heap type")?;
                self.id(r, "heap name").map(drop)
            }
            UNREACHABLE => self.id(r, "object").map(drop),
            tag => {
                let Some((kind, more)) = root_kind(tag) else {
                    let kind =
                        DecodeErrorKind::Unexpected { value: tag.into(), expected: "a tag of hprof 1.0.2" };
                    return Err(DecodeError::new(r.offset() - 1, "tag in a heap", kind));
                };
                let object = self.id(r, "rooted object")?;
                if kind == RootKind::JniGlobal {
                    self.id(r, "JNI reference")?;
                }
                let mut origin = Reader::at(r.bytes(more, "thread of a root")?, 0);
                let mut name = None;
                if matches!(kind, RootKind::Stack | RootKind::JniLocal) {
                    let thread = u32::from_be_bytes(origin.array("thread of a root")?);
                    let frame = u32::from_be_bytes(origin.array("frame of a root")?);
                    name = self.frames.root_name(thread, frame, &self.classes, &mut self.graph);
                }
                self.graph.named_root(object, kind, name);
                Ok(())
            }
        }
    }

    fn instance(&mut self, r: &mut Reader<'_>) -> Result<(), DecodeError> {
        let address = self.id(r, "instance")?;
        r.bytes(4, "stack trace of an instance")?;
        let class = self.id(r, "class of an instance")?;
        let size = u32::from_be_bytes(r.clone().array("size of an instance")?);
        if size > MAX_INSTANCE {
            let kind = DecodeErrorKind::TooLarge { value: size.into(), limit: MAX_INSTANCE.into() };
            return Err(r.error("size of an instance", kind));
        }
        r.bytes(4, "size of an instance")?;
        let offset = r.offset();
        let data = r.bytes(size as usize, "fields of an instance")?;
        match self.classes.layout_id(class) {
            Some(layout) => self.add_instance(address, class, layout, (data, offset)),
            None => self.early.push((address, class, data.into(), offset)),
        }
        Ok(())
    }

    #[inline]
    fn add_instance(&mut self, address: u64, class: u64, layout: u32, (data, offset): (&[u8], u64)) {
        let type_id = self.graph.type_of(class);
        let Some((layout, offsets)) = self.classes.layout(layout) else { return };
        let shape = Shape::Instance { references: layout.reference_count, value_bytes: layout.value_bytes };
        self.sizes.set_shape(type_id, shape);
        self.graph.object(address, type_id, 0);
        let id_at = |offset: u32| {
            let bytes = data.get(offset as usize..).unwrap_or_default();
            if self.id_bytes == 8 {
                bytes.first_chunk().map_or(0, |id| u64::from_be_bytes(*id))
            } else {
                bytes.first_chunk().map_or(0, |id| u32::from_be_bytes(*id).into())
            }
        };
        let offsets = offsets.iter().take_while(|offset| (**offset as usize) < data.len());
        for target in offsets.map(|offset| id_at(*offset)).filter(|target| *target != 0) {
            self.graph.reference(target);
        }
        if data.len() < layout.bytes as usize {
            let kind = DecodeErrorKind::Invalid("are fewer than those of its class");
            self.graph.incomplete(Incomplete::Damaged(DecodeError::new(
                offset,
                "fields of an instance",
                kind,
            )));
        }
        // An object keeps its class alive, and that its class loader.
        self.graph.reference(class);
        match layout.special {
            Special::No => {}
            Special::Weak(offset) => {
                if id_at(offset) != 0 {
                    self.graph.weak_reference();
                }
            }
            Special::Text(coder) => {
                let coder = coder.and_then(|offset| data.get(offset as usize).copied());
                self.texts.add_text(self.graph.object_count() - 1, coder);
            }
        }
    }

    fn reference_array(&mut self, r: &mut Reader<'_>) -> Result<(), DecodeError> {
        let address = self.id(r, "array")?;
        r.bytes(4, "stack trace of an array")?;
        let count = u32::from_be_bytes(r.array("length of an array")?);
        let class = self.id(r, "class of an array")?;
        let type_id = self.graph.type_of(class);
        self.sizes.set_shape(type_id, Shape::References);
        self.graph.object(address, type_id, count.into());
        self.graph.reference(class);
        self.elements_left = count.into();
        Ok(())
    }

    fn value_array(&mut self, r: &mut Reader<'_>, has_contents: bool) -> Result<(), DecodeError> {
        let address = self.id(r, "array")?;
        r.bytes(4, "stack trace of an array")?;
        let count = u32::from_be_bytes(r.array("length of an array")?);
        let basic_type = r.clone().u8("type of an array")?;
        let (Some(size), Some(name)) = (size_of_type(basic_type), array_name(basic_type)) else {
            let kind =
                DecodeErrorKind::Unexpected { value: basic_type.into(), expected: "a basic type, 4 to 11" };
            return Err(r.error("type of an array", kind));
        };
        r.u8("type of an array")?;
        let length = u64::from(count) * u64::from(size);
        let is_text = has_contents && Texts::takes(basic_type, length);
        let contents =
            if is_text { r.bytes(usize::try_from(length).unwrap_or(usize::MAX), "array")? } else { &[] };
        let graph = &mut self.graph;
        let type_id = match self.array_types.get_mut(usize::from(basic_type)) {
            Some(known) => *known.get_or_insert_with(|| graph.add_type(name, None)),
            None => return Ok(()),
        };
        self.sizes.set_shape(type_id, Shape::Values { element_bytes: size });
        graph.object(address, type_id, count.into());
        if is_text {
            self.texts.add_array(graph.object_count() - 1, basic_type, contents);
        } else if has_contents {
            self.skip = length;
        }
        Ok(())
    }

    fn class(&mut self, r: &mut Reader<'_>) -> Result<(), DecodeError> {
        let class = self.id(r, "class")?;
        r.bytes(4, "stack trace of a class")?;
        let superclass = self.id(r, "superclass")?;
        let mut targets = vec![superclass];
        for what in ["class loader", "signers", "protection domain"] {
            targets.push(self.id(r, what)?);
        }
        r.bytes(2 * usize::from(self.id_bytes) + 4, "size of instances")?;
        for _ in 0..u16::from_be_bytes(r.array("number of constants")?) {
            r.bytes(2, "index of a constant")?;
            self.value(r)?;
        }
        let (mut references, mut value_bytes) = (0u32, 0u32);
        for _ in 0..u16::from_be_bytes(r.array("number of static fields")?) {
            self.id(r, "name of a static field")?;
            match self.value(r)? {
                StaticValue::Reference(target) => {
                    references += 1;
                    targets.push(target);
                }
                StaticValue::Bytes(size) => value_bytes += u32::from(size),
            }
        }
        let count = u16::from_be_bytes(r.array("number of fields")?);
        let mut fields = Vec::new();
        for _ in 0..count {
            let name = self.id(r, "name of a field")?;
            let basic_type = r.clone().u8("type of a field")?;
            if basic_type != REFERENCE && size_of_type(basic_type).is_none() {
                let kind = DecodeErrorKind::Unexpected {
                    value: basic_type.into(),
                    expected: "a type, 2 or 4 to 11",
                };
                return Err(r.error("type of a field", kind));
            }
            r.u8("type of a field")?;
            fields.push((name, basic_type));
        }
        self.classes.define(class, superclass, fields);
        let graph = &mut self.graph;
        let type_id = *self.class_type.get_or_insert_with(|| graph.add_type("java.lang.Class", None));
        self.sizes.set_shape(type_id, Shape::Class);
        graph.object(class, type_id, 0);
        for target in targets.into_iter().filter(|target| *target != 0) {
            graph.reference(target);
        }
        if let Some(object) = graph.object_count().checked_sub(1) {
            self.class_objects.push((object, class));
            self.sizes.add_static_fields(object, references, value_bytes);
        }
        Ok(())
    }

    fn value(&self, r: &mut Reader<'_>) -> Result<StaticValue, DecodeError> {
        let basic_type = r.clone().u8("type of a value")?;
        let size = size_of_type(basic_type);
        if basic_type != REFERENCE && size.is_none() {
            let kind =
                DecodeErrorKind::Unexpected { value: basic_type.into(), expected: "a type, 2 or 4 to 11" };
            return Err(r.error("type of a value", kind));
        }
        r.u8("type of a value")?;
        Ok(match size {
            Some(size) => {
                r.bytes(usize::from(size), "value")?;
                StaticValue::Bytes(size)
            }
            None => StaticValue::Reference(self.id(r, "reference")?),
        })
    }

    /// Returns the heap dump.
    pub(super) fn finish(mut self) -> HeapDump {
        let unknown = Shape::Instance { references: 0, value_bytes: 0 };
        for (address, class, data, offset) in std::mem::take(&mut self.early) {
            if let Some(layout) = self.classes.layout_id(class) {
                self.add_instance(address, class, layout, (&data, offset));
            } else {
                let type_id = self.graph.type_of(class);
                self.sizes.set_shape(type_id, unknown);
                self.graph.object(address, type_id, 0);
            }
        }
        if self.classes.has_too_many_fields() {
            let subject = "fields of classes";
            self.graph.incomplete(Incomplete::TooMany { subject, limit: MAX_LAYOUT_FIELDS });
        }
        self.classes.name_types(&mut self.graph);
        self.classes.name_class_objects(&self.class_objects, &mut self.graph);
        let class_type = self.classes.class_of_classes().map(|class| (self.graph.type_of(class), class));
        if let Some((type_id, class)) = class_type
            && let Some(layout) = self.classes.layout_id(class)
            && let Some((layout, _)) = self.classes.layout(layout)
        {
            // There may be no instances apart from classes themselves.
            let shape =
                Shape::Instance { references: layout.reference_count, value_bytes: layout.value_bytes };
            self.sizes.set_shape(type_id, shape);
        }
        self.sizes.apply(&mut self.graph.graph, self.id_bytes, class_type.map(|(type_id, _)| type_id));
        let graph = self.graph.finish();
        let texts = self.texts.finish(&graph);
        HeapDump { graph, texts }
    }
}

/// The value of a static field.
enum StaticValue {
    Reference(u64),
    /// The size of another value.
    Bytes(u8),
}
