//! New constants: the pool of an assembled class, or constants that are appended to the pool of an existing class.

use std::collections::HashMap;

use crate::bytes::{Output, TooMany};
use crate::pool::{Constant, Index};
use crate::text::{Text, encode};

/// The maximum count of a pool, including the unused entry 0.
const MAX_COUNT: u16 = u16::MAX;

/// A set of constants without duplicates. A constant that exceeds a limit gets [`Index::NONE`], which
/// [`check`](Self::check) reports.
#[derive(Debug, Clone)]
pub struct Constants {
    bytes: Vec<u8>,
    next: u16,
    full: bool,
    known: HashMap<Vec<u8>, Index>,
}

/// A state that the constants can be reset to.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Checkpoint {
    length: usize,
    next: u16,
}

impl Default for Constants {
    fn default() -> Self {
        Self::starting_at(1)
    }
}

impl Constants {
    /// Creates an empty set whose first constant has the index `next`.
    pub(crate) fn starting_at(next: u16) -> Self {
        Self { bytes: Vec::new(), next, full: false, known: HashMap::new() }
    }

    pub(crate) fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// Returns the index of the next constant, which is the count of the pool.
    pub(crate) fn next(&self) -> u16 {
        self.next
    }

    pub(crate) fn checkpoint(&self) -> Checkpoint {
        Checkpoint { length: self.bytes.len(), next: self.next }
    }

    pub(crate) fn reset_to(&mut self, checkpoint: Checkpoint) {
        self.bytes.truncate(checkpoint.length);
        self.next = checkpoint.next;
        self.full = false;
        self.known.retain(|_, index| index.0 < checkpoint.next);
    }

    /// Returns an error if the pool was full, or a constant was too long.
    pub fn check(&self) -> Result<(), TooMany> {
        let (value, limit) = (usize::from(MAX_COUNT) + 1, usize::from(MAX_COUNT));
        if self.full { Err(TooMany { what: "constant_pool_count", value, limit }) } else { Ok(()) }
    }

    /// Adds a constant.
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

    /// Adds a text in modified UTF-8.
    pub(crate) fn encoded(&mut self, text: &[u8]) -> Index {
        self.add(&Constant::Utf8(Text::new(text)))
    }

    /// Adds a text.
    pub fn text(&mut self, text: &str) -> Index {
        self.encoded(&encode(text))
    }

    /// Adds a class by its name: `java/lang/Object`.
    pub fn class(&mut self, name: &str) -> Index {
        let name = self.text(name);
        self.add(&Constant::Class { name })
    }

    /// Adds a string that code can load.
    pub fn string(&mut self, text: &str) -> Index {
        let text = self.text(text);
        self.add(&Constant::String { text })
    }

    /// Adds an `int`.
    pub fn integer(&mut self, value: i32) -> Index {
        self.add(&Constant::Integer { value })
    }

    /// Adds a `long`.
    pub fn long(&mut self, value: i64) -> Index {
        let half =
            |shift: u32| u32::try_from((value.cast_unsigned() >> shift) & u64::from(u32::MAX)).unwrap_or(0);
        self.add(&Constant::Long { high: half(32), low: half(0) })
    }

    /// Adds a name with a descriptor.
    pub fn name_and_type(&mut self, name: &str, descriptor: &str) -> Index {
        let (name, descriptor) = (self.text(name), self.text(descriptor));
        self.add(&Constant::NameAndType { name, descriptor })
    }

    /// Adds a reference to a field.
    pub fn field(&mut self, class: &str, name: &str, descriptor: &str) -> Index {
        let (class, name_and_type) = (self.class(class), self.name_and_type(name, descriptor));
        self.add(&Constant::Fieldref { class, name_and_type })
    }

    /// Adds a reference to a method of a class.
    pub fn method(&mut self, class: &str, name: &str, descriptor: &str) -> Index {
        let (class, name_and_type) = (self.class(class), self.name_and_type(name, descriptor));
        self.add(&Constant::Methodref { class, name_and_type })
    }

    /// Adds a reference to a method of an interface.
    pub fn interface_method(&mut self, class: &str, name: &str, descriptor: &str) -> Index {
        let (class, name_and_type) = (self.class(class), self.name_and_type(name, descriptor));
        self.add(&Constant::InterfaceMethodref { class, name_and_type })
    }

    /// Appends the shortest instruction that pushes a number.
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
