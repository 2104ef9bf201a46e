//! The rows of the table, by command set: the request, the effect that is checked, and why a cell may differ from
//! "answered".

mod dumps;
mod frames;
mod ports;
mod process;
mod profilers;
mod sessions;

use crate::cell::{ANSWERED, Cell, Found, NO_PORT, NOT_KNOWN, NOT_TRIED};
use crate::column::Key;
use crate::room::Room;

/// One request, or a short exchange of messages.
#[derive(Debug)]
pub(crate) struct Row {
    /// The request. Unique.
    pub(crate) request: &'static str,
    /// The effect that is checked besides the reply OK.
    pub(crate) checked: &'static str,
    /// The section of the specification; [`ID_ONLY`] for a command without its own section.
    pub(crate) section: &'static str,
    /// The version of .NET that introduced the command; 3 is .NET Core 3.0 or 3.1.
    pub(crate) since: u8,
    pub(crate) run: fn(&Room<'_>) -> Found,
    pub(crate) notes: &'static [Note],
}

/// The reason for a cell in some columns.
#[derive(Debug)]
pub(crate) struct Note {
    /// The columns.
    pub(crate) of: &'static [Key],
    /// The text of the cell.
    pub(crate) cell: &'static str,
    pub(crate) why: &'static str,
}

/// All rows by group, in the order of the document.
pub(crate) const GROUPS: &[(&str, &[Row])] = &[
    ("Dump commands (0x01)", dumps::ROWS),
    ("EventPipe commands (0x02)", sessions::ROWS),
    ("Profiler commands (0x03)", profilers::ROWS),
    ("Process commands (0x04)", process::ROWS),
    ("Diagnostic Ports", ports::ROWS),
    ("Messages that are unknown to all runtimes", frames::ROWS),
];

pub(crate) fn all() -> impl Iterator<Item = &'static Row> {
    GROUPS.iter().flat_map(|(_, rows)| *rows)
}

impl Row {
    /// Returns the reason for a cell; `None` for an answer, which needs no reason.
    pub(crate) fn reason(&self, key: Key, cell: &Cell) -> Option<String> {
        let section = self.section;
        let note = self.notes.iter().find(|note| note.of.contains(&key) && cell.is(note.cell));
        if let Some(note) = note {
            let names_one = note.why.contains("section");
            return Some(if names_one {
                note.why.to_owned()
            } else {
                format!("{} Section “{section}”.", note.why)
            });
        }
        if cell.is(NOT_KNOWN) && key.release() < self.since {
            let command = self.request.split([',', ':']).next().unwrap_or_default();
            let only_an_id = if section == ID_ONLY { ", which has only its id" } else { "" };
            return Some(format!(
                "{command} came with .NET {}. Section “{section}”{only_an_id}.",
                self.since
            ));
        }
        cell.is(NOT_TRIED).then(|| "Was not here when this was measured.".to_owned())
    }

    /// Returns whether the cell needs a reason and has none.
    pub(crate) fn is_hole(&self, key: Key, cell: &Cell) -> bool {
        !cell.is(ANSWERED) && self.reason(key, cell).is_none()
    }
}

/// The section that lists the ids of all commands, and is the only section for some.
const ID_ONLY: &str = "Commands";

/// All columns except runtap's server.
const RUNTIMES: &[Key] = &[Key::Core31, Key::Net8, Key::Net9, Key::Net10];
const ALL: &[Key] = &Key::ALL;
const OWN_SERVER: &[Key] = &[Key::OwnServer];
const CORE31: &[Key] = &[Key::Core31];

/// The note for every row whose target waits at its startup.
const NO_PORT_31: Note = Note {
    of: CORE31,
    cell: NO_PORT,
    why: ".NET Core 3.1 can't be suspended and connects to no port: its program starts immediately; the \
          ports of section “Diagnostic Ports” came with .NET 5.",
};

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn requests_are_unique_and_fit_in_a_table() {
        let mut seen = BTreeSet::new();
        for row in all() {
            assert!(seen.insert(row.request), "{}", row.request);
            assert!(![row.request, row.checked].concat().contains('|'), "{}", row.request);
        }
    }

    #[test]
    fn what_came_later_is_not_known_and_everything_else_needs_a_note() {
        let row = all().find(|row| row.request.starts_with("0x0206")).unwrap();
        let not_known = Cell::new(NOT_KNOWN);
        assert!(row.reason(Key::Net9, &not_known).unwrap().contains("came with .NET 10"));
        assert!(row.is_hole(Key::Net10, &not_known));
        assert!(row.is_hole(Key::Net9, &Cell::new("E_UNEXPECTED")));
        assert!(!row.is_hole(Key::Net9, &Cell::new(ANSWERED)));
    }
}
