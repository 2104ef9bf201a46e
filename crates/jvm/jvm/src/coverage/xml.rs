//! XML as coverage files need it: elements with attributes, one a line, indented by a space.
//!
//! Owns: that every value is escaped, and that a character which XML 1.0 can't have (classes may have nearly any name) is
//! U+FFFD. Refuses to: know a format; check that what is opened is closed.

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
    /// Writes the declaration and the type of the document.
    pub(crate) fn new(w: W, doctype: &str) -> io::Result<Self> {
        let mut writer = Writer::new_with_indent(w, b' ', 1);
        writer.write_event(Event::Decl(BytesDecl::new("1.0", Some("UTF-8"), None)))?;
        writer.write_event(Event::DocType(BytesText::from_escaped(doctype)))?;
        Ok(Self { writer })
    }

    /// Opens an element that has others.
    pub(crate) fn open(&mut self, name: &'static str, attributes: &[Pair<'_>]) -> io::Result<()> {
        self.writer.write_event(Event::Start(start(name, attributes)))
    }

    /// Closes it.
    pub(crate) fn close(&mut self, name: &'static str) -> io::Result<()> {
        self.writer.write_event(Event::End(BytesEnd::new(name)))
    }

    /// An element with attributes only.
    pub(crate) fn empty(&mut self, name: &'static str, attributes: &[Pair<'_>]) -> io::Result<()> {
        self.writer.write_event(Event::Empty(start(name, attributes)))
    }

    /// An element with text only.
    pub(crate) fn text(&mut self, name: &'static str, text: &str) -> io::Result<()> {
        self.open(name, &[])?;
        self.writer.write_event(Event::Text(BytesText::from_escaped(escaped(text))))?;
        self.close(name)
    }

    /// Ends the file.
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

/// Ends of lines and tabs are escaped: in an attribute a reader would make spaces of them.
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
            // Readers see the same; whoever prints the file is not deceived.
            c if acts_unseen(c) => {
                let _ = write!(escaped, "&#x{:X};", u32::from(c));
            }
            c => escaped.push(c),
        }
    }
    escaped
}
