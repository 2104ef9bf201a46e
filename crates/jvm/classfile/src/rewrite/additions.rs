//! The constants that are added to a class, and the calls of probes that use them.

use std::collections::HashMap;

use super::{Probe, Probes};
use crate::code::Opcode;
use crate::constants::Constants;
use crate::pool::{Constant, Index, Pool};

/// Constants that are appended to those of a class.
#[derive(Debug)]
pub(super) struct Additions<'p, 'a> {
    pool: &'p Pool<'a>,
    pub(super) new: Constants,
    /// The results of searching texts in the class.
    found: HashMap<Vec<u8>, Option<Index>>,
    throwable: Index,
}

impl<'p, 'a> Additions<'p, 'a> {
    pub(super) fn new(pool: &'p Pool<'a>) -> Self {
        Self {
            pool,
            new: Constants::starting_at(pool.count()),
            found: HashMap::new(),
            throwable: Index::NONE,
        }
    }

    /// Returns the index of an existing or new text.
    pub(super) fn text(&mut self, text: &[u8]) -> Index {
        let pool = self.pool;
        let found = self.found.entry(text.to_vec()).or_insert_with(|| pool.find_text(text));
        found.unwrap_or_else(|| self.new.encoded(text))
    }

    /// Returns the class `java/lang/Throwable`, which every changed method needs.
    pub(super) fn throwable(&mut self) -> Index {
        // It was removed if the method that first needed it was not changed.
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

/// The kind of a probe.
#[derive(Debug, Clone, Copy)]
enum ProbeKind {
    Entry,
    Exit,
    Throwing,
    Unwinding,
    Line,
    Called,
    Constructed,
}

/// The calls of probes, whose constants are created on first use.
#[derive(Debug)]
pub(super) struct ProbeCalls<'p> {
    pub(super) probes: Probes<'p>,
    /// The name of the probe for lines.
    line: Option<&'p str>,
    /// The method constants, by kind.
    methods: [Index; 7],
}

impl<'p> ProbeCalls<'p> {
    pub(super) fn new(probes: &Probes<'p>, line: Option<&'p str>) -> Self {
        Self { probes: *probes, line, methods: [Index::NONE; 7] }
    }

    /// Forgets the constants from an index on.
    pub(super) fn forget_from(&mut self, next: u16) {
        self.methods.iter_mut().filter(|method| method.0 >= next).for_each(|method| *method = Index::NONE);
    }

    fn call(&mut self, kind: ProbeKind, probe: Probe<'p>, new: &mut Constants, code: &mut Vec<u8>) {
        let with_exception = matches!(kind, ProbeKind::Throwing | ProbeKind::Unwinding);
        let descriptor = match (with_exception, takes_line(kind, probe)) {
            (false, false) => "(I)V",
            (false, true) => "(II)V",
            (true, false) => "(Ljava/lang/Throwable;I)V",
            (true, true) => "(Ljava/lang/Throwable;II)V",
        };
        let class = self.probes.class;
        let mut none = Index::NONE;
        let method = self.methods.get_mut(kind as usize).unwrap_or(&mut none);
        if *method == Index::NONE {
            *method = new.method(class, probe.name, descriptor);
        }
        let [high, low] = method.0.to_be_bytes();
        code.extend([Opcode::INVOKESTATIC.0, high, low]);
    }

    /// Appends the call of a probe, if there is one. Returns the number of stack words that it needs.
    fn append(
        &mut self,
        kind: ProbeKind,
        id: i32,
        line: u16,
        new: &mut Constants,
        code: &mut Vec<u8>,
    ) -> u16 {
        let probe = match kind {
            ProbeKind::Entry => self.probes.entry,
            ProbeKind::Exit => self.probes.exit,
            ProbeKind::Throwing => self.probes.throwing,
            ProbeKind::Unwinding => self.probes.unwinding,
            ProbeKind::Line => self.line.map(|name| Probe { name, line: false }),
            ProbeKind::Called => self.probes.constructing.map(|own| Probe { name: own.called, line: false }),
            ProbeKind::Constructed => {
                self.probes.constructing.map(|own| Probe { name: own.constructed, line: false })
            }
        };
        let Some(probe) = probe else { return 0 };
        let mut words = 1;
        if matches!(kind, ProbeKind::Throwing | ProbeKind::Unwinding) {
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
        self.append(ProbeKind::Entry, id, line, new, code)
    }

    pub(super) fn exit(&mut self, id: i32, line: u16, new: &mut Constants, code: &mut Vec<u8>) -> u16 {
        self.append(ProbeKind::Exit, id, line, new, code)
    }

    /// Appends the probe for a line, with the line's ID.
    pub(super) fn line(&mut self, id: i32, new: &mut Constants, code: &mut Vec<u8>) -> u16 {
        self.append(ProbeKind::Line, id, u16::MAX, new, code)
    }

    /// Appends the probe for the entry of a constructor that calls a constructor without probes.
    pub(super) fn called(&mut self, id: i32, new: &mut Constants, code: &mut Vec<u8>) -> u16 {
        self.append(ProbeKind::Called, id, u16::MAX, new, code)
    }

    /// Appends the probe for the return of that call.
    pub(super) fn constructed(&mut self, id: i32, new: &mut Constants, code: &mut Vec<u8>) -> u16 {
        self.append(ProbeKind::Constructed, id, u16::MAX, new, code)
    }

    /// Appends the probe for an `athrow`; the exception stays on top of the stack.
    pub(super) fn throwing(&mut self, id: i32, line: u16, new: &mut Constants, code: &mut Vec<u8>) -> u16 {
        self.append(ProbeKind::Throwing, id, line, new, code)
    }

    /// Appends the probe for an exception that leaves the method; the exception stays on top of the stack.
    pub(super) fn unwinding(&mut self, id: i32, new: &mut Constants, code: &mut Vec<u8>) -> u16 {
        self.append(ProbeKind::Unwinding, id, u16::MAX, new, code)
    }
}

fn takes_line(kind: ProbeKind, probe: Probe<'_>) -> bool {
    probe.line && !matches!(kind, ProbeKind::Unwinding)
}
