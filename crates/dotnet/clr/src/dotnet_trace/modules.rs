//! Names of modules as dotnet-trace writes them, which depend on the first event about a module.
//!
//! If the first event is one of the module, its name is in lower case; if it is one of a method, the name is unchanged. A module
//! that was unloaded gets a new name, but a method that was unloaded before keeps the old one. A precompiled module of .NET Core 3
//! and earlier, which has a symbol file for its machine code, is `NAME.il`.

use foldhash::fast::RandomState;
use hashbrown::HashMap;
use runtap_nettrace::Event;

use crate::clr::{self, MethodEvent, ModuleEvent};
use crate::code_map::Method;

/// A module.
#[derive(Debug, Clone, Default)]
struct Module {
    /// The name as it is written. `None` while only methods of it are known.
    name: Option<String>,
    unloaded: bool,
}

/// The modules of a stream.
#[derive(Debug, Clone, Default)]
pub(super) struct Modules {
    list: Vec<Module>,
    /// The most recent module of each id.
    by_id: HashMap<u64, usize, RandomState>,
    /// The modules of unloaded methods, by id and start of the method.
    of_unloaded: HashMap<(u64, u64), usize, RandomState>,
}

/// The flag of a method that was compiled at run time.
const JITTED: u32 = 8;

impl Modules {
    /// Processes an event.
    pub(super) fn event(&mut self, event: &Event<'_>) {
        let Some(metadata) = event.metadata else { return };
        let (provider, id) = (metadata.provider.as_str(), metadata.event_id);
        match (provider, id) {
            (clr::RUNTIME | clr::RUNDOWN, 143 | 144) => {
                // Precompiled methods count only in the rundown.
                if let Ok(Some(method)) = MethodEvent::decode(provider, id, event.payload)
                    && (method.flags & JITTED != 0 || provider == clr::RUNDOWN)
                {
                    let module = self.index(method.module_id);
                    if (provider, id) == (clr::RUNTIME, 144) {
                        self.of_unloaded.entry((method.method_id, method.start)).or_insert(module);
                    }
                }
            }
            (clr::RUNTIME, 152 | 153) | (clr::RUNDOWN, 153 | 154) => {
                // An unload event has the layout of a load event.
                let unloads = (provider, id) == (clr::RUNTIME, 153);
                let id = if unloads { 152 } else { id };
                if let Ok(Some(module)) = ModuleEvent::decode(provider, id, event.payload) {
                    let known = self.list.len();
                    let index = self.index(module.module_id);
                    let is_new = index == known;
                    let Some(known) = self.list.get_mut(index) else { return };
                    if known.name.is_none() {
                        let name = name(&module);
                        known.name = Some(if is_new { name.to_lowercase() } else { name });
                    }
                    known.unloaded = unloads;
                }
            }
            _ => {}
        }
    }

    /// Returns the module with this id that has not been unloaded. Adds one if necessary.
    fn index(&mut self, id: u64) -> usize {
        let known = self.by_id.get(&id).copied();
        let live = known.filter(|index| self.list.get(*index).is_some_and(|module| !module.unloaded));
        live.unwrap_or_else(|| {
            self.list.push(Module::default());
            self.by_id.insert(id, self.list.len() - 1);
            self.list.len() - 1
        })
    }

    /// Returns the name of a method's module as dotnet-trace writes it.
    pub(super) fn name(&self, method: &Method) -> &str {
        let of_unloaded = self.of_unloaded.get(&(method.id, method.start));
        let index = of_unloaded.or_else(|| self.by_id.get(&method.module)).copied();
        let known = index.and_then(|index| self.list.get(index)?.name.as_deref());
        known.unwrap_or("ManagedModule")
    }
}

/// Returns the file name of a path without the extension of a program or library.
fn name(module: &ModuleEvent<'_>) -> String {
    let (mut path, native) = (module.il_path.to_string(), module.native_path.to_string());
    let at = path.len().saturating_sub(7);
    let end = path.get(at..).map(str::to_ascii_lowercase);
    if let Some(dot) = end.as_deref().and_then(|end| end.find(".ni.")).filter(|_| path == native) {
        path.replace_range(at + dot..at + dot + 3, "");
    } else if native.is_empty()
        && module.has_native_symbols
        && let Some(dot) = path.rfind('.').filter(|dot| *dot > 0)
    {
        path.insert_str(dot, ".il");
    }
    let file = path.rsplit(['/', '\\']).next().unwrap_or(&path);
    let stem = match file.rsplit_once('.') {
        Some((stem, end)) if ["dll", "exe"].iter().any(|known| end.eq_ignore_ascii_case(known)) => stem,
        _ => file,
    };
    stem.to_owned()
}
