//! Rows that are printed as they are read: elements of a list in a JSON document, or lines below a heading.

use std::fmt::Display;
use std::io::{self, Stdout};
use std::path::Path;

use serde::Serialize;

use crate::Output;
use crate::json::ListDocument;

#[derive(Serialize)]
struct Head {
    schema: &'static str,
    file: String,
}

/// Prints rows of a file as JSON or text. Prints nothing before the first row or the end.
#[derive(Debug)]
pub(crate) struct RowPrinter {
    pub(crate) output: Output,
    document: ListDocument<Stdout>,
    /// The heading of the lines until it is printed.
    heading: Option<String>,
}

impl RowPrinter {
    /// Creates a printer. In a JSON document, the rows are the list with this name.
    pub(crate) fn new(
        schema: &'static str,
        file: &Path,
        list: &str,
        heading: String,
        output: Output,
    ) -> io::Result<Self> {
        let head = Head { schema, file: file.display().to_string() };
        let document = ListDocument::new(io::stdout(), &head, list)?;
        Ok(Self { output, document, heading: Some(heading) })
    }

    /// Prints a row of a JSON document.
    pub(crate) fn element(&mut self, element: &impl Serialize) -> io::Result<()> {
        self.document.element(element)
    }

    /// Prints a row as text.
    pub(crate) fn line(&mut self, line: impl Display) -> io::Result<()> {
        if let Some(heading) = self.heading.take() {
            self.output.text(heading)?;
        }
        self.output.text(line)
    }

    /// Ends the output; `tail` has the members of a JSON document after the list.
    pub(crate) fn finish(self, tail: &impl Serialize) -> io::Result<()> {
        if self.output.json() { self.document.finish(tail) } else { Ok(()) }
    }
}
