//! Reports in JaCoCo's XML format, DTD 1.1.
//!
//! | coverage | report |
//! | --- | --- |
//! | a package | `package`, its name with slashes |
//! | a class | `class` with `sourcefilename` |
//! | a method | `method` with `name`, `desc`, `line`, and a counter `METHOD` of one |
//! | a source file | `sourcefile` |
//! | a line that ran | `line` with `ci="1" mi="0"` |
//! | a line that did not run | `line` with `ci="0" mi="1"` |
//! | totals | counters `LINE`, `METHOD`, `CLASS` at every level; omitted where there is nothing to count |
//!
//! Instructions, branches and complexity are unknown, so their counters are omitted, and each line counts as one
//! instruction: readers show a line as covered if `ci` is not 0. The format cannot represent the hits of lines or
//! the calls of methods.
//!
//! Source: `org.jacoco.report.xml`, *JACOCO DTD Report 1.1*. Tested with the npm package jacoco-parse.

use std::io::{self, Write};

use crate::coverage::model::{Class, Counter, Coverage, CoverageTotals, Package};
use crate::coverage::write::{WriteOptions, source_path};
use crate::coverage::xml::{Pair, Xml};

const DOCTYPE: &str = r#"report PUBLIC "-//JACOCO//DTD Report 1.1//EN" "report.dtd""#;

/// Writes a report.
///
/// # Errors
/// Returns the errors of the writer.
pub fn write(coverage: &Coverage, w: impl Write, options: &WriteOptions<'_>) -> io::Result<()> {
    let mut xml = Xml::new(w, DOCTYPE)?;
    xml.open("report", &[("name", options.name)])?;
    let mut totals = CoverageTotals::default();
    for (name, content) in &coverage.packages {
        totals = totals.plus(package(&mut xml, name, content)?);
    }
    counters(&mut xml, &totals)?;
    xml.close("report")?;
    xml.finish()
}

fn package<W: Write>(xml: &mut Xml<W>, name: &str, package: &Package) -> io::Result<CoverageTotals> {
    // Readers look for sources below a directory of this name.
    xml.open("package", &[("name", &source_path(name, ""))])?;
    for (name, content) in &package.classes {
        class(xml, name, content)?;
    }
    let mut totals = CoverageTotals::default();
    for (file, source) in package.sources() {
        xml.open("sourcefile", &[("name", file)])?;
        for (number, hits) in source.lines() {
            let (missed, covered) = if hits > 0 { ("0", "1") } else { ("1", "0") };
            let number = number.to_string();
            let line = [("nr", number.as_str()), ("mi", missed), ("ci", covered), ("mb", "0"), ("cb", "0")];
            xml.empty("line", &line)?;
        }
        let of_file = source.totals();
        counters(xml, &of_file)?;
        xml.close("sourcefile")?;
        totals = totals.plus(of_file);
    }
    counters(xml, &totals)?;
    xml.close("package")?;
    Ok(totals)
}

fn class<W: Write>(xml: &mut Xml<W>, name: &str, class: &Class) -> io::Result<()> {
    xml.open("class", &[("name", name), ("sourcefilename", &class.source)])?;
    for method in &class.methods {
        let line = method.line.map(|line| line.to_string());
        let mut attributes: Vec<Pair<'_>> = vec![("name", &method.name), ("desc", &method.descriptor)];
        attributes.extend(line.as_deref().map(|line| ("line", line)));
        xml.open("method", &attributes)?;
        counter(xml, "LINE", method.line_counter())?;
        counter(xml, "METHOD", Counter::one(method.is_covered()))?;
        xml.close("method")?;
    }
    let totals = CoverageTotals {
        lines: Counter::of_lines(&class.lines()),
        methods: class.method_counter(),
        classes: Counter::one(class.is_covered()),
    };
    counters(xml, &totals)?;
    xml.close("class")
}

fn counters<W: Write>(xml: &mut Xml<W>, totals: &CoverageTotals) -> io::Result<()> {
    counter(xml, "LINE", totals.lines)?;
    counter(xml, "METHOD", totals.methods)?;
    counter(xml, "CLASS", totals.classes)
}

fn counter<W: Write>(xml: &mut Xml<W>, kind: &str, counter: Counter) -> io::Result<()> {
    if counter.total() == 0 {
        return Ok(());
    }
    let (missed, covered) = (counter.missed.to_string(), counter.covered.to_string());
    xml.empty("counter", &[("type", kind), ("missed", &missed), ("covered", &covered)])
}
