//! The declaration of a module.

use crate::bytes::layouts;
use crate::flags::AccessFlags;
use crate::pool::Index;

layouts! {
    /// The declaration of a module.
    pub struct Module {
        /// `CONSTANT_Module`.
        pub name: Index,
        /// The flags `open`, `synthetic` and `mandated`.
        pub flags: AccessFlags,
        /// `CONSTANT_Utf8`: the version, or [`Index::NONE`].
        pub version: Index,
        /// The required modules.
        pub requires: Vec<Requires>,
        /// The packages whose public classes other modules may use.
        pub exports: Vec<Exports>,
        /// The packages that other modules may access by reflection.
        pub opens: Vec<Opens>,
        /// `CONSTANT_Class`: the services that the module uses.
        pub uses: Vec<Index>,
        /// The services that the module provides.
        pub provides: Vec<Provides>,
    }

    /// A required module.
    pub struct Requires {
        /// `CONSTANT_Module`.
        pub module: Index,
        /// The flags `transitive` (0x20), `static` (0x40), `synthetic` and `mandated`.
        pub flags: AccessFlags,
        /// `CONSTANT_Utf8`: the version at compile time, or [`Index::NONE`].
        pub version: Index,
    }

    /// An exported package.
    pub struct Exports {
        /// `CONSTANT_Package`.
        pub package: Index,
        /// The flags `synthetic` and `mandated`.
        pub flags: AccessFlags,
        /// `CONSTANT_Module`: the modules that may use the package; empty for all.
        pub to: Vec<Index>,
    }

    /// An open package.
    pub struct Opens {
        /// `CONSTANT_Package`.
        pub package: Index,
        /// The flags `synthetic` and `mandated`.
        pub flags: AccessFlags,
        /// `CONSTANT_Module`: the modules that may access the package; empty for all.
        pub to: Vec<Index>,
    }

    /// A service and its implementations.
    pub struct Provides {
        /// `CONSTANT_Class`.
        pub service: Index,
        /// `CONSTANT_Class`.
        pub with: Vec<Index>,
    }
}
