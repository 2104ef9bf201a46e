//! Reports in Cobertura's XML format, `coverage-04.dtd`.
//!
//! | coverage | report |
//! | --- | --- |
//! | a package | `package`, its name with dots |
//! | a class | `class`, its name with dots, and its `filename` below one of the `sources` |
//! | a method | `method` with `name`, `signature` (its descriptor) |
//! | a line | `line` with `number`, `hits`, `branch="false"` |
//! | totals | `line-rate`, for the root `lines-covered` and `lines-valid` too |
//!
//! Rates have four decimals and are rounded down: only complete coverage is 1. The rate of no lines is 0, except
//! for a method that was called, where it is 1 because the format has no other way to express that. Branches and
//! complexity are unknown: these attributes, which the DTD requires, are 0.
//!
//! Source: *coverage-04.dtd*. Tested with the Python package pycobertura.

use std::io::{self, Write};

use crate::coverage::model::{Class, Counter, Coverage, Method, Package};
use crate::coverage::write::{WriteOptions, source_path};
use crate::coverage::xml::{Pair, Xml};

const DOCTYPE: &str = r#"coverage SYSTEM "http://cobertura.sourceforge.net/xml/coverage-04.dtd""#;

/// Writes a report.
///
/// # Errors
/// Returns the errors of the writer.
pub fn write(coverage: &Coverage, w: impl Write, options: &WriteOptions<'_>) -> io::Result<()> {
    let mut xml = Xml::new(w, DOCTYPE)?;
    let lines = coverage.totals().lines;
    let (covered, valid) = (lines.covered.to_string(), lines.total().to_string());
    let time = options.timestamp_ms.to_string();
    let root = [
        ("line-rate", &*rate(lines)),
        ("branch-rate", "0"),
        ("lines-covered", &covered),
        ("lines-valid", &valid),
        ("branches-covered", "0"),
        ("branches-valid", "0"),
        ("complexity", "0"),
        ("version", options.version),
        ("timestamp", &time),
    ];
    xml.open("coverage", &root)?;
    xml.open("sources", &[])?;
    let here = [".".to_owned()];
    let roots = if options.roots.is_empty() { &here } else { options.roots };
    for root in roots {
        xml.text("source", root)?;
    }
    xml.close("sources")?;
    xml.open("packages", &[])?;
    for (name, content) in &coverage.packages {
        write_package(&mut xml, name, content)?;
    }
    xml.close("packages")?;
    xml.close("coverage")?;
    xml.finish()
}

fn write_package<W: Write>(xml: &mut Xml<W>, name: &str, package: &Package) -> io::Result<()> {
    let dotted = name.replace('/', ".");
    xml.open("package", &common_attributes(&dotted, &rate(package.totals().lines)))?;
    xml.open("classes", &[])?;
    for (class_name, content) in &package.classes {
        write_class(xml, class_name, name, content)?;
    }
    xml.close("classes")?;
    xml.close("package")
}

fn write_class<W: Write>(xml: &mut Xml<W>, name: &str, package: &str, class: &Class) -> io::Result<()> {
    let lines = class.lines();
    let dotted = name.replace('/', ".");
    let rate = rate(Counter::of_lines(&lines));
    let file = source_path(package, &class.source);
    let [name, rest @ ..] = common_attributes(&dotted, &rate);
    let mut attributes: Vec<Pair<'_>> = vec![name, ("filename", &file)];
    attributes.extend(rest);
    xml.open("class", &attributes)?;
    write_group(xml, "methods", class.methods.is_empty(), |xml| {
        class.methods.iter().try_for_each(|m| write_method(xml, m))
    })?;
    write_lines(xml, lines.iter())?;
    xml.close("class")
}

fn write_method<W: Write>(xml: &mut Xml<W>, method: &Method) -> io::Result<()> {
    let counter = method.line_counter();
    let rate = match counter.total() {
        0 => rate(Counter::one(method.is_covered())),
        _ => rate(counter),
    };
    let [name, rest @ ..] = common_attributes(&method.name, &rate);
    let mut attributes: Vec<Pair<'_>> = vec![name, ("signature", &method.descriptor)];
    attributes.extend(rest);
    xml.open("method", &attributes)?;
    write_lines(xml, method.lines.iter())?;
    xml.close("method")
}

fn write_lines<'l, W: Write>(
    xml: &mut Xml<W>,
    mut lines: impl ExactSizeIterator<Item = (&'l u32, &'l u64)>,
) -> io::Result<()> {
    write_group(xml, "lines", lines.len() == 0, |xml| {
        lines.try_for_each(|(number, hits)| {
            let (number, hits) = (number.to_string(), hits.to_string());
            xml.empty("line", &[("number", &number), ("hits", &hits), ("branch", "false")])
        })
    })
}

/// Writes an element with this content, or an empty element.
fn write_group<W: Write>(
    xml: &mut Xml<W>,
    name: &'static str,
    is_empty: bool,
    content: impl FnOnce(&mut Xml<W>) -> io::Result<()>,
) -> io::Result<()> {
    if is_empty {
        return xml.empty(name, &[]);
    }
    xml.open(name, &[])?;
    content(xml)?;
    xml.close(name)
}

/// Returns the attributes that packages, classes and methods have.
fn common_attributes<'a>(name: &'a str, rate: &'a str) -> [Pair<'a>; 4] {
    [("name", name), ("line-rate", rate), ("branch-rate", "0"), ("complexity", "0")]
}

/// Formats a rate with four decimals, rounded down.
fn rate(counter: Counter) -> String {
    let (covered, total) = (u128::from(counter.covered), u128::from(counter.total()));
    match (covered * 10_000).checked_div(total) {
        None | Some(0) => "0".to_owned(),
        Some(10_000) => "1".to_owned(),
        Some(parts) => format!("0.{parts:04}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rates() {
        let of = |missed, covered| rate(Counter { missed, covered });
        assert_eq!([of(0, 0), of(3, 0), of(0, 3)], ["0", "0", "1"]);
        assert_eq!([of(1, 2), of(1, 99_999), of(99, 1)], ["0.6666", "0.9999", "0.0100"]);
        assert_eq!(of(1, u64::MAX - 1), "0.9999");
    }
}
