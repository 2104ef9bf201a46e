//! The rows of the metadata tables. Source: ECMA-335 II.24.2.6.

use runtap_wire::{DecodeError, DecodeErrorKind, Reader};

use super::schema::{Column, TABLES, TableId};

/// Bits of the table mask.
const MASK_BITS: u8 = 64;

/// The positions of the tables, and the widths of their columns.
#[derive(Debug)]
pub(super) struct Tables<'a> {
    /// The row counts of all tables in the mask.
    counts: [u32; 64],
    /// The bytes of the rows of each known table.
    rows: Vec<Rows<'a>>,
    wide: WideHeaps,
}

#[derive(Debug, Clone, Copy)]
struct WideHeaps {
    strings: bool,
    guids: bool,
    blobs: bool,
}

#[derive(Debug)]
struct Rows<'a> {
    bytes: Reader<'a>,
    row_size: usize,
}

impl<'a> Tables<'a> {
    pub(super) fn read(mut r: Reader<'a>) -> Result<Self, DecodeError> {
        r.bytes(6, "tables header")?;
        let heaps = r.u8("heap sizes")?;
        let wide = WideHeaps { strings: heaps & 1 != 0, guids: heaps & 2 != 0, blobs: heaps & 4 != 0 };
        r.u8("tables header")?;
        let present = r.u64("table mask")?;
        r.u64("sorted tables")?;
        let mut counts = [0; 64];
        for (table, count) in (0..MASK_BITS).zip(&mut counts) {
            if present >> table & 1 != 0 {
                let at = r.offset();
                *count = r.u32("row count")?;
                // Row numbers have 24 bits.
                if *count > 0x00ff_ffff {
                    let kind = DecodeErrorKind::TooLarge { value: u64::from(*count), limit: 0x00ff_ffff };
                    return Err(DecodeError::new(at, "row count", kind));
                }
            }
        }
        if heaps & 0x40 != 0 {
            r.u32("extra data")?;
        }
        let mut tables = Self { counts, rows: Vec::with_capacity(TABLES.len()), wide };
        for (columns, count) in TABLES.iter().zip(counts) {
            let row_size = columns.iter().map(|column| tables.width(*column)).sum();
            let len = usize::try_from(count).unwrap_or(usize::MAX).saturating_mul(row_size);
            tables.rows.push(Rows { bytes: r.sub(len, "table")?, row_size });
        }
        Ok(tables)
    }

    /// Returns the number of rows in a table.
    pub(super) fn count(&self, table: TableId) -> u32 {
        self.counts.get(usize::from(table)).copied().unwrap_or_default()
    }

    /// Returns the row with this number, from 1. `None` beyond the last.
    pub(super) fn row(&self, table: TableId, number: u32) -> Option<Row<'a, '_>> {
        let rows = self.rows.get(usize::from(table))?;
        let index = usize::try_from(number.checked_sub(1)?).ok()?;
        let mut bytes = rows.bytes.clone();
        bytes.bytes(index.checked_mul(rows.row_size)?, "row").ok()?;
        let columns = TABLES.get(usize::from(table))?;
        let row = bytes.sub(rows.row_size, "row").ok()?;
        (rows.row_size > 0).then_some(Row { tables: self, columns, bytes: row })
    }

    fn width(&self, column: Column) -> usize {
        let wide = match column {
            Column::U16 => false,
            Column::U32 => true,
            Column::String => self.wide.strings,
            Column::Guid => self.wide.guids,
            Column::Blob => self.wide.blobs,
            Column::Index(table) => self.count(table) > 0xffff,
            Column::Coded(bits, tables) => {
                let most = tables.iter().map(|table| self.count(*table)).max().unwrap_or_default();
                most > 0xffff >> bits
            }
        };
        if wide { 4 } else { 2 }
    }
}

/// A row, read column by column.
#[derive(Debug)]
pub(super) struct Row<'a, 't> {
    tables: &'t Tables<'a>,
    columns: &'static [Column],
    bytes: Reader<'a>,
}

impl Row<'_, '_> {
    /// Reads the next column: a number, or an index into a heap or table.
    pub(super) fn next(&mut self, what: &'static str) -> Result<u32, DecodeError> {
        let Some((column, rest)) = self.columns.split_first() else {
            return Err(self.bytes.error(what, DecodeErrorKind::Invalid("is after the last column")));
        };
        self.columns = rest;
        match self.tables.width(*column) {
            2 => self.bytes.u16(what).map(u32::from),
            _ => self.bytes.u32(what),
        }
    }

    /// Skips columns.
    pub(super) fn skip(&mut self, columns: usize) -> Result<(), DecodeError> {
        (0..columns).try_for_each(|_| self.next("column").map(drop))
    }
}
