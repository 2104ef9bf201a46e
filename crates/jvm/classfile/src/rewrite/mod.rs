//! Inserts calls of probes into methods, and preserves everything else.
//!
//! Determines which instructions get a probe, and updates everything in the class that refers to offsets in code:
//! branches, switches, exception tables, stack maps, lines, local variables, type annotations. Members are neither
//! added nor removed, and no code is moved to other methods, so that loaded classes can be changed too. Frames are
//! not computed: existing ones are kept and moved (docs/design/class-files.md).
//!
//! The structure of a changed method:
//!
//! ```text
//!            push id; invokestatic entry(I)V          in a constructor too: before super(…) or this(…)
//!   ┌──────  the code
//!   │        dup; push id; push line; invokestatic throwing(Throwable,I,I)V      before each athrow
//!   │        athrow
//!   ├──────  push id; push line; invokestatic exit(I,I)V                         before each return
//!   │        return
//!   ├──────  the code
//!   └─────►  dup; push id; invokestatic unwinding(Throwable,I)V                  for what no other handler takes
//!            athrow
//! ```
//!
//! A constructor has two such handlers: one for the code before the call of the other constructor, and one for the
//! code after it. No handler can cover the call itself, because no frame is compatible with the state of the object
//! both before and after it. An exception that leaves that call therefore ends the method without a probe
//! ([`Rewritten::delegates`], [`Constructing`]).
//!
//! With [`rewrite_lines`], `push id; invokestatic line(I)V` precedes each instruction at which a line is entered,
//! and branches to the instruction include it.
//!
//! A branch to the first instruction does not enter the method again; a branch to a return leaves it. Each call of
//! `entry` has one matching call of `exit` or `unwinding`, unless the thread is stopped otherwise. An exception
//! that a probe throws propagates to the caller like any other exception, and so does one from `super(…)`.
//!
//! Constants are appended, so existing indexes are unchanged. A method that cannot be changed is left as it is and
//! reported.

mod additions;
mod constructor;
mod descriptor;
mod emit;
mod frames;
mod layout;
mod lines;
mod method;
mod tables;

use runtap_wire::DecodeError;
use thiserror::Error;

use self::additions::{Additions, ProbeCalls};
use crate::bytes::TooMany;
use crate::{AccessFlags, ClassFile, Text};

/// The size of code in bytes above which `HotSpot` does not compile a method, unless configured to
/// (`-XX:-DontCompileHugeMethods`): a method that grows beyond this size becomes slow.
pub const HUGE_METHOD: usize = 8_000;

/// The probes: static methods of one class that the changed methods call.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Probes<'p> {
    /// The class, with slashes. It must be visible to each class that is rewritten.
    pub class: &'p str,
    /// The probe that is called when a method starts: `(I)V`, or with the line `(II)V`.
    pub entry: Option<Probe<'p>>,
    /// The probe that is called before each return: `(I)V`, or with the line `(II)V`.
    pub exit: Option<Probe<'p>>,
    /// The probe that is called before each `athrow`: `(Ljava/lang/Throwable;I)V`, or with the line
    /// `(Ljava/lang/Throwable;II)V`.
    pub throwing: Option<Probe<'p>>,
    /// The probe that is called when an exception leaves the method: `(Ljava/lang/Throwable;I)V`.
    pub unwinding: Option<Probe<'p>>,
    /// The probes of constructors in a class whose superclass has no probes.
    pub constructing: Option<Constructing<'p>>,
}

/// The probes of constructors that call a constructor of a superclass without probes, other than
/// `java/lang/Object`: otherwise it would be unknown whether that call has thrown an exception. They have no line.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Constructing<'p> {
    /// The name of the method that is called in place of [`Probes::entry`]: `(I)V`.
    pub called: &'p str,
    /// The name of the method that is called when the call has returned, or before [`Probes::unwinding`] if an
    /// exception leaves the method before the call: `(I)V`.
    pub constructed: &'p str,
}

/// A probe. It receives the ID of the method that calls it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Probe<'p> {
    /// The name of the probe's method.
    pub name: &'p str,
    /// Whether the probe also receives the line number from `LineNumberTable`, as a sign-extended 16-bit number; −1
    /// if there is none. Not for [`Probes::unwinding`], which has no line.
    pub line: bool,
}

/// The probe for lines.
///
/// It is called before each instruction of a line that can be reached from another line, so a line is reported
/// exactly when its first instruction runs. A method whose first instruction has a line gets no probe for its
/// entry: that line's probe replaces it, in constructors before `super(…)`.
pub struct Lines<'p> {
    /// The name of the probe's method: `(I)V`, with the ID of the line.
    pub name: &'p str,
    /// Returns the ID of a line, by the method's ID and the line number; `None` if no IDs are left.
    pub id: &'p mut dyn FnMut(i32, u16) -> Option<i32>,
}

impl std::fmt::Debug for Lines<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Lines").field("name", &self.name).finish_non_exhaustive()
    }
}

impl Lines<'_> {
    /// Returns the IDs of the lines that are entered at these instructions.
    fn sites(&mut self, method: i32, entered: Vec<(usize, u16)>) -> Result<Vec<(usize, i32)>, Reason> {
        let sites = entered.into_iter().map(|(number, line)| Some((number, (self.id)(method, line)?)));
        sites.collect::<Option<_>>().ok_or(Reason::NoLineId)
    }
}

impl Probes<'_> {
    /// Returns whether only the start of methods is reported.
    fn only_entry(&self) -> bool {
        self.exit.is_none() && self.throwing.is_none() && self.unwinding.is_none()
    }
}

/// A method that may be changed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Candidate<'a> {
    /// The index among the methods of the class.
    pub number: usize,
    /// The access flags.
    pub access: AccessFlags,
    /// The name.
    pub name: Text<'a>,
    /// The descriptor.
    pub descriptor: Text<'a>,
}

/// The result of rewriting a class.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Rewritten {
    /// The changed class; `None` if nothing was changed.
    pub bytes: Option<Vec<u8>>,
    /// The methods that were changed.
    pub changed: Vec<Changed>,
    /// The selected methods that could not be changed.
    pub unchanged: Vec<Unchanged>,
    /// The methods that were changed, but without probes for their lines.
    pub without_lines: Vec<Unchanged>,
    /// The changed constructors without handlers that call exactly one constructor, other than
    /// `java/lang/Object`'s, if [`Probes::unwinding`] is set: if that call throws an exception, it also ends these
    /// constructors.
    pub delegates: Vec<Delegate>,
}

/// A constructor and the constructor that it calls.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Delegate {
    /// The index among the methods of the class.
    pub number: usize,
    /// The class of the called constructor, with slashes, in modified UTF-8.
    pub class: Vec<u8>,
    /// The descriptor of the called constructor.
    pub descriptor: Vec<u8>,
}

/// A method that was changed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Changed {
    /// The index among the methods of the class.
    pub number: usize,
    /// The original size of the code, in bytes.
    pub before: usize,
    /// The new size of the code, in bytes. See [`HUGE_METHOD`].
    pub after: usize,
}

/// A method that was not changed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Unchanged {
    /// The index among the methods of the class.
    pub number: usize,
    /// The reason.
    pub reason: Reason,
}

/// The reason why a method was not changed.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum Reason {
    /// The method is abstract or native.
    #[error("it has no code")]
    NoCode,
    /// The method is an empty `finalize`. `HotSpot` recognizes empty finalizers by their code, a single `return`.
    /// With more code, all objects of the class and its subclasses would be finalized; for `java/lang/Object`, that
    /// is every object.
    #[error("it is an empty finalizer, which must stay empty")]
    EmptyFinalizer,
    /// The code is malformed.
    #[error("its code is malformed: {0}")]
    Malformed(#[from] DecodeError),
    /// The code refers to an offset at which no instruction starts.
    #[error("{0} is not at the start of an instruction")]
    Misplaced(&'static str),
    /// The constructor never calls another constructor, so its object is never initialized.
    #[error("the constructor calls no other constructor")]
    NeverBegins,
    /// The constructor has code that runs both before and after the call of the other constructor.
    #[error("the constructor has code that runs before and after the object is initialized")]
    Shared,
    /// The analysis of a constructor, or of the frames of a method with extended branches, exceeds a limit.
    #[error("its code is too complex")]
    TooComplex,
    /// The code would exceed the maximum size.
    #[error("its code would be {0} bytes long, but at most 65,535 are allowed")]
    TooLong(usize),
    /// No ID is left for a line.
    #[error("there are too many lines")]
    NoLineId,
    /// A branch would be longer than 16 bits allow, and there is no site for an island.
    #[error("a branch would be too long")]
    OutOfReach,
    /// A number or size would exceed the limits of class files.
    #[error(transparent)]
    TooMany(#[from] TooMany),
}

/// Inserts the probes into the methods for which `choose` returns an ID.
///
/// # Errors
/// Fails if the names of the class or of its methods cannot be read. Methods that cannot be changed are in
/// [`Rewritten::unchanged`].
pub fn rewrite<'a>(
    class: &ClassFile<'a>,
    probes: &Probes<'_>,
    choose: impl FnMut(&Candidate<'a>) -> Option<i32>,
) -> Result<Rewritten, DecodeError> {
    rewrite_all(class, probes, None, choose)
}

/// Inserts the probes into the methods for which `choose` returns an ID, and the probes of their lines. A method
/// that would become too large with the latter gets only the former, and is in [`Rewritten::without_lines`].
///
/// # Errors
/// Fails if the names of the class or of its methods cannot be read. Methods that cannot be changed are in
/// [`Rewritten::unchanged`].
pub fn rewrite_lines<'a>(
    class: &ClassFile<'a>,
    probes: &Probes<'_>,
    mut lines: Lines<'_>,
    choose: impl FnMut(&Candidate<'a>) -> Option<i32>,
) -> Result<Rewritten, DecodeError> {
    rewrite_all(class, probes, Some(&mut lines), choose)
}

fn rewrite_all<'a>(
    class: &ClassFile<'a>,
    probes: &Probes<'_>,
    mut lines: Option<&mut Lines<'_>>,
    mut choose: impl FnMut(&Candidate<'a>) -> Option<i32>,
) -> Result<Rewritten, DecodeError> {
    let pool = class.pool();
    let mut additions = Additions::new(pool);
    let mut calls = ProbeCalls::new(probes, lines.as_deref().map(|lines| lines.name));
    let mut result = Rewritten::default();
    // The ranges of the file that change, with their new content.
    let mut patches: Vec<(usize, usize, Vec<u8>)> = Vec::new();
    for (number, member) in class.methods().iter().enumerate() {
        let (name, descriptor) = (member.name(pool)?, member.descriptor(pool)?);
        let candidate = Candidate { number, access: member.access, name, descriptor };
        let Some(id) = choose(&candidate) else { continue };
        let mut insert = |lines: Option<&mut Lines<'_>>| {
            let checkpoint = additions.new.checkpoint();
            let changed = method::rewrite(class, member, &candidate, id, &mut calls, lines, &mut additions);
            let changed = changed.and_then(|changed| {
                additions.new.check()?;
                Ok(changed)
            });
            changed.inspect_err(|_| {
                additions.new.reset_to(checkpoint);
                calls.forget_from(additions.new.next());
            })
        };
        let mut changed = insert(lines.as_deref_mut());
        if let (Some(_), Err(_)) = (&lines, &changed) {
            // The method may be too large because of the lines only.
            let reason = changed.err();
            changed = insert(None);
            if let (Ok(_), Some(reason)) = (&changed, reason) {
                result.without_lines.push(Unchanged { number, reason });
            }
        }
        match changed {
            Ok(changed) => {
                // The range includes the length of the attribute.
                patches.push((changed.start, changed.end, changed.attribute));
                result.delegates.extend(changed.delegate);
                result.changed.push(Changed { number, before: changed.before, after: changed.after });
            }
            Err(reason) => result.unchanged.push(Unchanged { number, reason }),
        }
    }
    if !patches.is_empty() {
        result.bytes = Some(splice(class, &additions, &patches));
    }
    Ok(result)
}

/// Returns the class with additional constants and changed code.
fn splice(
    class: &ClassFile<'_>,
    additions: &Additions<'_, '_>,
    patches: &[(usize, usize, Vec<u8>)],
) -> Vec<u8> {
    let bytes = class.bytes();
    let part = |start: usize, end: usize| bytes.get(start..end).unwrap_or_default();
    let grown: usize = patches.iter().map(|(.., attribute)| attribute.len()).sum();
    let mut result = Vec::with_capacity(bytes.len() + additions.new.bytes().len() + grown);
    result.extend_from_slice(part(0, 8));
    result.extend_from_slice(&additions.new.next().to_be_bytes());
    let pool_end = class.pool().end();
    result.extend_from_slice(part(10, pool_end));
    result.extend_from_slice(additions.new.bytes());
    let mut done = pool_end;
    for (start, end, attribute) in patches {
        result.extend_from_slice(part(done, *start));
        result.extend_from_slice(attribute);
        done = *end;
    }
    result.extend_from_slice(part(done, bytes.len()));
    result
}
