//! How dotnet-trace writes the names of modules, which depends on the event that it learns of a module from.
//!
//! Where that is an event of the module, the name is in lower case, where it is one of a method, as it is; a module that was
//! unloaded is learned anew, and a method that was unloaded before keeps the old name. A precompiled module of .NET Core 3 and earlier, which has a symbol file for its machine code,
//! is `NAME.il`.

use foldhash::fast::RandomState;
use hashbrown::HashMap;
use runtap_nettrace::Event;

use crate::clr::{self, MethodEvent, ModuleEvent};
use crate::code_map::Method;

/// A module.
#[derive(Debug, Clone, Default)]
struct Known {
    /// As it is written; none while only methods of it are known.
    name: Option<String>,
    unloaded: bool,
}

/// The modules of a stream.
#[derive(Debug, Clone, Default)]
pub(super) struct Modules {
    list: Vec<Known>,
    /// The last one of each id.
    by_id: HashMap<u64, usize, RandomState>,
    /// The modules of methods that were unloaded, by id and first byte of the method.
    of_unloaded: HashMap<(u64, u64), usize, RandomState>,
}

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
                    let module = self.index(method.module_id);
                    if (provider, id) == (clr::RUNTIME, 144) {
                        self.of_unloaded.entry((method.method_id, method.start)).or_insert(module);
                    }
                }
            }
            (clr::RUNTIME, 152 | 153) | (clr::RUNDOWN, 153 | 154) => {
                // An unload looks as a load does.
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

    /// The module of an id that has not been unloaded, a new one if need be.
    fn index(&mut self, id: u64) -> usize {
        let known = self.by_id.get(&id).copied();
        let live = known.filter(|index| self.list.get(*index).is_some_and(|module| !module.unloaded));
        live.unwrap_or_else(|| {
            self.list.push(Known::default());
            self.by_id.insert(id, self.list.len() - 1);
            self.list.len() - 1
        })
    }

    /// The name of a method's module as dotnet-trace has it.
    pub(super) fn name(&self, method: &Method) -> &str {
        let of_unloaded = self.of_unloaded.get(&(method.id, method.start));
        let index = of_unloaded.or_else(|| self.by_id.get(&method.module)).copied();
        let known = index.and_then(|index| self.list.get(index)?.name.as_deref());
        known.unwrap_or("ManagedModule")
    }
}

/// The last part of a path without the extensions of programs and libraries.
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
