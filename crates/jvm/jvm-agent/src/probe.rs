//! The probe class, whose methods are the probes, assembled for one JVM.
//!
//! Owns: its bytecode, and that of a small second class. The first belongs to `java.lang`, because every class loader finds
//! that package through the boot loader, and every module reads it. It writes to the agent's memory through the JDK's
//! `Unsafe`, whose methods compile to single instructions. Addresses are constants in the bytecode. The native methods are in
//! the second class, which extends the first and is in no named module, because a JVM prints a warning when native methods of
//! `java.base` are registered (`jni_RegisterNatives` of `HotSpot`, from JDK 17 on). docs/design/jvm-agent.md has the
//! measurements.

use runtap_classfile::assemble::{AssembleError, ClassBuilder, CodeBuilder, Label};
use runtap_classfile::code::{FrameKind, Opcode, VerificationType};
use runtap_classfile::{AccessFlags, Index, Version};

use crate::ring::{CAPACITY, COUNTS, CURRENT, EVENTS, EventKind, LIMIT};
use crate::table::SLOTS;

/// Properties of the JVM, and addresses of the agent's memory.
#[derive(Debug, Clone)]
pub(crate) struct Layout {
    /// The name of the probe class, with slashes.
    pub(crate) name: String,
    /// `jdk/internal/misc/Unsafe`, or `sun/misc/Unsafe` before JDK 9.
    pub(crate) unsafe_class: &'static str,
    /// Whether the JVM has virtual threads, which run on carriers.
    pub(crate) carriers: bool,
    /// The offset of `Thread.tid`.
    pub(crate) tid_offset: i64,
    /// Addresses.
    pub(crate) table: u64,
    pub(crate) ticks: u64,
    pub(crate) coverage: u64,
}

/// Names of the methods that traced classes call. The suffix `C` marks the variant with the millisecond clock.
pub(crate) const ENTRY: [&str; 2] = ["entry", "entryC"];
pub(crate) const EXIT: [&str; 2] = ["exit", "exitC"];
pub(crate) const THROWING: [&str; 2] = ["throwing", "throwingC"];
pub(crate) const UNWINDING: [&str; 2] = ["unwinding", "unwindingC"];
/// For constructors whose superclass has no probes.
pub(crate) const CALLED: [&str; 2] = ["called", "calledC"];
pub(crate) const CONSTRUCTED: [&str; 2] = ["constructed", "constructedC"];
pub(crate) const COUNT: &str = "count";
pub(crate) const COUNT_THROWN: &str = "countThrown";
pub(crate) const COVER: &str = "cover";

/// Descriptors of the native methods.
pub(crate) const SLOW_DESCRIPTOR: &str = "(JJJJ)V";
pub(crate) const THROWN_DESCRIPTOR: &str = "(Ljava/lang/Throwable;JJJJ)V";

const STATIC: AccessFlags = AccessFlags(0x0009);
const PRIVATE_STATIC: AccessFlags = AccessFlags(0x000a);
/// `ACC_SUPER`.
const SUPER: AccessFlags = AccessFlags(0x0020);
/// The field that holds the object with the native methods.
const HANDLER: &str = "H";
const THREAD: &str = "java/lang/Thread";
const LONG: VerificationType = VerificationType::Long;

/// Returns the class file of the probe class.
pub(crate) fn class(layout: &Layout) -> Result<Vec<u8>, AssembleError> {
    let version = Version { major: 52, minor: 0 };
    let flags = AccessFlags::PUBLIC | AccessFlags::ABSTRACT | SUPER | AccessFlags::SYNTHETIC;
    let mut class = Assembler {
        class: ClassBuilder::new(version, flags, &layout.name, "java/lang/Object"),
        layout,
        unsafe_descriptor: format!("L{};", layout.unsafe_class),
    };
    class.fields_and_natives()?;
    for coarse in [false, true] {
        class.record(coarse)?;
        class.callers(coarse)?;
    }
    class.count(COUNT, EventKind::Count, "(I)V")?;
    class.count(COUNT_THROWN, EventKind::CountThrown, "(Ljava/lang/Throwable;I)V")?;
    class.cover()?;
    class.class.finish()
}

/// Returns the class file of the second class, which has the native methods. Its initializer stores an instance of it in the
/// first class.
pub(crate) fn slow_class(name: &str, probe: &str) -> Result<Vec<u8>, AssembleError> {
    let version = Version { major: 52, minor: 0 };
    let flags = AccessFlags::PUBLIC | AccessFlags::FINAL | SUPER | AccessFlags::SYNTHETIC;
    let mut class = ClassBuilder::new(version, flags, name, probe);
    let constants = class.constants();
    let mut construct = CodeBuilder::new(1, 1);
    let theirs = constants.method(probe, "<init>", "()V");
    construct.op(Opcode::ALOAD_0).constant(Opcode::INVOKESPECIAL, theirs).op(Opcode::RETURN);
    let mut init = CodeBuilder::new(2, 0);
    let (itself, ours) = (constants.class(name), constants.method(name, "<init>", "()V"));
    let field = constants.field(probe, HANDLER, &format!("L{probe};"));
    init.constant(Opcode::NEW, itself).op(Opcode::DUP).constant(Opcode::INVOKESPECIAL, ours);
    init.constant(Opcode::PUTSTATIC, field).op(Opcode::RETURN);
    let mut nothing = CodeBuilder::new(0, 0);
    nothing.op(Opcode::RETURN);
    class.method(AccessFlags::PUBLIC, "<init>", "()V", Some(&construct))?;
    class.method(AccessFlags::STATIC, "<clinit>", "()V", Some(&init))?;
    class.method(STATIC, "begin", "()V", Some(&nothing))?;
    let native = AccessFlags::PUBLIC | AccessFlags::NATIVE;
    class.method(native, "slow", SLOW_DESCRIPTOR, None)?;
    class.method(native, "thrown", THROWN_DESCRIPTOR, None)?;
    class.finish()
}

struct Assembler<'a> {
    class: ClassBuilder,
    layout: &'a Layout,
    unsafe_descriptor: String,
}

const RECORD: [&str; 2] = ["record", "recordC"];

impl Assembler<'_> {
    fn fields_and_natives(&mut self) -> Result<(), AssembleError> {
        let descriptor = self.unsafe_descriptor.clone();
        self.class.field(PRIVATE_STATIC | AccessFlags::FINAL, "U", &descriptor);
        let mut init = CodeBuilder::new(1, 0);
        let constants = self.class.constants();
        let get = constants.method(self.layout.unsafe_class, "getUnsafe", &format!("(){descriptor}"));
        let field = constants.field(&self.layout.name, "U", &descriptor);
        init.constant(Opcode::INVOKESTATIC, get).constant(Opcode::PUTSTATIC, field).op(Opcode::RETURN);
        self.class.method(AccessFlags::STATIC, "<clinit>", "()V", Some(&init))?;
        let own = format!("L{};", self.layout.name);
        self.class.field(STATIC, HANDLER, &own);
        let mut construct = CodeBuilder::new(1, 1);
        let theirs = self.method("java/lang/Object", "<init>", "()V");
        construct.op(Opcode::ALOAD_0).constant(Opcode::INVOKESPECIAL, theirs).op(Opcode::RETURN);
        self.class.method(AccessFlags::PROTECTED, "<init>", "()V", Some(&construct))?;
        let later = AccessFlags::PUBLIC | AccessFlags::ABSTRACT;
        self.class.method(later, "slow", SLOW_DESCRIPTOR, None)?;
        self.class.method(later, "thrown", THROWN_DESCRIPTOR, None)?;
        Ok(())
    }

    /// Pushes the object with the native methods, and returns its type for the verifier.
    fn handler(&mut self, code: &mut CodeBuilder) -> VerificationType {
        let (name, own) = (self.layout.name.clone(), format!("L{};", self.layout.name));
        let field = self.class.constants().field(&name, HANDLER, &own);
        code.constant(Opcode::GETSTATIC, field);
        VerificationType::Object(self.class.constants().class(&name))
    }

    fn method(&mut self, class: &str, name: &str, descriptor: &str) -> Index {
        self.class.constants().method(class, name, descriptor)
    }

    fn long(&mut self, code: &mut CodeBuilder, value: i64) {
        let index = self.class.constants().long(value);
        code.constant(Opcode::LDC2_W, index);
    }

    fn address(&mut self, code: &mut CodeBuilder, value: u64) {
        self.long(code, value.cast_signed());
    }

    fn offset(&mut self, code: &mut CodeBuilder, value: usize) {
        if value != 0 {
            self.long(code, i64::try_from(value).unwrap_or(0));
            code.op(Opcode::LADD);
        }
    }

    fn get_unsafe(&mut self, code: &mut CodeBuilder) {
        let (name, descriptor) = (self.layout.name.clone(), self.unsafe_descriptor.clone());
        let field = self.class.constants().field(&name, "U", &descriptor);
        code.constant(Opcode::GETSTATIC, field);
    }

    fn unsafe_call(&mut self, code: &mut CodeBuilder, name: &str, descriptor: &str) {
        let method = self.method(self.layout.unsafe_class, name, descriptor);
        code.constant(Opcode::INVOKEVIRTUAL, method);
    }

    /// Pushes the word at an address, which is in a variable, plus an offset.
    fn load(&mut self, code: &mut CodeBuilder, address: u16, offset: usize) {
        self.get_unsafe(code);
        code.op(Opcode::ACONST_NULL).local(Opcode::LLOAD, address);
        self.offset(code, offset);
        self.unsafe_call(code, "getLong", "(Ljava/lang/Object;J)J");
    }

    fn current_thread(&mut self, code: &mut CodeBuilder, carrier: bool) {
        let name = if carrier && self.layout.carriers { "currentCarrierThread" } else { "currentThread" };
        let method = self.method(THREAD, name, "()Ljava/lang/Thread;");
        code.constant(Opcode::INVOKESTATIC, method);
    }

    /// Pushes the id of the thread, or of its carrier.
    fn thread_id(&mut self, code: &mut CodeBuilder, carrier: bool) {
        self.get_unsafe(code);
        self.current_thread(code, carrier);
        self.long(code, self.layout.tid_offset);
        self.unsafe_call(code, "getLong", "(Ljava/lang/Object;J)J");
    }

    /// Finds the ring of the carrier, stores the carrier's id in variable 2 and the ring's address in variable 4.
    fn find_ring(&mut self, code: &mut CodeBuilder, slow: Label) {
        self.thread_id(code, true);
        code.local(Opcode::LSTORE, 2).local(Opcode::LLOAD, 2);
        self.address(code, SLOTS - 1);
        code.op(Opcode::LAND).op(Opcode::ICONST_4).op(Opcode::LSHL);
        self.address(code, self.layout.table);
        code.op(Opcode::LADD).local(Opcode::LSTORE, 4);
        self.load(code, 4, 0);
        code.local(Opcode::LLOAD, 2).op(Opcode::LCMP).branch(Opcode::IFNE, slow);
        self.load(code, 4, 8);
        code.local(Opcode::LSTORE, 4);
    }

    /// Pushes the time. A virtual thread always reads the fine clock, even if the coarse one is requested: its events on
    /// several carriers are ordered by time.
    fn time(&mut self, code: &mut CodeBuilder, coarse: bool, frame: &FrameKind) {
        let nano_time = self.method("java/lang/System", "nanoTime", "()J");
        if !coarse {
            code.constant(Opcode::INVOKESTATIC, nano_time);
            return;
        }
        let (fine, end) = (code.label(), code.label());
        if self.layout.carriers {
            self.current_thread(code, false);
            self.current_thread(code, true);
            code.branch(Opcode::IF_ACMPNE, fine);
        }
        self.get_unsafe(code);
        code.op(Opcode::ACONST_NULL);
        self.address(code, self.layout.ticks);
        self.unsafe_call(code, "getLong", "(Ljava/lang/Object;J)J");
        if self.layout.carriers {
            let (FrameKind::Full { locals, stack }, true) = (frame, true) else { return };
            code.branch(Opcode::GOTO, end);
            code.bind(fine).frame(frame.clone()).constant(Opcode::INVOKESTATIC, nano_time);
            let mut with_time = stack.clone();
            with_time.push(LONG);
            code.bind(end).frame(FrameKind::Full { locals: locals.clone(), stack: with_time });
        }
    }

    /// Adds `void record(long what)`, which writes an event, or calls the slow path.
    fn record(&mut self, coarse: bool) -> Result<(), AssembleError> {
        let which = usize::from(coarse);
        let mut code = CodeBuilder::new(12, 10);
        let code = &mut code;
        let slow = code.label();
        self.find_ring(code, slow);
        self.load(code, 4, 0);
        code.local(Opcode::LSTORE, 6);
        self.load(code, 4, LIMIT);
        code.local(Opcode::LLOAD, 6).op(Opcode::LCMP).branch(Opcode::IFLE, slow);
        if self.layout.carriers {
            self.load(code, 4, CURRENT);
            self.thread_id(code, false);
            code.op(Opcode::LCMP).branch(Opcode::IFNE, slow);
        }
        let locals = vec![LONG, LONG, LONG, LONG];
        self.time(code, coarse, &FrameKind::Full { locals, stack: Vec::new() });
        code.local(Opcode::LSTORE, 8);
        // The address of the event replaces the id in its variable.
        code.local(Opcode::LLOAD, 6);
        self.address(code, CAPACITY - 1);
        code.op(Opcode::LAND).op(Opcode::ICONST_4).op(Opcode::LSHL).local(Opcode::LLOAD, 4).op(Opcode::LADD);
        self.offset(code, EVENTS);
        code.local(Opcode::LSTORE, 2);
        self.get_unsafe(code);
        code.op(Opcode::ACONST_NULL).local(Opcode::LLOAD, 2).local(Opcode::LLOAD, 8);
        self.unsafe_call(code, "putLong", "(Ljava/lang/Object;JJ)V");
        self.get_unsafe(code);
        code.op(Opcode::ACONST_NULL).local(Opcode::LLOAD, 2);
        self.offset(code, 8);
        code.local(Opcode::LLOAD, 0);
        self.unsafe_call(code, "putLong", "(Ljava/lang/Object;JJ)V");
        // Release order: the event must be visible before the head.
        self.get_unsafe(code);
        code.op(Opcode::ACONST_NULL).local(Opcode::LLOAD, 4);
        code.local(Opcode::LLOAD, 6).op(Opcode::LCONST_1).op(Opcode::LADD);
        let release =
            if self.layout.unsafe_class.starts_with("sun") { "putOrderedLong" } else { "putLongRelease" };
        self.unsafe_call(code, release, "(Ljava/lang/Object;JJ)V");
        code.op(Opcode::RETURN);

        code.bind(slow).frame(FrameKind::Full { locals: vec![LONG, LONG, LONG], stack: Vec::new() });
        let handler = self.handler(code);
        code.local(Opcode::LLOAD, 0).local(Opcode::LLOAD, 2);
        self.thread_id(code, false);
        let stack = vec![handler, LONG, LONG, LONG];
        self.time(code, coarse, &FrameKind::Full { locals: vec![LONG, LONG, LONG], stack });
        let name = self.layout.name.clone();
        let native = self.method(&name, "slow", SLOW_DESCRIPTOR);
        code.constant(Opcode::INVOKEVIRTUAL, native).op(Opcode::RETURN);
        self.class.method(PRIVATE_STATIC, RECORD.get(which).unwrap_or(&"record"), "(J)V", Some(code))?;
        Ok(())
    }

    /// Adds the methods that traced classes call, for one clock.
    fn callers(&mut self, coarse: bool) -> Result<(), AssembleError> {
        let which = usize::from(coarse);
        let name_of = |names: [&'static str; 2]| names.get(which).copied().unwrap_or_default();
        let name = self.layout.name.clone();
        let record = self.method(&name, name_of(RECORD), "(J)V");

        let mut entry = CodeBuilder::new(2, 1);
        entry.op(Opcode::ILOAD_0).op(Opcode::I2L).constant(Opcode::INVOKESTATIC, record).op(Opcode::RETURN);
        self.class.method(STATIC, name_of(ENTRY), "(I)V", Some(&entry))?;

        for (names, kind) in [(CALLED, EventKind::Called), (CONSTRUCTED, EventKind::Constructed)] {
            let mut code = CodeBuilder::new(4, 1);
            self.push_event_word(&mut code, kind, 0, false);
            code.constant(Opcode::INVOKESTATIC, record).op(Opcode::RETURN);
            self.class.method(STATIC, name_of(names), "(I)V", Some(&code))?;
        }

        for (descriptor, with_line) in [("(I)V", false), ("(II)V", true)] {
            let mut exit = CodeBuilder::new(6, 2);
            self.push_event_word(&mut exit, EventKind::Exit, 0, with_line);
            exit.constant(Opcode::INVOKESTATIC, record).op(Opcode::RETURN);
            self.class.method(STATIC, name_of(EXIT), descriptor, Some(&exit))?;
        }

        let thrown = self.method(&name, "thrown", THROWN_DESCRIPTOR);
        let throwable = VerificationType::Object(self.class.constants().class("java/lang/Throwable"));
        for (names, descriptor, kind, with_line) in [
            (THROWING, "(Ljava/lang/Throwable;II)V", EventKind::Throw, true),
            (UNWINDING, "(Ljava/lang/Throwable;I)V", EventKind::Bubble, false),
        ] {
            let mut code = CodeBuilder::new(15, 3);
            let handler = self.handler(&mut code);
            code.op(Opcode::ALOAD_0);
            self.push_event_word(&mut code, kind, 1, with_line);
            self.thread_id(&mut code, true);
            self.thread_id(&mut code, false);
            let mut locals = vec![throwable, VerificationType::Integer];
            if with_line {
                locals.push(VerificationType::Integer);
            }
            let stack = vec![handler, throwable, LONG, LONG, LONG];
            self.time(&mut code, coarse, &FrameKind::Full { locals, stack });
            code.constant(Opcode::INVOKEVIRTUAL, thrown).op(Opcode::RETURN);
            self.class.method(STATIC, name_of(names), descriptor, Some(&code))?;
        }
        Ok(())
    }

    /// Pushes the second word of an event: the method is in a variable, and the line in the next one.
    fn push_event_word(&mut self, code: &mut CodeBuilder, kind: EventKind, method: u16, with_line: bool) {
        code.local(Opcode::ILOAD, method).op(Opcode::I2L);
        self.address(code, kind.word());
        code.op(Opcode::LOR);
        if with_line {
            code.local(Opcode::ILOAD, method + 1).op(Opcode::I2L);
            self.address(code, 0xffff);
            code.op(Opcode::LAND);
            let constants = self.class.constants();
            code.push(constants, 32).op(Opcode::LSHL).op(Opcode::LOR);
        }
    }

    /// Adds a method that increments a count of this thread.
    fn count(&mut self, name: &str, kind: EventKind, descriptor: &str) -> Result<(), AssembleError> {
        let thrown = kind == EventKind::CountThrown;
        let mut code = CodeBuilder::new(10, 10);
        let code = &mut code;
        let (slow, begin) = (code.label(), code.label());
        // The method id goes to variable 0, so that the following code is common to both variants.
        if thrown {
            code.op(Opcode::ILOAD_1).op(Opcode::I2L).local(Opcode::LSTORE, 0);
        } else {
            code.op(Opcode::ILOAD_0).op(Opcode::I2L).local(Opcode::LSTORE, 0);
        }
        code.bind(begin);
        self.find_ring(code, slow);
        self.load(code, 4, COUNTS);
        code.local(Opcode::LSTORE, 6).local(Opcode::LLOAD, 6).op(Opcode::LCONST_0).op(Opcode::LCMP);
        code.branch(Opcode::IFEQ, slow);
        code.local(Opcode::LLOAD, 0).op(Opcode::ICONST_4).op(Opcode::LSHL);
        code.local(Opcode::LLOAD, 6).op(Opcode::LADD);
        self.offset(code, usize::from(thrown) * 8);
        code.local(Opcode::LSTORE, 6);
        self.get_unsafe(code);
        code.op(Opcode::ACONST_NULL).local(Opcode::LLOAD, 6);
        self.load(code, 6, 0);
        code.op(Opcode::LCONST_1).op(Opcode::LADD);
        self.unsafe_call(code, "putLong", "(Ljava/lang/Object;JJ)V");
        code.op(Opcode::RETURN);
        code.bind(slow).frame(FrameKind::Full { locals: vec![LONG, LONG, LONG], stack: Vec::new() });
        self.handler(code);
        code.local(Opcode::LLOAD, 0);
        self.address(code, kind.word());
        code.op(Opcode::LOR).local(Opcode::LLOAD, 2).local(Opcode::LLOAD, 2).op(Opcode::LCONST_0);
        let class = self.layout.name.clone();
        let native = self.method(&class, "slow", SLOW_DESCRIPTOR);
        code.constant(Opcode::INVOKEVIRTUAL, native).op(Opcode::RETURN);
        self.class.method(STATIC, name, descriptor, Some(code))?;
        Ok(())
    }

    /// Adds a method that marks a method or a line, unless it is marked already: writes to memory that all threads
    /// share are slow.
    fn cover(&mut self) -> Result<(), AssembleError> {
        let mut code = CodeBuilder::new(7, 3);
        let code = &mut code;
        let done = code.label();
        code.op(Opcode::ILOAD_0).op(Opcode::I2L);
        self.address(code, self.layout.coverage);
        code.op(Opcode::LADD).local(Opcode::LSTORE, 1);
        self.get_unsafe(code);
        code.op(Opcode::ACONST_NULL).local(Opcode::LLOAD, 1);
        self.unsafe_call(code, "getByte", "(Ljava/lang/Object;J)B");
        code.branch(Opcode::IFNE, done);
        self.get_unsafe(code);
        code.op(Opcode::ACONST_NULL).local(Opcode::LLOAD, 1).op(Opcode::ICONST_1);
        self.unsafe_call(code, "putByte", "(Ljava/lang/Object;JB)V");
        code.bind(done).frame(FrameKind::Append(vec![LONG])).op(Opcode::RETURN);
        self.class.method(STATIC, COVER, "(I)V", Some(code))?;
        Ok(())
    }
}
