//! Module events: the files of modules (`ModuleLoad` and related events).

use runtap_wire::{DecodeError, Reader, Utf16};

use super::{RUNDOWN, RUNTIME};

/// An event about a module. Layout: `u64 moduleId, u64 assemblyId, [DomainModule: u64 appDomainId], u32 flags, u32 reserved, z
/// ilPath, z nativePath, [v1] u16 clrInstance, [v2, not DomainModule] {guid, u32 age, z path} symbols, {guid, u32 age, z path}
/// native symbols`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ModuleEvent<'a> {
    /// Identifies the module while it is loaded.
    pub module_id: u64,
    /// The path of the assembly, or the name of a dynamic one.
    pub il_path: Utf16<'a>,
    /// The path of the precompiled image. Empty if it has no image of its own.
    pub native_path: Utf16<'a>,
    /// Whether it has symbols for its machine code in addition to those for its source.
    pub has_native_symbols: bool,
}

impl<'a> ModuleEvent<'a> {
    /// Decodes an event of `provider` with id `id`. Returns `None` if it does not name a module, or unloads one.
    ///
    /// # Errors
    /// Returns the offset in the payload and the field if the payload is too short.
    pub fn decode(provider: &str, id: u32, payload: &'a [u8]) -> Result<Option<Self>, DecodeError> {
        let of_domain = match (provider, id) {
            (RUNTIME, 152) | (RUNDOWN, 153 | 154) => false,
            (RUNTIME, 151) | (RUNDOWN, 151 | 152) => true,
            _ => return Ok(None),
        };
        let mut r = Reader::new(payload);
        let module_id = r.u64("ModuleID")?;
        r.u64("AssemblyID")?;
        if of_domain {
            r.u64("AppDomainID")?;
        }
        r.u32("ModuleFlags")?;
        r.u32("Reserved1")?;
        let il_path = r.utf16z("ModuleILPath")?;
        let native_path = r.utf16z("ModuleNativePath")?;
        let has_native_symbols = !of_domain && symbols(&mut r).is_ok_and(|both| both);
        Ok(Some(Self { module_id, il_path, native_path, has_native_symbols }))
    }

    /// Whether it is an assembly, according to the extension of its file. `None` if unknown: a dynamic assembly has only a name.
    pub fn is_assembly(&self) -> Option<bool> {
        let path = self.il_path.to_string();
        let is_assembly = path.rsplit_once('.').is_some_and(|(_, extension)| {
            ASSEMBLY_EXTENSIONS.iter().any(|known| known.eq_ignore_ascii_case(extension))
        });
        (is_assembly || path.contains(['/', '\\'])).then_some(is_assembly)
    }

    /// Returns the name that frames show: the file name without directory and extension. `None` without a path.
    pub fn short_name(&self) -> Option<String> {
        let path = if self.il_path.is_empty() { self.native_path } else { self.il_path }.to_string();
        let stem = file_stem(&path, &MODULE_EXTENSIONS)?;
        // Precompiled assemblies used to be separate files, such as `System.Private.CoreLib.ni.dll`.
        Some(file_stem(stem, &["ni"]).unwrap_or(stem).to_owned())
    }
}

/// Whether both symbol signatures that may follow the paths are present.
fn symbols(r: &mut Reader<'_>) -> Result<bool, DecodeError> {
    r.u16("ClrInstanceID")?;
    let managed = r.guid("ManagedPdbSignature")?;
    r.u32("ManagedPdbAge")?;
    r.utf16z("ManagedPdbBuildPath")?;
    let native = r.guid("NativePdbSignature")?;
    Ok(!managed.is_nil() && !native.is_nil())
}

/// Extensions of assembly files. A dynamic assembly such as `My.Proxies` has no extension.
const ASSEMBLY_EXTENSIONS: [&str; 2] = ["dll", "exe"];
const MODULE_EXTENSIONS: [&str; 6] = ["dll", "exe", "so", "dylib", "il", "ni"];

/// Returns the file name of a path of any system, without its extension if that is one of `extensions` in any case. `None` if
/// nothing is left.
pub(crate) fn file_stem<'a>(path: &'a str, extensions: &[&str]) -> Option<&'a str> {
    let file = path.rsplit(['/', '\\']).next().unwrap_or(path);
    let stem = match file.rsplit_once('.') {
        Some((stem, extension)) if extensions.iter().any(|known| known.eq_ignore_ascii_case(extension)) => {
            stem
        }
        _ => file,
    };
    (!stem.is_empty()).then_some(stem)
}

#[cfg(test)]
mod tests {
    use runtap_wire::Writer;

    use super::*;

    #[test]
    fn short_names() {
        for (path, name, is_assembly) in [
            ("/srv/app/spin.dll", Some("spin"), Some(true)),
            ("C:\\app\\My.App.EXE", Some("My.App"), Some(true)),
            ("My.Proxies", Some("My.Proxies"), None),
            ("/x/System.Private.CoreLib.ni.dll", Some("System.Private.CoreLib"), Some(true)),
            ("C:\\x\\mscorlib.NI.DLL", Some("mscorlib"), Some(true)),
            // As in Rust programs that send such events.
            ("/usr/lib/libc.so.6", Some("libc.so.6"), Some(false)),
            ("/srv/app.d/server", Some("server"), Some(false)),
            ("", None, None),
        ] {
            let mut w = Writer::new();
            w.u64(1).u64(2).u32(0).u32(0).utf16z(path).utf16z("").u16(0);
            let bytes = w.into_bytes();
            let event = ModuleEvent::decode(RUNDOWN, 154, &bytes).unwrap().unwrap();
            assert_eq!((event.short_name().as_deref(), event.is_assembly()), (name, is_assembly), "{path}");
        }
    }

    #[test]
    fn domain_modules_carry_one_field_more() {
        let mut w = Writer::new();
        w.u64(1).u64(2).u64(3).u32(0).u32(0).utf16z("a.dll").utf16z("");
        let bytes = w.into_bytes();
        let event = ModuleEvent::decode(RUNTIME, 151, &bytes).unwrap().unwrap();
        assert_eq!((event.module_id, event.short_name().as_deref()), (1, Some("a")));
        assert!(ModuleEvent::decode(RUNTIME, 151, &bytes[..20]).unwrap_err().is_incomplete());
    }
}
