//! The ELF objects in memory, read from memory, because files may have been replaced. The unwind tables of each object are
//! copied, so that unloading an object is harmless.
//!
//! Opens no file except `/proc/self/maps`.

use std::fs;
use std::ops::Range;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use framehop::{ExplicitModuleSectionInfo, Module, Unwinder as _, UnwinderNative};
use gimli::{BaseAddresses, EhFrame, EhFrameHdr, LittleEndian, Pointer, UnwindSection as _};
use object::Endianness;
use object::elf::{self, FileHeader64, ProgramHeader64};
use object::read::elf::{FileHeader as _, ProgramHeader as _};

use super::memory;

/// The number of bytes that contain the program headers; linkers place them first.
const HEADERS: usize = 8192;
/// The largest accepted unwind table in bytes.
const MAX_TABLE: u64 = 256 << 20;
/// The most objects that are remembered after they were unloaded.
const MAX_KNOWN: usize = 4096;

/// A line of `/proc/self/maps`.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Mapping {
    range: Range<u64>,
    readable: bool,
    executable: bool,
    offset: u64,
    file: FileId,
    path: PathBuf,
}

/// The identity of a file: device (major and minor) and inode.
pub(super) type FileId = (u32, u32, u64);

/// An ELF object that is or was in memory.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Object {
    pub(super) path: PathBuf,
    pub(super) file: FileId,
    /// The address range from its first byte to its last.
    pub(super) range: Range<u64>,
    /// The difference between addresses in memory and in the file.
    pub(super) bias: u64,
    /// The address of `.eh_frame_hdr` in the file.
    header: Option<(u64, u64)>,
    /// The end of each readable segment, as addresses in the file.
    segments: Vec<Range<u64>>,
}

/// The objects that have been seen, in order of their discovery, for naming addresses.
#[derive(Debug, Clone, Default)]
pub(super) struct KnownObjects(Arc<Mutex<Vec<Object>>>);

impl KnownObjects {
    pub(super) fn lock(&self) -> MutexGuard<'_, Vec<Object>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A table, shared with the unwinder.
pub(super) type Bytes = Arc<[u8]>;
pub(super) type Unwinder = UnwinderNative<Bytes, framehop::MayAllocateDuringUnwind>;

/// The objects in memory at the last refresh.
#[derive(Default)]
pub(super) struct Modules {
    pub(super) unwinder: Unwinder,
    loaded: Vec<(Object, Option<Tables>)>,
    executable: Vec<Range<u64>>,
    known: KnownObjects,
}

impl Modules {
    pub(super) fn new(known: KnownObjects) -> Self {
        Self { known, ..Self::default() }
    }

    /// Returns whether an address may contain code.
    pub(super) fn is_code(&self, address: u64) -> bool {
        let after = self.executable.partition_point(|range| range.start <= address);
        after
            .checked_sub(1)
            .and_then(|at| self.executable.get(at))
            .is_some_and(|range| range.contains(&address))
    }

    /// Reads the list again and returns whether it has changed.
    pub(super) fn refresh(&mut self) -> bool {
        // If the list cannot be read, the known objects are kept.
        let Ok(maps) = fs::read_to_string("/proc/self/maps") else { return false };
        let mappings: Vec<Mapping> = maps.lines().filter_map(parse).collect();
        self.executable = mappings.iter().filter(|m| m.executable).map(|m| m.range.clone()).collect();
        let now = objects(&mappings);
        let (kept, gone): (Vec<_>, Vec<_>) =
            std::mem::take(&mut self.loaded).into_iter().partition(|(object, _)| now.contains(object));
        self.loaded = kept;
        for (object, _) in &gone {
            self.unwinder.remove_module(object.range.start);
        }
        let is_new = |object: &Object| self.loaded.iter().all(|(loaded, _)| loaded != object);
        let new: Vec<Object> = now.into_iter().filter(is_new).collect();
        let changed = !new.is_empty() || !gone.is_empty();
        for object in new {
            let tables = Tables::read(&object);
            self.unwinder.add_module(module(&object, tables.as_ref()));
            self.remember(&object);
            self.loaded.push((object, tables));
        }
        changed
    }

    /// Returns the address range of the function at an address.
    #[cfg(target_arch = "x86_64")]
    pub(super) fn function(&self, address: u64) -> Option<Range<u64>> {
        let (object, tables) = self.loaded.iter().find(|(object, _)| object.range.contains(&address))?;
        let range = tables.as_ref()?.function(address.wrapping_sub(object.bias))?;
        Some(range.start.wrapping_add(object.bias)..range.end.wrapping_add(object.bias))
    }

    fn remember(&self, object: &Object) {
        let mut known = self.known.lock();
        if known.len() < MAX_KNOWN && !known.contains(object) {
            known.push(object.clone());
        }
    }
}

/// Parses a line `start-end perms offset major:minor inode path`.
fn parse(line: &str) -> Option<Mapping> {
    let hexadecimal = |word: &str| u64::from_str_radix(word, 16).ok();
    let mut rest = line;
    let mut word = || {
        let (word, after) = rest.split_once(' ').unwrap_or((rest, ""));
        rest = after;
        word
    };
    let (start, end) = word().split_once('-')?;
    let permissions = word();
    let offset = hexadecimal(word())?;
    let (major, minor) = word().split_once(':')?;
    let inode = word().parse().ok()?;
    Some(Mapping {
        range: hexadecimal(start)?..hexadecimal(end)?,
        readable: permissions.starts_with('r'),
        executable: permissions.contains('x'),
        offset,
        file: (u32::from_str_radix(major, 16).ok()?, u32::from_str_radix(minor, 16).ok()?, inode),
        path: rest.trim_start().into(),
    })
}

/// Returns the objects that start in one of the mappings. Files without executable mappings contain no code.
fn objects(mappings: &[Mapping]) -> Vec<Object> {
    let mut objects: Vec<Object> = Vec::new();
    for mapping in mappings.iter().filter(|mapping| mapping.readable && mapping.offset == 0) {
        let free = objects.last().is_none_or(|last| last.range.end <= mapping.range.start);
        let Some(object) = object(mapping).filter(|_| free) else { continue };
        let code = |other: &Mapping| {
            other.executable && other.file == object.file && object.range.contains(&other.range.start)
        };
        if mappings.iter().any(code) {
            objects.push(object);
        }
    }
    objects
}

/// Reads the headers of the object at the start of a mapping.
fn object(mapping: &Mapping) -> Option<Object> {
    let mut bytes = vec![0; HEADERS];
    let read = memory::copy_bytes(mapping.range.start, bytes.get_mut(..4)?);
    if read != 4 || !bytes.starts_with(&elf::ELFMAG) {
        return None;
    }
    let read = memory::copy_bytes(mapping.range.start, &mut bytes);
    let bytes = bytes.get(..read)?;
    let header = FileHeader64::<Endianness>::parse(bytes).ok()?;
    let endian = header.endian().ok()?;
    let programs: &[ProgramHeader64<Endianness>] = header.program_headers(endian, bytes).ok()?;
    let loads = || programs.iter().filter(|program| program.p_type(endian) == elf::PT_LOAD);
    let place = |program: &ProgramHeader64<Endianness>, size: u64| {
        let start = program.p_vaddr(endian);
        Some(start..start.checked_add(size)?)
    };
    let first = loads().find(|program| program.p_offset(endian) == 0)?;
    let start = first.p_vaddr(endian);
    let mut end = start;
    let mut segments = Vec::new();
    for load in loads() {
        end = end.max(place(load, load.p_memsz(endian))?.end);
        segments.push(place(load, load.p_filesz(endian))?);
    }
    let unwind = programs.iter().find(|program| program.p_type(endian) == elf::PT_GNU_EH_FRAME);
    Some(Object {
        path: mapping.path.clone(),
        file: mapping.file,
        range: mapping.range.start..mapping.range.start.checked_add(end - start)?,
        bias: mapping.range.start.wrapping_sub(start),
        header: unwind.map(|program| (program.p_vaddr(endian), program.p_memsz(endian))),
        segments,
    })
}

/// Creates the unwinder's module of an object. Without tables, the unwinder follows frame pointers.
fn module(object: &Object, tables: Option<&Tables>) -> Module<Bytes> {
    let mut sections = ExplicitModuleSectionInfo::default();
    if let Some(tables) = tables {
        sections.eh_frame_hdr_svma = Some(tables.header_at..tables.header_at + tables.header.len() as u64);
        sections.eh_frame_svma = Some(tables.frames_at..tables.frames_at + tables.frames.len() as u64);
        sections.eh_frame_hdr = Some(Arc::clone(&tables.header));
        sections.eh_frame = Some(Arc::clone(&tables.frames));
    }
    Module::new(object.path.display().to_string(), object.range.clone(), object.bias, sections)
}

/// The unwind tables of an object, `.eh_frame_hdr` and `.eh_frame`, with their addresses in the file.
#[derive(Debug)]
pub(super) struct Tables {
    header_at: u64,
    header: Bytes,
    frames_at: u64,
    frames: Bytes,
}

impl Tables {
    /// Copies the tables from memory.
    pub(super) fn read(object: &Object) -> Option<Self> {
        let copy = |at: u64, size: u64| {
            let mut bytes = vec![0; usize::try_from(size).ok().filter(|_| size <= MAX_TABLE)?];
            let read = memory::copy_bytes(object.bias.wrapping_add(at), &mut bytes);
            (read == bytes.len()).then(|| Bytes::from(bytes))
        };
        let (header_at, size) = object.header?;
        let header = copy(header_at, size)?;
        let bases = BaseAddresses::default().set_eh_frame_hdr(header_at);
        let parsed = EhFrameHdr::new(&header, LittleEndian).parse(&bases, 8).ok()?;
        let Pointer::Direct(frames_at) = parsed.eh_frame_ptr() else { return None };
        // The length of `.eh_frame` is not recorded: it ends with its last entry, at the latest with its segment.
        let segment = object.segments.iter().find(|segment| segment.contains(&frames_at))?;
        let frames = copy(frames_at, segment.end - frames_at)?;
        Some(Self { header_at, header, frames_at, frames })
    }

    /// Returns the address range of the function at an address.
    pub(super) fn function(&self, address: u64) -> Option<Range<u64>> {
        let bases = BaseAddresses::default().set_eh_frame_hdr(self.header_at).set_eh_frame(self.frames_at);
        let header = EhFrameHdr::new(&self.header, LittleEndian).parse(&bases, 8).ok()?;
        let frames = EhFrame::new(&self.frames, LittleEndian);
        let entry =
            header.table()?.fde_for_address(&frames, &bases, address, EhFrame::cie_from_offset).ok()?;
        Some(entry.initial_address()..entry.initial_address().checked_add(entry.len())?)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_of_maps_are_understood() {
        let line = "7f1c0000-7f1c2000 r-xp 00001000 fd:01 1234    /a b/lib c.so (deleted)";
        let mapping = parse(line).unwrap();
        assert_eq!(mapping.range, 0x7f1c_0000..0x7f1c_2000);
        assert!(mapping.readable && mapping.executable);
        assert_eq!((mapping.offset, mapping.file), (0x1000, (0xfd, 1, 1234)));
        assert_eq!(mapping.path, PathBuf::from("/a b/lib c.so (deleted)"));
        assert_eq!(parse("7f1c0000-7f1c2000 ---p 00000000 00:00 0 ").unwrap().path, PathBuf::new());
        for line in ["", "1-2", "x-2 r-xp 0 0:0 0", "1-2 r-xp 0 0 0"] {
            assert_eq!(parse(line), None, "{line}");
        }
    }

    #[test]
    fn this_program_is_among_the_objects_with_its_tables() {
        let known = KnownObjects::default();
        let mut modules = Modules::new(known.clone());
        assert!(modules.refresh());
        assert!(!modules.refresh(), "nothing was loaded meanwhile");
        let here = lines_of_maps_are_understood as *const () as u64;
        let objects = known.lock().clone();
        let program = objects.iter().find(|object| object.range.contains(&here)).unwrap();
        assert_eq!(program.path, std::env::current_exe().unwrap());
        let tables = Tables::read(program).unwrap();
        assert!(tables.frames.len() > tables.header.len());
        let function = tables.function(here - program.bias).unwrap();
        assert_eq!(function.start, here - program.bias);
        assert_eq!(tables.function(0), None);
        assert!(modules.is_code(here));
        assert!(!modules.is_code(0) && !modules.is_code(u64::MAX));
    }
}
