//! The events of the runtime's own provider, with the level and the keywords that enable each. They are known before a stream
//! defines them. Other providers define their own events, so they are not included.

use super::native;
use crate::clr::RUNTIME;

const LEVELS: &str = include_str!("levels.txt");

/// An event of the runtime.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct KnownEvent {
    /// The id of the event.
    pub id: u32,
    /// The name, `Task/Opcode`.
    pub name: &'static str,
    /// The names of the fields of the payload.
    pub fields: Vec<String>,
    /// The settings that enable the event. `None` if unknown.
    pub switch: Option<EventSwitch>,
}

/// The settings with which a session enables an event.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct EventSwitch {
    /// The minimum level. 0 if every level enables the event.
    pub level: u8,
    /// The keywords of which at least one must be enabled. 0 if the event needs no keyword.
    pub keywords: u64,
}

/// Returns the events of a provider. `None` if they are unknown.
pub fn known_events(provider: &str) -> Option<Vec<KnownEvent>> {
    if !provider.eq_ignore_ascii_case(RUNTIME) {
        return None;
    }
    let event = |(id, native): (u32, native::Native)| KnownEvent {
        id,
        name: native.name,
        fields: native.fields.fields().iter().map(|field| field.name.to_string()).collect(),
        switch: switch(id),
    };
    Some(native::all(RUNTIME).map(event).collect())
}

fn switch(id: u32) -> Option<EventSwitch> {
    LEVELS.lines().filter(|line| !line.starts_with('#')).find_map(|line| {
        let mut words = line.split(' ');
        let level = words.next()?.parse().ok()?;
        let keywords = u64::from_str_radix(words.next()?.strip_prefix("0x")?, 16).ok()?;
        let has_id = words.any(|range| {
            let (first, last) = range.split_once('-').unwrap_or((range, range));
            first.parse::<u32>().is_ok_and(|first| first <= id)
                && last.parse::<u32>().is_ok_and(|last| id <= last)
        });
        has_id.then_some(EventSwitch { level, keywords })
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_line_of_the_table_is_of_events_with_a_name() {
        let known = known_events("microsoft-windows-dotnetruntime").unwrap();
        let mut ids: Vec<u32> = Vec::new();
        for line in LEVELS.lines().filter(|line| !line.starts_with('#')) {
            for range in line.split(' ').skip(2) {
                let (first, last) = range.split_once('-').unwrap_or((range, range));
                ids.extend(first.parse::<u32>().unwrap()..=last.parse().unwrap());
            }
        }
        for (place, id) in ids.iter().enumerate() {
            assert!(known.iter().any(|event| event.id == *id && event.switch.is_some()), "{id}");
            assert!(!ids[place + 1..].contains(id), "{id} twice");
        }
        assert!(ids.len() > 100);
        assert_eq!(known_events("Microsoft-Windows-DotNETRuntimeRundown"), None);
    }

    #[test]
    fn an_event_with_variants_has_several_names() {
        let known = known_events(RUNTIME).unwrap();
        let names: Vec<_> = known.iter().filter(|event| event.id == 39).map(|event| event.name).collect();
        assert_eq!(names, ["GC/Dynamic", "GC/CommittedUsage"]);
        let tick = known.iter().find(|event| event.name == "GC/AllocationTick").unwrap();
        assert_eq!(tick.switch, Some(EventSwitch { level: 5, keywords: 1 }));
        assert!(tick.fields.iter().any(|field| field == "TypeName"));
    }
}
