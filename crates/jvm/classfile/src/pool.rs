//! The constant pool (JVMS 4.4), which the indexes in a class file refer to.
//!
//! The offsets of the entries are determined once, and entries are decoded on request. The constants of all
//! versions up to the newest are supported, whatever the version of the class.

use runtap_wire::{DecodeError, DecodeErrorKind};

use crate::bytes::{Input, Layout, Output};
use crate::text::Text;

/// The index of an entry in the constant pool. 0 means that there is no entry, where that is allowed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Index(pub u16);

impl Index {
    /// No entry.
    pub const NONE: Self = Self(0);

    /// Returns the index, or `None` for 0.
    pub fn optional(self) -> Option<Self> {
        (self.0 != 0).then_some(self)
    }
}

impl<'a> Layout<'a> for Index {
    fn read(input: &mut Input<'a>, what: &'static str) -> Result<Self, DecodeError> {
        input.u16(what).map(Self)
    }

    fn write(&self, output: &mut Output) {
        output.u16(self.0);
    }
}

macro_rules! constants {
    ($($(#[$meta:meta])* $name:ident $tag:literal { $($(#[$field_meta:meta])* $field:ident: $type:ty,)* })*) => {
        /// An entry of the constant pool.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
        #[non_exhaustive]
        pub enum Constant<'a> {
            /// A string in modified UTF-8 (tag 1).
            Utf8(Text<'a>),
            $($(#[$meta])* #[doc = concat!("(tag ", stringify!($tag), ")")] $name { $($(#[$field_meta])* $field: $type,)* },)*
        }

        impl<'a> Constant<'a> {
            fn read(input: &mut Input<'a>) -> Result<Self, DecodeError> {
                let mut ahead = input.clone();
                let constant = match ahead.u8("constant pool tag")? {
                    1 => {
                        let length = usize::from(ahead.u16("CONSTANT_Utf8 length")?);
                        Self::Utf8(Text::new(ahead.bytes(length, "CONSTANT_Utf8 bytes")?))
                    }
                    $($tag => Self::$name { $($field: <$type>::read(&mut ahead, concat!("CONSTANT_", stringify!($name), " ", stringify!($field)))?,)* },)*
                    tag => {
                        let kind = DecodeErrorKind::Unexpected { value: tag.into(), expected: "1, 3 to 12 or 15 to 20" };
                        return Err(input.error("constant pool tag", kind));
                    }
                };
                *input = ahead;
                Ok(constant)
            }

            pub(crate) fn write(&self, output: &mut Output) {
                match self {
                    Self::Utf8(text) => {
                        output.u8(1);
                        output.count16(text.as_bytes().len(), "CONSTANT_Utf8 length");
                        output.bytes(text.as_bytes());
                    }
                    $(Self::$name { $($field,)* } => {
                        output.u8($tag);
                        $($field.write(output);)*
                    })*
                }
            }
        }
    };
}

constants! {
    /// An `int`, also for narrower types
    Integer 3 {
        /// The value.
        value: i32,
    }
    /// A `float`
    Float 4 {
        /// The bits, which distinguish NaNs.
        bits: u32,
    }
    /// A `long`, which takes two indexes
    Long 5 {
        /// The upper half.
        high: u32,
        /// The lower half.
        low: u32,
    }
    /// A `double`, which takes two indexes
    Double 6 {
        /// The upper half of the bits.
        high: u32,
        /// The lower half of the bits.
        low: u32,
    }
    /// A class, an interface or an array type
    Class 7 {
        /// `CONSTANT_Utf8`: `java/lang/Object`, `[I`.
        name: Index,
    }
    /// A `String`
    String 8 {
        /// `CONSTANT_Utf8`: the text.
        text: Index,
    }
    /// A field
    Fieldref 9 {
        /// `CONSTANT_Class`.
        class: Index,
        /// `CONSTANT_NameAndType`.
        name_and_type: Index,
    }
    /// A method of a class
    Methodref 10 {
        /// `CONSTANT_Class`.
        class: Index,
        /// `CONSTANT_NameAndType`.
        name_and_type: Index,
    }
    /// A method of an interface
    InterfaceMethodref 11 {
        /// `CONSTANT_Class`.
        class: Index,
        /// `CONSTANT_NameAndType`.
        name_and_type: Index,
    }
    /// A name and a descriptor
    NameAndType 12 {
        /// `CONSTANT_Utf8`.
        name: Index,
        /// `CONSTANT_Utf8`.
        descriptor: Index,
    }
    /// A method handle, from version 51
    MethodHandle 15 {
        /// The use of the member: 1 to 9.
        kind: u8,
        /// A field, a method or an interface method.
        reference: Index,
    }
    /// The type of a method, from version 51
    MethodType 16 {
        /// `CONSTANT_Utf8`.
        descriptor: Index,
    }
    /// A dynamically computed constant, from version 55
    Dynamic 17 {
        /// The number of the row in `BootstrapMethods`.
        bootstrap_method: u16,
        /// `CONSTANT_NameAndType`.
        name_and_type: Index,
    }
    /// A dynamically computed call site, from version 51
    InvokeDynamic 18 {
        /// The number of the row in `BootstrapMethods`.
        bootstrap_method: u16,
        /// `CONSTANT_NameAndType`.
        name_and_type: Index,
    }
    /// A module, from version 53
    Module 19 {
        /// `CONSTANT_Utf8`.
        name: Index,
    }
    /// A package, from version 53
    Package 20 {
        /// `CONSTANT_Utf8`: `java/lang`.
        name: Index,
    }
}

impl Constant<'_> {
    /// Returns whether the constant takes two indexes, so that the next index is unusable.
    pub fn is_wide(&self) -> bool {
        matches!(self, Self::Long { .. } | Self::Double { .. })
    }
}

/// A member that code refers to: `java/io/PrintStream`, `println`, `(I)V`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct MemberRef<'a> {
    /// The class.
    pub class: Text<'a>,
    /// The name of the field or method.
    pub name: Text<'a>,
    /// The descriptor.
    pub descriptor: Text<'a>,
}

/// The constant pool of a class.
#[derive(Clone)]
pub struct Pool<'a> {
    /// The file from its start to the end of the pool.
    file: &'a [u8],
    /// The offset of each entry in the file; 0 for unusable indexes.
    starts: Vec<u32>,
}

impl std::fmt::Debug for Pool<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_map().entries(self.iter()).finish()
    }
}

impl<'a> Pool<'a> {
    /// Reads `constant_pool_count` and the entries; `file` is the whole class file.
    pub(crate) fn read(file: &'a [u8], input: &mut Input<'a>) -> Result<Self, DecodeError> {
        let count = input.u16("constant_pool_count")?;
        if count == 0 {
            let kind = DecodeErrorKind::TooSmall { value: 0, least: 1 };
            return Err(DecodeError::new(input.offset() as u64 - 2, "constant_pool_count", kind));
        }
        // Every entry has at least three bytes.
        let mut starts = Vec::with_capacity(usize::from(count).min(input.rest().len() / 3 + 1));
        starts.push(0);
        while starts.len() < usize::from(count) {
            starts.push(u32::try_from(input.offset()).unwrap_or(0));
            if Constant::read(input)?.is_wide() {
                starts.push(0);
            }
        }
        if starts.len() > usize::from(count) {
            let what = "constant_pool_count";
            return Err(
                input.error(what, DecodeErrorKind::Invalid("ends between the two halves of a constant"))
            );
        }
        Ok(Self { file: file.get(..input.offset()).unwrap_or_default(), starts })
    }

    /// Returns the count of the pool: one more than the highest index.
    pub fn count(&self) -> u16 {
        u16::try_from(self.starts.len()).unwrap_or(u16::MAX)
    }

    /// Returns the offset of the end of the pool in the file.
    pub(crate) fn end(&self) -> usize {
        self.file.len()
    }

    /// Returns an iterator over all entries with their indexes.
    pub fn iter(&self) -> impl Iterator<Item = (Index, Constant<'a>)> {
        (1..self.count()).filter_map(|index| Some((Index(index), self.find(Index(index))?)))
    }

    fn find(&self, index: Index) -> Option<Constant<'a>> {
        let start = usize::try_from(*self.starts.get(usize::from(index.0))?).ok()?;
        let bytes = self.file.get(start..).filter(|_| start != 0)?;
        Constant::read(&mut Input::at(bytes, start)).ok()
    }

    /// Returns an entry. `what` names the field that has the index, for errors.
    pub fn get(&self, index: Index, what: &'static str) -> Result<Constant<'a>, DecodeError> {
        self.find(index).ok_or_else(|| self.wrong(index, what, "an index of the constant pool"))
    }

    /// Returns a string.
    #[inline]
    pub fn text(&self, index: Index, what: &'static str) -> Result<Text<'a>, DecodeError> {
        match self.find(index) {
            Some(Constant::Utf8(text)) => Ok(text),
            _ => Err(self.wrong(index, what, "the index of a CONSTANT_Utf8")),
        }
    }

    /// Returns the name of a class.
    pub fn class(&self, index: Index, what: &'static str) -> Result<Text<'a>, DecodeError> {
        match self.find(index) {
            Some(Constant::Class { name }) => self.text(name, what),
            _ => Err(self.wrong(index, what, "the index of a CONSTANT_Class")),
        }
    }

    /// Returns a name and its descriptor.
    pub fn name_and_type(
        &self,
        index: Index,
        what: &'static str,
    ) -> Result<(Text<'a>, Text<'a>), DecodeError> {
        match self.find(index) {
            Some(Constant::NameAndType { name, descriptor }) => {
                Ok((self.text(name, what)?, self.text(descriptor, what)?))
            }
            _ => Err(self.wrong(index, what, "the index of a CONSTANT_NameAndType")),
        }
    }

    /// Returns a reference to a field, a method or an interface method.
    pub fn member(&self, index: Index, what: &'static str) -> Result<MemberRef<'a>, DecodeError> {
        let Some(
            Constant::Fieldref { class, name_and_type }
            | Constant::Methodref { class, name_and_type }
            | Constant::InterfaceMethodref { class, name_and_type },
        ) = self.find(index)
        else {
            return Err(self.wrong(index, what, "the index of a field or a method"));
        };
        let (name, descriptor) = self.name_and_type(name_and_type, what)?;
        Ok(MemberRef { class: self.class(class, what)?, name, descriptor })
    }

    /// Returns the index of the first entry with this text.
    pub(crate) fn find_text(&self, text: &[u8]) -> Option<Index> {
        self.starts.iter().zip(0u16..).find_map(|(&start, index)| {
            let start = usize::try_from(start).ok().filter(|start| *start != 0)?;
            let length = u16::try_from(text.len()).ok()?.to_be_bytes();
            let entry = self.file.get(start..)?.strip_prefix(&[1])?.strip_prefix(&length)?;
            entry.starts_with(text).then_some(Index(index))
        })
    }

    #[cold]
    fn wrong(&self, index: Index, what: &'static str, expected: &'static str) -> DecodeError {
        let start = self.starts.get(usize::from(index.0)).copied().filter(|start| *start != 0);
        let offset = start.map_or_else(|| self.end() as u64, u64::from);
        DecodeError::new(offset, what, DecodeErrorKind::Unexpected { value: index.0.into(), expected })
    }
}
