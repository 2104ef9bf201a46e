//! Sums by class, as a JVM prints them: the reply to `inspectheap`, and to `GC.class_histogram`.
//!
//! ```text
//!  num     #instances         #bytes  class name (module)
//! -------------------------------------------------------
//!    1:         21348        1873504  [B (java.base@17.0.15)
//! Total         83045        4123456
//! ```
//!
//! Lines have numbers from 1. Modules are missing before JDK 9 and for classes without one. A JVM does not escape the names of
//! classes, which may contain spaces and line breaks, so a row is only accepted with the number that is expected next, and
//! the sums of the rows are compared with the totals.
//!
//! Source: `heapInspection.cpp` of `HotSpot` (`KlassInfoHisto::print_histo_on`).

use std::sync::Arc;

use runtap_wire::{DecodeError, DecodeErrorKind};

use crate::hprof::source_name;

/// The maximum number of classes that are read. A program with more does not start.
const MAX_CLASSES: usize = 1 << 22;
/// The longest name that is kept, in bytes.
const MAX_NAME: usize = 1 << 16;

/// The objects of a class.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ClassCount {
    /// The name as in source code, such as `byte[]`.
    pub name: String,
    /// The module. `None` if the class has none.
    pub module: Option<Arc<str>>,
    /// The number of objects.
    pub count: u64,
    /// The sum of their sizes in bytes.
    pub bytes: u64,
}

/// The sums by class of a heap.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ClassHistogram {
    /// A row for each class, in the order of the JVM: the largest first.
    pub classes: Vec<ClassCount>,
    /// The line with the totals: the number of objects and their size. `None` if the text ends before it.
    pub total: Option<(u64, u64)>,
}

impl ClassHistogram {
    /// Reads the sums from the text of a JVM.
    ///
    /// # Errors
    /// If the text has no heading, or too many rows.
    pub fn parse(text: &[u8]) -> Result<Self, DecodeError> {
        let text = String::from_utf8_lossy(text);
        let mut histogram = Self::default();
        let mut has_heading = false;
        let mut offset = 0u64;
        for line in text.split_inclusive('\n') {
            let start = offset;
            offset += line.len() as u64;
            let line = line.trim_end_matches(['\n', '\r']);
            if !has_heading {
                has_heading = is_heading(line);
            } else if let Some(row) = row(line, histogram.classes.len() + 1) {
                if histogram.classes.len() >= MAX_CLASSES {
                    let kind = DecodeErrorKind::TooLarge {
                        value: MAX_CLASSES as u64 + 1,
                        limit: MAX_CLASSES as u64,
                    };
                    return Err(DecodeError::new(start, "number of classes", kind));
                }
                histogram.classes.push(row);
            } else if let Some(total) = total(line) {
                histogram.total = Some(total);
            }
        }
        if has_heading {
            return Ok(histogram);
        }
        let kind = DecodeErrorKind::Invalid("has no line with the number of instances and bytes");
        Err(DecodeError::new(0, "class histogram", kind))
    }

    /// Returns why the sums are not those of the whole heap. `None` if they are.
    pub fn defect(&self) -> Option<&'static str> {
        let sum =
            |number: fn(&ClassCount) -> u64| self.classes.iter().map(number).fold(0u64, u64::saturating_add);
        match self.total {
            None => Some("the reply ends before the line with the totals"),
            Some(total) if total != (sum(|it| it.count), sum(|it| it.bytes)) => {
                Some("the sums of all classes differ from the totals that the JVM states")
            }
            Some(_) => None,
        }
    }
}

fn is_heading(line: &str) -> bool {
    let mut words = line.split_ascii_whitespace();
    words.next() == Some("num") && words.next() == Some("#instances") && words.next() == Some("#bytes")
}

/// Parses the row with this number.
fn row(line: &str, number: usize) -> Option<ClassCount> {
    let (found, rest) = line.trim_start().split_once(':')?;
    if found.parse() != Ok(number) {
        return None;
    }
    let (count, rest) = number_and_rest(rest)?;
    let (bytes, name) = number_and_rest(rest)?;
    let name = name.trim_start();
    let (name, module) = match name.strip_suffix(')').and_then(|name| name.rsplit_once(" (")) {
        Some((name, module)) => (name, Some(module.split('@').next().unwrap_or(module).into())),
        None => (name, None),
    };
    // Names of classes have dots here; a slash is part of the name of a hidden class.
    let name = if name.starts_with('[') { source_name(name.as_bytes()) } else { name.to_owned() };
    (name.len() <= MAX_NAME).then_some(ClassCount { name, module, count, bytes })
}

fn total(line: &str) -> Option<(u64, u64)> {
    let (count, rest) = number_and_rest(line.strip_prefix("Total")?)?;
    let (bytes, rest) = number_and_rest(rest)?;
    rest.trim().is_empty().then_some((count, bytes))
}

/// Parses a number between spaces. Returns it with the rest of the text.
fn number_and_rest(text: &str) -> Option<(u64, &str)> {
    let text = text.trim_start_matches(' ');
    let (digits, rest) = match text.find(' ') {
        Some(end) => text.split_at_checked(end)?,
        None => (text, ""),
    };
    Some((digits.parse().ok()?, rest))
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = " num     #instances         #bytes  class name (module)
-------------------------------------------------------
   1:             3             96  [B (java.base@17.0.15)
   2:             2             48  shop.Order
   3:             1             24  [[Lshop.Line;
Total             6            168
";

    fn parse(text: &str) -> ClassHistogram {
        ClassHistogram::parse(text.as_bytes()).unwrap()
    }

    #[test]
    fn rows_have_source_names_and_modules() {
        let histogram = parse(TEXT);
        let rows: Vec<_> = histogram
            .classes
            .iter()
            .map(|it| (it.name.as_str(), it.module.as_deref(), it.count, it.bytes))
            .collect();
        assert_eq!(
            rows,
            [
                ("byte[]", Some("java.base"), 3, 96),
                ("shop.Order", None, 2, 48),
                ("shop.Line[][]", None, 1, 24),
            ]
        );
        assert_eq!((histogram.total, histogram.defect()), (Some((6, 168)), None));
    }

    #[test]
    fn each_prefix_is_read_or_rejected_without_a_panic() {
        for end in 0..TEXT.len() {
            let histogram = ClassHistogram::parse(&TEXT.as_bytes()[..end]);
            // Without its line break, the last line is complete.
            if end < TEXT.len() - 1 {
                assert!(histogram.is_err() || histogram.unwrap().defect().is_some(), "{end}");
            }
        }
        assert!(ClassHistogram::parse(b"Unable to attach").is_err());
    }

    #[test]
    fn names_with_line_breaks_add_no_rows_unnoticed() {
        let forged = TEXT.replace("shop.Order", "shop\n   3:     9     9  forged\n   7:  1  1  skipped");
        let histogram = parse(&forged);
        assert_eq!(histogram.classes.len(), 3);
        assert!(histogram.defect().is_some());
        let total = TEXT.replace("shop.Order", "shop.Order\nTotal  1  2");
        assert_eq!(parse(&total).total, Some((6, 168)));
        let spaces = TEXT.replace("shop.Order", "shop Order (x) y");
        assert_eq!(parse(&spaces).classes[1].name, "shop Order (x) y");
    }
}
