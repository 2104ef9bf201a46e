//! XML as the reports need it: elements, attributes, text; indented by a space.
//!
//! Owns: that everything is cleaned ([`text::plain`]) and escaped on its way out, so that no text of a test makes a file
//! that a reader refuses. Refuses to: know a format; check that what is opened is closed.

use std::borrow::Cow;
use std::convert::Infallible;
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
        self.texts(name, attributes, &[content])
    }

    /// The same with several texts, one after the other. None of them is copied.
    pub(crate) fn texts(
        &mut self,
        name: &'static str,
        attributes: &[Pair<'_>],
        contents: &[&str],
    ) -> io::Result<()> {
        if contents.iter().all(|content| content.is_empty()) {
            return self.empty(name, attributes);
        }
        self.open(name, attributes)?;
        // An empty text: what follows is on the same line as what is before it.
        self.writer.write_event(Event::Text(BytesText::from_escaped("")))?;
        let w = self.writer.get_mut();
        for content in contents {
            escape(content, false, |part| w.write_all(part.as_bytes()))?;
        }
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
        let mut escaped = Vec::with_capacity(value.len());
        let _: Result<(), Infallible> = escape(value, true, |part| {
            escaped.extend_from_slice(part.as_bytes());
            Ok(())
        });
        start.push_attribute(Attribute { key: QName(key.as_bytes()), value: Cow::Owned(escaped) });
    }
    start
}

/// Cleans and escapes. In an attribute a reader turns ends of lines and tabs into spaces, unless they are escaped.
fn escape<E>(value: &str, attribute: bool, mut take: impl FnMut(&str) -> Result<(), E>) -> Result<(), E> {
    text::plain_parts(value, |part| {
        let mut rest = part;
        while let Some(at) = rest.find(|c| escaped(c, attribute).is_some()) {
            let (before, special) = rest.split_at_checked(at).unwrap_or((rest, ""));
            let Some(c) = special.chars().next() else { break };
            take(before)?;
            take(escaped(c, attribute).unwrap_or_default())?;
            rest = special.get(c.len_utf8()..).unwrap_or_default();
        }
        take(rest)
    })
}

fn escaped(c: char, attribute: bool) -> Option<&'static str> {
    Some(match c {
        '<' => "&lt;",
        // `]]>` may not stand in text.
        '>' => "&gt;",
        '&' => "&amp;",
        '"' if attribute => "&quot;",
        '\n' if attribute => "&#10;",
        '\t' if attribute => "&#9;",
        _ => return None,
    })
}
