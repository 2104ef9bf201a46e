//! Entry points that the JVM calls: the three functions of an agent's library, and its event callbacks.
//!
//! Owns: conversion of arguments from C, and containment of panics, which must not unwind into the JVM. Makes no decisions.

#![expect(unsafe_code, reason = "functions with C pointers as arguments, three of them exported")]

use std::ffi::{CStr, c_char, c_int, c_void};
use std::fs::OpenOptions;
use std::io::{self, Write as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use crate::control::{self, log, visible};
use crate::hook::ClassReport;
use crate::jvm;
use crate::lines::COVERAGE_BYTES;
use crate::natives;
use crate::options::Options;
use crate::region::Region;
use crate::session::{Agent, Phase, Session, agent, locked};
use crate::sys::{Callbacks, Event, Jni, Jvmti, Object, Vm};
use crate::table::Table;

/// The result for success (`JNI_OK`).
const OK: c_int = 0;
/// The result that makes a starting JVM exit, and an attaching tool report an error (`JNI_ERR`).
const FAILED: c_int = -1;
/// How long HQ may read nothing when the program ends.
const STALL_TIMEOUT: Duration = Duration::from_secs(5);
/// An unlimited time, as far as a condition variable supports it.
const UNLIMITED: Duration = Duration::from_hours(365 * 24);

/// How the library was loaded.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum LoadMode {
    /// At the JVM's start, by `-agentpath:`.
    Start,
    /// By attaching to a running JVM.
    Attach,
}

fn load(way: LoadMode, vm: *mut c_void, options: *const c_char) -> c_int {
    let result = catch_unwind(AssertUnwindSafe(|| {
        let text = if options.is_null() {
            String::new()
        } else {
            // SAFETY: the pointer is not null, and by the JVM's specification it is a NUL-terminated string that
            // lives until this call returns.
            unsafe { CStr::from_ptr(options) }.to_string_lossy().into_owned()
        };
        let options = Options::parse(&text).map_err(|error| error.to_string());
        let misread = options.is_err();
        let done = options.and_then(|options| obey(way, vm, options));
        if let Err(error) = &done {
            let answer = Options::answer_of(&text).filter(|_| way == LoadMode::Attach);
            if answer.is_none_or(|path| write_answer(&path, error).is_err()) {
                log(error);
            }
        }
        // A program starts without the agent if the agent fails. Invalid options are a mistake that the user needs to see, so
        // they stop the JVM.
        done.is_ok() || way == LoadMode::Start && !misread
    }));
    if matches!(result, Ok(true)) { OK } else { FAILED }
}

fn obey(way: LoadMode, vm: *mut c_void, options: Options) -> Result<(), String> {
    if options.detach && agent().is_none() {
        return Ok(());
    }
    let agent = install(vm)?;
    match way {
        LoadMode::Start => {
            // The library is specified by a variable and an argument, or by a variable that was extended twice: the last
            // specification is effective, as with other JVM options.
            let (host, port) = (options.host.clone(), options.port);
            let earlier = agent.replace(&Arc::new(Session::new(options)));
            if earlier.is_some_and(|earlier| (&earlier.options.host, earlier.options.port) != (&host, port)) {
                log(&format!(
                    "the library is specified twice; using the last options, with HQ at {host}:{port}"
                ));
            }
            let jvmti = agent.jvmti().ok_or("JVMTI is not available")?;
            jvmti.enable(Event::VmInit, true).map_err(|error| format!("JVMTI: {error:?}"))
        }
        LoadMode::Attach if options.detach => {
            if !detach(agent)
                && let Some(path) = &options.answer
            {
                // Best effort: without the file the caller only does not learn that there was no trace.
                let _ = write_answer(path, "there was no trace");
            }
            Ok(())
        }
        // An agent that does not start must not leave callbacks in the JVM.
        LoadMode::Attach => attach(agent, options).inspect_err(|_| {
            if agent.session().is_none_or(|session| session.phase() == Phase::Ended) {
                agent.dispose();
            }
        }),
    }
}

/// Writes the reason why the agent does not start, for the attaching tool: one line, in a new file that only this user can
/// read.
fn write_answer(path: &Path, why: &str) -> io::Result<()> {
    let mut options = OpenOptions::new();
    options.write(true).create_new(true).mode(0o600).custom_flags(libc::O_NOFOLLOW);
    options.open(path)?.write_all(visible(why).as_bytes())
}

/// Returns the agent of this process, which the first call creates.
fn install(vm: *mut c_void) -> Result<&'static Agent, String> {
    let installed = agent();
    if let Some(agent) = installed.filter(|agent| agent.jvmti().is_some()) {
        return Ok(agent);
    }
    refuse_musl()?;
    let vm = Vm::new(vm).ok_or("the JVM passed no JavaVM pointer")?;
    let jvmti = vm.jvmti().ok_or("this JVM has no JVMTI 1.2")?;
    let callbacks = Callbacks { vm_init, vm_death, thread_start: None, thread_end, class_file_load_hook };
    let prepared = jvmti
        .add_capabilities()
        .and_then(|()| jvmti.set_callbacks(&callbacks))
        .and_then(|()| jvmti.enable(Event::VmDeath, true));
    if let Err(error) = prepared {
        jvmti.dispose();
        return Err(format!("this JVM can't change classes (JVMTI {})", error.0));
    }
    if let Some(agent) = installed {
        agent.set_jvmti(jvmti);
        return Ok(agent);
    }
    let made = Region::new(COVERAGE_BYTES).and_then(|coverage| Ok((coverage, Table::new()?)));
    match made {
        Ok((coverage, table)) => Ok(Agent::install(vm, jvmti, table, coverage)),
        Err(error) => {
            jvmti.dispose();
            Err(format!("memory: {error}"))
        }
    }
}

/// Rejects JVMs on musl, because this library is built for glibc. With musl's loader it can only be loaded through a
/// compatibility layer.
fn refuse_musl() -> Result<(), String> {
    let maps = std::fs::read_to_string("/proc/self/maps").unwrap_or_default();
    if has_musl(&maps) {
        Err("this JVM runs on musl, but the agent is built for glibc".to_owned())
    } else {
        Ok(())
    }
}

/// Returns whether a process has mapped the loader of musl, `/lib/ld-musl-x86_64.so.1`.
fn has_musl(maps: &str) -> bool {
    maps.lines().any(|line| line.contains("/ld-musl-"))
}

fn attach(agent: &'static Agent, options: Options) -> Result<(), String> {
    let jni = agent.vm.jni().ok_or("the attaching thread is not attached to the JVM")?;
    jvm::define_probe(agent, jni)?;
    let wait = options.wait;
    let session = Arc::new(Session::new(options));
    if !agent.begin(&session) {
        return Err("this program is traced already; detach first".to_owned());
    }
    // The attaching tool waits for the result; the running program does not wait for HQ.
    session.set_awaited(true);
    let phase = host(agent, &session, wait, wait).inspect_err(|_| session.set_phase(Phase::Ended));
    session.set_awaited(false);
    let failure = session.take_failure();
    if phase? == Phase::Ended {
        // The thread is finishing: join it, so that no agent thread is left when the JVM learns of the failure.
        let thread = locked(&session.thread).take();
        if let Some(thread) = thread {
            let _ = thread.join();
        }
        return Err(failure.unwrap_or_else(|| "HQ ended the trace immediately".to_owned()));
    }
    if let Some(failure) = failure {
        log(&failure);
    }
    Ok(())
}

/// Starts a trace and waits for HQ on this thread of the JVM, with one time limit for the configuration and one for the
/// start.
fn host(
    agent: &'static Agent,
    session: &Arc<Session>,
    configured: Duration,
    started: Duration,
) -> Result<Phase, String> {
    let _ = session.description.set(jvm::description(agent));
    session.set_host(true);
    control::begin(agent, session).map_err(|error| error.to_string())?;
    let mut phase = session.wait_for(Phase::Configured, configured);
    if phase == Phase::Configured {
        phase = session.wait_for(Phase::Started, started);
    }
    // If the start comes later, another thread handles it; if it came already, this thread does.
    if !session.set_host(false) {
        session.wait_for(Phase::Started, started);
        jvm::trace(agent);
    }
    Ok(phase)
}

/// Ends the trace. Returns `false` if there was none.
fn detach(agent: &'static Agent) -> bool {
    let Some(session) = agent.session() else { return false };
    let is_alive = session.phase() != Phase::Ended;
    // Before the remaining events are sent: calls made meanwhile do not belong to this trace.
    jvm::untrace(agent);
    session.finish(STALL_TIMEOUT);
    // Again: the trace may just have started, or a class may have got its probes, meanwhile.
    jvm::untrace(agent);
    is_alive
}

/// Called before the JVM has started to run Java code.
#[unsafe(no_mangle)]
pub(crate) extern "system" fn Agent_OnLoad(
    vm: *mut c_void,
    options: *const c_char,
    _reserved: *mut c_void,
) -> c_int {
    load(LoadMode::Start, vm, options)
}

/// Called on a thread of a running JVM.
#[unsafe(no_mangle)]
pub(crate) extern "system" fn Agent_OnAttach(
    vm: *mut c_void,
    options: *const c_char,
    _reserved: *mut c_void,
) -> c_int {
    load(LoadMode::Attach, vm, options)
}

/// Called when the JVM has ended, before the library is unloaded.
#[unsafe(no_mangle)]
pub(crate) extern "system" fn Agent_OnUnload(_vm: *mut c_void) {}

/// Called when Java code can run: the program waits here for HQ.
extern "system" fn vm_init(_: *mut c_void, env: *mut c_void, _thread: Object) {
    let _ = catch_unwind(AssertUnwindSafe(|| {
        let (Some(agent), Some(jni)) = (agent(), Jni::from_raw(env)) else { return };
        let Some(session) = agent.session() else { return };
        if let Err(error) = jvm::define_probe(agent, jni) {
            log(error);
            session.set_phase(Phase::Ended);
            return;
        }
        if let Err(error) = host(agent, &session, session.options.wait, UNLIMITED) {
            log(&error);
            session.set_phase(Phase::Ended);
        }
    }));
}

extern "system" fn vm_death(_: *mut c_void, _env: *mut c_void) {
    let _ = catch_unwind(AssertUnwindSafe(|| {
        if let Some(session) = agent().and_then(Agent::session) {
            session.finish(STALL_TIMEOUT);
        }
    }));
}

extern "system" fn thread_end(_: *mut c_void, _env: *mut c_void, _thread: Object) {
    let _ = catch_unwind(AssertUnwindSafe(|| {
        if let Some(agent) = agent() {
            natives::end(agent);
        }
    }));
}

extern "system" fn class_file_load_hook(
    jvmti: *mut c_void,
    _env: *mut c_void,
    redefined: Object,
    loader: Object,
    name: *const c_char,
    _domain: Object,
    length: c_int,
    bytes: *const u8,
    new_length: *mut c_int,
    new_bytes: *mut *mut u8,
) {
    let _ = catch_unwind(AssertUnwindSafe(|| {
        let Some((agent, plan)) = agent().and_then(|agent| Some((agent, agent.plan()?))) else { return };
        let (Some(jvmti), Ok(length)) = (Jvmti::from_raw(jvmti), usize::try_from(length)) else { return };
        if bytes.is_null() {
            return;
        }
        // SAFETY: the JVM passes this many bytes, which live until this call returns.
        let bytes = unsafe { std::slice::from_raw_parts(bytes, length) };
        // SAFETY: the name is null or a NUL-terminated string that lives as long.
        let name = (!name.is_null()).then(|| unsafe { CStr::from_ptr(name) }.to_bytes());
        let (changed, report) =
            plan.transform(&agent.methods, &agent.lines, &agent.delegates, name, loader.is_null(), bytes);
        if let (Some(report), Some(session)) = (report, agent.session()) {
            // Other agents may also change loaded classes at any time.
            let was_loaded = !redefined.is_null() && agent.is_changing_loaded();
            session.add_class_report(ClassReport { was_loaded, ..report });
        }
        let Some(changed) = changed else { return };
        let (Ok(place), Ok(length)) = (jvmti.allocate(&changed), c_int::try_from(changed.len())) else {
            return;
        };
        if let Some(name) = name {
            locked(&agent.traced).insert(name.to_vec());
        }
        // SAFETY: both pointers are to variables of the JVM that it provides for results; it frees the allocated memory.
        unsafe {
            *new_length = length;
            *new_bytes = place;
        }
    }));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn musl_is_recognized() {
        let musl = "7f5c8a2d1000-7f5c8a2e5000 r--p 00000000 00:2f 131 /lib/ld-musl-x86_64.so.1";
        let glibc = "7f5c8a2d1000-7f5c8a2e5000 r--p 00000000 00:2f 131 /lib64/ld-linux-x86-64.so.2";
        assert!(has_musl(&format!("{glibc}\n{musl}\n")));
        assert!(!has_musl(glibc));
        assert_eq!(refuse_musl(), Ok(()), "these tests run on glibc");
    }
}
