//! What of a .NET assembly decides whether a runtime can use it as a startup hook. ECMA-335, II.24 and II.25; the rules
//! for hooks are those of the runtime's design document "Host startup hook".
//!
//! Reads bytes of any origin: every length is checked, nothing is allocated by one. Refuses to say anything about the
//! hook's code, and about libraries that it needs.

use runtap_wire::{DecodeError, DecodeErrorKind, Reader};

use super::tables::{ASSEMBLY_REF, METHOD_DEF, METHOD_PTR, TYPE_DEF, Tables};

/// Where the CLI header stands among the data directories of a PE file.
const CLI_DIRECTORY: usize = 14;

/// Assemblies whose version is that of the .NET they belong to.
const OF_THE_RUNTIME: [&[u8]; 2] = [b"System.Runtime", b"System.Private.CoreLib"];

/// An assembly, seen as a startup hook.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub struct HookAssembly {
    /// Whether there is a class `StartupHook`, outside of any namespace and class.
    pub has_class: bool,
    /// Whether that class has a static `void Initialize()`.
    pub has_method: bool,
    /// The .NET that it was built for, by the version of the runtime's assembly that it refers to.
    pub built_for: Option<u16>,
}

impl HookAssembly {
    /// Reads the whole file.
    ///
    /// # Errors
    /// What is no .NET assembly, and where that shows.
    pub fn read(file: &[u8]) -> Result<Self, DecodeError> {
        Metadata::find(file)?.hook()
    }
}

struct Metadata<'a> {
    tables: Tables<'a>,
    strings: Reader<'a>,
    blobs: Reader<'a>,
}

impl<'a> Metadata<'a> {
    fn find(file: &'a [u8]) -> Result<Self, DecodeError> {
        let root = metadata_root(file)?;
        let mut r = root.clone();
        expect(&mut r, b"BSJB", "metadata signature", "is not \"BSJB\"")?;
        r.bytes(8, "metadata version")?;
        let length = r.u32("version length")?;
        r.bytes(usize::try_from(length).unwrap_or(usize::MAX), "version")?;
        r.u16("metadata flags")?;
        let (mut tables, mut strings, mut blobs) = (None, None, None);
        for _ in 0..r.u16("stream count")? {
            let offset = r.u32("stream offset")?;
            let size = r.u32("stream size")?;
            let name = stream_name(&mut r)?;
            let stream = part(&root, offset, size, "stream");
            match name {
                b"#~" | b"#-" => tables = Some(stream?),
                b"#Strings" => strings = Some(stream?),
                b"#Blob" => blobs = Some(stream?),
                _ => {}
            }
        }
        let found = |stream: Option<Reader<'a>>, what| {
            stream.ok_or_else(|| root.error(what, DecodeErrorKind::Invalid("is missing")))
        };
        Ok(Self {
            tables: Tables::decode(found(tables, "table stream")?)?,
            strings: found(strings, "string stream")?,
            blobs: found(blobs, "blob stream")?,
        })
    }

    fn hook(&self) -> Result<HookAssembly, DecodeError> {
        let mut hook = HookAssembly::default();
        for row in 1..=self.tables.rows(TYPE_DEF) {
            let [flags, name, namespace, _, _, first] = self.tables.row(TYPE_DEF, row)?;
            // Visibility 0 and 1: not within another class.
            let outermost = flags & 7 <= 1;
            if outermost && self.string(name)? == b"StartupHook" && self.string(namespace)?.is_empty() {
                let end = if row < self.tables.rows(TYPE_DEF) {
                    let [_, _, _, _, _, next] = self.tables.row(TYPE_DEF, row + 1)?;
                    next
                } else {
                    u32::MAX
                };
                hook.has_class = true;
                hook.has_method = self.has_initialize(first, end)?;
                break;
            }
        }
        for row in 1..=self.tables.rows(ASSEMBLY_REF) {
            let [major, _, _, _, _, _, name, _, _] = self.tables.row(ASSEMBLY_REF, row)?;
            if OF_THE_RUNTIME.contains(&self.string(name)?) {
                hook.built_for = hook.built_for.max(u16::try_from(major).ok());
            }
        }
        Ok(hook)
    }

    /// Entries that the method list of a class points to: methods, or pointers to them.
    fn method_slots(&self) -> u32 {
        match self.tables.rows(METHOD_PTR) {
            0 => self.tables.rows(METHOD_DEF),
            pointers => pointers,
        }
    }

    fn has_initialize(&self, first: u32, end: u32) -> Result<bool, DecodeError> {
        for slot in first..end.min(self.method_slots().saturating_add(1)) {
            let [row] =
                if self.tables.rows(METHOD_PTR) == 0 { [slot] } else { self.tables.row(METHOD_PTR, slot)? };
            let [_, _, flags, name, signature, _] = self.tables.row(METHOD_DEF, row)?;
            let is_static = flags & 0x10 != 0;
            // Default calling convention without `this`, no parameters, void.
            if is_static
                && self.string(name)? == b"Initialize"
                && self.blob(signature)?.starts_with(&[0x00, 0x00, 0x01])
            {
                return Ok(true);
            }
        }
        Ok(false)
    }

    fn string(&self, index: u32) -> Result<&'a [u8], DecodeError> {
        let r = from(&self.strings, index, "string")?;
        let end = r.rest().iter().position(|byte| *byte == 0);
        let end = end.ok_or_else(|| r.error("string", DecodeErrorKind::Unterminated))?;
        Ok(r.rest().get(..end).unwrap_or_default())
    }

    fn blob(&self, index: u32) -> Result<&'a [u8], DecodeError> {
        let mut r = from(&self.blobs, index, "blob")?;
        let first = r.u8("blob size")?;
        // One, two or four bytes, by the first bits; the longer sizes are big-endian.
        let size = match first {
            0..0x80 => usize::from(first),
            0x80..0xc0 => usize::from(u16::from_be_bytes([first & 0x3f, r.u8("blob size")?])),
            _ => {
                let [b, c, d] = r.array("blob size")?;
                usize::try_from(u32::from_be_bytes([first & 0x1f, b, c, d])).unwrap_or(usize::MAX)
            }
        };
        r.bytes(size, "blob")
    }
}

/// The metadata, found by way of the PE headers.
fn metadata_root(file: &[u8]) -> Result<Reader<'_>, DecodeError> {
    let whole = Reader::new(file);
    let mut r = whole.clone();
    expect(&mut r, b"MZ", "DOS signature", "is not \"MZ\"")?;
    r.bytes(58, "DOS header")?;
    let pe = r.u32("PE header offset")?;
    let mut r = from(&whole, pe, "PE header")?;
    expect(&mut r, b"PE\0\0", "PE signature", "is not \"PE\"")?;
    r.u16("machine")?;
    let sections = r.u16("section count")?;
    r.bytes(12, "COFF header")?;
    let optional_size = r.u16("optional header size")?;
    r.u16("characteristics")?;
    let mut optional = r.sub(usize::from(optional_size), "optional header")?;
    let fixed = match optional.u16("optional header magic")? {
        0x10b => 96,
        0x20b => 112,
        other => {
            let kind = DecodeErrorKind::Unexpected { value: u64::from(other), expected: "0x10b or 0x20b" };
            return Err(DecodeError::new(optional.offset() - 2, "optional header magic", kind));
        }
    };
    optional.bytes(fixed - 2 + 8 * CLI_DIRECTORY, "optional header")?;
    let cli = Range { address: optional.u32("CLI header address")?, size: optional.u32("CLI header size")? };
    if cli.address == 0 {
        let kind = DecodeErrorKind::Invalid("is missing: this is native code");
        return Err(optional.error("CLI header", kind));
    }
    let mut table = Vec::new();
    for _ in 0..sections {
        r.bytes(8, "section name")?;
        r.u32("section size")?;
        let address = r.u32("section address")?;
        let raw_size = r.u32("section raw size")?;
        let raw_offset = r.u32("section raw offset")?;
        r.bytes(16, "section header")?;
        // What lies beyond the bytes in the file is zeros in memory, and no metadata.
        table.push(Section { address, size: raw_size, raw_offset });
    }
    let mut header = locate(&whole, &table, cli, "CLI header")?;
    header.bytes(8, "CLI header")?;
    let metadata = Range { address: header.u32("metadata address")?, size: header.u32("metadata size")? };
    locate(&whole, &table, metadata, "metadata")
}

/// A part of the program in memory.
#[derive(Clone, Copy)]
struct Range {
    address: u32,
    size: u32,
}

/// A part of the program in the file.
struct Section {
    address: u32,
    size: u32,
    raw_offset: u32,
}

fn locate<'a>(
    whole: &Reader<'a>,
    sections: &[Section],
    range: Range,
    what: &'static str,
) -> Result<Reader<'a>, DecodeError> {
    let within = |section: &&Section| {
        range.address.checked_sub(section.address).is_some_and(|into| into < section.size)
    };
    let Some(section) = sections.iter().find(within) else {
        return Err(whole.error(what, DecodeErrorKind::Invalid("lies in no section")));
    };
    let offset = section.raw_offset.saturating_add(range.address - section.address);
    part(whole, offset, range.size, what)
}

/// `size` bytes from `offset` on.
fn part<'a>(of: &Reader<'a>, offset: u32, size: u32, what: &'static str) -> Result<Reader<'a>, DecodeError> {
    from(of, offset, what)?.sub(usize::try_from(size).unwrap_or(usize::MAX), what)
}

/// Everything from `offset` on.
fn from<'a>(of: &Reader<'a>, offset: u32, what: &'static str) -> Result<Reader<'a>, DecodeError> {
    let mut r = of.clone();
    r.bytes(usize::try_from(offset).unwrap_or(usize::MAX), what)?;
    Ok(r)
}

fn expect(
    r: &mut Reader<'_>,
    bytes: &'static [u8],
    what: &'static str,
    otherwise: &'static str,
) -> Result<(), DecodeError> {
    let offset = r.offset();
    if r.bytes(bytes.len(), what)? == bytes {
        return Ok(());
    }
    Err(DecodeError::new(offset, what, DecodeErrorKind::Invalid(otherwise)))
}

/// A name with a final NUL, padded to a multiple of four bytes.
fn stream_name<'a>(r: &mut Reader<'a>) -> Result<&'a [u8], DecodeError> {
    let mut name = r.rest();
    loop {
        let word: [u8; 4] = r.array("stream name")?;
        if word.contains(&0) {
            break;
        }
    }
    if let Some(end) = name.iter().position(|byte| *byte == 0) {
        name = name.get(..end).unwrap_or_default();
    }
    Ok(name)
}

#[cfg(test)]
#[path = "assembly_tests.rs"]
pub(super) mod tests;
