//! The graph of a heap from the events with which the runtime describes its objects during a collection.
//!
//! A session with the keywords [`HEAP_KEYWORDS`] at level 5 induces a blocking collection of generation 2. At its end, the
//! runtime sends all objects (`GCBulkNode`, with their number of references) and all references (`GCBulkEdge`, in the
//! same order) in two series of numbered blocks, and the roots. Types (`GCBulkType`) may be sent at any time, once for
//! each session.
//!
//! Sources: `ClrEtwAll.man`, and `eventtrace_bulktype.cpp` and `eventtrace_gcheap.cpp` of dotnet/runtime.

use std::sync::Arc;

use foldhash::fast::RandomState;
use hashbrown::HashMap;
use runtap_heap::{Graph, GraphBuilder, Incomplete, RootKind, TypeId};
use runtap_nettrace::{Event, Observe, StreamItem};
use runtap_wire::{DecodeError, Reader};

use crate::clr::{self, ModuleEvent};

/// The keywords of the events: GC, Type, `GCHeapDump`, `GCHeapCollect` and `GCHeapAndTypeNames`.
pub const HEAP_KEYWORDS: u64 = 0x198_0001;

/// A root that keeps its object at its address.
const PINNED: u32 = 1;
/// A root that does not keep its object alive.
const WEAK: u32 = 2;
/// A root with a reference count.
const COUNTED: u32 = 8;
/// A static field with a value for each thread.
const THREAD_STATIC: u32 = 1;

/// A series of numbered blocks.
#[derive(Debug, Clone, Copy, Default)]
struct Series {
    next: u32,
    missing: u64,
}

/// A type of objects.
#[derive(Debug)]
struct HeapType {
    name: String,
    module: u64,
    /// The id of the last type argument.
    last_argument: Option<u64>,
}

/// The names of the modules that define the last type arguments of generic types: those of the state machines of async methods.
pub type ArgumentModules = HashMap<TypeId, Arc<str>, RandomState>;

/// Builds the graph of the first heap that a recording describes.
///
/// Takes less than 40 bytes an object with one reference.
#[derive(Debug, Default)]
pub struct HeapEvents {
    builder: GraphBuilder,
    pointer_size: u32,
    /// The series of objects, references, roots and dependent handles.
    series: [Series; 4],
    /// The numbers of the references that the objects have, and of those that were sent.
    declared: u64,
    references: u64,
    /// How many references can be attributed to their objects: those before the first missing block.
    max_references: Option<u64>,
    types: HashMap<u64, HeapType, RandomState>,
    /// The ids of types in the order in which they were sent.
    type_order: Vec<u64>,
    modules: HashMap<u64, Arc<str>, RandomState>,
    /// The number of the last collection that started.
    collection: Option<u32>,
    /// The number of the collection that describes the heap; `None` if its start was not recorded.
    of_collection: Option<u32>,
    has_objects: bool,
    has_ended: bool,
    /// Whether another description follows, which is ignored.
    is_closed: bool,
    damaged: Option<DecodeError>,
}

impl Observe for HeapEvents {
    fn item(&mut self, item: &StreamItem<'_>) {
        match item {
            StreamItem::Header(header) => self.pointer_size = header.pointer_size,
            StreamItem::Event(event) => {
                if let Some(metadata) = event.metadata
                    && matches!(metadata.event_id, 1 | 2 | 15..=19 | 36..=38 | 151..=154)
                    && matches!(&*metadata.provider, clr::RUNTIME | clr::RUNDOWN)
                    && let Err(error) = self.event(&metadata.provider, metadata.event_id, event)
                {
                    self.damaged.get_or_insert(error);
                }
            }
            _ => {}
        }
    }
}

impl HeapEvents {
    /// Creates a builder.
    pub fn new() -> Self {
        Self::default()
    }

    /// Whether the description of the heap has ended: the rest of the recording only adds names of modules.
    pub fn has_ended(&self) -> bool {
        self.has_ended
    }

    /// Returns the number of objects so far.
    pub fn object_count(&self) -> u32 {
        self.builder.object_count()
    }

    /// Returns the graph at the end of the recording. `None` if the recording describes no heap.
    pub fn finish(self) -> Option<Graph> {
        self.finish_with_modules().map(|(graph, _)| graph)
    }

    /// Returns the graph, as [`Self::finish`] does, and the modules of type arguments.
    pub fn finish_with_modules(mut self) -> Option<(Graph, ArgumentModules)> {
        if !self.has_objects {
            return None;
        }
        let mut modules = ArgumentModules::default();
        for id in &self.type_order {
            let Some(HeapType { name, module, last_argument }) = self.types.get(id) else { continue };
            let type_id = self.builder.type_of(*id);
            self.builder.name_type(type_id, name, self.modules.get(module).cloned());
            let argument = last_argument.and_then(|argument| self.types.get(&argument));
            if let Some(module) = argument.and_then(|argument| self.modules.get(&argument.module)) {
                modules.insert(type_id, Arc::clone(module));
            }
        }
        let subjects = ["objects", "references", "roots", "dependent handles"];
        for (series, subject) in self.series.iter().zip(subjects).filter(|(series, _)| series.missing > 0) {
            self.builder.incomplete(Incomplete::LostEvents { subject, blocks: series.missing });
        }
        if let Some(error) = self.damaged {
            self.builder.incomplete(Incomplete::Damaged(error));
        }
        if !self.has_ended {
            self.builder.incomplete(Incomplete::NoEnd);
        }
        Some((self.builder.finish(), modules))
    }

    fn event(&mut self, provider: &str, id: u32, event: &Event<'_>) -> Result<(), DecodeError> {
        if let Some(module) = ModuleEvent::decode(provider, id, event.payload)? {
            if let Some(name) = module.short_name() {
                self.modules.insert(module.module_id, name.into());
            }
            return Ok(());
        }
        if provider != clr::RUNTIME {
            return Ok(());
        }
        let mut r = Reader::new(event.payload);
        match id {
            1 => self.collection = Some(r.u32("Count")?),
            2 => {
                let number = r.u32("Count")?;
                if self.has_objects && self.of_collection == Some(number) {
                    (self.has_ended, self.is_closed) = (true, true);
                }
            }
            15 => self.types(&mut r)?,
            16..=19 | 36..=38 if self.is_closed => {}
            16..=19 => {
                if let Err(error) = self.series(id, &mut r) {
                    self.limit_references(id);
                    return Err(error);
                }
            }
            36..=38 => self.other_roots(id, &mut r)?,
            _ => {}
        }
        Ok(())
    }

    fn types(&mut self, r: &mut Reader<'_>) -> Result<(), DecodeError> {
        let count = r.u32("Count")?;
        r.u16("ClrInstanceID")?;
        for _ in 0..count {
            let id = r.u64("TypeID")?;
            let module = r.u64("ModuleID")?;
            r.bytes(9, "TypeNameID")?;
            let name = r.utf16z("Name")?.to_string();
            let parameters = u64::from(r.u32("TypeParameterCount")?) * 8;
            let parameters = r.bytes(usize::try_from(parameters).unwrap_or(usize::MAX), "TypeParameters")?;
            let last_argument = parameters.last_chunk().map(|bytes| u64::from_le_bytes(*bytes));
            if self.types.insert(id, HeapType { name, module, last_argument }).is_none() {
                self.type_order.push(id);
            }
        }
        Ok(())
    }

    /// Reads a block of one of the four series.
    fn series(&mut self, id: u32, r: &mut Reader<'_>) -> Result<(), DecodeError> {
        let index = r.u32("Index")?;
        let count = r.u32("Count")?;
        r.u16("ClrInstanceID")?;
        let number = match id {
            18 => 0,
            19 => 1,
            16 => 2,
            _ => 3,
        };
        if id == 18 && index == 0 && self.has_objects {
            self.is_closed = true;
            return Ok(());
        }
        if let Some(series) = self.series.get_mut(number) {
            let Some(missing) = index.checked_sub(series.next) else { return Ok(()) };
            series.missing += u64::from(missing);
            series.next = index.saturating_add(1);
            if missing > 0 {
                self.limit_references(id);
            }
        }
        if !self.has_objects && id == 18 {
            self.has_objects = true;
            self.of_collection = self.collection;
        }
        for _ in 0..count {
            match id {
                18 => {
                    let address = self.pointer(r, "Address")?;
                    let size = r.u64("Size")?;
                    let type_id = r.u64("TypeID")?;
                    let references = r.u64("EdgeCount")?;
                    let type_id = self.builder.type_of(type_id);
                    let references = u32::try_from(references).unwrap_or(u32::MAX);
                    self.declared = self.declared.saturating_add(references.into());
                    self.builder.object_with(address, type_id, size, references);
                }
                19 => {
                    let target = self.pointer(r, "Value")?;
                    r.u32("ReferencingFieldID")?;
                    if self.max_references.is_none_or(|most| self.references < most) {
                        self.references += 1;
                        self.builder.target(target);
                    }
                }
                16 => {
                    let object = self.pointer(r, "RootedNodeAddress")?;
                    let kind = r.u8("GCRootKind")?;
                    let flags = r.u32("GCRootFlag")?;
                    self.pointer(r, "GCRootID")?;
                    if flags & WEAK != 0 {
                        self.builder.weak_reference();
                    } else if object != 0 {
                        self.builder.root(object, root_kind(kind, flags), None);
                    }
                }
                _ => {
                    let key = self.pointer(r, "GCKeyNodeID")?;
                    let value = self.pointer(r, "GCValueNodeID")?;
                    self.pointer(r, "GCRootID")?;
                    self.builder.dependent(key, value);
                }
            }
        }
        Ok(())
    }

    /// Ignores references from now on that cannot be attributed to objects: those of objects behind a gap in the series
    /// of objects, and all behind a gap in the series of references.
    fn limit_references(&mut self, id: u32) {
        let most = match id {
            18 => self.declared,
            19 => self.references,
            _ => return,
        };
        self.max_references = Some(self.max_references.map_or(most, |before| before.min(most)));
    }

    /// Reads static fields and objects of COM.
    fn other_roots(&mut self, id: u32, r: &mut Reader<'_>) -> Result<(), DecodeError> {
        let count = r.u32("Count")?;
        if id == 38 {
            r.u64("AppDomainID")?;
        }
        r.u16("ClrInstanceID")?;
        for _ in 0..count {
            match id {
                38 => {
                    r.u64("GCRootID")?;
                    let object = r.u64("ObjectID")?;
                    // The type of the object: the event does not state the class of the field.
                    r.u64("TypeID")?;
                    let is_of_thread = r.u32("Flags")? & THREAD_STATIC != 0;
                    let field = r.utf16z("FieldName")?.to_string();
                    let kind = if is_of_thread { RootKind::ThreadStaticField } else { RootKind::StaticField };
                    self.builder.root(object, kind, Some(field).filter(|field| !field.is_empty()));
                }
                36 => {
                    r.u64("GCRootID")?;
                    let object = r.u64("ObjectID")?;
                    r.bytes(28, "TypeID")?;
                    self.builder.root(object, RootKind::ComCallable, None);
                }
                _ => {
                    let object = r.u64("ObjectID")?;
                    r.bytes(32, "TypeID")?;
                    self.builder.root(object, RootKind::ComWrapper, None);
                }
            }
        }
        Ok(())
    }

    #[inline]
    fn pointer(&self, r: &mut Reader<'_>, what: &'static str) -> Result<u64, DecodeError> {
        if self.pointer_size == 4 { r.u32(what).map(u64::from) } else { r.u64(what) }
    }
}

fn root_kind(kind: u8, flags: u32) -> RootKind {
    match kind {
        0 => RootKind::Stack,
        1 => RootKind::Finalizer,
        2 if flags & PINNED != 0 => RootKind::PinnedHandle,
        2 if flags & COUNTED != 0 => RootKind::CountedHandle,
        2 => RootKind::Handle,
        3 => RootKind::OlderGeneration,
        4 => RootKind::SizedReference,
        5 => RootKind::Overflow,
        _ => RootKind::Unknown,
    }
}
