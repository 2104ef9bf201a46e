//! The names of numbers in fields. See `words.txt` for the table and its notation.
//!
//! The table is parsed when a stream defines an event: one pass over some hundred lines for the few providers in it.

use std::borrow::Cow;

use super::value::Value;

const TABLE: &str = include_str!("words.txt");

/// A field whose numbers have names.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct NamedField {
    pub(super) field: &'static str,
    /// The name under which the name is shown: the field, or the meaning of a part of its bits.
    pub(super) shown: &'static str,
    words: NumberNames,
}

/// A list of names, and how a number is looked up in it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct NumberNames {
    how: Lookup,
    list: &'static str,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Lookup {
    One,
    /// A combination of flags, after applying a mask.
    Flags(u32),
    Bit,
    Tier,
}

/// Returns the fields of an event that have names for their numbers.
pub(super) fn find(provider: &str, id: u32) -> Box<[NamedField]> {
    let is_section =
        |line: &str| line.strip_prefix('[').and_then(|line| line.strip_suffix(']')) == Some(provider);
    let rows = TABLE.lines().skip_while(|line| !is_section(line)).skip(1);
    let row = rows.take_while(|line| !line.starts_with('[')).find_map(|line| {
        let (key, row) = line.split_once(' ')?;
        (key.parse() == Ok(id)).then_some(row)
    });
    row.map_or_else(Box::default, |row| row.split_ascii_whitespace().filter_map(named).collect())
}

/// Parses `FIELD=LIST` or `FIELD:SHOWN=LIST`.
fn named(item: &'static str) -> Option<NamedField> {
    let (field, list) = item.split_once('=')?;
    let (field, shown) = field.split_once(':').unwrap_or((field, field));
    Some(NamedField { field, shown, words: words(list)? })
}

/// Returns the list with this name.
fn words(name: &str) -> Option<NumberNames> {
    let lists = TABLE.lines().skip_while(|line| *line != "[words]").skip(1);
    lists.take_while(|line| !line.starts_with('[')).find_map(|line| {
        let (known, rest) = line.split_once(' ')?;
        let (how, list) = rest.trim_start().split_once(' ')?;
        let how = match how.split_once('/') {
            Some(("flags", mask)) => Lookup::Flags(u32::from_str_radix(mask, 16).ok()?),
            _ => match how {
                "one" => Lookup::One,
                "flags" => Lookup::Flags(u32::MAX),
                "bit" => Lookup::Bit,
                "tier" => Lookup::Tier,
                _ => return None,
            },
        };
        (known == name).then(|| NumberNames { how, list: list.trim() })
    })
}

impl NamedField {
    /// Returns the name of a value of the field, if it has one.
    pub(super) fn of(&self, value: &Value<'_>) -> Option<Cow<'static, str>> {
        // Numbers of one, two and four bytes. Negative numbers may have names too.
        let number = value.as_i64().filter(|number| (i64::from(i32::MIN)..1 << 32).contains(number))?;
        self.words.of(number)
    }
}

impl NumberNames {
    fn pairs(self) -> impl Iterator<Item = (&'static str, i64)> {
        self.list.split_ascii_whitespace().filter_map(|pair| {
            let (name, number) = pair.split_once('=')?;
            Some((name, number.parse().ok()?))
        })
    }

    fn one(self, number: i64) -> Option<&'static str> {
        self.pairs().find(|(_, known)| *known == number).map(|(name, _)| name)
    }

    fn of(self, number: i64) -> Option<Cow<'static, str>> {
        let all_bits = || u32::try_from(number.rem_euclid(1 << 32)).unwrap_or_default();
        let name = match self.how {
            Lookup::One => {
                // An unsigned field may hold a negative number.
                let signed = i64::from(all_bits().cast_signed());
                self.one(number).or_else(|| self.one(signed))?
            }
            Lookup::Flags(mask) => return self.flags(i64::from(all_bits() & mask)),
            Lookup::Bit if all_bits() >> 31 == 0 => "not_specified",
            Lookup::Bit => self.one(all_bits().trailing_zeros().into())?,
            // Precompiled code has no tier, whatever its bits are.
            Lookup::Tier if all_bits() & JITTED == 0 => self.one(0)?,
            Lookup::Tier => self.one((all_bits() >> 7 & 7).into())?,
        };
        Some(Cow::Borrowed(name))
    }

    fn flags(self, number: i64) -> Option<Cow<'static, str>> {
        if number == 0 {
            return self.one(0).map(Cow::Borrowed);
        }
        let (mut left, mut names) = (number, String::new());
        for (name, bit) in self.pairs().filter(|(_, bit)| *bit != 0 && number & bit == *bit) {
            left &= !bit;
            if !names.is_empty() {
                names.push_str(", ");
            }
            names.push_str(name);
        }
        (left == 0).then_some(Cow::Owned(names))
    }
}

/// The flag of a method that was compiled at run time.
const JITTED: u32 = 8;

#[cfg(test)]
mod tests {
    use super::super::native;
    use super::*;
    use crate::clr::{RUNDOWN, RUNTIME, TPL};

    fn name(provider: &str, id: u32, shown: &str, number: u64) -> Option<String> {
        let all = find(provider, id);
        let named = all.iter().find(|named| named.shown == shown).unwrap();
        named.of(&Value::UInt(number)).map(Cow::into_owned)
    }

    #[test]
    fn numbers_have_names() {
        let of = |name: &str| Some(name.to_owned());
        assert_eq!(name(RUNTIME, 1, "Reason", 1), of("Induced"));
        assert_eq!(name(RUNTIME, 1, "Reason", 99), None);
        assert_eq!(
            name(RUNTIME, 205, "GlobalMechanisms", 30),
            of("Compaction, Promotion, Demotion, CardBundles")
        );
        assert_eq!(name(RUNTIME, 205, "GlobalMechanisms", 0), of("None"));
        assert_eq!(name(RUNTIME, 205, "GlobalMechanisms", 0x4000), None);
        assert_eq!(name(RUNTIME, 205, "PauseMode", 0xffff_ffff), of("Invalid"));
        assert_eq!(name(RUNTIME, 204, "CompactMechanisms", 0x8000_0002), of("compact_high_frag"));
        assert_eq!(name(RUNTIME, 204, "CompactMechanisms", 0), of("not_specified"));
        assert_eq!(name(RUNDOWN, 144, "MethodFlags", 394), of("Generic, Jitted"));
        assert_eq!(name(RUNDOWN, 144, "OptimizationTier", 394), of("QuickJitted"));
        assert_eq!(name(RUNDOWN, 144, "OptimizationTier", 256), of("Unknown"));
        assert_eq!(name(TPL, 10, "Behavior", 2), of("Asynchronous"));
        assert!(find("Nobody", 1).is_empty() && find(RUNTIME, 60_000).is_empty());
    }

    #[test]
    fn every_row_is_valid_and_names_a_field() {
        let mut provider = "";
        for line in TABLE.lines().filter(|line| !line.is_empty() && !line.starts_with('#')) {
            if let Some(section) = line.strip_prefix('[') {
                provider = section.trim_end_matches(']');
                continue;
            }
            let (key, row) = line.split_once(' ').unwrap();
            if provider == "words" {
                assert!(words(key).unwrap().pairs().count() > 1, "{line}");
                continue;
            }
            let id = key.parse().unwrap();
            assert_eq!(find(provider, id).len(), row.split_ascii_whitespace().count(), "{line}");
            // The fields of these events are defined in the stream.
            if provider == TPL {
                continue;
            }
            let native = native::find(provider, id, "", 8).unwrap_or_else(|| panic!("{line}"));
            for named in find(provider, id) {
                assert!(native.fields.fields().iter().any(|field| *field.name == *named.field), "{line}");
            }
        }
    }
}
