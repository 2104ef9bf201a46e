//! Maps addresses and times to methods.
//!
//! Code memory is reused: after an unload, or when a more optimized version of a method replaces the old one, another method may
//! have the address. So a method is an address range *and* a time span.

use hashbrown::HashMap;

use crate::clr;

/// The number of methods that are examined for one address. Real code overlaps only a few times, where memory was reused; a crafted
/// stream may contain any number of overlaps.
const MAX_STEPS: usize = 256;

/// The id of a module in its events.
pub type ModuleId = u64;

/// A handle of a method in a [`CodeMap`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct MethodId(u32);

/// What an event reports about code, except for its name and time.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Code {
    /// The runtime's id of the method.
    pub id: u64,
    /// The id of its module.
    pub module: ModuleId,
    /// The address of the first byte.
    pub start: u64,
    /// The size in bytes.
    pub size: u32,
    /// The flags, as in [`MethodEvent::flags`](crate::clr::MethodEvent::flags).
    pub flags: u32,
    /// The number of this version of the method if profilers replaced it. 0 for the original.
    pub rejit_id: u64,
}

/// The code of one method.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Method {
    /// The runtime's id of the method.
    pub id: u64,
    /// The id of its module.
    pub module: ModuleId,
    /// The address of the first byte.
    pub start: u64,
    /// The address after the last byte.
    pub end: u64,
    /// The optimization tier; see [`clr::tier_name`](crate::clr::tier_name).
    pub tier: &'static str,
    /// The number of this version of the method if profilers replaced it. 0 for the original.
    pub rejit_id: u64,
    /// `Namespace.Type.Method(args)`, or `0xADDR` if the name is unknown.
    pub name: String,
    /// Whether the name is known.
    pub has_name: bool,
    /// The time of its load in ticks. 0 if it was already loaded.
    pub loaded: u64,
    /// The time of its unload in ticks. `u64::MAX` if it was not unloaded.
    pub unloaded: u64,
}

impl Method {
    fn covers(&self, address: u64) -> bool {
        (self.start..self.end).contains(&address)
    }

    fn lives_at(&self, time: u64) -> bool {
        (self.loaded..self.unloaded).contains(&time)
    }
}

/// The result of a lookup of an address without a time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Address {
    /// No method is known there.
    Unknown,
    /// One method, regardless of the time.
    Always(MethodId),
    /// The method depends on the time; see [`CodeMap::at`].
    Depends,
}

/// The methods of a process.
#[derive(Debug, Clone, Default)]
pub struct CodeMap {
    methods: Vec<Method>,
    /// The methods that have not been unloaded, by id and start.
    live: HashMap<(u64, u64), MethodId, foldhash::fast::RandomState>,
    /// The names of each module id, with the time in ticks from which each is valid. Sorted by `seal`.
    modules: HashMap<ModuleId, Vec<(u64, String)>, foldhash::fast::RandomState>,
    /// The methods sorted by start. Built by `seal`.
    by_start: Vec<MethodId>,
    /// The start of each of them. One cache line has eight.
    starts: Vec<u64>,
    /// For each position in `by_start`, the largest end up to there.
    reach: Vec<u64>,
}

impl CodeMap {
    /// Adds a module that was loaded at `time`, or that already existed (`None`). Ids are reused after an unload, so one id may have
    /// several names.
    pub fn module(&mut self, id: ModuleId, time: Option<u64>, name: String) {
        let names = self.modules.entry(id).or_default();
        match time {
            Some(time) => names.push((time, name)),
            // A module found at the end was either loaded at a known time or existed from the start.
            None if names.is_empty() => names.push((0, name)),
            None => {}
        }
    }

    /// Returns the name of a module at a time.
    pub fn module_name(&self, id: ModuleId, time: u64) -> Option<&str> {
        let names = self.modules.get(&id)?;
        let then = names.partition_point(|(from, _)| *from <= time).saturating_sub(1);
        names.get(then).map(|(_, name)| name.as_str())
    }

    /// Adds a method that was loaded at `time`, or that already existed (`None`). Code that is reported both live and by the rundown
    /// is one method.
    pub fn load(&mut self, code: Code, time: Option<u64>, name: impl FnOnce() -> Option<String>) {
        let Code { id, module, start, size, .. } = code;
        let end = start.saturating_add(u64::from(size));
        if let Some(known) = self.live.get(&(id, start)).and_then(|m| self.methods.get_mut(m.0 as usize))
            && known.end == end
        {
            known.loaded = known.loaded.min(time.unwrap_or(known.loaded));
            // An event may have a name that another one lacks.
            if !known.has_name
                && let Some(name) = name()
            {
                (known.name, known.has_name) = (name, true);
            }
            return;
        }
        let Ok(index) = u32::try_from(self.methods.len()) else { return };
        let loaded = time.unwrap_or(0);
        let (tier, rejit_id, name) = (clr::tier_name(code.flags), code.rejit_id, name());
        let has_name = name.is_some();
        let name = name.unwrap_or_else(|| format!("{start:#x}"));
        let unloaded = u64::MAX;
        self.methods.push(Method {
            id,
            module,
            start,
            end,
            tier,
            rejit_id,
            name,
            has_name,
            loaded,
            unloaded,
        });
        self.live.insert((id, start), MethodId(index));
        self.by_start.clear();
        self.starts.clear();
    }

    /// Records that a method was unloaded at `time`. The event has the complete description, so a method that was not known before
    /// is added.
    pub fn unload(&mut self, code: Code, time: u64, name: impl FnOnce() -> Option<String>) {
        self.load(code, None, name);
        if let Some(m) = self.live.remove(&(code.id, code.start))
            && let Some(method) = self.methods.get_mut(m.0 as usize)
        {
            method.unloaded = time;
        }
    }

    /// Returns the number of methods.
    pub fn len(&self) -> usize {
        self.methods.len()
    }

    /// Whether there are no methods.
    pub fn is_empty(&self) -> bool {
        self.methods.is_empty()
    }

    /// Returns the method with this handle.
    pub fn method(&self, id: MethodId) -> Option<&Method> {
        self.methods.get(id.0 as usize)
    }

    /// Returns all methods, in the order in which they were added.
    pub fn methods(&self) -> impl Iterator<Item = &Method> {
        self.methods.iter()
    }

    /// Sorts the methods for lookups. Must be called after the last `load` and `unload`.
    pub fn seal(&mut self) {
        // The sort is stable: names of equal times stay in the order of their events.
        self.modules.values_mut().for_each(|names| names.sort_by_key(|(from, _)| *from));
        self.by_start = (0..self.methods.len()).filter_map(|i| u32::try_from(i).ok()).map(MethodId).collect();
        let methods = &self.methods;
        let key = |id: &MethodId| methods.get(id.0 as usize).map(|m| (m.start, m.loaded));
        self.by_start.sort_by_key(key);
        let start = |id: &MethodId| methods.get(id.0 as usize).map_or(u64::MAX, |m| m.start);
        self.starts = self.by_start.iter().map(start).collect();
        self.reach = self
            .by_start
            .iter()
            .scan(0, |max, id| {
                *max = methods.get(id.0 as usize).map_or(*max, |m| m.end.max(*max));
                Some(*max)
            })
            .collect();
    }

    /// Returns what is at `address` at any time.
    pub fn lookup(&self, address: u64) -> Address {
        let mut found = self.candidates(address);
        match (found.next(), found.next()) {
            (None, _) => Address::Unknown,
            (Some(only), None) => Address::Always(only),
            (Some(_), Some(_)) => Address::Depends,
        }
    }

    /// Returns the method at `address` at `time`. If no method existed then, returns the one closest in time, because load events
    /// are sent shortly after the code first runs.
    pub fn at(&self, address: u64, time: u64) -> Option<MethodId> {
        self.look_at(address, time).0
    }

    /// Returns the method as [`at`](Self::at) does, and the number of methods that were examined.
    pub(crate) fn look_at(&self, address: u64, time: u64) -> (Option<MethodId>, usize) {
        let distance = |m: &Method| {
            let away = if m.lives_at(time) {
                0
            } else if time < m.loaded {
                m.loaded - time
            } else {
                time - m.unloaded
            };
            (away, u64::MAX - m.loaded)
        };
        let mut steps = 0;
        let near = self.near(address).inspect(|_| steps += 1);
        let covering = near.filter_map(|id| self.method(id).filter(|m| m.covers(address)).map(|m| (id, m)));
        let nearest = covering.min_by_key(|(_, m)| distance(m)).map(|(id, _)| id);
        (nearest, steps)
    }

    /// Returns all methods that ever covered `address`, by descending start.
    fn candidates(&self, address: u64) -> impl Iterator<Item = MethodId> + '_ {
        self.near(address).filter(move |id| self.method(*id).is_some_and(|m| m.covers(address)))
    }

    /// Returns the methods that may cover `address`.
    fn near(&self, address: u64) -> impl Iterator<Item = MethodId> + '_ {
        let behind = self.starts.partition_point(|start| *start <= address);
        let starts = self.by_start.get(..behind).unwrap_or_default().iter();
        let reach = self.reach.get(..behind).unwrap_or_default().iter();
        starts
            .zip(reach)
            .rev()
            .take(MAX_STEPS)
            .take_while(move |(_, reach)| **reach > address)
            .map(|(id, _)| *id)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn map(methods: &[(u64, u64, u32, Option<u64>, &str)]) -> CodeMap {
        let mut map = CodeMap::default();
        for (id, start, size, time, name) in methods {
            map.load(code(*id, *start, *size), *time, || Some((*name).to_owned()));
        }
        map
    }

    fn code(id: u64, start: u64, size: u32) -> Code {
        Code { id, module: 1, start, size, ..Code::default() }
    }

    fn name_at(map: &CodeMap, address: u64, time: u64) -> &str {
        map.at(address, time).map_or("?", |id| &map.method(id).unwrap().name)
    }

    #[test]
    fn ranges_have_an_inclusive_start_and_an_exclusive_end() {
        let mut map = map(&[(1, 100, 10, None, "a"), (2, 110, 5, None, "b")]);
        map.seal();
        assert_eq!(map.lookup(99), Address::Unknown);
        for (address, name) in [(100, "a"), (109, "a"), (110, "b"), (114, "b")] {
            let Address::Always(id) = map.lookup(address) else { panic!("{address}") };
            assert_eq!(map.method(id).unwrap().name, name);
        }
        assert_eq!(map.lookup(115), Address::Unknown);
    }

    #[test]
    fn code_reported_twice_is_one_method() {
        let mut map = map(&[(1, 100, 10, Some(50), "a"), (1, 100, 10, None, "a again")]);
        map.seal();
        assert_eq!(map.len(), 1);
        assert!(matches!(map.lookup(105), Address::Always(_)));
    }

    #[test]
    fn reused_memory_is_distinguished_by_time() {
        let mut map = map(&[(1, 100, 10, Some(10), "old")]);
        map.unload(code(1, 100, 10), 20, || unreachable!("known already"));
        map.load(code(2, 100, 20), Some(30), || Some("new".to_owned()));
        map.seal();
        assert_eq!(map.lookup(105), Address::Depends);
        assert_eq!(name_at(&map, 105, 15), "old");
        assert_eq!(name_at(&map, 105, 21), "old", "nearer to its end than to the load of the next");
        assert_eq!(name_at(&map, 105, 29), "new", "a sample just before the load event");
        assert_eq!(name_at(&map, 105, 99), "new");
        assert_eq!(name_at(&map, 115, 15), "new", "nothing else was ever there");
    }

    #[test]
    fn an_unload_alone_names_the_code_before_it() {
        let mut map = CodeMap::default();
        map.unload(code(7, 100, 10), 20, || Some("gone".to_owned()));
        map.seal();
        assert_eq!(name_at(&map, 100, 5), "gone");
    }

    #[test]
    fn a_name_may_come_later_than_the_code() {
        let mut map = CodeMap::default();
        map.load(Code { flags: 8 | 4 << 7, rejit_id: 2, ..code(7, 0x100, 10) }, Some(5), || None);
        map.load(code(8, 0x200, 10), Some(5), || None);
        map.load(code(7, 0x100, 10), None, || Some("told".to_owned()));
        map.seal();
        assert_eq!((name_at(&map, 0x100, 9), name_at(&map, 0x200, 9)), ("told", "0x200"));
        let method = map.at(0x100, 9).and_then(|id| map.method(id)).unwrap();
        assert_eq!((method.tier, method.rejit_id, method.loaded), ("OptimizedTier1", 2, 5));
    }

    #[test]
    fn a_module_id_may_be_reused() {
        let mut map = CodeMap::default();
        map.module(1, Some(10), "old".into());
        map.module(1, Some(20), "new".into());
        map.module(1, None, "new".into());
        assert_eq!(map.module_name(1, 5), Some("old"), "before anything is known of it");
        assert_eq!(map.module_name(1, 15), Some("old"));
        assert_eq!(map.module_name(1, 25), Some("new"));
        map.module(2, None, "there".into());
        assert_eq!((map.module_name(2, 0), map.module_name(3, 0)), (Some("there"), None));
    }

    #[test]
    fn a_long_method_below_short_ones_is_found() {
        let mut map = map(&[(1, 100, 1000, Some(0), "long"), (2, 200, 10, Some(5), "short")]);
        map.seal();
        assert_eq!(name_at(&map, 500, 9), "long");
        assert_eq!(name_at(&map, 205, 9), "short");
    }
}
