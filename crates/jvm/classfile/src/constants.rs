//! New constants: the pool of a class that is assembled, or what is appended to that of a class that is there.

use std::collections::HashMap;

use crate::bytes::{Output, TooMany};
use crate::pool::{Constant, Index};
use crate::text::{Text, encode};

/// The most entries that a pool can have, with the unused one of index 0.
const MAX_COUNT: u16 = u16::MAX;

/// Constants, each one once. What does not fit any more gets [`Index::NONE`], and [`check`](Self::check) says so.
#[derive(Debug, Clone)]
pub struct Constants {
    bytes: Vec<u8>,
    next: u16,
    full: bool,
    known: HashMap<Vec<u8>, Index>,
}

/// A state to which they can be set back.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Mark {
    length: usize,
    next: u16,
}

impl Default for Constants {
    fn default() -> Self {
        Self::behind(1)
    }
}

impl Constants {
    /// Those from an index on.
    pub(crate) fn behind(next: u16) -> Self {
        Self { bytes: Vec::new(), next, full: false, known: HashMap::new() }
    }

    pub(crate) fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// The index of the next one, which is the count of all.
    pub(crate) fn next(&self) -> u16 {
        self.next
    }

    pub(crate) fn mark(&self) -> Mark {
        Mark { length: self.bytes.len(), next: self.next }
    }

    pub(crate) fn back_to(&mut self, mark: Mark) {
        self.bytes.truncate(mark.length);
        self.next = mark.next;
        self.full = false;
        self.known.retain(|_, index| index.0 < mark.next);
    }

    /// An error if there was no room for one, or if one was too long.
    pub fn check(&self) -> Result<(), TooMany> {
        let (value, limit) = (usize::from(MAX_COUNT) + 1, usize::from(MAX_COUNT));
        if self.full { Err(TooMany { what: "constant_pool_count", value, limit }) } else { Ok(()) }
    }

    /// A constant.
    pub fn add(&mut self, constant: &Constant<'_>) -> Index {
        let mut output = Output::new();
        constant.write(&mut output);
        let Ok(bytes) = output.finish() else {
            self.full = true;
            return Index::NONE;
        };
        if let Some(known) = self.known.get(&bytes) {
            return *known;
        }
        let (index, next) = (self.next, self.next.checked_add(if constant.is_wide() { 2 } else { 1 }));
        let Some(next) = next else {
            self.full = true;
            return Index::NONE;
        };
        self.next = next;
        self.bytes.extend_from_slice(&bytes);
        self.known.insert(bytes, Index(index));
        Index(index)
    }

    /// A text in modified UTF-8.
    pub(crate) fn encoded(&mut self, text: &[u8]) -> Index {
        self.add(&Constant::Utf8(Text::new(text)))
    }

    /// A text.
    pub fn text(&mut self, text: &str) -> Index {
        self.encoded(&encode(text))
    }

    /// A class by its name: `java/lang/Object`.
    pub fn class(&mut self, name: &str) -> Index {
        let name = self.text(name);
        self.add(&Constant::Class { name })
    }

    /// A string that code can load.
    pub fn string(&mut self, text: &str) -> Index {
        let text = self.text(text);
        self.add(&Constant::String { text })
    }

    /// An `int`.
    pub fn integer(&mut self, value: i32) -> Index {
        self.add(&Constant::Integer { value })
    }

    /// A `long`.
    pub fn long(&mut self, value: i64) -> Index {
        let half =
            |shift: u32| u32::try_from((value.cast_unsigned() >> shift) & u64::from(u32::MAX)).unwrap_or(0);
        self.add(&Constant::Long { high: half(32), low: half(0) })
    }

    /// A name with a descriptor.
    pub fn name_and_type(&mut self, name: &str, descriptor: &str) -> Index {
        let (name, descriptor) = (self.text(name), self.text(descriptor));
        self.add(&Constant::NameAndType { name, descriptor })
    }

    /// A field.
    pub fn field(&mut self, class: &str, name: &str, descriptor: &str) -> Index {
        let (class, name_and_type) = (self.class(class), self.name_and_type(name, descriptor));
        self.add(&Constant::Fieldref { class, name_and_type })
    }

    /// A method of a class.
    pub fn method(&mut self, class: &str, name: &str, descriptor: &str) -> Index {
        let (class, name_and_type) = (self.class(class), self.name_and_type(name, descriptor));
        self.add(&Constant::Methodref { class, name_and_type })
    }

    /// A method of an interface.
    pub fn interface_method(&mut self, class: &str, name: &str, descriptor: &str) -> Index {
        let (class, name_and_type) = (self.class(class), self.name_and_type(name, descriptor));
        self.add(&Constant::InterfaceMethodref { class, name_and_type })
    }

    /// The instruction that pushes a number, in its shortest form.
    pub(crate) fn push(&mut self, value: i32, code: &mut Vec<u8>) {
        use crate::code::Opcode;
        let [_, _, high, low] = value.to_be_bytes();
        match value {
            -1..=5 => code.push(Opcode::ICONST_0.0.wrapping_add(low)),
            -128..=127 => code.extend([Opcode::BIPUSH.0, low]),
            -32_768..=32_767 => code.extend([Opcode::SIPUSH.0, high, low]),
            _ => {
                let [high, low] = self.integer(value).0.to_be_bytes();
                code.extend([Opcode::LDC_W.0, high, low]);
            }
        }
    }
}
