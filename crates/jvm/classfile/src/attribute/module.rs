//! The declaration of a module.

use crate::bytes::layouts;
use crate::flags::AccessFlags;
use crate::pool::Index;

layouts! {
    /// The declaration of a module.
    pub struct Module {
        /// `CONSTANT_Module`.
        pub name: Index,
        /// `open`, `synthetic`, `mandated`.
        pub flags: AccessFlags,
        /// `CONSTANT_Utf8`, if there is one.
        pub version: Index,
        /// The modules that it needs.
        pub requires: Vec<Requires>,
        /// The packages whose public classes others may use.
        pub exports: Vec<Exports>,
        /// The packages that others may look into at run time.
        pub opens: Vec<Opens>,
        /// `CONSTANT_Class`: the services that it looks for.
        pub uses: Vec<Index>,
        /// The services that it has.
        pub provides: Vec<Provides>,
    }

    /// A module that another one needs.
    pub struct Requires {
        /// `CONSTANT_Module`.
        pub module: Index,
        /// `transitive` (0x20), `static` (0x40), `synthetic`, `mandated`.
        pub flags: AccessFlags,
        /// `CONSTANT_Utf8`: the version it was compiled with, if known.
        pub version: Index,
    }

    /// A package that is exported.
    pub struct Exports {
        /// `CONSTANT_Package`.
        pub package: Index,
        /// `synthetic`, `mandated`.
        pub flags: AccessFlags,
        /// `CONSTANT_Module`: who may use it; everyone, if nobody is named.
        pub to: Vec<Index>,
    }

    /// A package that is open.
    pub struct Opens {
        /// `CONSTANT_Package`.
        pub package: Index,
        /// `synthetic`, `mandated`.
        pub flags: AccessFlags,
        /// `CONSTANT_Module`: who may look into it; everyone, if nobody is named.
        pub to: Vec<Index>,
    }

    /// A service and who implements it.
    pub struct Provides {
        /// `CONSTANT_Class`.
        pub service: Index,
        /// `CONSTANT_Class`.
        pub with: Vec<Index>,
    }
}
