//! Writes Protocol Buffers messages field by field, so that a large file need not be built in memory.

use prost::Message;
use std::io::{self, Write};

/// A writer of a file's fields.
pub(crate) struct Fields<W> {
    w: W,
    buffer: Vec<u8>,
}

impl<W: Write> Fields<W> {
    pub(crate) fn new(w: W) -> Self {
        Self { w, buffer: Vec::new() }
    }

    /// Writes `message` as the field `number`.
    pub(crate) fn message(&mut self, number: u32, message: &impl Message) -> io::Result<()> {
        self.buffer.clear();
        message.encode(&mut self.buffer)?;
        self.head(number)?;
        self.w.write_all(&self.buffer)
    }

    /// Writes a text as the field `number`.
    pub(crate) fn text(&mut self, number: u32, text: &str) -> io::Result<()> {
        self.buffer.clear();
        self.buffer.extend_from_slice(text.as_bytes());
        self.head(number)?;
        self.w.write_all(&self.buffer)
    }

    /// Writes the fields of `message` itself, as fields of the file.
    pub(crate) fn fields(&mut self, message: &impl Message) -> io::Result<()> {
        self.buffer.clear();
        message.encode(&mut self.buffer)?;
        self.w.write_all(&self.buffer)
    }

    /// Returns the writer.
    pub(crate) fn into_inner(self) -> W {
        self.w
    }

    /// Writes the key of a length-delimited field and the length of the buffer.
    fn head(&mut self, number: u32) -> io::Result<()> {
        const LENGTH_DELIMITED: u64 = 2;
        let mut head = [0; 20];
        let mut rest = &mut head[..];
        prost::encoding::encode_varint(u64::from(number) << 3 | LENGTH_DELIMITED, &mut rest);
        prost::encoding::encode_varint(self.buffer.len() as u64, &mut rest);
        let unused = rest.len();
        self.w.write_all(&head[..head.len() - unused])
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Clone, PartialEq, Message)]
    struct Outer {
        #[prost(string, repeated, tag = "1")]
        texts: Vec<String>,
        #[prost(message, repeated, tag = "300")]
        inner: Vec<Inner>,
        #[prost(int64, tag = "9")]
        number: i64,
    }

    #[derive(Clone, PartialEq, Message)]
    struct Inner {
        #[prost(uint64, tag = "1")]
        id: u64,
    }

    #[test]
    fn separate_fields_equal_the_whole_message() {
        let mut fields = Fields::new(Vec::new());
        let long = "x".repeat(1000);
        fields.text(1, "a").expect("a Vec takes all");
        fields.message(300, &Inner { id: 1 << 60 }).expect("a Vec takes all");
        fields.text(1, &long).expect("a Vec takes all");
        fields.fields(&Outer { number: -7, ..Outer::default() }).expect("a Vec takes all");
        fields.message(300, &Inner { id: 0 }).expect("a Vec takes all");
        let read = Outer::decode(fields.into_inner().as_slice()).expect("a message");
        let inner = vec![Inner { id: 1 << 60 }, Inner { id: 0 }];
        assert_eq!(read, Outer { texts: vec!["a".to_owned(), long], inner, number: -7 });
    }
}
