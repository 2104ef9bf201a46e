//! Access flags (JVMS tables 4.1, 4.5, 4.6): some bits have different meanings for classes, fields and methods.

use runtap_wire::DecodeError;

use crate::bytes::{Input, Layout, Output};

/// The access flags of a class, a field, a method, a parameter or a part of a module.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct AccessFlags(pub u16);

macro_rules! flags {
    ($($(#[$meta:meta])* $name:ident = $bit:literal, $is:ident;)*) => {
        impl AccessFlags {
            $($(#[$meta])* pub const $name: Self = Self($bit);)*
            $(
                #[doc = concat!("Returns whether the bit of [`", stringify!($name), "`](Self::", stringify!($name), ") is set.")]
                pub fn $is(self) -> bool {
                    self.0 & $bit != 0
                }
            )*
        }
    };
}

flags! {
    /// `public`.
    PUBLIC = 0x0001, is_public;
    /// `private`.
    PRIVATE = 0x0002, is_private;
    /// `protected`.
    PROTECTED = 0x0004, is_protected;
    /// `static`.
    STATIC = 0x0008, is_static;
    /// `final`.
    FINAL = 0x0010, is_final;
    /// A `synchronized` method; for a class, `ACC_SUPER`.
    SYNCHRONIZED = 0x0020, is_synchronized;
    /// A bridge method, which a compiler adds for a changed signature; for a field, `volatile`.
    BRIDGE = 0x0040, is_bridge;
    /// A method with a variable number of arguments; for a field, `transient`.
    VARARGS = 0x0080, is_varargs;
    /// `native`.
    NATIVE = 0x0100, is_native;
    /// An interface.
    INTERFACE = 0x0200, is_interface;
    /// `abstract`.
    ABSTRACT = 0x0400, is_abstract;
    /// `strictfp`.
    STRICT = 0x0800, is_strict;
    /// An item that is not in the source.
    SYNTHETIC = 0x1000, is_synthetic;
    /// An annotation interface.
    ANNOTATION = 0x2000, is_annotation;
    /// An enum class, or one of its constants.
    ENUM = 0x4000, is_enum;
    /// A module; for a parameter, `mandated`.
    MODULE = 0x8000, is_module;
}

impl std::ops::BitOr for AccessFlags {
    type Output = Self;

    fn bitor(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }
}

impl<'a> Layout<'a> for AccessFlags {
    fn read(input: &mut Input<'a>, what: &'static str) -> Result<Self, DecodeError> {
        input.u16(what).map(Self)
    }

    fn write(&self, output: &mut Output) {
        output.u16(self.0);
    }
}
