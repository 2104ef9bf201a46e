//! From addresses to functions, by the symbols of the files that contain the code: `.symtab`, else `.dynsym` and, if the
//! file has it, `.gnu_debugdata`: a compressed file with symbols only (`MiniDebugInfo` in GDB's manual). For code without a
//! symbol, the unwind tables provide the range of its function.
//!
//! Each address is looked up once. Not done while threads are sampled, because complete symbol tables are read.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::{self, Write};
use std::ops::Range;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

use object::read::elf::ElfFile64;
use object::{Endianness, Object as _, ObjectSection as _, ObjectSymbol, ReadCache, SymbolKind};

use super::modules::{KnownObjects, Object, Tables};
use crate::{Function, FunctionName, ModuleFile, Names, Sampler};

/// Maximum size of decompressed symbols in bytes: those of a browser have 40 MB.
const MAX_PACKED: usize = 256 << 20;

/// Finds the names of functions in the modules that a sampler has seen.
#[derive(Debug)]
pub struct Namer {
    known: KnownObjects,
    /// The functions by address.
    functions: BTreeMap<u64, Function>,
    /// The names that the program provided.
    given: Vec<(u64, String)>,
}

/// A symbol, with addresses in its file.
struct Symbol {
    start: u64,
    size: u64,
    /// The preference among symbols at one address.
    global: bool,
    name: String,
}

impl Namer {
    /// Creates a namer for the samples of `sampler`.
    pub fn new(sampler: &Sampler) -> Self {
        Self { known: sampler.known(), functions: BTreeMap::new(), given: Vec::new() }
    }

    /// Adds names of functions, which override symbols: for a binary without symbols. Each entry is a function's address and
    /// its name as written in Rust (`my_crate::module::function`).
    pub fn add(&mut self, functions: impl IntoIterator<Item = (u64, String)>) {
        self.given.extend(functions);
    }

    /// Adds the provided names whose modules were seen.
    fn take_given(&mut self, known: &[Object]) {
        let functions = &mut self.functions;
        self.given.retain(|(start, name)| {
            let Some((module, object)) = object_of(known, *start) else { return true };
            let address = start.wrapping_sub(object.bias);
            let size = bounds(object, &[address]).into_iter().flatten().next().map_or(1, |b| b.end - address);
            let name = FunctionName::from_symbol(name);
            functions.insert(*start, Function { start: *start, size, name, module });
            false
        });
    }

    /// Returns the functions that contain the addresses. Addresses in no module have no function.
    pub fn names(&mut self, addresses: impl IntoIterator<Item = u64>) -> Names {
        let mut addresses: Vec<u64> = addresses.into_iter().collect();
        addresses.sort_unstable();
        addresses.dedup();
        let known = self.known.lock().clone();
        self.take_given(&known);
        let mut wanted: BTreeMap<usize, Vec<u64>> = BTreeMap::new();
        for address in &addresses {
            if self.function(*address).is_none()
                && let Some((module, object)) = object_of(&known, *address)
            {
                wanted.entry(module).or_default().push(address.wrapping_sub(object.bias));
            }
        }
        for (module, addresses) in wanted {
            if let Some(object) = known.get(module) {
                self.look_up(module, object, &addresses);
            }
        }
        let mut functions: Vec<Function> =
            addresses.iter().filter_map(|address| self.function(*address)).cloned().collect();
        functions.dedup();
        let modules = known.into_iter().map(|object| ModuleFile { path: object.path, range: object.range });
        Names { functions, modules: modules.collect() }
    }

    fn function(&self, address: u64) -> Option<&Function> {
        let (_, function) = self.functions.range(..=address).next_back()?;
        (address - function.start < function.size).then_some(function)
    }

    /// Finds the functions at sorted addresses in a file.
    fn look_up(&mut self, module: usize, object: &Object, addresses: &[u64]) {
        let bounds = bounds(object, addresses);
        let symbols = symbols(object, addresses, &bounds);
        for ((address, symbol), bounds) in addresses.iter().zip(symbols).zip(bounds) {
            let (range, name) = match (symbol, bounds) {
                (Some(symbol), bounds) => {
                    let end = if symbol.size == 0 {
                        bounds.map_or(address + 1, |b| b.end)
                    } else {
                        symbol.start + symbol.size
                    };
                    (symbol.start..end, FunctionName::from_symbol(&symbol.name))
                }
                (None, Some(bounds)) => (bounds.clone(), FunctionName::unnamed(bounds.start)),
                (None, None) => (*address..address.saturating_add(1), FunctionName::unnamed(*address)),
            };
            let start = range.start.wrapping_add(object.bias);
            let function = Function { start, size: range.end.saturating_sub(range.start), name, module };
            self.functions.insert(start, function);
        }
    }
}

/// Returns the object at an address: the last one that was loaded there.
fn object_of(known: &[Object], address: u64) -> Option<(usize, &Object)> {
    known.iter().enumerate().rev().find(|(_, object)| object.range.contains(&address))
}

/// Returns the function's symbol for each of the sorted addresses. `None` for an address outside the known functions.
fn symbols(object: &Object, addresses: &[u64], bounds: &[Option<Range<u64>>]) -> Vec<Option<Symbol>> {
    let mut found: Vec<Option<Symbol>> = addresses.iter().map(|_| None).collect();
    let Some(file) = open(object) else { return found };
    let cache = ReadCache::new(file);
    let Ok(file) = ElfFile64::<Endianness, _>::parse(&cache) else { return found };
    if file.symbols().next().is_some() {
        match_symbols(file.symbols(), addresses, bounds, &mut found);
    } else {
        match_symbols(file.dynamic_symbols(), addresses, bounds, &mut found);
        let packed = file
            .section_by_name(".gnu_debugdata")
            .and_then(|section| unpack(section.data().ok()?, MAX_PACKED));
        if let Some(packed) = packed
            && let Ok(file) = ElfFile64::<Endianness, _>::parse(packed.as_slice())
        {
            match_symbols(file.symbols(), addresses, bounds, &mut found);
        }
    }
    found
}

/// Decompresses the content of an XZ file. `None` if it is damaged, or has more than `limit` bytes.
fn unpack(mut compressed: &[u8], limit: usize) -> Option<Vec<u8>> {
    struct Limited(Vec<u8>, usize);
    impl Write for Limited {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            if bytes.len() > self.1 - self.0.len() {
                return Err(io::ErrorKind::FileTooLarge.into());
            }
            self.0.extend_from_slice(bytes);
            Ok(bytes.len())
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }
    let mut unpacked = Limited(Vec::new(), limit);
    lzma_rs::xz_decompress(&mut compressed, &mut unpacked).ok()?;
    Some(unpacked.0)
}

fn match_symbols<'a>(
    symbols: impl Iterator<Item = impl ObjectSymbol<'a>>,
    addresses: &[u64],
    bounds: &[Option<Range<u64>>],
    found: &mut [Option<Symbol>],
) {
    for symbol in symbols {
        let code = matches!(symbol.kind(), SymbolKind::Text | SymbolKind::Label | SymbolKind::Unknown);
        if !code || symbol.is_undefined() {
            continue;
        }
        let (start, size) = (symbol.address(), symbol.size());
        // Assembly code often has no size: use the range in the unwind table.
        let first = addresses.partition_point(|address| *address < start);
        let places = addresses.iter().zip(bounds).zip(&mut *found).skip(first);
        for ((address, bounds), place) in places {
            let inside = match (size, bounds) {
                (0, Some(bounds)) => bounds.start == start,
                _ => address - start < size.max(1),
            };
            if !inside {
                break;
            }
            let global = symbol.is_global();
            let better =
                |old: &Symbol| (size > 0, start, global).cmp(&(old.size > 0, old.start, old.global)).is_gt();
            if place.as_ref().is_none_or(better)
                && let Ok(name) = symbol.name_bytes()
                // `$x` and similar symbols mark code for disassemblers.
                && name.first().is_some_and(|first| *first != b'$')
            {
                let name = String::from_utf8_lossy(name).into_owned();
                *place = Some(Symbol { start, size, global, name });
            }
        }
    }
}

/// Opens the file of an object, if it is still the one that was loaded.
fn open(object: &Object) -> Option<File> {
    let program = Path::new("/proc/self/exe");
    // The link leads to the program even if its file was deleted or replaced.
    let path =
        if fs::read_link(program).is_ok_and(|path| path == object.path) { program } else { &object.path };
    let file = File::open(path).ok()?;
    // On file systems with subvolumes the device may differ for an identical file.
    (file.metadata().ok()?.ino() == object.file.2).then_some(file)
}

/// Returns the range of the function at each address from the unwind tables, if the object is still in memory.
fn bounds(object: &Object, addresses: &[u64]) -> Vec<Option<Range<u64>>> {
    let tables = Tables::read(object);
    addresses.iter().map(|address| tables.as_ref()?.function(*address)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// `runtap unwinds`, compressed by XZ Utils.
    const COMPRESSED: [u8; 68] = [
        0xfd, 0x37, 0x7a, 0x58, 0x5a, 0x00, 0x00, 0x01, 0x69, 0x22, 0xde, 0x36, 0x02, 0x00, 0x21, 0x01, 0x1c,
        0x00, 0x00, 0x00, 0x10, 0xcf, 0x58, 0xcc, 0x01, 0x00, 0x0d, 0x72, 0x75, 0x6e, 0x74, 0x61, 0x70, 0x20,
        0x75, 0x6e, 0x77, 0x69, 0x6e, 0x64, 0x73, 0x00, 0x00, 0x00, 0xed, 0xec, 0xaf, 0xce, 0x00, 0x01, 0x22,
        0x0e, 0x0c, 0xde, 0x8c, 0x60, 0x90, 0x42, 0x99, 0x0d, 0x01, 0x00, 0x00, 0x00, 0x00, 0x01, 0x59, 0x5a,
    ];

    #[test]
    fn packed_symbols_are_decompressed_within_a_limit() {
        let file = COMPRESSED.as_slice();
        assert_eq!(unpack(file, 14).unwrap(), b"runtap unwinds");
        assert!(unpack(file, 13).is_none());
        for length in 0..file.len() {
            assert!(unpack(&file[..length], 14).is_none(), "{length} bytes");
        }
    }
}
