//! An assembly: its name, its references, its types and methods.

use runtap_wire::{DecodeError, Reader};

use super::PeError;
use super::headers::Headers;
use super::metadata::{Heap, Streams, compressed};
use super::schema::{ASSEMBLY, ASSEMBLY_REF, GENERIC_PARAM, METHOD_DEF, TYPE_DEF, TableId};
use super::tables::{Row, Tables};

const IL_ONLY: u32 = 0x1;
const REQUIRES_32_BITS: u32 = 0x2;
/// Set by the ahead-of-time compiler instead of `IL_ONLY`.
const IL_LIBRARY: u32 = 0x4;
const PREFERS_32_BITS: u32 = 0x2_0000;

/// A managed PE file.
#[derive(Debug)]
pub struct Assembly<'a> {
    machine: u16,
    flags: u32,
    tables: Tables<'a>,
    strings: Heap<'a>,
    blobs: Heap<'a>,
}

/// An assembly name with its version.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct AssemblyName<'a> {
    /// The name without extension.
    pub name: &'a str,
    /// The version: major, minor, build, revision.
    pub version: [u16; 4],
}

/// A type defined in the assembly.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TypeDef<'a> {
    /// The namespace; empty for the global namespace.
    pub namespace: &'a str,
    /// The name, with a suffix `` `n `` if the type is generic.
    pub name: &'a str,
    /// Whether the type is nested in another type.
    pub nested: bool,
    number: u32,
    first_method: u32,
    end_of_methods: u32,
}

/// A method defined in the assembly.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Method<'a> {
    /// The name.
    pub name: &'a str,
    /// Whether the method is static.
    pub is_static: bool,
    /// Whether the method is abstract and has no code.
    pub is_abstract: bool,
    /// The signature.
    pub signature: Signature,
}

/// The parameters and the result of a method.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Signature {
    /// Whether the method has type parameters.
    pub generic: bool,
    /// The number of parameters.
    pub parameters: u32,
    /// Whether the method returns nothing.
    pub returns_void: bool,
}

impl<'a> Assembly<'a> {
    /// Parses a complete file.
    ///
    /// # Errors
    /// If the file is not an assembly, or is truncated.
    pub fn parse(file: &'a [u8]) -> Result<Self, PeError> {
        let headers = Headers::read(file)?;
        let cli = headers.cli()?;
        let streams = Streams::read(&headers.at(cli.metadata, "metadata")?)?;
        let tables = Tables::read(streams.tables)?;
        Ok(Self {
            machine: headers.machine,
            flags: cli.flags,
            tables,
            strings: streams.strings,
            blobs: streams.blobs,
        })
    }

    /// Returns whether the assembly has no native code that binds it to Windows: the usual output of compilers, precompiled or
    /// not.
    pub fn is_portable(&self) -> bool {
        self.flags & (IL_ONLY | IL_LIBRARY) != 0
    }

    /// Returns the processor that the assembly is built for, as named by .NET. `None` if it runs on any, `"?"` if unknown.
    pub fn machine(&self) -> Option<&'static str> {
        let any = self.machine == 0x014c
            && self.flags & IL_ONLY != 0
            && (self.flags & REQUIRES_32_BITS == 0 || self.flags & PREFERS_32_BITS != 0);
        if any {
            return None;
        }
        Some(self.machine_and_system().map_or("?", |(machine, _)| machine))
    }

    /// Returns the system that the assembly was precompiled for, as named by .NET. `None` if it was not precompiled, `"?"` if
    /// unknown.
    pub fn system(&self) -> Option<&'static str> {
        let precompiled = self.flags & IL_LIBRARY != 0;
        precompiled.then(|| self.machine_and_system().map_or("?", |(_, system)| system))
    }

    /// Decodes the machine number, which for precompiled code combines processor and system.
    fn machine_and_system(&self) -> Option<(&'static str, &'static str)> {
        const MACHINES: [(u16, &str); 7] = [
            (0x014c, "x86"),
            (0x01c4, "arm"),
            (0x5032, "s390x"),
            (0x5064, "riscv64"),
            (0x6264, "loongarch64"),
            (0x8664, "x64"),
            (0xaa64, "arm64"),
        ];
        const SYSTEMS: [(u16, &str); 6] = [
            (0, "Windows"),
            (0x4644, "macOS"),
            (0xadc4, "FreeBSD"),
            (0x7b79, "Linux"),
            (0x1993, "NetBSD"),
            (0x1992, "SunOS"),
        ];
        SYSTEMS.iter().find_map(|(mask, system)| {
            let (_, machine) = MACHINES.iter().find(|(number, _)| *number == self.machine ^ mask)?;
            Some((*machine, *system))
        })
    }

    /// Returns the name of the assembly. `None` for a module without a manifest.
    ///
    /// # Errors
    /// If a row is malformed.
    pub fn name(&self) -> Result<Option<AssemblyName<'a>>, DecodeError> {
        let Some(mut row) = self.tables.row(ASSEMBLY, 1) else { return Ok(None) };
        row.skip(1)?;
        self.assembly_name(row).map(Some)
    }

    /// Returns the referenced assemblies.
    pub fn references(&self) -> impl Iterator<Item = Result<AssemblyName<'a>, DecodeError>> {
        self.rows(ASSEMBLY_REF).map(|(_, row)| self.assembly_name(row))
    }

    /// Returns the defined types. The first one contains the methods outside of types.
    pub fn types(&self) -> impl Iterator<Item = Result<TypeDef<'a>, DecodeError>> {
        self.rows(TYPE_DEF).map(|(number, row)| self.type_def(number, row))
    }

    /// Returns the methods of a type.
    pub fn methods(&self, of: &TypeDef<'a>) -> impl Iterator<Item = Result<Method<'a>, DecodeError>> {
        let rows =
            (of.first_method..of.end_of_methods).map_while(|number| self.tables.row(METHOD_DEF, number));
        rows.map(|row| self.method(row))
    }

    /// Returns whether a type has type parameters.
    ///
    /// # Errors
    /// If a row is malformed.
    pub fn is_generic(&self, which: &TypeDef<'a>) -> Result<bool, DecodeError> {
        for (_, mut row) in self.rows(GENERIC_PARAM) {
            row.skip(2)?;
            // The low bit distinguishes types from methods.
            if row.next("generic parameter owner")? == which.number << 1 {
                return Ok(true);
            }
        }
        Ok(false)
    }

    fn rows(&self, table: TableId) -> impl Iterator<Item = (u32, Row<'a, '_>)> {
        (1..=self.tables.count(table))
            .map_while(move |number| Some((number, self.tables.row(table, number)?)))
    }

    /// Reads a name from a row, from the version column on.
    fn assembly_name(&self, mut row: Row<'a, '_>) -> Result<AssemblyName<'a>, DecodeError> {
        let mut version = [0; 4];
        for part in &mut version {
            *part = u16::try_from(row.next("assembly version")?).unwrap_or(u16::MAX);
        }
        row.skip(2)?;
        Ok(AssemblyName { name: self.strings.string(row.next("assembly name")?, "assembly name")?, version })
    }

    fn type_def(&self, number: u32, mut row: Row<'a, '_>) -> Result<TypeDef<'a>, DecodeError> {
        let flags = row.next("type flags")?;
        let name = self.strings.string(row.next("type name")?, "type name")?;
        let namespace = self.strings.string(row.next("type namespace")?, "type namespace")?;
        row.skip(2)?;
        let first_method = row.next("first method")?;
        // The methods of a type end where those of the next type start.
        let end_of_methods = match self.tables.row(TYPE_DEF, number + 1) {
            Some(mut next) => {
                next.skip(5)?;
                next.next("first method")?
            }
            None => self.tables.count(METHOD_DEF) + 1,
        };
        Ok(TypeDef { namespace, name, nested: flags & 7 > 1, number, first_method, end_of_methods })
    }

    fn method(&self, mut row: Row<'a, '_>) -> Result<Method<'a>, DecodeError> {
        row.skip(2)?;
        let flags = row.next("method flags")?;
        let name = self.strings.string(row.next("method name")?, "method name")?;
        let mut signature = self.blobs.blob(row.next("method signature")?, "method signature")?;
        let signature = read_signature(&mut signature)?;
        Ok(Method { name, is_static: flags & 0x10 != 0, is_abstract: flags & 0x400 != 0, signature })
    }
}

/// Reads a signature (II.23.2.1) up to the return type.
fn read_signature(r: &mut Reader<'_>) -> Result<Signature, DecodeError> {
    let convention = r.u8("calling convention")?;
    let generic = convention & 0x10 != 0;
    if generic {
        compressed(r, "generic parameter count")?;
    }
    let parameters = compressed(r, "parameter count")?;
    loop {
        match r.u8("return type")? {
            // Custom modifiers.
            0x1f | 0x20 => {
                compressed(r, "modifier")?;
            }
            kind => return Ok(Signature { generic, parameters, returns_void: kind == 0x01 }),
        }
    }
}
