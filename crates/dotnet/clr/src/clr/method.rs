//! Method events: code ranges and names of methods (`MethodLoadVerbose` and related events).

use runtap_wire::{DecodeError, Reader, Utf16};

use super::{RUNDOWN, RUNTIME};

/// What a method event reports.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MethodEventKind {
    /// The code was loaded (Runtime 143, without a name 141).
    Load,
    /// The code was unloaded (Runtime 144, without a name 142).
    Unload,
    /// The code exists, according to a rundown (Rundown 143 at the start, 144 at the end of a session; without a name 141, 142).
    Exists,
}

/// An event about the code of a method. Layout: `u64 methodId, u64 moduleId, u64 start, u32 size, u32 token, u32 flags, z namespace,
/// z name, z signature, [v1] u16 clrInstance, [v2] u64 rejitId`. Events without names (141, 142) end after the flags.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct MethodEvent<'a> {
    /// What the event reports.
    pub kind: MethodEventKind,
    /// Identifies the method while it is loaded.
    pub method_id: u64,
    /// Identifies its module.
    pub module_id: u64,
    /// The address of the first byte of the code.
    pub start: u64,
    /// The size of the code in bytes.
    pub size: u32,
    /// Bits: 1 dynamic, 2 generic, 8 jitted, 7..10 tier, 28..32 extent (0 hot, 1 cold).
    pub flags: u32,
    /// The namespace and type, with the arguments of a generic type in brackets.
    pub namespace: Utf16<'a>,
    /// The name of the method. Empty if the event has none.
    pub name: Utf16<'a>,
    /// The return type and arguments (`instance void  (int32)`).
    pub signature: Utf16<'a>,
    /// The number of this version of the method if profilers replaced it. 0 for the original.
    pub rejit_id: u64,
}

impl<'a> MethodEvent<'a> {
    /// Decodes an event of `provider` with id `id`. Returns `None` if it is not a method event.
    ///
    /// # Errors
    /// Returns the offset in the payload and the field if the payload is too short.
    pub fn decode(provider: &str, id: u32, payload: &'a [u8]) -> Result<Option<Self>, DecodeError> {
        let kind = match (provider, id) {
            (RUNTIME, 141 | 143) => MethodEventKind::Load,
            (RUNTIME, 142 | 144) => MethodEventKind::Unload,
            (RUNDOWN, 141..=144) => MethodEventKind::Exists,
            _ => return Ok(None),
        };
        let mut r = Reader::new(payload);
        let method_id = r.u64("MethodID")?;
        let module_id = r.u64("ModuleID")?;
        let start = r.u64("MethodStartAddress")?;
        let size = r.u32("MethodSize")?;
        r.u32("MethodToken")?;
        let flags = r.u32("MethodFlags")?;
        let mut text = |what| if matches!(id, 143 | 144) { r.utf16z(what) } else { Ok(Utf16::default()) };
        let (namespace, name, signature) =
            (text("MethodNamespace")?, text("MethodName")?, text("MethodSignature")?);
        // Versions 1 and 2 have more fields.
        let rejit_id = r.u16("ClrInstanceID").and_then(|_| r.u64("ReJITID")).unwrap_or(0);
        Ok(Some(Self {
            kind,
            method_id,
            module_id,
            start,
            size,
            flags,
            namespace,
            name,
            signature,
            rejit_id,
        }))
    }

    /// Whether the event has the name of the method.
    pub fn has_name(&self) -> bool {
        !self.name.is_empty()
    }

    /// Returns `Namespace.Type.Method(args)`: the signature from its first parenthesis on, without the return type. Without a name,
    /// returns the address of the code, `0xADDR`.
    pub fn full_name(&self) -> String {
        if !self.has_name() {
            return format!("{:#x}", self.start);
        }
        let mut text = String::with_capacity(self.namespace.len() + self.name.len() + self.signature.len());
        self.namespace.push_to(&mut text);
        if !text.is_empty() {
            text.push('.');
        }
        self.name.push_to(&mut text);
        text.extend(self.signature.chars().skip_while(|c| *c != '('));
        text
    }
}

/// The flag of code that was compiled at run time.
const JITTED: u32 = 8;

/// Returns the optimization tier of code, according to the flags of its method.
pub fn tier_name(flags: u32) -> &'static str {
    match flags >> 7 & 7 {
        1 => "MinOptJitted",
        2 => "Optimized",
        3 => "QuickJitted",
        4 => "OptimizedTier1",
        5 => "OptimizedTier1OSR",
        6 => "QuickInstrumented",
        7 => "Tier1Instrumented",
        _ if flags & JITTED == 0 => "ReadyToRun",
        _ => "Unknown",
    }
}

#[cfg(test)]
mod tests {
    use runtap_wire::Writer;

    use super::*;

    fn payload(namespace: &str, name: &str, signature: &str) -> Vec<u8> {
        let mut w = Writer::new();
        w.u64(0x10).u64(0x20).u64(0x7f00_0000_1000).u32(0x40).u32(0x0600_0001).u32(8);
        w.utf16z(namespace).utf16z(name).utf16z(signature).u16(0).u64(0);
        w.into_bytes()
    }

    #[test]
    fn names_drop_the_return_type() {
        let bytes = payload("A.B`1[System.Int32]", "Do", "instance unsigned int64  (!0,!!0)");
        let event = MethodEvent::decode(RUNDOWN, 144, &bytes).unwrap().unwrap();
        assert_eq!(event.full_name(), "A.B`1[System.Int32].Do(!0,!!0)");
        assert_eq!(event.kind, MethodEventKind::Exists);
        assert_eq!((event.start, event.size), (0x7f00_0000_1000, 0x40));
        let bytes = payload("", "f", "");
        assert_eq!(MethodEvent::decode(RUNTIME, 143, &bytes).unwrap().unwrap().full_name(), "f");
    }

    #[test]
    fn older_and_newer_versions_decode_and_truncated_ones_report_the_offset() {
        let bytes = payload("N", "m", "()");
        let v0 = bytes.len() - 10;
        assert!(MethodEvent::decode(RUNTIME, 143, &bytes[..v0]).unwrap().is_some());
        for n in 0..v0 {
            let error = MethodEvent::decode(RUNTIME, 143, &bytes[..n]).unwrap_err();
            assert!(error.is_incomplete() && error.offset <= n as u64, "{error}");
        }
    }

    #[test]
    fn a_method_without_a_name_has_its_address() {
        let mut w = Writer::new();
        w.u64(0x10).u64(0x20).u64(0x7f00_0000_1000).u32(0x40).u32(0x0600_0001).u32(8).u16(0).u64(3);
        let bytes = w.into_bytes();
        let event = MethodEvent::decode(RUNTIME, 141, &bytes).unwrap().unwrap();
        assert_eq!((event.full_name().as_str(), event.rejit_id), ("0x7f0000001000", 3));
        assert_eq!(event.kind, MethodEventKind::Load);
    }

    #[test]
    fn other_events_are_ignored() {
        assert_eq!(MethodEvent::decode(RUNDOWN, 150, &[]).unwrap(), None);
        assert_eq!(MethodEvent::decode("Other", 143, &[]).unwrap(), None);
    }
}
