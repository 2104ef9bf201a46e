//! Operations in the JVM: defining the probe class, enabling and disabling hooks, changing classes.
//!
//! Owns: the order of these operations. Each function documents the threads on which it may be called.

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::CString;

use runtap_bytefrog_proto::f1::ALREADY_RUNNING;
use runtap_classfile::Text;

use crate::clock;
use crate::hook::ClassReport;
use crate::natives::natives;
use crate::probe::{self, Layout};
use crate::session::{Agent, locked};
use crate::sys::{Event, Jni, Jvmti, Object, Running, class_name};

/// The name of a thread that is temporarily attached to the JVM.
const THREAD_NAME: &std::ffi::CStr = c"runtap-agent";
/// The number of classes changed in one operation, during which the whole program is stopped.
const BATCH_SIZE: usize = 64;

/// The capacity of a frame of local references: the maximum that `HotSpot` accepts (`MaxJNILocalCapacity`). More references
/// can be created nevertheless.
const MAX_REFERENCES: i32 = 65_536;

/// Defines the probe class, once per JVM and library. Call on a thread of the JVM, in or after `VMInit`.
pub(crate) fn define_probe(agent: &Agent, jni: Jni) -> Result<(), &'static str> {
    if agent.probe.get().is_some() {
        return Ok(());
    }
    let thread = jni.find_class(c"java/lang/Thread").ok_or("there is no java.lang.Thread")?;
    let candidates = [c"jdk/internal/misc/Unsafe", c"sun/misc/Unsafe"];
    let found = candidates.into_iter().find_map(|name| {
        let class = jni.find_class(name)?;
        jni.delete_local_ref(class);
        jni.field_offset(thread, c"tid", name).map(|offset| (name, offset))
    });
    let (unsafe_class, tid_offset) = found.ok_or("the field Thread.tid was not found")?;
    let carriers = jni.static_method(thread, c"currentCarrierThread", c"()Ljava/lang/Thread;").is_some();
    // The address distinguishes copies of this library in one process.
    let layout = Layout {
        name: format!("java/lang/RuntapProbe_{:x}", agent.table.address()),
        unsafe_class: unsafe_class.to_str().unwrap_or_default(),
        carriers,
        tid_offset,
        table: agent.table.address(),
        ticks: clock::ticks_address(),
        coverage: agent.coverage.address(),
    };
    let assembled = "the probe class can't be assembled";
    let bytes = probe::class(&layout).map_err(|_no_class| assembled)?;
    let probe = define(jni, &layout.name, &bytes)?;
    let slow = format!("runtap/Slow_{:x}", agent.table.address());
    let bytes = probe::slow_class(&slow, &layout.name).map_err(|_no_class| assembled)?;
    let slow = define(jni, &slow, &bytes)?;
    if !jni.register_natives(slow, &natives()) {
        return Err("the JVM rejected the native methods of the probe class");
    }
    // Initialize both classes here, so that no program thread has to.
    jni.static_method(probe, c"entry", c"(I)V").ok_or("the probe class can't be initialized")?;
    jni.static_method(slow, c"begin", c"()V").ok_or("the probe class can't be initialized")?;
    let _ = agent.probe.set(layout.name);
    Ok(())
}

/// Defines a class in the boot loader, permanently.
fn define(jni: Jni, name: &str, bytes: &[u8]) -> Result<Object, &'static str> {
    let name = CString::new(name).map_err(|_nul| "the name of the probe class contains NUL")?;
    let class = jni.define_class(&name, bytes).ok_or("the JVM rejected the probe class")?;
    jni.global(class).ok_or("out of memory")
}

/// Adds the probes of the plan to loaded classes and to all classes loaded from now on. Callable on any thread.
pub(crate) fn trace(agent: &'static Agent) {
    let (Some(plan), Some(jvmti)) = (agent.plan(), agent.jvmti()) else { return };
    agent.vm.attached(THREAD_NAME, |jni| {
        let _ = jvmti.enable(Event::ThreadEnd, true);
        let _ = jvmti.enable(Event::ClassFileLoadHook, true);
        let Some(session) = agent.session() else { return };
        let wants = |name: &[u8], class| {
            let by_boot_loader = jvmti.class_loader(class).is_ok_and(Object::is_null);
            let text = Text::new(name).to_string_lossy();
            let is_wanted = plan.wants(&text, by_boot_loader);
            if !is_wanted && plan.filter.keeps(&text) && !is_hidden(name) {
                // The hook, which would report this, is not called for the class any more.
                session.add_class_report(ClassReport::ignored(name));
            }
            is_wanted
        };
        let is_traced = |one: &Running| {
            !is_hidden(&one.class) && plan.wants(&Text::new(&one.class).to_string_lossy(), one.by_boot_loader)
        };
        let mut running: Vec<Running> = jvmti.running(jni).into_iter().filter(is_traced).collect();
        agent.set_changing_loaded(true);
        retransform(jvmti, jni, wants, |name, why| session.add_class_report(ClassReport::failed(name, why)));
        agent.set_changing_loaded(false);
        // Calls that started meanwhile, before their classes had probes.
        running.extend(jvmti.running(jni).into_iter().filter(|one| one.is_obsolete && is_traced(one)));
        running.extend(running_virtually(agent, jni));
        for report in already_running(running) {
            session.add_class_report(report);
        }
    });
}

/// Returns the methods with probes in which virtual threads are; all overloads are included. The threads are checked once,
/// when all probes are in place, so a method called meanwhile is only found if the thread is still in it.
fn running_virtually(agent: &Agent, jni: Jni) -> Vec<Running> {
    let names = jni.virtual_threads().methods;
    if names.is_empty() {
        return Vec::new();
    }
    let mut running = Vec::new();
    for id in 0..u32::try_from(agent.methods.count()).unwrap_or(u32::MAX) {
        let Some(signature) = agent.methods.name(id) else { continue };
        // `class.method;access;descriptor`
        let mut parts = signature.splitn(3, |byte| *byte == b';');
        let (Some(name), Some(_), Some(descriptor)) = (parts.next(), parts.next(), parts.next()) else {
            continue;
        };
        let Some(dot) = name.iter().rposition(|byte| *byte == b'.').filter(|_| names.contains(name)) else {
            continue;
        };
        let (class, method) = name.split_at(dot);
        let method = [method.get(1..).unwrap_or_default(), descriptor].concat();
        running.push(Running { class: class.to_vec(), by_boot_loader: false, method, is_obsolete: false });
    }
    running
}

/// Reports methods that were already on a stack when their classes got probes. Neither the start nor the end of such a call
/// is recorded.
fn already_running(running: Vec<Running>) -> Vec<ClassReport> {
    let mut classes: BTreeMap<Vec<u8>, BTreeSet<Vec<u8>>> = BTreeMap::new();
    for one in running {
        classes.entry(one.class).or_default().insert(one.method);
    }
    let tell = |(class, methods): (Vec<u8>, BTreeSet<Vec<u8>>)| {
        let method = |name: &Vec<u8>| format!("{}: {ALREADY_RUNNING}", Text::new(name).to_string_lossy());
        let methods: Vec<String> = methods.iter().map(method).collect();
        ClassReport::failed(&class, &methods.join("; "))
    };
    classes.into_iter().map(tell).collect()
}

/// Restores the original bytes of all classes and disables the hooks. Callable on any thread.
pub(crate) fn untrace(agent: &'static Agent) {
    agent.set_plan(None);
    let traced = std::mem::take(&mut *locked(&agent.traced));
    let Some(jvmti) = agent.jvmti().filter(|_| !traced.is_empty()) else { return };
    agent.vm.attached(THREAD_NAME, |jni| {
        // JVMTI passes the original bytes of the class to the hook, which does not change them.
        retransform(jvmti, jni, |name, _| traced.contains(name), |_, _| {});
        let _ = jvmti.enable(Event::ClassFileLoadHook, false);
    });
}

/// Passes all wanted classes to the hook again. Reports the classes that cannot be changed, with the reason.
fn retransform(
    jvmti: Jvmti,
    jni: Jni,
    wants: impl Fn(&[u8], Object) -> bool,
    mut refused: impl FnMut(&[u8], &str),
) {
    // One reference for each loaded class; they are freed together.
    if !jni.push_frame(MAX_REFERENCES) {
        return;
    }
    let mut chosen = Vec::new();
    for class in jvmti.loaded_classes().unwrap_or_default() {
        let signature = jvmti.class_signature(class).unwrap_or_default();
        let Some(name) = class_name(&signature).filter(|name| wants(name, class)) else { continue };
        if jvmti.is_modifiable(class) {
            chosen.push(class);
        } else if !is_hidden(name) {
            refused(name, "the JVM does not allow changing it");
        }
    }
    for part in chosen.chunks(BATCH_SIZE) {
        if jvmti.retransform(part).is_err() {
            // One class cannot be changed; retry the others one by one.
            for class in part {
                if let Err(error) = jvmti.retransform(std::slice::from_ref(class)) {
                    let signature = jvmti.class_signature(*class).unwrap_or_default();
                    refused(class_name(&signature).unwrap_or_default(), &error.to_string());
                }
            }
        }
    }
    jni.pop_frame();
}

/// Returns whether this is the name of a hidden class (a lambda, for example), which cannot be changed or found by name:
/// `Name.0x…`, before JDK 15 `Name/0x…` or `Name/123…`.
fn is_hidden(name: &[u8]) -> bool {
    let last = name.rsplit(|byte| *byte == b'/').next().unwrap_or_default();
    name.contains(&b'.') || last.first().is_some_and(u8::is_ascii_digit)
}

/// Returns the version of the JVM and the program that it runs. Call on a thread of the JVM.
pub(crate) fn description(agent: &Agent) -> (Vec<u8>, Vec<u8>) {
    let property = |name| agent.jvmti().and_then(|jvmti| jvmti.system_property(name)).unwrap_or_default();
    let (jvm, command) = (property(c"java.vm.version"), property(c"sun.java.command"));
    // The class, module or jar, without the program's arguments.
    let main = command.split(|byte| *byte == b' ').next().unwrap_or_default().to_vec();
    (jvm, main)
}
