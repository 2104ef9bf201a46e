//! Constants that are added to a class, and the calls of probes that need them.

use std::collections::HashMap;

use super::{Probe, Probes};
use crate::code::Opcode;
use crate::constants::Constants;
use crate::pool::{Constant, Index, Pool};

/// Constants behind those of a class.
#[derive(Debug)]
pub(super) struct Additions<'p, 'a> {
    pool: &'p Pool<'a>,
    pub(super) new: Constants,
    /// Texts that the class has.
    found: HashMap<Vec<u8>, Option<Index>>,
    throwable: Index,
}

impl<'p, 'a> Additions<'p, 'a> {
    pub(super) fn new(pool: &'p Pool<'a>) -> Self {
        Self { pool, new: Constants::behind(pool.count()), found: HashMap::new(), throwable: Index::NONE }
    }

    /// The index of a text: one that is there, or a new one.
    pub(super) fn text(&mut self, text: &[u8]) -> Index {
        let pool = self.pool;
        let found = self.found.entry(text.to_vec()).or_insert_with(|| pool.find_text(text));
        found.unwrap_or_else(|| self.new.encoded(text))
    }

    /// `java/lang/Throwable`, which every changed method needs.
    pub(super) fn throwable(&mut self) -> Index {
        // It is gone if the method that needed it first was left alone.
        if self.throwable == Index::NONE || self.throwable.0 >= self.new.next() {
            self.throwable = self.class(b"java/lang/Throwable");
        }
        self.throwable
    }

    pub(super) fn class(&mut self, name: &[u8]) -> Index {
        let name = self.text(name);
        self.new.add(&Constant::Class { name })
    }
}

/// Which probe.
#[derive(Debug, Clone, Copy)]
enum Kind {
    Entry,
    Exit,
    Throwing,
    Unwinding,
    Line,
    Called,
    Constructed,
}

/// The constants of the probes in a class, made when the first method needs them.
#[derive(Debug)]
pub(super) struct Calls<'p> {
    pub(super) probes: Probes<'p>,
    /// The name of the probe of lines.
    line: Option<&'p str>,
    /// One for each kind.
    made: [Index; 7],
}

impl<'p> Calls<'p> {
    pub(super) fn new(probes: &Probes<'p>, line: Option<&'p str>) -> Self {
        Self { probes: *probes, line, made: [Index::NONE; 7] }
    }

    /// Forgets what was made from an index on.
    pub(super) fn forget_from(&mut self, next: u16) {
        self.made.iter_mut().filter(|made| made.0 >= next).for_each(|made| *made = Index::NONE);
    }

    fn call(&mut self, kind: Kind, probe: Probe<'p>, new: &mut Constants, code: &mut Vec<u8>) {
        let with_exception = matches!(kind, Kind::Throwing | Kind::Unwinding);
        let descriptor = match (with_exception, takes_line(kind, probe)) {
            (false, false) => "(I)V",
            (false, true) => "(II)V",
            (true, false) => "(Ljava/lang/Throwable;I)V",
            (true, true) => "(Ljava/lang/Throwable;II)V",
        };
        let class = self.probes.class;
        let mut none = Index::NONE;
        let made = self.made.get_mut(kind as usize).unwrap_or(&mut none);
        if *made == Index::NONE {
            *made = new.method(class, probe.name, descriptor);
        }
        let [high, low] = made.0.to_be_bytes();
        code.extend([Opcode::INVOKESTATIC.0, high, low]);
    }

    /// Appends the code of a probe, if there is one, and says how many words it needs on the stack.
    fn append(&mut self, kind: Kind, id: i32, line: u16, new: &mut Constants, code: &mut Vec<u8>) -> u16 {
        let probe = match kind {
            Kind::Entry => self.probes.entry,
            Kind::Exit => self.probes.exit,
            Kind::Throwing => self.probes.throwing,
            Kind::Unwinding => self.probes.unwinding,
            Kind::Line => self.line.map(|name| Probe { name, line: false }),
            Kind::Called => self.probes.constructing.map(|own| Probe { name: own.called, line: false }),
            Kind::Constructed => {
                self.probes.constructing.map(|own| Probe { name: own.constructed, line: false })
            }
        };
        let Some(probe) = probe else { return 0 };
        let mut words = 1;
        if matches!(kind, Kind::Throwing | Kind::Unwinding) {
            code.push(Opcode::DUP.0);
            words += 1;
        }
        new.push(id, code);
        if takes_line(kind, probe) {
            new.push(i32::from(line.cast_signed()), code);
            words += 1;
        }
        self.call(kind, probe, new, code);
        words
    }

    pub(super) fn entry(&mut self, id: i32, line: u16, new: &mut Constants, code: &mut Vec<u8>) -> u16 {
        self.append(Kind::Entry, id, line, new, code)
    }

    pub(super) fn exit(&mut self, id: i32, line: u16, new: &mut Constants, code: &mut Vec<u8>) -> u16 {
        self.append(Kind::Exit, id, line, new, code)
    }

    /// For a line, by its own id.
    pub(super) fn line(&mut self, id: i32, new: &mut Constants, code: &mut Vec<u8>) -> u16 {
        self.append(Kind::Line, id, u16::MAX, new, code)
    }

    /// For the entry of a constructor of which it is not known whether the one that it calls returns.
    pub(super) fn called(&mut self, id: i32, new: &mut Constants, code: &mut Vec<u8>) -> u16 {
        self.append(Kind::Called, id, u16::MAX, new, code)
    }

    /// For the return of the constructor that such a one calls.
    pub(super) fn constructed(&mut self, id: i32, new: &mut Constants, code: &mut Vec<u8>) -> u16 {
        self.append(Kind::Constructed, id, u16::MAX, new, code)
    }

    /// For the exception on top of the stack, which stays there.
    pub(super) fn throwing(&mut self, id: i32, line: u16, new: &mut Constants, code: &mut Vec<u8>) -> u16 {
        self.append(Kind::Throwing, id, line, new, code)
    }

    /// For the exception on top of the stack, which stays there.
    pub(super) fn unwinding(&mut self, id: i32, new: &mut Constants, code: &mut Vec<u8>) -> u16 {
        self.append(Kind::Unwinding, id, u16::MAX, new, code)
    }
}

fn takes_line(kind: Kind, probe: Probe<'_>) -> bool {
    probe.line && !matches!(kind, Kind::Unwinding)
}
