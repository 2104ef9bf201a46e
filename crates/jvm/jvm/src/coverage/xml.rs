//! A writer for XML as coverage files need it: elements with attributes, one per line, indented by a space.
//!
//! Every value is escaped. A character that XML 1.0 cannot represent becomes U+FFFD, because classes may have
//! nearly any name. The writer does not check that elements are closed.

use std::borrow::Cow;
use std::fmt::Write as _;
use std::io::{self, Write};

use quick_xml::Writer;
use quick_xml::events::attributes::Attribute;
use quick_xml::events::{BytesDecl, BytesEnd, BytesStart, BytesText, Event};
use quick_xml::name::QName;
use runtap_model::text::acts_unseen;

/// An attribute: its name and its value.
pub(crate) type Pair<'a> = (&'static str, &'a str);

pub(crate) struct Xml<W: Write> {
    writer: Writer<W>,
}

impl<W: Write> Xml<W> {
    /// Writes the XML declaration and the document type.
    pub(crate) fn new(w: W, doctype: &str) -> io::Result<Self> {
        let mut writer = Writer::new_with_indent(w, b' ', 1);
        writer.write_event(Event::Decl(BytesDecl::new("1.0", Some("UTF-8"), None)))?;
        writer.write_event(Event::DocType(BytesText::from_escaped(doctype)))?;
        Ok(Self { writer })
    }

    /// Opens an element with child elements.
    pub(crate) fn open(&mut self, name: &'static str, attributes: &[Pair<'_>]) -> io::Result<()> {
        self.writer.write_event(Event::Start(start(name, attributes)))
    }

    /// Closes an element.
    pub(crate) fn close(&mut self, name: &'static str) -> io::Result<()> {
        self.writer.write_event(Event::End(BytesEnd::new(name)))
    }

    /// Writes an element with attributes only.
    pub(crate) fn empty(&mut self, name: &'static str, attributes: &[Pair<'_>]) -> io::Result<()> {
        self.writer.write_event(Event::Empty(start(name, attributes)))
    }

    /// Writes an element with text only.
    pub(crate) fn text(&mut self, name: &'static str, text: &str) -> io::Result<()> {
        self.open(name, &[])?;
        self.writer.write_event(Event::Text(BytesText::from_escaped(escaped(text))))?;
        self.close(name)
    }

    /// Completes the file.
    pub(crate) fn finish(self) -> io::Result<()> {
        let mut w = self.writer.into_inner();
        w.write_all(b"\n")?;
        w.flush()
    }
}

fn start<'a>(name: &'static str, attributes: &[Pair<'_>]) -> BytesStart<'a> {
    let mut start = BytesStart::new(name);
    for (key, value) in attributes {
        let value = Cow::Owned(escaped(value).into_bytes());
        start.push_attribute(Attribute { key: QName(key.as_bytes()), value });
    }
    start
}

/// Escapes a value. Line ends and tabs are escaped too, because readers would replace them by spaces in attributes.
fn escaped(value: &str) -> String {
    let mut escaped = String::with_capacity(value.len());
    for c in value.chars() {
        match c {
            '<' => escaped.push_str("&lt;"),
            '>' => escaped.push_str("&gt;"),
            '&' => escaped.push_str("&amp;"),
            '"' => escaped.push_str("&quot;"),
            '\n' => escaped.push_str("&#10;"),
            '\r' => escaped.push_str("&#13;"),
            '\t' => escaped.push_str("&#9;"),
            '\0'..' ' | '\u{fffe}' | '\u{ffff}' => escaped.push('\u{fffd}'),
            // Readers decode the character, but printing the file cannot deceive.
            c if acts_unseen(c) => {
                let _ = write!(escaped, "&#x{:X};", u32::from(c));
            }
            c => escaped.push(c),
        }
    }
    escaped
}
