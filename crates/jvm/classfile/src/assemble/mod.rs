//! An assembler for classes, such as probe classes and classes of tests, that needs no Java compiler.
//!
//! [`ClassBuilder`] and [`CodeBuilder`] provide constants without duplicates, labels, frames, handlers and lines.
//! They neither verify the class nor compute what the caller has to give: the sizes of the stack and the local
//! variables, and the frame at each label.
//!
//! ```
//! use runtap_classfile::assemble::{ClassBuilder, CodeBuilder};
//! use runtap_classfile::code::{FrameKind, Opcode};
//! use runtap_classfile::{AccessFlags, ClassFile, Version};
//!
//! let public_static = AccessFlags::PUBLIC | AccessFlags::STATIC;
//! let version = Version { major: 52, minor: 0 };
//! let mut class = ClassBuilder::new(version, AccessFlags::PUBLIC, "demo/Sign", "java/lang/Object");
//! let mut code = CodeBuilder::new(1, 1);
//! let negative = code.label();
//! code.op(Opcode::ILOAD_0).branch(Opcode::IFLT, negative).push(class.constants(), 1).op(Opcode::IRETURN);
//! code.bind(negative).frame(FrameKind::Same).push(class.constants(), -1).op(Opcode::IRETURN);
//! class.method(public_static, "of", "(I)I", Some(&code))?;
//! let bytes = class.finish()?;
//! assert_eq!(ClassFile::parse(&bytes).unwrap().name().unwrap(), "demo/Sign");
//! # Ok::<(), runtap_classfile::assemble::AssembleError>(())
//! ```

mod code;

use thiserror::Error;

pub use self::code::{CodeBuilder, Label};
use crate::bytes::{Layout as _, Output, TooMany};
use crate::class::MAGIC;
use crate::{AccessFlags, Constants, Version};

/// An error that occurs when a class is assembled.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum AssembleError {
    /// A number or size is too large for its field.
    #[error(transparent)]
    TooMany(#[from] TooMany),
    /// A label is used but not bound, or belongs to other code.
    #[error("a label of method {0} is not bound")]
    Unbound(String),
    /// A branch spans more than 32,767 bytes.
    #[error("a branch of method {0} is too long")]
    TooFar(String),
}

/// A builder of a class.
#[derive(Debug)]
pub struct ClassBuilder {
    version: Version,
    access: AccessFlags,
    name: String,
    super_name: String,
    constants: Constants,
    fields: (usize, Output),
    methods: (usize, Output),
    source_file: Option<String>,
}

impl ClassBuilder {
    /// Creates a class without members.
    pub fn new(version: Version, access: AccessFlags, name: &str, super_name: &str) -> Self {
        Self {
            version,
            access,
            name: name.to_owned(),
            super_name: super_name.to_owned(),
            constants: Constants::default(),
            fields: (0, Output::new()),
            methods: (0, Output::new()),
            source_file: None,
        }
    }

    /// Returns the constants, for the operands of code.
    pub fn constants(&mut self) -> &mut Constants {
        &mut self.constants
    }

    /// Sets the name of the source file.
    pub fn source_file(&mut self, name: &str) -> &mut Self {
        self.source_file = Some(name.to_owned());
        self
    }

    /// Adds a field.
    pub fn field(&mut self, access: AccessFlags, name: &str, descriptor: &str) -> &mut Self {
        let (count, output) = &mut self.fields;
        *count += 1;
        access.write(output);
        self.constants.text(name).write(output);
        self.constants.text(descriptor).write(output);
        output.u16(0);
        self
    }

    /// Adds a method; without code if it is abstract or native.
    pub fn method(
        &mut self,
        access: AccessFlags,
        name: &str,
        descriptor: &str,
        code: Option<&CodeBuilder>,
    ) -> Result<&mut Self, AssembleError> {
        let attribute = code.map(|code| code.finish(&mut self.constants, name)).transpose()?;
        let (count, output) = &mut self.methods;
        *count += 1;
        access.write(output);
        self.constants.text(name).write(output);
        self.constants.text(descriptor).write(output);
        output.u16(attribute.is_some().into());
        if let Some(attribute) = attribute {
            self.constants.text("Code").write(output);
            output.counted("attribute_length", |output| output.bytes(&attribute));
        }
        Ok(self)
    }

    /// Returns the class file.
    pub fn finish(mut self) -> Result<Vec<u8>, AssembleError> {
        let mut rest = Output::new();
        self.access.write(&mut rest);
        self.constants.class(&self.name).write(&mut rest);
        self.constants.class(&self.super_name).write(&mut rest);
        rest.u16(0);
        for (count, members) in [self.fields, self.methods] {
            rest.count16(count, "members");
            rest.bytes(&members.finish()?);
        }
        rest.u16(self.source_file.is_some().into());
        if let Some(source_file) = self.source_file {
            self.constants.text("SourceFile").write(&mut rest);
            rest.u32(2);
            self.constants.text(&source_file).write(&mut rest);
        }
        self.constants.check()?;
        let mut output = Output::new();
        output.u32(MAGIC);
        output.u16(self.version.minor);
        output.u16(self.version.major);
        output.u16(self.constants.next());
        output.bytes(self.constants.bytes());
        output.bytes(&rest.finish()?);
        Ok(output.finish()?)
    }
}
