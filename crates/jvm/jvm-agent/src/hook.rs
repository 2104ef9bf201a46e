//! The transformation of a class.
//!
//! Owns: the decision whether a class is traced, and which probes it gets. Does not call the JVM: classes are bytes here.

use std::collections::BTreeMap;

use runtap_bytefrog_proto::{ClassOutcome, RecordMode};
use runtap_classfile::rewrite::{
    Constructing, Lines as LineProbes, Probe, Probes, Reason, Rewritten, rewrite, rewrite_lines,
};
use runtap_classfile::{ClassFile, Text};

use crate::delegates::Delegates;
use crate::filter::Filter;
use crate::lines::{Line, Lines};
use crate::names::Names;
use crate::probe;
use crate::ring::MAX_METHODS;

/// What to record, by HQ's configuration and the options.
#[derive(Debug, Clone)]
pub(crate) struct Plan {
    pub(crate) record: RecordMode,
    pub(crate) coarse: bool,
    /// Whether exits report lines.
    pub(crate) lines: bool,
    pub(crate) filter: Filter,
    /// Whether classes of the boot loader are traced.
    pub(crate) boot: bool,
    /// The name of the probe class.
    pub(crate) probe: String,
}

/// The result for a class, as reported to HQ.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ClassReport {
    pub(crate) outcome: ClassOutcome,
    /// The class name in modified UTF-8; if parts could not be changed, also which parts and why.
    pub(crate) name: Vec<u8>,
    /// Whether the JVM had loaded it before the trace began.
    pub(crate) was_loaded: bool,
}

impl ClassReport {
    /// Returns the report that a class could not be changed.
    pub(crate) fn failed(name: &[u8], why: &str) -> Self {
        let mut text = name.to_vec();
        text.extend(format!(" ({why})").into_bytes());
        text.truncate(usize::from(u16::MAX));
        Self { outcome: ClassOutcome::Failed, name: text, was_loaded: false }
    }

    /// Returns the report that a class is not traced.
    pub(crate) fn ignored(name: &[u8]) -> Self {
        Self { outcome: ClassOutcome::Ignored, name: name.to_vec(), was_loaded: false }
    }
}

/// Prefixes of the names of most classes of the boot loader. The loader of a superclass is not checked.
const JDK: [&str; 5] = ["java/", "javax/", "jdk/", "sun/", "com/sun/"];

impl Plan {
    /// Returns the probes for a class.
    fn probes(&self, super_has_probes: bool) -> Probes<'_> {
        let which = usize::from(self.coarse);
        let probe = |names: [&'static str; 2], line| {
            let name = names.get(which).copied().unwrap_or_default();
            Some(Probe { name, line })
        };
        let one = |name| Some(Probe { name, line: false });
        match self.record {
            RecordMode::Full => Probes {
                class: &self.probe,
                entry: probe(probe::ENTRY, false),
                exit: probe(probe::EXIT, self.lines),
                throwing: probe(probe::THROWING, true),
                unwinding: probe(probe::UNWINDING, false),
                constructing: (!super_has_probes).then(|| Constructing {
                    called: probe::CALLED.get(which).copied().unwrap_or_default(),
                    constructed: probe::CONSTRUCTED.get(which).copied().unwrap_or_default(),
                }),
            },
            RecordMode::Counts => Probes {
                class: &self.probe,
                entry: one(probe::COUNT),
                unwinding: one(probe::COUNT_THROWN),
                ..Probes::default()
            },
            RecordMode::Coverage => {
                Probes { class: &self.probe, entry: one(probe::COVER), ..Probes::default() }
            }
        }
    }

    /// Returns whether a class with this name may be traced. For loaded classes this is checked before their bytes are read.
    pub(crate) fn wants(&self, name: &str, by_boot_loader: bool) -> bool {
        self.filter.keeps(name) && (self.boot || !by_boot_loader)
    }

    /// Returns a class with its probes, if it gets any, and the report for HQ. `name` is the JVM's name of the class,
    /// which may be empty.
    pub(crate) fn transform(
        &self,
        names: &Names,
        lines: &Lines,
        delegates: &Delegates,
        name: Option<&[u8]>,
        by_boot_loader: bool,
        bytes: &[u8],
    ) -> (Option<Vec<u8>>, Option<ClassReport>) {
        let text = name.map(|name| Text::new(name).to_string_lossy());
        if let (Some(text), Some(name)) = (&text, name)
            && !self.wants(text, by_boot_loader)
        {
            return (None, Some(ClassReport::ignored(name)));
        }
        let failed = |why: String| (None, Some(ClassReport::failed(name.unwrap_or(b"?"), &why)));
        let class = match ClassFile::parse(bytes) {
            Ok(class) => class,
            Err(error) => return failed(error.to_string()),
        };
        let own = match class.name() {
            Ok(own) => own.as_bytes(),
            Err(error) => return failed(error.to_string()),
        };
        if name.is_none() && !self.wants(&Text::new(own).to_string_lossy(), by_boot_loader) {
            return (None, Some(ClassReport::ignored(own)));
        }
        let super_has_probes = class.super_name().ok().flatten().is_none_or(|name| {
            let name = name.to_string_lossy();
            self.wants(&name, by_boot_loader || JDK.iter().any(|package| name.starts_with(package)))
        });
        let probes = self.probes(super_has_probes);
        let mut full = false;
        let mut constructors = BTreeMap::new();
        let choose = |method: &runtap_classfile::rewrite::Candidate<'_>| {
            let mut signature = own.to_vec();
            signature.push(b'.');
            signature.extend_from_slice(method.name.as_bytes());
            signature.extend(format!(";{};", method.access.0).into_bytes());
            signature.extend_from_slice(method.descriptor.as_bytes());
            if method.access.is_abstract() || method.access.is_native() {
                return None;
            }
            let id = names.id(&signature, MAX_METHODS);
            full |= id.is_none();
            if method.name == "<init>" {
                constructors.extend(id.map(|id| (method.number, id)));
            }
            id.and_then(|id| i32::try_from(id).ok())
        };
        let mut mark = |method: i32, number| {
            let method = u32::try_from(method).ok()?;
            lines.mark(Line { method, number })
        };
        let rewritten = if self.record == RecordMode::Coverage {
            let line_probes = LineProbes { name: probe::COVER, id: &mut mark };
            rewrite_lines(&class, &probes, line_probes, choose)
        } else {
            rewrite(&class, &probes, choose)
        };
        for delegate in rewritten.iter().flat_map(|rewritten| &rewritten.delegates) {
            if let Some(id) = constructors.get(&delegate.number) {
                delegates.add(*id, &delegate.class, &delegate.descriptor);
            }
        }
        match rewritten {
            Ok(_) if full => failed(format!("more than {MAX_METHODS} methods")),
            Ok(rewritten) => finished(&class, own, rewritten),
            Err(error) => failed(error.to_string()),
        }
    }
}

/// Returns the report for a class whose methods were processed.
fn finished(
    class: &ClassFile<'_>,
    own: &[u8],
    rewritten: Rewritten,
) -> (Option<Vec<u8>>, Option<ClassReport>) {
    let unchanged = rewritten.unchanged.iter().filter(|left| left.reason != Reason::EmptyFinalizer);
    let unchanged = unchanged.map(|left| (left, ""));
    let without_lines = rewritten.without_lines.iter().map(|left| (left, "lines not known: "));
    let mut reasons = unchanged.chain(without_lines).filter_map(|(left, what)| {
        let method = class.methods().get(left.number)?;
        let name = method.name(class.pool()).ok()?.to_string_lossy();
        let descriptor = method.descriptor(class.pool()).ok()?.to_string_lossy();
        Some(format!("{name}{descriptor}: {what}{}", left.reason))
    });
    if let Some(first) = reasons.next() {
        // The class is changed except for these methods.
        let all = reasons.fold(first, |all, next| format!("{all}; {next}"));
        return (rewritten.bytes, Some(ClassReport::failed(own, &all)));
    }
    let report = ClassReport { outcome: ClassOutcome::Transformed, name: own.to_vec(), was_loaded: false };
    (rewritten.bytes, Some(report))
}
