//! Answers that are made of stacks: where the time went, what was allocated and where, where threads waited.

use runtap_clr::report::{
    AllocReport, AllocSite, AllocatedType, ContentionReport, CpuReport, FrameRow, LocksReport, ThreadRow,
    WaitSite,
};
use runtap_model::Unit;

use super::Answer;
use super::table::{Table, at, dash, ns};
use crate::output::Clean;
use crate::units::{Bytes, Count, Things};

impl Answer for CpuReport {
    fn text(&self) -> String {
        let amount = |n: u64| match self.unit {
            Unit::Bytes => Bytes(n).to_string(),
            Unit::Count => Count(n).to_string(),
            _ => ns(n),
        };
        let mut table = Table::new(format_args!(
            "{}, {} in {} (view {})",
            Things(self.samples, "sample"),
            amount(self.total),
            Things(self.threads_count as u64, "thread"),
            self.view
        ));
        table.heading(format_args!("{:>12} {:>6}  {:>12} {:>6}  FRAME", "SELF", "%", "TOTAL", "%"));
        let share = |part: u64| percent(part, self.total);
        for FrameRow { own, total, label, .. } in &self.frames {
            table.row(format_args!(
                "{:>12} {:>6}  {:>12} {:>6}  {}",
                amount(*own),
                share(*own),
                amount(*total),
                share(*total),
                Clean(label)
            ));
        }
        table.heading(format_args!("\n{:>12} {:>6}  {:>12}  THREAD", "TOTAL", "%", "SAMPLES"));
        for ThreadRow { samples, total, label, .. } in &self.threads {
            table.row(format_args!(
                "{:>12} {:>6}  {:>12}  {}",
                amount(*total),
                share(*total),
                Count(*samples),
                Clean(label)
            ));
        }
        table.text()
    }
}

#[expect(clippy::cast_precision_loss, reason = "a share with one digit")]
pub(super) fn percent(part: u64, whole: u64) -> String {
    if whole == 0 { dash() } else { format!("{:.1}", part as f64 * 100.0 / whole as f64) }
}

impl Answer for AllocReport {
    fn text(&self) -> String {
        let mut table = Table::new(format_args!(
            "about {} allocated, from {}",
            Bytes(self.allocated_bytes),
            Things(self.samples_count, "sample")
        ));
        table.heading(format_args!("{:>12} {:>6}  {:>8}  TYPE", "BYTES", "%", "SAMPLES"));
        for AllocatedType { name, allocated_bytes, samples_count } in &self.types {
            let share = percent(*allocated_bytes, self.allocated_bytes);
            let (bytes, samples) = (Bytes(*allocated_bytes).to_string(), Count(*samples_count));
            table.row(format_args!("{bytes:>12} {share:>6}  {samples:>8}  {}", Clean(name)));
        }
        table.heading(format_args!("\n{:>12} {:>6}  {:>8}  ALLOCATED BY", "BYTES", "%", "SAMPLES"));
        for AllocSite { allocated_bytes, samples_count, label, .. } in &self.sites {
            let share = percent(*allocated_bytes, self.allocated_bytes);
            let (bytes, samples) = (Bytes(*allocated_bytes).to_string(), Count(*samples_count));
            table.row(format_args!("{bytes:>12} {share:>6}  {samples:>8}  {}", Clean(label)));
        }
        table.text()
    }
}

impl Answer for ContentionReport {
    fn text(&self) -> String {
        let LocksReport { contentions_count, unfinished_count, waits, contentions, .. } = &self.locks;
        let LocksReport { handle_waits_count, handle_wait_times, handle_waits, .. } = &self.locks;
        let others = if *handle_waits_count == 0 {
            String::new()
        } else {
            format!(
                "\n{} for something else, {} in all, the longest {}; {} did not end",
                Things(*handle_waits_count, "wait"),
                ns(handle_wait_times.total_ns),
                ns(handle_wait_times.max_ns),
                Count(self.locks.handle_waits_unfinished_count)
            )
        };
        let mut table = Table::new(format_args!(
            "{} for locks, {} in all, the longest {}; {} did not end{others}",
            Things(*contentions_count, "wait"),
            ns(waits.total_ns),
            ns(waits.max_ns),
            Count(*unfinished_count)
        ));
        table.heading(format_args!("{:>12}  {:>8}  WAITED IN", "TIME", "WAITS"));
        for WaitSite { contentions_count, wait_ns, label, .. } in &self.sites {
            table.row(format_args!(
                "{:>12}  {:>8}  {}",
                ns(*wait_ns),
                Count(*contentions_count),
                Clean(label)
            ));
        }
        table.heading(format_args!("\n{:>14} {:>12} {:>8} {:>8}  LOCK", "AT", "WAITED", "THREAD", "OWNER"));
        for wait in contentions {
            table.row(format_args!(
                "{:>14} {:>12} {:>8} {:>8}  {}",
                at(wait.start_ns),
                wait.wait_ns.map_or_else(dash, ns),
                wait.thread,
                wait.owner_thread.map_or_else(dash, |thread| thread.to_string()),
                wait.lock.as_deref().unwrap_or("-")
            ));
        }
        if !handle_waits.is_empty() {
            table.heading(format_args!("\n{:>14} {:>12} {:>8}  SOURCE", "AT", "WAITED", "THREAD"));
            for wait in handle_waits {
                table.row(format_args!(
                    "{:>14} {:>12} {:>8}  {}",
                    at(wait.start_ns),
                    wait.wait_ns.map_or_else(dash, ns),
                    wait.thread,
                    Clean(&wait.source)
                ));
            }
        }
        table.text()
    }
}
