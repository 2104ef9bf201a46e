//! Packs the symbol table of the shipped program (docs/performance.md, "Size"): the names of functions go, compressed, into
//! the section `.gnu_debugdata` (`MiniDebugInfo` in GDB's manual), which debuggers and `runtap-unwind` read.
//!
//! Layout: System V ABI, chapter 4 (64-bit little-endian files).

use std::collections::{HashMap, HashSet};
use std::ops::Range;

use anyhow::{Context as _, Result, bail, ensure};

use crate::elf::{u16_at, u32_at, u64_at};

const SHT_PROGBITS: u32 = 1;
const SHT_SYMTAB: u32 = 2;
const SHT_STRTAB: u32 = 3;
const SHT_NOBITS: u32 = 8;
const SHF_ALLOC: u64 = 2;
const PT_LOAD: u32 = 1;
const STT_FUNC: u8 = 2;
const STT_GNU_IFUNC: u8 = 10;
const FILE_HEADER: usize = 64;
const SECTION: usize = 64;
const SYMBOL: usize = 24;
const SECTION_NAME: &[u8] = b".gnu_debugdata\0";
/// Replaces the hash in the symbol of a Rust function, which differs between instances with one name. Debuggers recognize
/// Rust's symbols by a hash, so it is not left out.
const HASH: &str = "17h0123456789abcdefE";

/// Returns the program without its symbol table, which `compress` turns into the content of an XZ file. `None` if it has
/// none.
pub(crate) fn packed(
    file: &[u8],
    compress: impl FnOnce(&[u8]) -> Result<Vec<u8>>,
) -> Result<Option<Vec<u8>>> {
    let sections = sections(file)?;
    let Some(table) = sections.iter().position(|section| section.kind == SHT_SYMTAB) else { return Ok(None) };
    let names = usize::try_from(sections[table].link)?;
    let titles = usize::from(u16_at(file, 62)?);
    let start = sections[table].range.start;
    ensure!(loaded_end(file)? <= start, "the symbol table is before the end of the loaded segments");
    let last: Vec<usize> = (0..sections.len()).filter(|&i| sections[i].range.start >= start).collect();
    ensure!(
        [table, names, titles].iter().all(|index| last.contains(index))
            && last.len() == 3
            && table == sections.len() - 3,
        "the file does not end with its symbols and names"
    );
    let compressed = compress(&symbols_only(file, &sections, table, names)?)?;

    let mut title_bytes = file[sections[titles].range.clone()].to_vec();
    let title = u32::try_from(title_bytes.len())?;
    title_bytes.extend_from_slice(SECTION_NAME);
    let mut result = file[..start].to_vec();
    let mut headers = sections[..table].iter().map(|section| section.header.to_vec()).collect::<Vec<_>>();
    let debug_data =
        Header { name: title, kind: SHT_PROGBITS, offset: start, size: compressed.len(), align: 1 };
    result.extend_from_slice(&compressed);
    let name = u32_at(sections[titles].header, 0)?;
    let title_header =
        Header { name, kind: SHT_STRTAB, offset: result.len(), size: title_bytes.len(), align: 1 };
    result.extend_from_slice(&title_bytes);
    headers.extend([debug_data.bytes(), title_header.bytes()]);
    result.resize(result.len().next_multiple_of(8), 0);
    let at = u64::try_from(result.len())?;
    result.extend(headers.iter().flatten());
    result[40..48].copy_from_slice(&at.to_le_bytes());
    result[60..62].copy_from_slice(&u16::try_from(headers.len())?.to_le_bytes());
    result[62..64].copy_from_slice(&u16::try_from(headers.len() - 1)?.to_le_bytes());
    Ok(Some(result))
}

/// Returns a file with the symbols of the functions of another, and with its sections, but without their content.
fn symbols_only(file: &[u8], sections: &[Section<'_>], table: usize, names: usize) -> Result<Vec<u8>> {
    let (symbols, strings, locals) =
        functions(&file[sections[table].range.clone()], &file[sections[names].range.clone()])?;
    let titles = usize::from(u16_at(file, 62)?);
    let mut result = file[..FILE_HEADER].to_vec();
    let mut headers = Vec::new();
    for (index, section) in sections.iter().enumerate() {
        let mut header = section.header.to_vec();
        let content = match index {
            _ if index == table => Some(symbols.as_slice()),
            _ if index == names => Some(strings.as_slice()),
            _ if index == titles => Some(&file[section.range.clone()]),
            _ => None,
        };
        if let Some(content) = content {
            header[24..32].copy_from_slice(&u64::try_from(result.len())?.to_le_bytes());
            header[32..40].copy_from_slice(&u64::try_from(content.len())?.to_le_bytes());
            result.extend_from_slice(content);
            result.resize(result.len().next_multiple_of(8), 0);
        } else if section.flags & SHF_ALLOC == 0 {
            header.fill(0);
        } else {
            header[4..8].copy_from_slice(&SHT_NOBITS.to_le_bytes());
        }
        if index == table {
            header[44..48].copy_from_slice(&locals.to_le_bytes());
        }
        headers.extend(header);
    }
    let at = u64::try_from(result.len())?;
    result.extend(headers);
    // No program headers: the address and the number of them.
    result[32..40].fill(0);
    result[56..58].fill(0);
    result[40..48].copy_from_slice(&at.to_le_bytes());
    Ok(result)
}

/// A section header of this module's own.
struct Header {
    name: u32,
    kind: u32,
    offset: usize,
    size: usize,
    align: u64,
}

impl Header {
    fn bytes(&self) -> Vec<u8> {
        let mut bytes = vec![0; SECTION];
        bytes[..4].copy_from_slice(&self.name.to_le_bytes());
        bytes[4..8].copy_from_slice(&self.kind.to_le_bytes());
        bytes[24..32].copy_from_slice(&(self.offset as u64).to_le_bytes());
        bytes[32..40].copy_from_slice(&(self.size as u64).to_le_bytes());
        bytes[48..56].copy_from_slice(&self.align.to_le_bytes());
        bytes
    }
}

/// A section: its header, and what that contains.
struct Section<'a> {
    header: &'a [u8],
    kind: u32,
    flags: u64,
    /// Its content in the file; empty if it has none there.
    range: Range<usize>,
    link: u32,
}

fn sections(file: &[u8]) -> Result<Vec<Section<'_>>> {
    ensure!(file.get(..6) == Some(b"\x7fELF\x02\x01"), "not a 64-bit little-endian ELF file");
    let at = usize::try_from(u64_at(file, 40)?)?;
    ensure!(usize::from(u16_at(file, 58)?) == SECTION, "the section headers have another size");
    let headers = file.get(at..).unwrap_or_default();
    let count = usize::from(u16_at(file, 60)?);
    let read = |index: usize| {
        let header = headers
            .get(SECTION * index..SECTION * (index + 1))
            .context("the file ends within its headers")?;
        let kind = u32_at(header, 4)?;
        let start = usize::try_from(u64_at(header, 24)?)?;
        let size = if kind == SHT_NOBITS { 0 } else { usize::try_from(u64_at(header, 32)?)? };
        let end = start.checked_add(size).filter(|end| *end <= file.len() || size == 0);
        let range = start..end.with_context(|| format!("section {index} ends after the file"))?;
        Ok(Section { header, kind, flags: u64_at(header, 8)?, range, link: u32_at(header, 40)? })
    };
    (0..count).map(read).collect()
}

/// Returns where the last loaded segment ends in the file.
fn loaded_end(file: &[u8]) -> Result<usize> {
    let table = usize::try_from(u64_at(file, 32)?)?;
    let (size, count) = (usize::from(u16_at(file, 54)?), usize::from(u16_at(file, 56)?));
    let mut end = 0;
    for header in (0..count).map(|index| table + index * size) {
        if u32_at(file, header)? == PT_LOAD {
            end = end.max(u64_at(file, header + 8)? + u64_at(file, header + 32)?);
        }
    }
    Ok(usize::try_from(end)?)
}

/// Returns the symbols of functions, one for each address, their names, each once, and the number of local symbols, which
/// come first.
fn functions(table: &[u8], names: &[u8]) -> Result<(Vec<u8>, Vec<u8>, u32)> {
    let (entries, rest) = table.as_chunks::<SYMBOL>();
    ensure!(rest.is_empty(), "the symbol table ends within a symbol");
    let mut symbols = vec![0; SYMBOL];
    let mut strings = vec![0];
    let mut offsets = HashMap::new();
    let mut addresses = HashSet::new();
    let mut locals = 1;
    for entry in entries.iter().skip(1) {
        let (binding, kind) = (entry[4] >> 4, entry[4] & 15);
        if ![STT_FUNC, STT_GNU_IFUNC].contains(&kind) || !addresses.insert(u64_at(entry, 8)?) {
            continue;
        }
        locals += u32::from(binding == 0);
        let offset = *offsets.entry(name(names, u32_at(entry, 0)?)?).or_insert_with_key(|name: &String| {
            let offset = strings.len();
            strings.extend_from_slice(name.as_bytes());
            strings.push(0);
            offset
        });
        symbols.extend_from_slice(&u32::try_from(offset)?.to_le_bytes());
        symbols.extend_from_slice(&entry[4..]);
    }
    Ok((symbols, strings, locals))
}

/// Returns a symbol's name without what differs between instances of one function.
fn name(names: &[u8], offset: u32) -> Result<String> {
    let rest = names.get(usize::try_from(offset)?..).context("a name is outside of the table")?;
    let Some(length) = rest.iter().position(|byte| *byte == 0) else { bail!("a name has no end") };
    let name = String::from_utf8_lossy(&rest[..length]);
    // `.llvm.123` follows the hash.
    let name = name.split_once(".llvm.").map_or(&*name, |(before, _)| before);
    let hash = name.len().checked_sub(HASH.len()).filter(|_| name.starts_with("_ZN"));
    Ok(match hash.and_then(|at| name.split_at_checked(at)) {
        Some((path, hash)) if hash.starts_with("17h") && hash.ends_with('E') => format!("{path}{HASH}"),
        _ => name.to_owned(),
    })
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use std::{env, fs};

    use super::*;

    /// Packs the running program without compression, and returns the result and the file with its symbols.
    fn pack_self() -> (Vec<u8>, Vec<u8>, Vec<u8>) {
        let program = fs::read(env::current_exe().unwrap()).unwrap();
        let mut symbols = Vec::new();
        let packed = packed(&program, |file| {
            symbols = file.to_vec();
            Ok(file.to_vec())
        });
        (program, packed.unwrap().unwrap(), symbols)
    }

    fn names(file: &[u8]) -> Vec<(u64, String)> {
        let sections = sections(file).unwrap();
        let table = sections.iter().find(|section| section.kind == SHT_SYMTAB).unwrap();
        let strings = &file[sections[usize::try_from(table.link).unwrap()].range.clone()];
        let (symbols, _) = file[table.range.clone()].as_chunks::<SYMBOL>();
        let read = |symbol: &[u8; SYMBOL]| {
            (u64_at(symbol, 8).unwrap(), name(strings, u32_at(symbol, 0).unwrap()).unwrap())
        };
        symbols.iter().filter(|symbol| symbol[4] & 15 == STT_FUNC).map(read).collect()
    }

    #[test]
    fn functions_keep_a_name_at_their_address() {
        let (program, _, symbols) = pack_self();
        let before: HashSet<(u64, String)> = names(&program).into_iter().collect();
        let after: HashMap<u64, String> = names(&symbols).into_iter().collect();
        assert!(
            after.values().any(|name| name.contains("functions_keep_a_name_at_their_address")),
            "{}",
            after.len()
        );
        assert!(before.iter().all(|(address, _)| before.contains(&(*address, after[address].clone()))));
    }

    #[test]
    fn the_program_has_the_packed_file_in_place_of_its_symbols() {
        let (program, packed, symbols) = pack_self();
        assert_eq!(crate::elf::linking(&packed).unwrap(), crate::elf::linking(&program).unwrap());
        let all = sections(&packed).unwrap();
        assert!(all.iter().all(|section| section.kind != SHT_SYMTAB));
        let titles = &packed[all[usize::from(u16_at(&packed, 62).unwrap())].range.clone()];
        let debug_data = all.iter().find(|section| {
            titles[usize::try_from(u32_at(section.header, 0).unwrap()).unwrap()..].starts_with(SECTION_NAME)
        });
        assert_eq!(packed[debug_data.unwrap().range.clone()], symbols);
        assert!(super::packed(&packed, |_| unreachable!()).unwrap().is_none());
    }

    #[test]
    fn a_truncated_file_is_an_error() {
        let (program, ..) = pack_self();
        for length in (0..program.len()).step_by(program.len() / 97) {
            assert!(packed(&program[..length], |_| Ok(Vec::new())).is_err(), "{length} bytes");
        }
    }
}
