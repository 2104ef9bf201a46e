//! The columns of the metadata tables, which determine the size of their rows. Source: ECMA-335 II.22 and, for indexes into
//! one of several tables, II.24.2.6.

/// A table number.
pub(super) type TableId = u8;

pub(super) const TYPE_DEF: TableId = 0x02;
pub(super) const METHOD_DEF: TableId = 0x06;
pub(super) const ASSEMBLY: TableId = 0x20;
pub(super) const ASSEMBLY_REF: TableId = 0x23;
pub(super) const GENERIC_PARAM: TableId = 0x2a;

/// The type of a column.
#[derive(Debug, Clone, Copy)]
pub(super) enum Column {
    U16,
    U32,
    String,
    Guid,
    Blob,
    /// A row of a table.
    Index(TableId),
    /// A row of one of several tables, selected by this number of low bits.
    Coded(u32, &'static [TableId]),
}

use Column::{Blob, Coded, Guid, Index, String, U16, U32};

const TYPE_DEF_OR_REF: Column = Coded(2, &[0x02, 0x01, 0x1b]);
const HAS_CONSTANT: Column = Coded(2, &[0x04, 0x08, 0x17]);
const HAS_CUSTOM_ATTRIBUTE: Column = Coded(
    5,
    &[
        0x06, 0x04, 0x01, 0x02, 0x08, 0x09, 0x0a, 0x00, 0x0e, 0x17, 0x14, 0x11, 0x1a, 0x1b, 0x20, 0x23, 0x26,
        0x27, 0x28, 0x2a, 0x2c, 0x2b,
    ],
);
const HAS_FIELD_MARSHAL: Column = Coded(1, &[0x04, 0x08]);
const HAS_DECL_SECURITY: Column = Coded(2, &[0x02, 0x06, 0x20]);
const MEMBER_REF_PARENT: Column = Coded(3, &[0x02, 0x01, 0x1a, 0x06, 0x1b]);
const HAS_SEMANTICS: Column = Coded(1, &[0x14, 0x17]);
const METHOD_DEF_OR_REF: Column = Coded(1, &[0x06, 0x0a]);
const MEMBER_FORWARDED: Column = Coded(1, &[0x04, 0x06]);
const IMPLEMENTATION: Column = Coded(2, &[0x26, 0x23, 0x27]);
const CUSTOM_ATTRIBUTE_TYPE: Column = Coded(3, &[0x06, 0x0a]);
const RESOLUTION_SCOPE: Column = Coded(2, &[0x00, 0x1a, 0x23, 0x01]);
const TYPE_OR_METHOD_DEF: Column = Coded(1, &[0x02, 0x06]);

/// The columns of the tables up to the last one needed. Later tables do not affect the position of these.
pub(super) const TABLES: [&[Column]; 0x2b] = [
    // 00 Module
    &[U16, String, Guid, Guid, Guid],
    // 01 TypeRef: scope, name, namespace
    &[RESOLUTION_SCOPE, String, String],
    // 02 TypeDef: flags, name, namespace, base, first field, first method
    &[U32, String, String, TYPE_DEF_OR_REF, Index(0x04), Index(0x06)],
    // 03 FieldPtr
    &[Index(0x04)],
    // 04 Field
    &[U16, String, Blob],
    // 05 MethodPtr
    &[Index(0x06)],
    // 06 MethodDef: address, implementation flags, flags, name, signature, first parameter
    &[U32, U16, U16, String, Blob, Index(0x08)],
    // 07 ParamPtr
    &[Index(0x08)],
    // 08 Param
    &[U16, U16, String],
    // 09 InterfaceImpl
    &[Index(0x02), TYPE_DEF_OR_REF],
    // 0a MemberRef
    &[MEMBER_REF_PARENT, String, Blob],
    // 0b Constant
    &[U16, HAS_CONSTANT, Blob],
    // 0c CustomAttribute
    &[HAS_CUSTOM_ATTRIBUTE, CUSTOM_ATTRIBUTE_TYPE, Blob],
    // 0d FieldMarshal
    &[HAS_FIELD_MARSHAL, Blob],
    // 0e DeclSecurity
    &[U16, HAS_DECL_SECURITY, Blob],
    // 0f ClassLayout
    &[U16, U32, Index(0x02)],
    // 10 FieldLayout
    &[U32, Index(0x04)],
    // 11 StandAloneSig
    &[Blob],
    // 12 EventMap
    &[Index(0x02), Index(0x14)],
    // 13 EventPtr
    &[Index(0x14)],
    // 14 Event
    &[U16, String, TYPE_DEF_OR_REF],
    // 15 PropertyMap
    &[Index(0x02), Index(0x17)],
    // 16 PropertyPtr
    &[Index(0x17)],
    // 17 Property
    &[U16, String, Blob],
    // 18 MethodSemantics
    &[U16, Index(0x06), HAS_SEMANTICS],
    // 19 MethodImpl
    &[Index(0x02), METHOD_DEF_OR_REF, METHOD_DEF_OR_REF],
    // 1a ModuleRef
    &[String],
    // 1b TypeSpec
    &[Blob],
    // 1c ImplMap
    &[U16, MEMBER_FORWARDED, String, Index(0x1a)],
    // 1d FieldRVA
    &[U32, Index(0x04)],
    // 1e EncLog
    &[U32, U32],
    // 1f EncMap
    &[U32],
    // 20 Assembly: hash algorithm, version of four parts, flags, key, name, culture
    &[U32, U16, U16, U16, U16, U32, Blob, String, String],
    // 21 AssemblyProcessor
    &[U32],
    // 22 AssemblyOS
    &[U32, U32, U32],
    // 23 AssemblyRef: version of four parts, flags, key, name, culture, hash
    &[U16, U16, U16, U16, U32, Blob, String, String, Blob],
    // 24 AssemblyRefProcessor
    &[U32, Index(0x23)],
    // 25 AssemblyRefOS
    &[U32, U32, U32, Index(0x23)],
    // 26 File
    &[U32, String, Blob],
    // 27 ExportedType
    &[U32, U32, String, String, IMPLEMENTATION],
    // 28 ManifestResource
    &[U32, U32, String, IMPLEMENTATION],
    // 29 NestedClass
    &[Index(0x02), Index(0x02)],
    // 2a GenericParam: number, flags, owner, name
    &[U16, U16, TYPE_OR_METHOD_DEF, String],
];
