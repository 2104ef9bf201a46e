//! Taps into running managed programs: profiles, events and process commands without an SDK.

fn main() {}
