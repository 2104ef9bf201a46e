//! Reports in the LCOV tracefile format.
//!
//! | coverage | tracefile |
//! | --- | --- |
//! | a source file | `SF` to `end_of_record` |
//! | a method with a line | `FN:<first line>,<name>`, `FNDA:<calls>,<name>` |
//! | a line | `DA:<number>,<hits>` |
//! | totals | `FNF`, `FNH`, `LF`, `LH` |
//!
//! The name of a method is `Class.method(descriptor)`, which is unique in a source file. In this format, a name
//! ends at a comma or at the end of the line, and there are no escapes: `,`, `%` and control characters are written
//! as `%` and two digits.
//!
//! - A method whose line is unknown cannot be represented and is omitted ([`Coverage::methods_without_line`]).
//! - `lcov` 1.x rejects a source file without `DA`, so such a file is omitted
//!   ([`Coverage::sources_without_lines`]). If no line of any file is known, all files are included with their
//!   methods, for other readers.
//! - There are no branches, because agents do not report them.
//!
//! Source: the manual page *geninfo(1)*, section FILES. Tested with `lcov` and `genhtml` 1.16.

use std::fmt::Write as _;
use std::io::{self, Write};

use runtap_model::text::acts_unseen;

use crate::coverage::model::{Counter, Coverage, simple};
use crate::coverage::write::WriteOptions;

/// Writes a tracefile.
///
/// # Errors
/// Returns the errors of the writer.
pub fn write(coverage: &Coverage, mut w: impl Write, options: &WriteOptions<'_>) -> io::Result<()> {
    writeln!(w, "TN:{}", test_name(options.name))?;
    let some_have_lines = some_have_lines(coverage);
    for (package, content) in &coverage.packages {
        for (file, source) in content.sources() {
            let lines = source.lines();
            if lines.is_empty() && some_have_lines {
                continue;
            }
            writeln!(w, "SF:{}", escaped(&options.path(package, file), false))?;
            let all = || {
                source.classes.iter().flat_map(|(name, class)| class.methods.iter().map(move |m| (*name, m)))
            };
            let named = || all().filter_map(|(class, method)| Some((method.line?, class, method)));
            let mut methods = Counter::default();
            for (line, class, method) in named() {
                writeln!(w, "FN:{line},{}", function(class, &method.name, &method.descriptor))?;
            }
            for (_, class, method) in named() {
                methods = methods.plus(Counter::one(method.is_covered()));
                writeln!(w, "FNDA:{},{}", method.calls, function(class, &method.name, &method.descriptor))?;
            }
            writeln!(w, "FNF:{}\nFNH:{}", methods.total(), methods.covered)?;
            for (number, hits) in &lines {
                writeln!(w, "DA:{number},{hits}")?;
            }
            let lines = Counter::of_lines(&lines);
            writeln!(w, "LF:{}\nLH:{}\nend_of_record", lines.total(), lines.covered)?;
        }
    }
    w.flush()
}

impl Coverage {
    /// Returns the number of methods that a tracefile omits because their first line is unknown.
    pub fn methods_without_line(&self) -> u64 {
        let classes = self.packages.values().flat_map(|package| package.classes.values());
        classes.flat_map(|class| &class.methods).filter(|method| method.line.is_none()).count() as u64
    }
}

impl Coverage {
    /// Returns the number of source files that a tracefile omits because none of their lines is known, although
    /// lines of other files are.
    pub fn sources_without_lines(&self) -> u64 {
        if !some_have_lines(self) {
            return 0;
        }
        let sources = self.packages.values().flat_map(|package| package.sources().into_values());
        sources.filter(|source| source.lines().is_empty()).count() as u64
    }
}

/// Returns whether the lines of any method are known.
fn some_have_lines(coverage: &Coverage) -> bool {
    let mut classes = coverage.packages.values().flat_map(|package| package.classes.values());
    classes.any(|class| class.methods.iter().any(|method| !method.lines.is_empty()))
}

fn function(class: &str, name: &str, descriptor: &str) -> String {
    escaped(&format!("{}.{name}{descriptor}", simple(class)), true)
}

/// Escapes control characters; in names also commas and `%`, which paths keep so that they can be found.
fn escaped(text: &str, name: bool) -> String {
    let mut escaped = String::with_capacity(text.len());
    for c in text.chars() {
        if acts_unseen(c) || (name && matches!(c, ',' | '%')) {
            let mut bytes = [0; 4];
            for byte in c.encode_utf8(&mut bytes).bytes() {
                let _ = write!(escaped, "%{byte:02X}");
            }
        } else {
            escaped.push(c);
        }
    }
    escaped
}

/// Replaces everything except letters, digits and `_`, which `lcov` rejects with a warning.
fn test_name(name: &str) -> String {
    name.chars().map(|c| if c.is_ascii_alphanumeric() { c } else { '_' }).collect()
}
