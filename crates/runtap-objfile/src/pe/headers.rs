//! From the first byte to the CLI header. Sources: Microsoft's "PE Format"; ECMA-335 II.25.

use runtap_wire::{DecodeError, DecodeErrorKind, Reader};

use super::PeError;

/// Sections that a file may have; the loader of Windows takes no more.
const MOST_SECTIONS: u16 = 96;
/// The directory that names the CLI header.
const CLI_DIRECTORY: u32 = 14;

/// An address and a size in memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Span {
    pub(super) address: u32,
    pub(super) size: u32,
}

/// What the headers say.
#[derive(Debug)]
pub(super) struct Headers<'a> {
    file: &'a [u8],
    pub(super) machine: u16,
    sections: Vec<Section>,
    cli: Span,
}

#[derive(Debug)]
struct Section {
    address: u32,
    file_offset: u32,
    file_size: u32,
}

/// The CLI header.
#[derive(Debug)]
pub(super) struct Cli {
    pub(super) flags: u32,
    pub(super) metadata: Span,
}

impl<'a> Headers<'a> {
    pub(super) fn read(file: &'a [u8]) -> Result<Self, PeError> {
        let mut r = Reader::new(file);
        if r.array("DOS magic").ok() != Some(*b"MZ") {
            return Err(PeError::NotPe);
        }
        r.bytes(58, "DOS header").map_err(|_too_short| PeError::NotPe)?;
        let at = r.u32("PE header offset").map_err(|_too_short| PeError::NotPe)?;
        let mut r = at_offset(file, at, "PE header").map_err(|_beyond| PeError::NotPe)?;
        if r.array("PE magic").ok() != Some(*b"PE\0\0") {
            return Err(PeError::NotPe);
        }
        let machine = r.u16("machine")?;
        let at = r.offset();
        let count = r.u16("section count")?;
        if count > MOST_SECTIONS {
            let kind = DecodeErrorKind::TooLarge { value: u64::from(count), limit: u64::from(MOST_SECTIONS) };
            return Err(DecodeError::new(at, "section count", kind).into());
        }
        r.bytes(12, "COFF header")?;
        let optional = r.u16("optional header size")?;
        r.u16("characteristics")?;
        let mut header = r.sub(usize::from(optional), "optional header")?;
        let cli = cli_directory(&mut header)?.ok_or(PeError::NotManaged)?;
        let sections = (0..count).map(|_| section(&mut r)).collect::<Result<_, _>>()?;
        Ok(Self { file, machine, sections, cli })
    }

    /// The bytes at an address, as many as the file has there and `span` wants.
    pub(super) fn at(&self, span: Span, what: &'static str) -> Result<Reader<'a>, DecodeError> {
        let found = self.sections.iter().find_map(|section| {
            let within = span.address.checked_sub(section.address)?;
            let left = section.file_size.checked_sub(within)?;
            (left > 0).then_some((section.file_offset.checked_add(within)?, left))
        });
        let Some((offset, left)) = found else {
            let kind = DecodeErrorKind::Invalid("is in no section of the file");
            return Err(DecodeError::new(u64::from(span.address), what, kind));
        };
        let mut r = at_offset(self.file, offset, what)?;
        let size = usize::try_from(span.size).unwrap_or(usize::MAX);
        if span.size > left {
            let kind =
                DecodeErrorKind::UnexpectedEnd { needed: u64::from(span.size), available: u64::from(left) };
            return Err(r.error(what, kind));
        }
        r.sub(size, what)
    }

    pub(super) fn cli(&self) -> Result<Cli, DecodeError> {
        let mut r = self.at(self.cli, "CLI header")?;
        r.bytes(8, "CLI header")?;
        let metadata = span(&mut r, "metadata")?;
        Ok(Cli { metadata, flags: r.u32("CLI flags")? })
    }
}

fn cli_directory(r: &mut Reader<'_>) -> Result<Option<Span>, DecodeError> {
    let at = r.offset();
    // Where the directories are depends on the width of addresses.
    let before = match r.u16("optional header magic")? {
        0x10b => 90,
        0x20b => 106,
        value => {
            let kind = DecodeErrorKind::Unexpected { value: u64::from(value), expected: "0x10b or 0x20b" };
            return Err(DecodeError::new(at, "optional header magic", kind));
        }
    };
    r.bytes(before, "optional header")?;
    if r.u32("directory count")? <= CLI_DIRECTORY {
        return Ok(None);
    }
    for _ in 0..CLI_DIRECTORY {
        span(r, "directory")?;
    }
    let cli = span(r, "CLI directory")?;
    Ok((cli.address != 0 && cli.size != 0).then_some(cli))
}

fn span(r: &mut Reader<'_>, what: &'static str) -> Result<Span, DecodeError> {
    Ok(Span { address: r.u32(what)?, size: r.u32(what)? })
}

fn section(r: &mut Reader<'_>) -> Result<Section, DecodeError> {
    r.bytes(12, "section name")?;
    let address = r.u32("section address")?;
    let file_size = r.u32("section size")?;
    let file_offset = r.u32("section offset")?;
    r.bytes(16, "section")?;
    Ok(Section { address, file_offset, file_size })
}

fn at_offset<'a>(file: &'a [u8], offset: u32, what: &'static str) -> Result<Reader<'a>, DecodeError> {
    let mut r = Reader::new(file);
    r.bytes(usize::try_from(offset).unwrap_or(usize::MAX), what)?;
    Ok(r)
}
