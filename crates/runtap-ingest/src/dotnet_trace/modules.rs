//! How dotnet-trace writes the names of modules, which depends on the event that it learns of a module from.
//!
//! Where that is the module's load, the name is in lower case, else as it is. A precompiled module of .NET Core 3 and
//! earlier, which has a symbol file for its machine code, is `NAME.il`.

use foldhash::fast::RandomState;
use hashbrown::HashMap;
use runtap_nettrace::Event;

use crate::clr::{self, MethodEvent, ModuleEvent};

/// How the name of a module is written.
#[derive(Debug, Clone, Copy, Default)]
struct Style {
    lower: bool,
    il: bool,
}

/// The modules of a stream, by id.
#[derive(Debug, Default)]
pub(super) struct Modules(HashMap<u64, Style, RandomState>);

/// Flag of a method that was compiled at run time.
const JITTED: u32 = 8;

impl Modules {
    /// Takes an event.
    pub(super) fn event(&mut self, event: &Event<'_>) {
        let Some(metadata) = event.metadata else { return };
        let (provider, id) = (metadata.provider.as_str(), metadata.event_id);
        match (provider, id) {
            (clr::RUNTIME | clr::RUNDOWN, 143 | 144) => {
                // A precompiled method is looked at when the rundown tells it.
                if let Ok(Some(method)) = MethodEvent::decode(provider, id, event.payload)
                    && (method.flags & JITTED != 0 || provider == clr::RUNDOWN)
                {
                    self.0.entry(method.module_id).or_default();
                }
            }
            (clr::RUNTIME, 152) | (clr::RUNDOWN, 153 | 154) => {
                if let Ok(Some(module)) = ModuleEvent::decode(provider, id, event.payload) {
                    let il = module.native_path.is_empty() && module.has_native_symbols;
                    self.0.entry(module.module_id).or_insert(Style { lower: true, il });
                }
            }
            _ => {}
        }
    }

    /// The name of a module as dotnet-trace has it.
    pub(super) fn name(&self, module: u64, name: Option<&str>) -> String {
        let Some(name) = name else { return "ManagedModule".to_owned() };
        let style = self.0.get(&module).copied().unwrap_or_default();
        let il = if style.il { ".il" } else { "" };
        if style.lower { format!("{}{il}", name.to_lowercase()) } else { format!("{name}{il}") }
    }
}
