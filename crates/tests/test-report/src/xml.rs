//! Writing of XML for reports: elements, attributes and text, indented by one space.
//!
//! All texts are cleaned ([`text::plain`]) and escaped, so that no text of a test makes a file unreadable. The caller
//! must close all elements that it opens.

use std::borrow::Cow;
use std::convert::Infallible;
use std::io::{self, Write};

use quick_xml::Writer;
use quick_xml::events::attributes::Attribute;
use quick_xml::events::{BytesDecl, BytesEnd, BytesStart, BytesText, Event};
use quick_xml::name::QName;

use crate::text;

/// The name and the value of an attribute.
pub(crate) type Pair<'a> = (&'static str, &'a str);

pub(crate) struct Xml<W: Write> {
    writer: Writer<W>,
}

impl<W: Write> Xml<W> {
    /// Writes the XML declaration.
    pub(crate) fn new(w: W) -> io::Result<Self> {
        let mut writer = Writer::new_with_indent(w, b' ', 1);
        writer.write_event(Event::Decl(BytesDecl::new("1.0", Some("utf-8"), None)))?;
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

    /// Writes an element with text, or an empty element if the text is empty.
    pub(crate) fn text(
        &mut self,
        name: &'static str,
        attributes: &[Pair<'_>],
        content: &str,
    ) -> io::Result<()> {
        self.texts(name, attributes, &[content])
    }

    /// Writes an element with several concatenated texts, without copying them.
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
        // An empty text keeps the next event on the same line.
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

/// Cleans and escapes text. In attributes, readers convert unescaped line ends and tabs to spaces. A report may be
/// printed in the log of a build server, which must not find commands in it ([`text::no_command`]); XML readers get the
/// original text.
#[derive(Debug, Default)]
struct Escape {
    attribute: bool,
    /// Whether the last character was a `#`.
    is_hash: bool,
    /// Whether the line has only white space so far. The first line starts after a tag.
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

    /// Returns the replacement of the next character, or `None` if it is unchanged.
    fn next(&mut self, c: char) -> Option<&'static str> {
        let escaped = match c {
            '<' => "&lt;",
            // `]]>` is not allowed in text.
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
