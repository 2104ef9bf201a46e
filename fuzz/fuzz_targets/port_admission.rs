//! Any bytes as the actions of many processes of many users at a port, ordered by time: connecting, sending Advertise
//! messages or nothing, disconnecting. No panic, the limits hold, relatives are admitted, and rejected processes are
//! ignored.
#![no_main]

use std::collections::BTreeSet;
use std::time::Duration;

use runtap_diag::ports::fuzzing::{Admission, DEADLINE, Limits, Standing};

libfuzzer_sys::fuzz_target!(|input: &[u8]| {
    let limits = Limits { kin_greeting: 4, per_user: 3, guests: 6 };
    let mut admission = Admission::default();
    let mut now = Duration::ZERO;
    let (mut open, mut evicted) = (Vec::new(), BTreeSet::new());
    for step in input {
        let n = usize::from(step >> 3);
        match step & 7 {
            0..=2 => {
                let uid = u32::from(step >> 3);
                let standing = if uid == 0 { Standing::Kin } else { Standing::Guest };
                let verdict = admission.handle_connection(standing, uid, now, &limits);
                assert!(verdict.ticket.is_some() || standing == Standing::Guest);
                evicted.extend(verdict.evicted);
                open.extend(verdict.ticket.map(|ticket| (ticket, now, standing)));
            }
            3 | 4 if !open.is_empty() => {
                let n = n % open.len();
                let (ticket, since, _) = &mut open[n];
                if admission.handle_advertise(*ticket) {
                    assert!(!evicted.contains(ticket));
                    *since = Duration::MAX;
                }
            }
            5 if !open.is_empty() => {
                let (ticket, ..) = open.swap_remove(n % open.len());
                admission.handle_closed(ticket);
            }
            6 if n == 0 => {
                evicted.extend(admission.handle_out_of_descriptors());
                assert_eq!(admission.guests(), 0);
            }
            6 => {
                now += Duration::from_millis(n as u64 * 20);
                evicted.extend(admission.handle_timeout(now));
                let late = |since: &Duration| since.checked_add(DEADLINE).is_some_and(|end| end <= now);
                assert!(open.iter().all(|(ticket, since, _)| !late(since) || evicted.contains(ticket)));
            }
            _ => {}
        }
        assert!(admission.guests() <= limits.guests);
        assert_eq!(admission.connections(), open.len());
        // The admitted connections, and an equal number that are closing.
        let guests = open.iter().filter(|(_, _, standing)| *standing == Standing::Guest);
        let (leaving, staying): (Vec<_>, Vec<_>) =
            guests.copied().partition(|(ticket, ..)| evicted.contains(ticket));
        assert_eq!(staying.len(), admission.guests());
        assert!(staying.len() + leaving.len() <= 2 * limits.guests);
    }
});
