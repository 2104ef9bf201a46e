//! What the agent tells the JVM: the probe class, hooks on and off, classes to be changed.
//!
//! Owns: the order in which that has to be done. Each function says on which threads it may be called.

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::CString;

use runtap_bytefrog_proto::f1::ALREADY_RUNNING;
use runtap_classfile::Text;

use crate::clock;
use crate::hook::Told;
use crate::natives::natives;
use crate::probe::{self, Layout};
use crate::session::{Agent, locked};
use crate::sys::{Event, Jni, Jvmti, Object, Running, class_name};

/// The name of a thread that is attached to the JVM for a moment.
const NAME: &std::ffi::CStr = c"runtap-agent";
/// Classes that are changed in one operation, for which the whole program stands still.
const AT_ONCE: usize = 64;

/// Local references of a frame: the most that `HotSpot` lets one ask for (`MaxJNILocalCapacity`). More can be made all the same.
const MOST_REFERENCES: i32 = 65_536;

/// Defines the probe class, once for this library in a JVM. On a thread of the JVM, in or after `VMInit`.
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
    let (unsafe_class, tid_offset) = found.ok_or("the field Thread.tid can't be found")?;
    let carriers = jni.static_method(thread, c"currentCarrierThread", c"()Ljava/lang/Thread;").is_some();
    // The address tells apart copies of this library in one process.
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
        return Err("the JVM refuses the native methods of the probe class");
    }
    // Initializes both, so that no program thread has to.
    jni.static_method(probe, c"entry", c"(I)V").ok_or("the probe class can't be initialized")?;
    jni.static_method(slow, c"begin", c"()V").ok_or("the probe class can't be initialized")?;
    let _ = agent.probe.set(layout.name);
    Ok(())
}

/// Defines a class in the boot loader, for ever.
fn define(jni: Jni, name: &str, bytes: &[u8]) -> Result<Object, &'static str> {
    let name = CString::new(name).map_err(|_nul| "the name of the probe class")?;
    let class = jni.define_class(&name, bytes).ok_or("the JVM refuses the probe class")?;
    jni.global(class).ok_or("there is no memory")
}

/// Classes get the probes of the plan from now on, and those that are loaded get them now. On any thread.
pub(crate) fn trace(agent: &'static Agent) {
    let (Some(plan), Some(jvmti)) = (agent.plan(), agent.jvmti()) else { return };
    agent.vm.attached(NAME, |jni| {
        let _ = jvmti.enable(Event::ThreadEnd, true);
        let _ = jvmti.enable(Event::ClassFileLoadHook, true);
        let Some(session) = agent.session() else { return };
        let wants = |name: &[u8], class| {
            let by_boot_loader = jvmti.class_loader(class).is_ok_and(Object::is_null);
            let text = Text::new(name).to_string_lossy();
            let is_wanted = plan.wants(&text, by_boot_loader);
            if !is_wanted && plan.filter.keeps(&text) && !is_hidden(name) {
                // No hook is called for it any more, which would tell this.
                session.tell(Told::ignored(name));
            }
            is_wanted
        };
        let is_traced = |one: &Running| {
            !is_hidden(&one.class) && plan.wants(&Text::new(&one.class).to_string_lossy(), one.by_boot_loader)
        };
        let mut running: Vec<Running> = jvmti.running(jni).into_iter().filter(is_traced).collect();
        agent.set_changing_loaded(true);
        retransform(jvmti, jni, wants, |name, why| session.tell(Told::failed(name, why)));
        agent.set_changing_loaded(false);
        // Calls that began meanwhile, and before their classes had probes.
        running.extend(jvmti.running(jni).into_iter().filter(|one| one.is_obsolete && is_traced(one)));
        running.extend(running_virtually(agent, jni));
        for told in already_running(running) {
            session.tell(told);
        }
    });
}

/// The methods with probes that virtual threads are in: all that have the name. They are looked at once, when all probes are
/// there, so one that was called meanwhile is not known either, unless it is called again.
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
fn already_running(running: Vec<Running>) -> Vec<Told> {
    let mut classes: BTreeMap<Vec<u8>, BTreeSet<Vec<u8>>> = BTreeMap::new();
    for one in running {
        classes.entry(one.class).or_default().insert(one.method);
    }
    let tell = |(class, methods): (Vec<u8>, BTreeSet<Vec<u8>>)| {
        let method = |name: &Vec<u8>| format!("{}: {ALREADY_RUNNING}", Text::new(name).to_string_lossy());
        let methods: Vec<String> = methods.iter().map(method).collect();
        Told::failed(&class, &methods.join("; "))
    };
    classes.into_iter().map(tell).collect()
}

/// Classes get their own bytes back, and no hook is called any more. On any thread.
pub(crate) fn untrace(agent: &'static Agent) {
    agent.set_plan(None);
    let traced = std::mem::take(&mut *locked(&agent.traced));
    let Some(jvmti) = agent.jvmti().filter(|_| !traced.is_empty()) else { return };
    agent.vm.attached(NAME, |jni| {
        // JVMTI gives the hook the bytes that the class was loaded with; it leaves them.
        retransform(jvmti, jni, |name, _| traced.contains(name), |_, _| {});
        let _ = jvmti.enable(Event::ClassFileLoadHook, false);
    });
}

/// Sends all classes that are wanted through the hook again. Those that can't be are told, with the reason.
fn retransform(
    jvmti: Jvmti,
    jni: Jni,
    wants: impl Fn(&[u8], Object) -> bool,
    mut refused: impl FnMut(&[u8], &str),
) {
    // A reference for each class there is: they are freed together.
    if !jni.push_frame(MOST_REFERENCES) {
        return;
    }
    let mut chosen = Vec::new();
    for class in jvmti.loaded_classes().unwrap_or_default() {
        let signature = jvmti.class_signature(class).unwrap_or_default();
        let Some(name) = class_name(&signature).filter(|name| wants(name, class)) else { continue };
        if jvmti.is_modifiable(class) {
            chosen.push(class);
        } else if !is_hidden(name) {
            refused(name, "the JVM lets nobody change it");
        }
    }
    for part in chosen.chunks(AT_ONCE) {
        if jvmti.retransform(part).is_err() {
            // One of them can't be: the others can.
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

/// Whether it is the name of a class of a lambda or the like, which nobody can change or asks for by name: `Name.0x…`, before JDK
/// 15 `Name/0x…` or `Name/123…`.
fn is_hidden(name: &[u8]) -> bool {
    let last = name.rsplit(|byte| *byte == b'/').next().unwrap_or_default();
    name.contains(&b'.') || last.first().is_some_and(u8::is_ascii_digit)
}

/// The version of the JVM, and what was started. On a thread of the JVM.
pub(crate) fn description(agent: &Agent) -> (Vec<u8>, Vec<u8>) {
    let property = |name| agent.jvmti().and_then(|jvmti| jvmti.system_property(name)).unwrap_or_default();
    let (jvm, command) = (property(c"java.vm.version"), property(c"sun.java.command"));
    // The class, module or jar, without its arguments.
    let main = command.split(|byte| *byte == b' ').next().unwrap_or_default().to_vec();
    (jvm, main)
}
