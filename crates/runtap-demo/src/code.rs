//! The functions of the built-in program, and the code addresses that they pretend to have.
//!
//! Tools know a frame by an instruction pointer and look its name up among the methods that the rundown tells. So each
//! function gets a range of its own in one made-up module.

use runtap_diag_server::{DefineError, EventPipe};
use runtap_nettrace::Metadata;
use runtap_wire::Writer;

const RUNDOWN: &str = "Microsoft-Windows-DotNETRuntimeRundown";
/// Keywords of the runtime's own rundown events: loader; JIT and precompiled code.
const LOADER: u64 = 0x8;
const METHODS: u64 = 0x30;

/// Where the first function begins, and how far apart they are.
const BASE: u64 = 0x5000_0000;
const SIZE: u64 = 0x100;
const MODULE_ID: u64 = 0x4000_0000;

/// A function that can be on a stack.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Function {
    Main,
    Serve,
    HandleRequest,
    HotWork,
    WarmWork,
    Parse,
    WaitForRequest,
    Tick,
}

impl Function {
    const ALL: [(Self, &'static str, &'static str); 8] = [
        (Self::Main, "main", "void  ()"),
        (Self::Serve, "serve", "void  ()"),
        (Self::HandleRequest, "handle_request", "void  (int64)"),
        (Self::HotWork, "hot_work", "unsigned int64  (int64)"),
        (Self::WarmWork, "warm_work", "unsigned int64  (int64)"),
        (Self::Parse, "parse", "unsigned int64  (int64)"),
        (Self::WaitForRequest, "wait_for_request", "void  ()"),
        (Self::Tick, "tick", "void  (int32)"),
    ];

    /// A number that [`Self::from_index`] takes back.
    pub(crate) fn index(self) -> u32 {
        self as u32
    }

    pub(crate) fn from_index(index: u32) -> Option<Self> {
        Self::ALL.iter().map(|(function, ..)| *function).find(|function| function.index() == index)
    }

    fn start(self) -> u64 {
        BASE + u64::from(self.index()) * SIZE
    }

    /// An instruction pointer inside the function.
    pub(crate) fn address(self) -> u64 {
        self.start() + SIZE / 2
    }
}

/// Has every session end with the names of the functions, as a runtime's does.
pub(crate) fn explain_addresses(pipe: &EventPipe) -> Result<(), DefineError> {
    let event = |id, version, keywords| {
        let mut metadata = Metadata::new(RUNDOWN, id, "");
        (metadata.version, metadata.keywords) = (version, keywords);
        pipe.define(metadata)
    };
    let method = event(144, 1, METHODS)?;
    let module = event(154, 1, LOADER)?;
    pipe.on_rundown(move |rundown| {
        for (function, name, signature) in Function::ALL {
            rundown.write(&method, &method_payload(function, name, signature));
        }
        rundown.write(&module, &module_payload());
    });
    Ok(())
}

/// Version 1 of the event that ends with the method's names.
fn method_payload(function: Function, name: &str, signature: &str) -> Vec<u8> {
    const JITTED: u32 = 8;
    let mut w = Writer::new();
    let token = 0x0600_0001 + function.index();
    w.u64(function.start()).u64(MODULE_ID).u64(function.start());
    w.u32(u32::try_from(SIZE).unwrap_or(u32::MAX)).u32(token).u32(JITTED);
    w.utf16z("Demo.Program").utf16z(name).utf16z(signature).u16(0);
    w.into_bytes()
}

/// Version 1 of the event that names a module.
fn module_payload() -> Vec<u8> {
    const MANIFEST: u32 = 8;
    let mut w = Writer::new();
    w.u64(MODULE_ID).u64(MODULE_ID).u32(MANIFEST).u32(0).utf16z("demo.dll").utf16z("").u16(0);
    w.into_bytes()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_function_has_its_own_address_and_index() {
        for (i, (function, ..)) in Function::ALL.iter().enumerate() {
            assert_eq!(Function::from_index(function.index()), Some(*function));
            assert_eq!(function.address(), BASE + i as u64 * SIZE + 0x80);
        }
        assert_eq!(Function::from_index(99), None);
    }
}
