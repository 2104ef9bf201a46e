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
        let mut escape = Escape::default();
        for content in contents {
            escape.text(content, |part| w.write_all(part.as_bytes()))?;
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
        let mut escape = Escape { attribute: true, ..Escape::default() };
        let _: Result<(), Infallible> = escape.text(value, |part| {
            escaped.extend_from_slice(part.as_bytes());
            Ok(())
        });
        start.push_attribute(Attribute { key: QName(key.as_bytes()), value: Cow::Owned(escaped) });
    }
    start
}

/// Cleans and escapes. In an attribute a reader turns ends of lines and tabs into spaces, unless they are escaped. A report may
/// be printed in the log of a build server, which must not take anything in it for a command ([`text::no_command`]): readers
/// of XML get the text as it was.
#[derive(Debug, Default)]
struct Escape {
    attribute: bool,
    /// The last character was a `#`.
    is_hash: bool,
    /// There are only blanks in the line so far. The first line begins behind a tag.
    is_begin: bool,
}

impl Escape {
    fn text<E>(&mut self, value: &str, mut take: impl FnMut(&str) -> Result<(), E>) -> Result<(), E> {
        text::plain_parts(value, |part| {
            let mut from = 0;
            for (at, c) in part.char_indices() {
                if let Some(escaped) = self.next(c) {
                    take(part.get(from..at).unwrap_or_default())?;
                    take(escaped)?;
                    from = at + c.len_utf8();
                }
            }
            take(part.get(from..).unwrap_or_default())
        })
    }

    /// What stands for the next character; `None`: itself.
    fn next(&mut self, c: char) -> Option<&'static str> {
        let escaped = match c {
            '<' => "&lt;",
            // `]]>` may not stand in text.
            '>' => "&gt;",
            '&' => "&amp;",
            '"' if self.attribute => "&quot;",
            '\n' if self.attribute => "&#10;",
            '\t' if self.attribute => "&#9;",
            '#' if self.is_hash => "&#35;",
            ':' if self.is_begin => "&#58;",
            _ => "",
        };
        self.is_hash = c == '#';
        self.is_begin = !self.attribute && (c == '\n' || self.is_begin && c.is_whitespace());
        Some(escaped).filter(|escaped| !escaped.is_empty())
    }
}
