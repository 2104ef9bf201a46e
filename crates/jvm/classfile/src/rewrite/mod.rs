//! Inserts calls of probes into methods, and changes nothing else.
//!
//! Owns: which instructions get a probe, and everything in the class that speaks of offsets in code: branches, switches,
//! exception tables, stack maps, lines, local variables, type annotations. Refuses to: add or remove members, or to move
//! code into other methods, so that a loaded class can be changed too; to compute frames: those that are there are kept and
//! moved (docs/design/class-files.md).
//!
//! What a method looks like afterwards:
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
//! A constructor has two such handlers: one for what runs before the call of the other constructor, one for what runs behind
//! it. No handler can be of the call itself: what the verifier knows of the object before and after it fits no frame.
//! So an exception that comes out of that call ends the method without a word ([`Rewritten::delegates`], [`Constructing`]).
//!
//! With [`rewrite_lines`], `push id; invokestatic line(I)V` is before each instruction at which a line is entered, and a branch
//! to the instruction goes there.
//!
//! A branch to the first instruction does not enter the method again; one to a return leaves it. Each call of `entry` has
//! one of `exit` or of `unwinding`, unless the thread ends otherwise. What a probe throws goes to the caller like any other
//! exception, and so does what `super(…)` throws.
//!
//! Constants are appended, so the index of each one stays. A method that can't be changed is left as it is and reported.

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

use self::additions::{Additions, Calls};
use crate::bytes::TooMany;
use crate::{AccessFlags, ClassFile, Text};

/// Methods whose code is longer are not compiled by `HotSpot`, unless it is told to (`-XX:-DontCompileHugeMethods`): a
/// rewriter that makes one that long makes it slow.
pub const HUGE_METHOD: usize = 8_000;

/// Static methods of one class, to be called by the methods of others.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Probes<'p> {
    /// The class, with slashes. Each class that is rewritten has to see it.
    pub class: &'p str,
    /// Called when a method begins: `(I)V`, or with the line `(II)V`.
    pub entry: Option<Probe<'p>>,
    /// Called before each return: `(I)V`, or with the line `(II)V`.
    pub exit: Option<Probe<'p>>,
    /// Called before each `athrow`: `(Ljava/lang/Throwable;I)V`, or with the line `(Ljava/lang/Throwable;II)V`.
    pub throwing: Option<Probe<'p>>,
    /// Called when an exception leaves the method: `(Ljava/lang/Throwable;I)V`.
    pub unwinding: Option<Probe<'p>>,
    /// For a class whose superclass has no probes.
    pub constructing: Option<Constructing<'p>>,
}

/// Probes of constructors that call one of a superclass without probes, which is not `java/lang/Object`: nothing else tells
/// whether that call has thrown something. They have no line.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Constructing<'p> {
    /// The name of the method that is called in place of [`Probes::entry`]: `(I)V`.
    pub called: &'p str,
    /// The name of the method that is called when the call has returned, or before [`Probes::unwinding`] if an exception has
    /// ended the method before it: `(I)V`.
    pub constructed: &'p str,
}

/// A method that is called, with the id of the method that calls it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Probe<'p> {
    /// Its name.
    pub name: &'p str,
    /// Whether it takes the number of the line too, as `LineNumberTable` has it for the instruction: as a `short`, so that
    /// its lower 16 bits are the line; −1 if there is none. Not for [`Probes::unwinding`], which has no line.
    pub line: bool,
}

/// A probe for each line.
///
/// It is called before an instruction of a line that can be reached from one of another line, so a line has told of itself
/// when the first of its instructions begins, and only then. A method whose first instruction has a line gets no probe of its
/// entry: that line's stands for it, in constructors before `super(…)`.
pub struct Lines<'p> {
    /// The name of the method that is called: `(I)V`, with the id of the line.
    pub name: &'p str,
    /// The id of a line of a method, by the method's id and the number of the line; `None` if no id is left.
    pub id: &'p mut dyn FnMut(i32, u16) -> Option<i32>,
}

impl std::fmt::Debug for Lines<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Lines").field("name", &self.name).finish_non_exhaustive()
    }
}

impl Lines<'_> {
    /// The ids of the lines that are entered at these instructions.
    fn sites(&mut self, method: i32, entered: Vec<(usize, u16)>) -> Result<Vec<(usize, i32)>, Reason> {
        let sites = entered.into_iter().map(|(number, line)| Some((number, (self.id)(method, line)?)));
        sites.collect::<Option<_>>().ok_or(Reason::NoLineId)
    }
}

impl Probes<'_> {
    /// Whether nothing but the beginning of a method is told.
    fn only_entry(&self) -> bool {
        self.exit.is_none() && self.throwing.is_none() && self.unwinding.is_none()
    }
}

/// A method that could be changed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Candidate<'a> {
    /// Its place among the methods of the class.
    pub number: usize,
    /// Its flags.
    pub access: AccessFlags,
    /// Its name.
    pub name: Text<'a>,
    /// Its descriptor.
    pub descriptor: Text<'a>,
}

/// What became of a class.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Rewritten {
    /// The class, if anything in it was changed.
    pub bytes: Option<Vec<u8>>,
    /// The methods that were changed.
    pub changed: Vec<Changed>,
    /// The methods that were to be changed and were not.
    pub unchanged: Vec<Unchanged>,
    /// The methods that were changed, but for the probes of their lines.
    pub without_lines: Vec<Unchanged>,
    /// The constructors without handlers that call one constructor and no other, which is not `java/lang/Object`'s, if an end
    /// by an exception has a probe: if that one ends by an exception, so do they.
    pub delegates: Vec<Delegate>,
}

/// A constructor and the one that it calls.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Delegate {
    /// Its place among the methods of the class.
    pub number: usize,
    /// The class of the constructor that it calls, with slashes, in modified UTF-8.
    pub class: Vec<u8>,
    /// The descriptor of that one.
    pub descriptor: Vec<u8>,
}

/// A method that was changed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Changed {
    /// Its place among the methods of the class.
    pub number: usize,
    /// Bytes of its code before.
    pub before: usize,
    /// Bytes of its code now. See [`HUGE_METHOD`].
    pub after: usize,
}

/// A method that was not changed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Unchanged {
    /// Its place among the methods of the class.
    pub number: usize,
    /// Why.
    pub reason: Reason,
}

/// Why a method was not changed.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum Reason {
    /// It is abstract or native.
    #[error("it has no code")]
    NoCode,
    /// It is a `finalize` that does nothing. `HotSpot` recognizes those by their code, which is one `return`; with more in it,
    /// every object of the class and of those that extend it would be finalized, and for `java/lang/Object` that is every
    /// object there is.
    #[error("it is a finalizer that does nothing, and has to stay one")]
    EmptyFinalizer,
    /// It has not the structure that it should have.
    #[error("its code can't be read: {0}")]
    Malformed(#[from] DecodeError),
    /// It refers to offsets that no instruction begins at.
    #[error("{0} is not where an instruction begins")]
    Misplaced(&'static str),
    /// A constructor that never calls another one, so there is no place where it begins.
    #[error("the constructor calls no other constructor")]
    NeverBegins,
    /// A constructor with code that runs both before and after the call of the other one.
    #[error("the constructor has code that runs before and after the object is initialized")]
    Shared,
    /// A constructor, or the frames of a method with branches that got too far, would take too long to understand.
    #[error("it is too complicated")]
    TooComplex,
    /// It would have more bytes than a method can have.
    #[error("its code would have {0} bytes, and 65,535 are allowed")]
    TooLong(usize),
    /// There is no id left for a line.
    #[error("there are too many lines")]
    NoLineId,
    /// A branch would go further than its 16 bits allow, and there is no place from where it could go on.
    #[error("a branch would go too far")]
    OutOfReach,
    /// It would have more of something than a class file can have.
    #[error(transparent)]
    TooMany(#[from] TooMany),
}

/// Inserts the probes into the methods that `choose` gives an id.
///
/// # Errors
/// If the names of the class or of its methods can't be read. Methods that can't be changed are in
/// [`Rewritten::unchanged`].
pub fn rewrite<'a>(
    class: &ClassFile<'a>,
    probes: &Probes<'_>,
    choose: impl FnMut(&Candidate<'a>) -> Option<i32>,
) -> Result<Rewritten, DecodeError> {
    rewrite_all(class, probes, None, choose)
}

/// Inserts the probes into the methods that `choose` gives an id, and those of their lines. A method that has no room for the
/// latter gets the former only, and is in [`Rewritten::without_lines`].
///
/// # Errors
/// If the names of the class or of its methods can't be read. Methods that can't be changed are in
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
    let mut calls = Calls::new(probes, lines.as_deref().map(|lines| lines.name));
    let mut result = Rewritten::default();
    // The places in the file that change, with what comes there.
    let mut patches: Vec<(usize, usize, Vec<u8>)> = Vec::new();
    for (number, member) in class.methods().iter().enumerate() {
        let (name, descriptor) = (member.name(pool)?, member.descriptor(pool)?);
        let candidate = Candidate { number, access: member.access, name, descriptor };
        let Some(id) = choose(&candidate) else { continue };
        let mut insert = |lines: Option<&mut Lines<'_>>| {
            let mark = additions.new.mark();
            let changed = method::rewrite(class, member, &candidate, id, &mut calls, lines, &mut additions);
            let changed = changed.and_then(|changed| {
                additions.new.check()?;
                Ok(changed)
            });
            changed.inspect_err(|_| {
                additions.new.back_to(mark);
                calls.forget_from(additions.new.next());
            })
        };
        let mut changed = insert(lines.as_deref_mut());
        if let (Some(_), Err(_)) = (&lines, &changed) {
            // What it has no room for are perhaps the lines.
            let reason = changed.err();
            changed = insert(None);
            if let (Ok(_), Some(reason)) = (&changed, reason) {
                result.without_lines.push(Unchanged { number, reason });
            }
        }
        match changed {
            Ok(changed) => {
                // The length of the attribute, too, is part of what changes.
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

/// The class with more constants and other codes.
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
