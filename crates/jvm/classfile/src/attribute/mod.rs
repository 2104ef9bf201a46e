//! Attributes (JVMS 4.7), which are found by their lengths and decoded by name on request.
//!
//! Contains the attributes of a class, a member, a record component or code, and [`Attribute`], every attribute of
//! the specification in decoded form. Unknown attributes are not an error: their bytes are preserved.

mod annotation;
mod module;
mod table;
mod target;

use runtap_wire::{DecodeError, DecodeErrorKind};

pub use self::annotation::{Annotation, Element, ElementValue, ParameterAnnotations};
pub use self::module::{Exports, Module, Opens, Provides, Requires};
pub use self::table::{
    BootstrapMethod, EnclosingMethod, InnerClass, LineNumber, LocalVariable, MethodParameters, Parameter,
    RecordComponent,
};
pub use self::target::{LocalVariableRange, Path, PathStep, Target, TypeAnnotation};
use crate::bytes::{Input, Layout, Output};
use crate::class::EncodeError;
use crate::code::{Code, Frame};
use crate::pool::{Index, Pool};
use crate::text::Text;

/// The maximum nesting of attributes that are encoded from their parts.
const MAX_DEPTH: u8 = 8;

/// A list of attributes that are not decoded.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Attributes<'a> {
    /// The bytes of `count` consecutive attributes.
    bytes: &'a [u8],
    offset: usize,
    count: u16,
}

/// An attribute that is not decoded.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RawAttribute<'a> {
    /// The name, as an index of a `CONSTANT_Utf8`.
    pub name: Index,
    /// The bytes after the length.
    pub data: &'a [u8],
    /// The offset of `data` in the file.
    pub offset: usize,
}

impl<'a> Attributes<'a> {
    /// Returns the number of attributes.
    pub fn len(&self) -> usize {
        self.count.into()
    }

    /// Returns `true` if there are no attributes.
    pub fn is_empty(&self) -> bool {
        self.count == 0
    }

    /// Returns an iterator over the attributes.
    pub fn iter(&self) -> impl Iterator<Item = RawAttribute<'a>> + use<'a> {
        let mut input = Input::at(self.bytes, self.offset);
        // Decoding cannot fail here, because `Layout::read` has decoded all attributes before.
        std::iter::from_fn(move || RawAttribute::read(&mut input, "attribute").ok())
    }

    /// Returns the first attribute with this name; `None` if no attribute has it.
    pub fn find(&self, pool: &Pool<'a>, name: &str) -> Result<Option<RawAttribute<'a>>, DecodeError> {
        for attribute in self.iter() {
            if attribute.name(pool)?.as_bytes() == name.as_bytes() {
                return Ok(Some(attribute));
            }
        }
        Ok(None)
    }

    /// Returns an iterator over the decoded attributes.
    pub fn parse(&self, pool: &Pool<'a>) -> impl Iterator<Item = Result<Attribute<'a>, DecodeError>> {
        self.iter().map(move |attribute| attribute.parse(pool))
    }

    /// Writes the attributes from their decoded forms.
    pub(crate) fn encode(&self, pool: &Pool<'a>, output: &mut Output) -> Result<(), EncodeError> {
        output.u16(self.count);
        // Deeper nesting is legal only for attributes in the code of a method.
        if output.depth > MAX_DEPTH {
            let kind = DecodeErrorKind::Invalid("are nested too deeply");
            return Err(DecodeError::new(self.offset as u64, "attributes", kind).into());
        }
        output.depth += 1;
        for raw in self.iter() {
            let attribute = raw.parse(pool)?;
            raw.name.write(output);
            let mut result = Ok(());
            output.counted("attribute_length", |output| result = attribute.encode(pool, output));
            result?;
        }
        output.depth -= 1;
        Ok(())
    }
}

impl<'a> Layout<'a> for Attributes<'a> {
    fn read(input: &mut Input<'a>, _: &'static str) -> Result<Self, DecodeError> {
        let count = input.u16("attributes_count")?;
        let (start, offset) = (input.rest(), input.offset());
        for _ in 0..count {
            RawAttribute::read(input, "attribute")?;
        }
        let bytes = start.get(..input.offset() - offset).unwrap_or_default();
        Ok(Self { bytes, offset, count })
    }

    fn write(&self, output: &mut Output) {
        output.u16(self.count);
        output.bytes(self.bytes);
    }
}

impl<'a> RawAttribute<'a> {
    fn read(input: &mut Input<'a>, _: &'static str) -> Result<Self, DecodeError> {
        let name = Index::read(input, "attribute_name_index")?;
        let data = input.counted("attribute_length")?;
        Ok(Self { name, data, offset: input.offset() - data.len() })
    }

    /// Returns the name of the attribute.
    pub fn name(&self, pool: &Pool<'a>) -> Result<Text<'a>, DecodeError> {
        pool.text(self.name, "attribute_name_index")
    }

    /// Decodes the attribute; as [`Attribute::Unknown`] if the specification does not have its name.
    pub fn parse(&self, pool: &Pool<'a>) -> Result<Attribute<'a>, DecodeError> {
        Attribute::parse(self, self.name(pool)?)
    }

    pub(crate) fn input(&self) -> Input<'a> {
        Input::at(self.data, self.offset)
    }
}

macro_rules! attributes {
    ($($(#[$meta:meta])* $name:ident($type:ty),)*) => {
        /// A decoded attribute.
        #[derive(Debug, Clone, PartialEq, Eq)]
        #[non_exhaustive]
        pub enum Attribute<'a> {
            $($(#[$meta])* $name($type),)*
            /// The code of a method (4.7.3).
            Code(Code<'a>),
            /// Any other attribute: those of compilers and of the JDK, and `SourceDebugExtension` (4.7.11), which
            /// is a text in a format that this crate does not decode.
            Unknown(&'a [u8]),
        }

        impl<'a> Attribute<'a> {
            fn parse(raw: &RawAttribute<'a>, name: Text<'a>) -> Result<Self, DecodeError> {
                let mut input = raw.input();
                let attribute = match name.as_bytes() {
                    b"Code" => return Code::parse(raw).map(Self::Code),
                    $(bytes if bytes == stringify!($name).as_bytes() => {
                        Self::$name(Layout::read(&mut input, stringify!($name))?)
                    })*
                    _ => return Ok(Self::Unknown(raw.data)),
                };
                input.finish("attribute_length")?;
                Ok(attribute)
            }

            fn encode(&self, pool: &Pool<'a>, output: &mut Output) -> Result<(), EncodeError> {
                match self {
                    $(Self::$name(value) => value.encode_with(pool, output)?,)*
                    Self::Code(code) => code.encode(pool, output)?,
                    Self::Unknown(bytes) => output.bytes(bytes),
                }
                Ok(())
            }
        }
    };
}

attributes! {
    /// The value of a constant field (4.7.2).
    ConstantValue(Index),
    /// The types on the stack and in local variables at each branch target (4.7.4).
    StackMapTable(Vec<Frame>),
    /// The exceptions that a method declares (4.7.5).
    Exceptions(Vec<Index>),
    /// Classes that are members of others (4.7.6).
    InnerClasses(Vec<InnerClass>),
    /// The method that a local class is in (4.7.7).
    EnclosingMethod(EnclosingMethod),
    /// Marks items that are not in the source (4.7.8).
    Synthetic(()),
    /// The type with its type parameters (4.7.9).
    Signature(Index),
    /// The name of the source file (4.7.10).
    SourceFile(Index),
    /// The source lines of instructions (4.7.12).
    LineNumberTable(Vec<LineNumber>),
    /// The names of local variables (4.7.13).
    LocalVariableTable(Vec<LocalVariable>),
    /// The generic signatures of local variables (4.7.14).
    LocalVariableTypeTable(Vec<LocalVariable>),
    /// Marks deprecated items (4.7.15).
    Deprecated(()),
    /// Annotations that are visible by reflection (4.7.16).
    RuntimeVisibleAnnotations(Vec<Annotation>),
    /// Annotations that are not visible by reflection (4.7.17).
    RuntimeInvisibleAnnotations(Vec<Annotation>),
    /// Annotations of parameters (4.7.18).
    RuntimeVisibleParameterAnnotations(ParameterAnnotations),
    /// Annotations of parameters (4.7.19).
    RuntimeInvisibleParameterAnnotations(ParameterAnnotations),
    /// Annotations of types (4.7.20).
    RuntimeVisibleTypeAnnotations(Vec<TypeAnnotation>),
    /// Annotations of types (4.7.21).
    RuntimeInvisibleTypeAnnotations(Vec<TypeAnnotation>),
    /// The default value of an annotation element (4.7.22).
    AnnotationDefault(ElementValue),
    /// The computation of constants and call sites (4.7.23).
    BootstrapMethods(Vec<BootstrapMethod>),
    /// The names and flags of parameters (4.7.24).
    MethodParameters(MethodParameters),
    /// The declaration of a module (4.7.25).
    Module(Module),
    /// The packages of a module (4.7.26).
    ModulePackages(Vec<Index>),
    /// The main class of a module (4.7.27).
    ModuleMainClass(Index),
    /// The class that declares the members of the nest (4.7.28).
    NestHost(Index),
    /// The members of the nest of this class (4.7.29).
    NestMembers(Vec<Index>),
    /// The components of a record (4.7.30).
    Record(Vec<RecordComponent<'a>>),
    /// The permitted subclasses of a sealed class (4.7.31).
    PermittedSubclasses(Vec<Index>),
}

/// Encoding with access to the constant pool, which only structures with attributes need.
trait EncodeWith<'a> {
    fn encode_with(&self, pool: &Pool<'a>, output: &mut Output) -> Result<(), EncodeError>;
}

macro_rules! without_pool {
    ($($type:ty),* $(,)?) => {$(
        impl<'a> EncodeWith<'a> for $type {
            fn encode_with(&self, _: &Pool<'a>, output: &mut Output) -> Result<(), EncodeError> {
                Layout::write(self, output);
                Ok(())
            }
        }
    )*};
}

without_pool!(
    (),
    Index,
    EnclosingMethod,
    ElementValue,
    MethodParameters,
    Module,
    ParameterAnnotations,
    Vec<Annotation>,
    Vec<BootstrapMethod>,
    Vec<Frame>,
    Vec<Index>,
    Vec<InnerClass>,
    Vec<LineNumber>,
    Vec<LocalVariable>,
    Vec<TypeAnnotation>,
);

impl<'a> EncodeWith<'a> for Vec<RecordComponent<'a>> {
    fn encode_with(&self, pool: &Pool<'a>, output: &mut Output) -> Result<(), EncodeError> {
        output.count16(self.len(), "components_count");
        for component in self {
            component.name.write(output);
            component.descriptor.write(output);
            component.attributes.encode(pool, output)?;
        }
        Ok(())
    }
}

/// The content of an attribute without data.
impl<'a> Layout<'a> for () {
    fn read(_: &mut Input<'a>, _: &'static str) -> Result<Self, DecodeError> {
        Ok(())
    }

    fn write(&self, _: &mut Output) {}
}
