//! The built-in table of events that streams do not describe. See `native.txt` for its notation.
//!
//! The table is parsed when a stream defines an event: one pass over some three hundred lines.

use super::schema::{FieldDef, FieldKind, Layout, Length, SLOTS, Slot};

const TABLE: &str = include_str!("native.txt");

/// The description of an event in the table.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Native {
    pub(super) name: &'static str,
    pub(super) opcode: Option<u8>,
    pub(super) fields: Layout,
}

/// Returns the row of an event, by its id or by its name.
pub(super) fn find(provider: &str, id: u32, name: &str, pointer_size: u32) -> Option<Native> {
    let mut lines = TABLE.lines().skip_while(|line| !is_section(line, provider));
    lines.next()?;
    let row = lines.take_while(|line| !line.starts_with('[')).find_map(|line| {
        let (key, rest) = line.split_once(' ')?;
        let wanted = match key.strip_prefix('=') {
            Some(known) => known == name,
            None => key.parse() == Ok(id),
        };
        wanted.then_some(rest)
    })?;
    Some(parse(row, pointer_size).unwrap_or_else(|| unreachable!("every row is tested")))
}

/// Returns the variants of an event that stands for several: rows `ID"TEXT"`, by the text at the start of the payload.
pub(super) fn kinds(provider: &str, id: u32, pointer_size: u32) -> Vec<(&'static str, Native)> {
    let lines = TABLE.lines().skip_while(|line| !is_section(line, provider)).skip(1);
    let rows = lines.take_while(|line| !line.starts_with('[')).filter_map(|line| {
        let (key, row) = line.split_once(' ')?;
        let (known, text) = key.strip_suffix('"')?.split_once('"')?;
        Some((text, parse(row, pointer_size)?)).filter(|_| known.parse() == Ok(id))
    });
    rows.collect()
}

/// Returns all rows of a provider that have ids, including variants.
pub(super) fn all(provider: &str) -> impl Iterator<Item = (u32, Native)> {
    const POINTER_SIZE: u32 = 8;
    let lines = TABLE.lines().skip_while(move |line| !is_section(line, provider)).skip(1);
    lines.take_while(|line| !line.starts_with('[')).filter_map(|line| {
        let (key, row) = line.split_once(' ')?;
        let id = key.split_once('"').map_or(key, |(id, _)| id).parse().ok()?;
        Some((id, parse(row, POINTER_SIZE)?))
    })
}

fn is_section(line: &str, provider: &str) -> bool {
    line.strip_prefix('[').and_then(|line| line.strip_suffix(']')) == Some(provider)
}

/// Parses `Task/Opcode[:number] fields`.
fn parse(row: &'static str, pointer_size: u32) -> Option<Native> {
    let row = row.trim();
    let (name, fields) = row.split_once(' ').unwrap_or((row, ""));
    let (name, opcode) = match name.split_once(':') {
        Some((name, opcode)) => (name, Some(opcode.parse().ok()?)),
        None => (name, None),
    };
    let mut text = fields.trim();
    let fields = parse_fields(&mut text, pointer_size)?;
    text.is_empty().then_some(Native { name, opcode, fields })
}

/// Parses fields up to the end of the row or a closing brace.
fn parse_fields(text: &mut &'static str, pointer_size: u32) -> Option<Layout> {
    let mut fields: Vec<FieldDef> = Vec::new();
    let mut optional = false;
    loop {
        *text = text.trim_start();
        if text.is_empty() || text.starts_with('}') {
            return Some(Layout::new(fields));
        }
        if let Some(rest) = text.strip_prefix('|') {
            (*text, optional) = (rest, true);
            continue;
        }
        let (name, rest) = text.split_once(':')?;
        *text = rest;
        let mut kind = parse_kind(text, pointer_size)?;
        if let Some(rest) = text.strip_prefix('[') {
            let (length, rest) = rest.split_once(']')?;
            *text = rest;
            let length =
                if length == "u16" { Length::Counted } else { Length::Kept(slot(&mut fields, length)?) };
            kind = FieldKind::Array(Box::new(kind), length);
        }
        fields.push(FieldDef { optional: std::mem::take(&mut optional), ..FieldDef::new(name, kind) });
    }
}

/// Assigns a slot to the field with this name, in which its value is kept.
fn slot(fields: &mut [FieldDef], name: &str) -> Option<Slot> {
    let taken = fields.iter().filter(|field| field.keep.is_some()).count();
    let field = fields.iter_mut().find(|field| &*field.name == name)?;
    let next = Slot::try_from(taken).ok().filter(|slot| usize::from(*slot) < SLOTS)?;
    Some(*field.keep.get_or_insert(next))
}

fn parse_kind(text: &mut &'static str, pointer_size: u32) -> Option<FieldKind> {
    if let Some(rest) = text.strip_prefix('{') {
        *text = rest;
        let fields = parse_fields(text, pointer_size)?;
        *text = text.strip_prefix('}')?;
        return Some(FieldKind::Object(Box::new(fields)));
    }
    let end = text.find(|c: char| !c.is_ascii_alphanumeric()).unwrap_or(text.len());
    let (word, rest) = text.split_at_checked(end)?;
    *text = rest;
    Some(match word {
        "u8" => FieldKind::U8,
        "u16" => FieldKind::U16,
        "u32" => FieldKind::U32,
        "u64" => FieldKind::U64,
        "i32" => FieldKind::I32,
        "i64" => FieldKind::I64,
        "f64" => FieldKind::F64,
        "bool" => FieldKind::Bool32,
        "x64" => FieldKind::Hex64,
        "ptr" if pointer_size == 4 => FieldKind::Hex32,
        "ptr" => FieldKind::Hex64,
        "size" if pointer_size == 4 => FieldKind::U32,
        "size" => FieldKind::U64,
        "z" => FieldKind::Utf16z,
        "a" => FieldKind::Utf8z,
        "guid" => FieldKind::Guid,
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;
    use crate::clr::{RUNDOWN, RUNTIME};

    #[test]
    fn every_row_is_valid_and_unique() {
        let mut keys = HashSet::new();
        let (mut section, mut rows) = ("", 0);
        for line in TABLE.lines().filter(|line| !line.is_empty() && !line.starts_with('#')) {
            if line.starts_with('[') {
                section = line;
                continue;
            }
            let (key, row) = line.split_once(' ').unwrap_or_else(|| panic!("{line}"));
            let native = parse(row, 8).unwrap_or_else(|| panic!("{line}"));
            let names: HashSet<_> = native.fields.fields().iter().map(|field| &field.name).collect();
            assert_eq!(names.len(), native.fields.fields().len(), "{line}");
            let id = key.split_once('"').map_or(key, |(id, _)| id);
            assert!(key.starts_with('=') || id.parse::<u32>().is_ok(), "{line}");
            assert!(keys.insert((section, key)), "twice: {section} {line}");
            rows += 1;
        }
        assert!(rows > 300);
    }

    #[test]
    fn rows_are_found_by_provider_and_id_or_name() {
        assert_eq!(find(RUNTIME, 143, "", 8).unwrap().name, "Method/LoadVerbose");
        assert_eq!(find(RUNDOWN, 143, "", 8).unwrap().name, "Method/DCStartVerbose");
        assert_eq!(find("Microsoft-Diagnostics-DiagnosticSource", 77, "Event", 8).unwrap().name, "Event");
        assert_eq!(find(RUNTIME, 60_000, "", 8), None);
        assert_eq!(find("Nobody", 1, "", 8), None);
    }

    #[test]
    fn the_notation() {
        let native = parse("Task/Do:7 n:u32 | v:{a:z b:x64[u16]}[n]", 8).unwrap();
        assert_eq!((native.name, native.opcode), ("Task/Do", Some(7)));
        let inner = FieldKind::Object(Box::new(Layout::new(vec![
            FieldDef::new("a", FieldKind::Utf16z),
            FieldDef::new("b", FieldKind::Array(Box::new(FieldKind::Hex64), Length::Counted)),
        ])));
        let n = FieldDef { keep: Some(0), ..FieldDef::new("n", FieldKind::U32) };
        let array = FieldKind::Array(Box::new(inner), Length::Kept(0));
        let v = FieldDef { optional: true, ..FieldDef::new("v", array) };
        assert_eq!(native.fields.fields(), [n, v]);
        for wrong in ["X a", "X a:what", "X a:u8[b]", "X a:{b:u8", "X a:u8}", "X:y a:u8"] {
            assert_eq!(parse(wrong, 8), None, "{wrong}");
        }
    }
}
