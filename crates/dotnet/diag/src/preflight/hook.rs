//! Checks whether a runtime can use a .NET assembly as a startup hook, by the rules of the runtime's design document
//! "Host startup hook" and the observed behavior of .NET 8, 9 and 10 for files of each kind.
//!
//! Does not check the hook's code and its dependencies.

use std::path::Path;

use runtap_diag_proto::ProcessInfo;
use runtap_os::objfile::DecodeError;
use runtap_os::objfile::pe::{Assembly, PeError, TypeDef};

use super::{Objection, major};

/// Assemblies whose version is the version of .NET.
const RUNTIME_ASSEMBLIES: [&str; 2] = ["System.Runtime", "System.Private.CoreLib"];

/// Checks whether the assembly `file` at `path` is a hook for the target described by `info`.
///
/// # Errors
/// The reason why the target cannot use it.
pub(super) fn check(path: &Path, file: &[u8], info: Option<&ProcessInfo>) -> Result<(), Objection> {
    let none = |source| Objection::NotAnAssembly { path: path.to_owned(), source };
    let assembly = Assembly::parse(file).map_err(none)?;
    let malformed = |error: DecodeError| none(PeError::Malformed(error));
    if assembly.name().map_err(malformed)?.is_none() {
        return Err(Objection::NoManifest { path: path.to_owned() });
    }
    check_platform(path, &assembly, info)?;
    check_version(path, built_for(&assembly).map_err(malformed)?, info)?;
    let hook = Hook::find(&assembly).map_err(malformed)?;
    match hook {
        Hook::NoClass => Err(Objection::NoHookClass { path: path.to_owned() }),
        Hook::GenericClass => Err(Objection::GenericHookClass { path: path.to_owned() }),
        Hook::NoMethod => Err(Objection::NoHookMethod { path: path.to_owned() }),
        Hook::SeveralMethods => Err(Objection::SeveralHookMethods { path: path.to_owned() }),
        Hook::Callable => Ok(()),
    }
}

/// Rejects native code, and code for another processor or system: runtimes do not load them. (Precompiled code for another
/// system could be compiled again, but is not loaded either.)
fn check_platform(path: &Path, assembly: &Assembly<'_>, info: Option<&ProcessInfo>) -> Result<(), Objection> {
    if !assembly.is_portable() {
        return Err(Objection::NativeCode { path: path.to_owned() });
    }
    let (Some(info), Some(machine)) = (info, assembly.machine()) else { return Ok(()) };
    let system = assembly.system().unwrap_or(&info.os);
    if (machine, system) == (info.arch.as_str(), info.os.as_str()) {
        return Ok(());
    }
    let place = |machine: &str, system: &str| match assembly.system() {
        Some(_precompiled) => format!("{machine} on {system}"),
        None => machine.to_owned(),
    };
    Err(Objection::OtherProcessor {
        path: path.to_owned(),
        library: place(machine, system),
        target: place(&info.arch, &info.os),
    })
}

fn check_version(path: &Path, built_for: Option<u16>, info: Option<&ProcessInfo>) -> Result<(), Objection> {
    match (built_for, info.and_then(major)) {
        (Some(built_for), Some(version)) if built_for > version => {
            Err(Objection::TooNew { path: path.to_owned(), built_for, version })
        }
        _ => Ok(()),
    }
}

/// Returns the .NET version that an assembly was built for: the version of the runtime's assembly that it refers to.
fn built_for(assembly: &Assembly<'_>) -> Result<Option<u16>, DecodeError> {
    let mut newest = None;
    for reference in assembly.references() {
        let reference = reference?;
        if RUNTIME_ASSEMBLIES.contains(&reference.name) {
            newest = newest.max(Some(reference.version[0]));
        }
    }
    Ok(newest)
}

/// The result of a runtime's search for the hook.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Hook {
    /// There is no class `StartupHook` outside of namespaces and classes.
    NoClass,
    /// The class has type parameters, which the runtime does not supply.
    GenericClass,
    /// The class has no `static void Initialize()`.
    NoMethod,
    /// The class has several: the runtime compares parameters, but not type parameters, and uses neither.
    SeveralMethods,
    Callable,
}

impl Hook {
    fn find(assembly: &Assembly<'_>) -> Result<Self, DecodeError> {
        for class in assembly.types() {
            let class = class?;
            if class.name == "StartupHook" && class.namespace.is_empty() && !class.nested {
                return Self::of(assembly, &class);
            }
        }
        Ok(Self::NoClass)
    }

    fn of(assembly: &Assembly<'_>, class: &TypeDef<'_>) -> Result<Self, DecodeError> {
        let mut found = Self::NoMethod;
        let mut seen = 0;
        for method in assembly.methods(class) {
            let method = method?;
            if method.name != "Initialize" || !method.is_static || method.signature.parameters > 0 {
                continue;
            }
            seen += 1;
            if method.signature.returns_void && !method.signature.generic && !method.is_abstract {
                found = Self::Callable;
            }
        }
        Ok(match found {
            Self::Callable if assembly.is_generic(class)? => Self::GenericClass,
            Self::Callable if seen > 1 => Self::SeveralMethods,
            found => found,
        })
    }
}

#[cfg(test)]
#[path = "hook_tests.rs"]
pub(super) mod tests;
