//! End-to-end tests: the real binary, on real runtimes (`real_*`) and without any (`cli_*`).

#![cfg(target_os = "linux")]

#[macro_use]
mod common;

mod attack_crowds;
mod attack_handover;
mod attack_peers;
mod attacker;
mod bridge;
mod cli_bounds;
mod cli_complete;
mod cli_diff;
mod cli_events;
mod cli_habits;
mod cli_hostile_dumps;
mod cli_hostile_folders;
mod cli_hostile_names;
mod cli_launch;
mod cli_many;
mod cli_outputs;
mod cli_ports;
mod cli_proc;
mod cli_recordings;
mod cli_report;
mod cli_router;
mod cli_streams;
mod cli_terminal;
mod cli_trace_bytes;
mod cli_usage;
mod hostile_ports;
mod real_abandoned;
mod real_ask;
mod real_attack_handover;
mod real_attack_names;
mod real_attack_ports;
mod real_compat;
mod real_contained;
mod real_doctor;
mod real_doctor_dumps;
mod real_doctor_rights;
mod real_doctor_waits;
mod real_dump;
mod real_ends;
mod real_events;
mod real_extremes;
mod real_fields;
mod real_find;
mod real_full;
mod real_gc;
mod real_launch;
mod real_names;
mod real_namespace;
mod real_other_user;
mod real_remote;
mod real_resume;
mod real_router;
mod real_session;
mod real_single_file;
mod real_slow_proc;
mod real_spin;
mod real_tail;
mod real_typed;
mod real_verbs;
mod speedscope;
mod user_events;
