//! End-to-end tests: the real binary, on real runtimes (`real_*`) and without any (`cli_*`).

#![cfg(target_os = "linux")]

#[macro_use]
mod common;

mod cli_diff;
mod cli_events;
mod cli_launch;
mod cli_many;
mod cli_ports;
mod cli_recordings;
mod cli_report;
mod cli_streams;
mod cli_usage;
mod real_ask;
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
mod real_find;
mod real_full;
mod real_launch;
mod real_namespace;
mod real_other_user;
mod real_resume;
mod real_session;
mod real_single_file;
mod real_spin;
mod real_tail;
mod real_typed;
mod real_verbs;
mod speedscope;
mod user_events;
