//! A class file (JVMS 4.1), with its fields and methods (4.5, 4.6).
//!
//! The structure of the file is determined in one pass; attributes are decoded on request. Classes are not
//! verified: a class that a virtual machine would reject can be read as long as its structure is valid.

use runtap_wire::{DecodeError, DecodeErrorKind};

use crate::attribute::{Attribute, Attributes};
use crate::bytes::{Input, Layout, Output, TooMany};
use crate::code::Code;
use crate::flags::AccessFlags;
use crate::pool::{Index, Pool};
use crate::text::Text;

/// The first four bytes of a class file.
pub const MAGIC: u32 = 0xcafe_babe;

/// The version of a class file: 45.3 is JDK 1.0.2, 52 is JDK 8, 69 is JDK 25.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Version {
    /// The major version, at least 45.
    pub major: u16,
    /// The minor version; 65,535 for a class that uses preview features.
    pub minor: u16,
}

/// A borrowed class file.
#[derive(Debug, Clone)]
pub struct ClassFile<'a> {
    pub(crate) bytes: &'a [u8],
    version: Version,
    pool: Pool<'a>,
    access: AccessFlags,
    this_class: Index,
    super_class: Index,
    interfaces: Vec<Index>,
    fields: Vec<Member<'a>>,
    methods: Vec<Member<'a>>,
    attributes: Attributes<'a>,
}

/// A field or a method.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Member<'a> {
    /// The access flags.
    pub access: AccessFlags,
    /// The name, as an index of a `CONSTANT_Utf8`.
    pub name: Index,
    /// The descriptor, as an index of a `CONSTANT_Utf8`.
    pub descriptor: Index,
    /// The attributes.
    pub attributes: Attributes<'a>,
}

impl<'a> ClassFile<'a> {
    /// Parses a class file, which must be complete and have no trailing bytes.
    pub fn parse(bytes: &'a [u8]) -> Result<Self, DecodeError> {
        let mut input = Input::at(bytes, 0);
        let magic = input.u32("magic")?;
        if magic != MAGIC {
            let kind = DecodeErrorKind::Unexpected { value: magic.into(), expected: "0xcafebabe" };
            return Err(DecodeError::new(0, "magic", kind));
        }
        let minor = input.u16("minor_version")?;
        let major = input.u16("major_version")?;
        let pool = Pool::read(bytes, &mut input)?;
        let class = Self {
            bytes,
            version: Version { major, minor },
            pool,
            access: AccessFlags::read(&mut input, "access_flags")?,
            this_class: Index::read(&mut input, "this_class")?,
            super_class: Index::read(&mut input, "super_class")?,
            interfaces: Vec::read(&mut input, "interfaces")?,
            fields: Vec::read(&mut input, "fields")?,
            methods: Vec::read(&mut input, "methods")?,
            attributes: Attributes::read(&mut input, "attributes")?,
        };
        input.finish("bytes after the class")?;
        Ok(class)
    }

    /// Returns the bytes of the file.
    pub fn bytes(&self) -> &'a [u8] {
        self.bytes
    }

    /// Returns the version of the format.
    pub fn version(&self) -> Version {
        self.version
    }

    /// Returns the constants.
    pub fn pool(&self) -> &Pool<'a> {
        &self.pool
    }

    /// Returns the access flags of the class.
    pub fn access(&self) -> AccessFlags {
        self.access
    }

    /// Returns the name of the class: `java/lang/String`.
    pub fn name(&self) -> Result<Text<'a>, DecodeError> {
        self.pool.class(self.this_class, "this_class")
    }

    /// Returns the index of the class itself.
    pub(crate) fn this_class(&self) -> Index {
        self.this_class
    }

    /// Returns the name of the superclass; `None` for `java/lang/Object` and modules.
    pub fn super_name(&self) -> Result<Option<Text<'a>>, DecodeError> {
        self.super_class.optional().map(|index| self.pool.class(index, "super_class")).transpose()
    }

    /// Returns the direct superinterfaces.
    pub fn interfaces(&self) -> impl Iterator<Item = Result<Text<'a>, DecodeError>> {
        self.interfaces.iter().map(|&index| self.pool.class(index, "interfaces"))
    }

    /// Returns the fields, in the order of the file.
    pub fn fields(&self) -> &[Member<'a>] {
        &self.fields
    }

    /// Returns the methods, in the order of the file.
    pub fn methods(&self) -> &[Member<'a>] {
        &self.methods
    }

    /// Returns the attributes of the class.
    pub fn attributes(&self) -> &Attributes<'a> {
        &self.attributes
    }

    /// Returns the first attribute with this name in decoded form; `None` if no attribute has it.
    pub fn attribute(&self, name: &str) -> Result<Option<Attribute<'a>>, DecodeError> {
        self.attributes.find(&self.pool, name)?.map(|found| found.parse(&self.pool)).transpose()
    }

    /// Returns the name of the source file, without a folder; `None` if the class does not name its source.
    pub fn source_file(&self) -> Result<Option<Text<'a>>, DecodeError> {
        match self.attribute("SourceFile")? {
            Some(Attribute::SourceFile(index)) => self.pool.text(index, "sourcefile_index").map(Some),
            _ => Ok(None),
        }
    }

    /// Encodes the class from its decoded parts, down to each instruction and annotation, instead of copying it.
    /// The result equals [`bytes`](Self::bytes) if everything was decoded correctly; this is meant for tests. To
    /// change a class, use [`rewrite`](crate::rewrite), which preserves everything else.
    pub fn encode(&self) -> Result<Vec<u8>, EncodeError> {
        let mut output = Output::new();
        output.u32(MAGIC);
        output.u16(self.version.minor);
        output.u16(self.version.major);
        output.u16(self.pool.count());
        for (_, constant) in self.pool.iter() {
            constant.write(&mut output);
        }
        self.access.write(&mut output);
        self.this_class.write(&mut output);
        self.super_class.write(&mut output);
        self.interfaces.write(&mut output);
        for members in [&self.fields, &self.methods] {
            output.count16(members.len(), "members");
            for member in members {
                member.access.write(&mut output);
                member.name.write(&mut output);
                member.descriptor.write(&mut output);
                member.attributes.encode(&self.pool, &mut output)?;
            }
        }
        self.attributes.encode(&self.pool, &mut output)?;
        Ok(output.finish()?)
    }
}

/// An error that occurs when a class is encoded from its parts.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum EncodeError {
    /// A part could not be decoded.
    #[error(transparent)]
    Decode(#[from] DecodeError),
    /// A number is too large for its field.
    #[error(transparent)]
    TooMany(#[from] TooMany),
}

impl<'a> Member<'a> {
    /// Returns the name.
    pub fn name(&self, pool: &Pool<'a>) -> Result<Text<'a>, DecodeError> {
        pool.text(self.name, "name_index")
    }

    /// Returns the descriptor.
    pub fn descriptor(&self, pool: &Pool<'a>) -> Result<Text<'a>, DecodeError> {
        pool.text(self.descriptor, "descriptor_index")
    }

    /// Returns the code of a method; `None` for abstract and native methods.
    pub fn code(&self, pool: &Pool<'a>) -> Result<Option<Code<'a>>, DecodeError> {
        self.attributes.find(pool, "Code")?.map(|found| Code::parse(&found)).transpose()
    }
}

impl<'a> Layout<'a> for Member<'a> {
    fn read(input: &mut Input<'a>, _: &'static str) -> Result<Self, DecodeError> {
        Ok(Self {
            access: AccessFlags::read(input, "access_flags")?,
            name: Index::read(input, "name_index")?,
            descriptor: Index::read(input, "descriptor_index")?,
            attributes: Attributes::read(input, "attributes")?,
        })
    }

    fn write(&self, output: &mut Output) {
        self.access.write(output);
        self.name.write(output);
        self.descriptor.write(output);
        self.attributes.write(output);
    }
}
