//! Any bytes as a thread dump of a JVM, and after a 0 byte as its list of virtual threads: no panic, the limits hold, and all
//! positions are valid. Deadlocks are cycles.
#![no_main]

use runtap_jvm_attach::codec::{ThreadDumpLimits, add_virtual_threads, thread_dump, vm_version};

libfuzzer_sys::fuzz_target!(|input: &[u8]| {
    let end = input.iter().position(|byte| *byte == 0).unwrap_or(input.len());
    let (reply, file) = input.split_at(end);
    let mut limits = ThreadDumpLimits::default();
    (limits.threads, limits.frames) = (8, 16);
    let _ = vm_version(reply);
    let Ok(mut dump) = thread_dump(reply, &limits) else { return };
    let platform = dump.threads.len();
    if let Ok(added) = add_virtual_threads(&mut dump, file.get(1..).unwrap_or_default(), &limits) {
        assert_eq!(dump.threads.len(), platform + added);
    }
    assert!(dump.threads.len() <= limits.threads);
    assert!(dump.threads.iter().map(|thread| thread.frames.len()).sum::<usize>() <= limits.frames);
    for thread in &dump.threads {
        let waited = thread.wait.and_then(|wait| wait.lock);
        assert!(thread.holds.iter().chain(&waited).all(|lock| *lock < dump.locks.len()));
    }
    assert!(dump.locks.iter().filter_map(|lock| lock.owner).all(|owner| owner < dump.threads.len()));
    for deadlock in &dump.deadlocks {
        for (place, thread) in deadlock.iter().enumerate() {
            assert_eq!(dump.blocker(*thread), Some(deadlock[(place + 1) % deadlock.len()]));
        }
    }
    assert_eq!(dump.groups().iter().map(|group| group.threads.len()).sum::<usize>(), dump.threads.len());
});
