//! The tables in the metadata of an assembly: how long their rows are, and where each begins. ECMA-335, II.22 and
//! II.24.2.6.
//!
//! Knows the columns of the tables up to `AssemblyRef`; refuses to know what later tables hold.

use runtap_wire::{DecodeError, DecodeErrorKind, Reader};

pub(super) const TYPE_DEF: usize = 0x02;
pub(super) const METHOD_PTR: usize = 0x05;
pub(super) const METHOD_DEF: usize = 0x06;
pub(super) const ASSEMBLY_REF: usize = 0x23;

/// Tables with a number; more can't be told by the mask in front of them.
const TABLES: usize = 64;

/// What a column holds, which decides its width.
#[derive(Clone, Copy)]
enum Column {
    U16,
    U32,
    String,
    Guid,
    Blob,
    /// A row of a table.
    Row(usize),
    /// A row of one of these tables, and in that many low bits which one.
    Coded(u32, &'static [usize]),
}

use Column::{Blob, Coded, Guid, Row, String, U16, U32};

const TYPE_DEF_OR_REF: Column = Coded(2, &[0x02, 0x01, 0x1b]);
const HAS_CONSTANT: Column = Coded(2, &[0x04, 0x08, 0x17]);
const HAS_ATTRIBUTE: Column = Coded(
    5,
    &[
        0x06, 0x04, 0x01, 0x02, 0x08, 0x09, 0x0a, 0x00, 0x0e, 0x17, 0x14, 0x11, 0x1a, 0x1b, 0x20, 0x23, 0x26,
        0x27, 0x28, 0x2a, 0x2c, 0x2b,
    ],
);
const HAS_MARSHAL: Column = Coded(1, &[0x04, 0x08]);
const HAS_SECURITY: Column = Coded(2, &[0x02, 0x06, 0x20]);
const MEMBER_PARENT: Column = Coded(3, &[0x02, 0x01, 0x1a, 0x06, 0x1b]);
const HAS_SEMANTICS: Column = Coded(1, &[0x14, 0x17]);
const METHOD_DEF_OR_REF: Column = Coded(1, &[0x06, 0x0a]);
const MEMBER_FORWARDED: Column = Coded(1, &[0x04, 0x06]);
const ATTRIBUTE_TYPE: Column = Coded(3, &[0x06, 0x0a]);
const SCOPE: Column = Coded(2, &[0x00, 0x1a, 0x23, 0x01]);

/// The columns of each table, by its number.
const COLUMNS: [&[Column]; ASSEMBLY_REF + 1] = [
    &[U16, String, Guid, Guid, Guid],                        // 00 Module
    &[SCOPE, String, String],                                // 01 TypeRef
    &[U32, String, String, TYPE_DEF_OR_REF, Row(4), Row(6)], // 02 TypeDef
    &[Row(4)],                                               // 03 FieldPtr
    &[U16, String, Blob],                                    // 04 Field
    &[Row(6)],                                               // 05 MethodPtr
    &[U32, U16, U16, String, Blob, Row(8)],                  // 06 MethodDef
    &[Row(8)],                                               // 07 ParamPtr
    &[U16, U16, String],                                     // 08 Param
    &[Row(2), TYPE_DEF_OR_REF],                              // 09 InterfaceImpl
    &[MEMBER_PARENT, String, Blob],                          // 0a MemberRef
    &[U16, HAS_CONSTANT, Blob],                              // 0b Constant
    &[HAS_ATTRIBUTE, ATTRIBUTE_TYPE, Blob],                  // 0c CustomAttribute
    &[HAS_MARSHAL, Blob],                                    // 0d FieldMarshal
    &[U16, HAS_SECURITY, Blob],                              // 0e DeclSecurity
    &[U16, U32, Row(2)],                                     // 0f ClassLayout
    &[U32, Row(4)],                                          // 10 FieldLayout
    &[Blob],                                                 // 11 StandAloneSig
    &[Row(2), Row(0x14)],                                    // 12 EventMap
    &[Row(0x14)],                                            // 13 EventPtr
    &[U16, String, TYPE_DEF_OR_REF],                         // 14 Event
    &[Row(2), Row(0x17)],                                    // 15 PropertyMap
    &[Row(0x17)],                                            // 16 PropertyPtr
    &[U16, String, Blob],                                    // 17 Property
    &[U16, Row(6), HAS_SEMANTICS],                           // 18 MethodSemantics
    &[Row(2), METHOD_DEF_OR_REF, METHOD_DEF_OR_REF],         // 19 MethodImpl
    &[String],                                               // 1a ModuleRef
    &[Blob],                                                 // 1b TypeSpec
    &[U16, MEMBER_FORWARDED, String, Row(0x1a)],             // 1c ImplMap
    &[U32, Row(4)],                                          // 1d FieldRVA
    &[U32, U32],                                             // 1e EncLog
    &[U32],                                                  // 1f EncMap
    &[U32, U16, U16, U16, U16, U32, Blob, String, String],   // 20 Assembly
    &[U32],                                                  // 21 AssemblyProcessor
    &[U32, U32, U32],                                        // 22 AssemblyOS
    &[U16, U16, U16, U16, U32, Blob, String, String, Blob],  // 23 AssemblyRef
];

/// Where a table lies.
#[derive(Clone, Copy, Default)]
struct Table {
    rows: u32,
    row_size: u64,
    /// From the first row of the first table on.
    start: u64,
}

/// The tables of an assembly.
pub(super) struct Tables<'a> {
    widths: Widths,
    known: [Table; ASSEMBLY_REF + 1],
    /// From the first row of the first table on.
    data: Reader<'a>,
}

impl<'a> Tables<'a> {
    /// Reads the head of the tables' stream.
    pub(super) fn decode(mut r: Reader<'a>) -> Result<Self, DecodeError> {
        r.u32("tables reserved")?;
        r.u16("tables version")?;
        let heaps = r.u8("heap sizes")?;
        r.u8("tables reserved")?;
        let valid = r.u64("table mask")?;
        r.u64("sorted table mask")?;
        let mut rows = [0; TABLES];
        for (number, rows) in rows.iter_mut().enumerate() {
            if valid >> number & 1 == 1 {
                *rows = r.u32("row count")?;
            }
        }
        // Bit 6: four more bytes, for edit and continue.
        if heaps & 0x40 != 0 {
            r.u32("extra data")?;
        }
        let widths = Widths { heaps, rows };
        let mut known = [Table::default(); ASSEMBLY_REF + 1];
        let mut start = 0;
        for ((table, columns), rows) in known.iter_mut().zip(COLUMNS).zip(rows) {
            let row_size = columns.iter().map(|column| widths.of(*column)).sum();
            *table = Table { rows, row_size, start };
            start += u64::from(rows) * row_size;
        }
        Ok(Self { widths, known, data: r })
    }

    /// Rows of a table.
    pub(super) fn rows(&self, table: usize) -> u32 {
        self.known.get(table).map_or(0, |table| table.rows)
    }

    /// The `N` columns of a row, numbered from 1 as in the format, as numbers.
    pub(super) fn row<const N: usize>(&self, table: usize, row: u32) -> Result<[u32; N], DecodeError> {
        let Table { rows, row_size, start } = self.known.get(table).copied().unwrap_or_default();
        let Some(index) = row.checked_sub(1).filter(|_| row <= rows) else {
            let kind = DecodeErrorKind::TooLarge { value: u64::from(row), limit: u64::from(rows) };
            return Err(self.data.error("row number", kind));
        };
        let mut r = self.data.clone();
        let skip = start + u64::from(index) * row_size;
        r.bytes(usize::try_from(skip).unwrap_or(usize::MAX), "table")?;
        let mut cells = [0; N];
        for (cell, column) in cells.iter_mut().zip(COLUMNS.get(table).copied().unwrap_or_default()) {
            *cell = match self.widths.of(*column) {
                2 => u32::from(r.u16("table cell")?),
                _ => r.u32("table cell")?,
            };
        }
        Ok(cells)
    }
}

/// What decides the widths of columns.
struct Widths {
    /// Bits: strings, GUIDs and blobs have wide indexes.
    heaps: u8,
    rows: [u32; TABLES],
}

impl Widths {
    fn of(&self, column: Column) -> u64 {
        let rows = |table: usize| self.rows.get(table).copied().unwrap_or_default();
        let wide = match column {
            U16 => false,
            U32 => true,
            String => self.heaps & 1 != 0,
            Guid => self.heaps & 2 != 0,
            Blob => self.heaps & 4 != 0,
            Row(table) => rows(table) >= 1 << 16,
            Coded(bits, tables) => tables.iter().any(|table| rows(*table) >= 1 << (16 - bits)),
        };
        if wide { 4 } else { 2 }
    }
}
