//! XML as the reports need it: elements, attributes, text; indented by a space.
//!
//! Owns: that everything is cleaned ([`text::plain`]) and escaped on its way out, so that no text of a test makes a file
//! that a reader refuses. Refuses to: know a format; check that what is opened is closed.

use std::borrow::Cow;
use std::io::{self, Write};

use quick_xml::Writer;
use quick_xml::events::attributes::Attribute;
use quick_xml::events::{BytesDecl, BytesEnd, BytesStart, BytesText, Event};
use quick_xml::name::QName;

use crate::text;

/// An attribute: its name and its value.
pub(crate) type Pair<'a> = (&'static str, &'a str);

pub(crate) struct Xml<W: Write> {
    writer: Writer<W>,
}

impl<W: Write> Xml<W> {
    /// Writes the declaration.
    pub(crate) fn new(w: W) -> io::Result<Self> {
        let mut writer = Writer::new_with_indent(w, b' ', 1);
        writer.write_event(Event::Decl(BytesDecl::new("1.0", Some("utf-8"), None)))?;
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

    /// An element with text; without, if there is none.
    pub(crate) fn text(
        &mut self,
        name: &'static str,
        attributes: &[Pair<'_>],
        content: &str,
    ) -> io::Result<()> {
        if content.is_empty() {
            return self.empty(name, attributes);
        }
        self.open(name, attributes)?;
        let escaped = escape(content, false);
        self.writer.write_event(Event::Text(BytesText::from_escaped(escaped)))?;
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
        let value = Cow::Owned(escape(value, true).into_bytes());
        start.push_attribute(Attribute { key: QName(key.as_bytes()), value });
    }
    start
}

/// Cleans and escapes. In an attribute a reader turns ends of lines and tabs into spaces, unless they are escaped.
fn escape(value: &str, attribute: bool) -> String {
    let value = text::plain(value);
    let mut out = String::with_capacity(value.len() + value.len() / 16);
    for c in value.chars() {
        match c {
            '<' => out.push_str("&lt;"),
            // `]]>` may not stand in text.
            '>' => out.push_str("&gt;"),
            '&' => out.push_str("&amp;"),
            '"' if attribute => out.push_str("&quot;"),
            '\n' if attribute => out.push_str("&#10;"),
            '\t' if attribute => out.push_str("&#9;"),
            c => out.push(c),
        }
    }
    out
}
