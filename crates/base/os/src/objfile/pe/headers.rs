//! The headers of a PE file up to the CLI header. The `object` crate reads the PE format. Sources: Microsoft's
//! "PE Format"; ECMA-335 II.25.

use object::LittleEndian as LE;
use object::pe::{IMAGE_DIRECTORY_ENTRY_COM_DESCRIPTOR, ImageNtHeaders32, ImageNtHeaders64};
use object::read::FileKind;
use object::read::pe::{ImageNtHeaders, PeFile, SectionTable};
use runtap_wire::{DecodeError, DecodeErrorKind, Reader};

use super::PeError;

/// An address and a size in memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Span {
    pub(super) address: u32,
    pub(super) size: u32,
}

/// The parsed headers.
#[derive(Debug)]
pub(super) struct Headers<'a> {
    file: &'a [u8],
    pub(super) machine: u16,
    sections: SectionTable<'a>,
    cli: Span,
}

/// The CLI header.
#[derive(Debug)]
pub(super) struct Cli {
    pub(super) flags: u32,
    pub(super) metadata: Span,
}

impl<'a> Headers<'a> {
    pub(super) fn read(file: &'a [u8]) -> Result<Self, PeError> {
        match FileKind::parse(file) {
            Ok(FileKind::Pe32) => Self::of::<ImageNtHeaders32>(file),
            Ok(FileKind::Pe64) => Self::of::<ImageNtHeaders64>(file),
            _ => Err(PeError::NotPe),
        }
    }

    fn of<Pe: ImageNtHeaders>(file: &'a [u8]) -> Result<Self, PeError> {
        let pe = PeFile::<Pe>::parse(file).map_err(|_in_its_words| {
            let kind = DecodeErrorKind::Invalid("are truncated, or of a kind that no loader accepts");
            DecodeError::new(0, "PE headers", kind)
        })?;
        let cli = pe.data_directory(IMAGE_DIRECTORY_ENTRY_COM_DESCRIPTOR).ok_or(PeError::NotManaged)?;
        Ok(Self {
            file,
            machine: pe.nt_headers().file_header().machine.get(LE).0,
            sections: pe.section_table(),
            cli: Span { address: cli.virtual_address.get(LE), size: cli.size.get(LE) },
        })
    }

    /// Returns the bytes at an address in memory: those that the file has, at most the size of `span`.
    pub(super) fn at(&self, span: Span, what: &'static str) -> Result<Reader<'a>, DecodeError> {
        let Some((offset, left)) = self.sections.pe_file_range_at(span.address) else {
            let kind = DecodeErrorKind::Invalid("is outside of all sections of the file");
            return Err(DecodeError::new(u64::from(span.address), what, kind));
        };
        let mut r = Reader::new(self.file);
        r.bytes(usize::try_from(offset).unwrap_or(usize::MAX), what)?;
        if span.size > left {
            let kind =
                DecodeErrorKind::UnexpectedEnd { needed: u64::from(span.size), available: u64::from(left) };
            return Err(r.error(what, kind));
        }
        r.sub(usize::try_from(span.size).unwrap_or(usize::MAX), what)
    }

    pub(super) fn cli(&self) -> Result<Cli, DecodeError> {
        let mut r = self.at(self.cli, "CLI header")?;
        r.bytes(8, "CLI header")?;
        let metadata = Span { address: r.u32("metadata")?, size: r.u32("metadata")? };
        Ok(Cli { metadata, flags: r.u32("CLI flags")? })
    }
}
