//! Reports based on stacks: CPU time, allocations and waits.

use std::io;

use runtap_clr::report::{
    AllocReport, AllocSite, AllocatedType, ContentionReport, CpuReport, FrameRow, HandleWait, LocksReport,
    ThreadRow, Wait, WaitSite,
};
use runtap_model::Unit;

use super::{UNKNOWN, known};
use crate::options::Missing;
use crate::units::{Bytes, Count, Moment, Nanoseconds, Percent, Things};
use crate::{Column, Print, Table, TextOptions};

impl Print for CpuReport {
    fn print(&self, out: &mut dyn io::Write, options: &TextOptions<'_>) -> io::Result<()> {
        let amount = |n: u64| match self.unit {
            Unit::Bytes => Bytes(n).to_string(),
            Unit::Count => Count(n).to_string(),
            _ => Nanoseconds(n).to_string(),
        };
        let share = |part: u64| Percent { part, whole: self.total }.to_string();
        writeln!(
            out,
            "{}, {} in {} (view {})\n",
            Things(self.samples, "sample"),
            amount(self.total),
            Things(self.threads_count as u64, "thread"),
            self.view
        )?;
        let columns = [
            Column::number("SELF"),
            Column::number("SELF %"),
            Column::number("TOTAL"),
            Column::number("TOTAL %"),
            Column::text("FRAME"),
        ];
        let mut table = Table::new("frame", columns);
        table.fill(self.frames.iter(), options, |FrameRow { own, total, label, .. }| {
            [amount(*own), share(*own), amount(*total), share(*total), label.clone()]
        });
        table.print(out, options)?;
        writeln!(out)?;
        let columns = [
            Column::number("TOTAL"),
            Column::number("TOTAL %"),
            Column::number("SAMPLES"),
            Column::text("THREAD"),
        ];
        let mut table = Table::new("thread", columns);
        table.fill(self.threads.iter(), options, |ThreadRow { samples, total, label, .. }| {
            [amount(*total), share(*total), Count(*samples).to_string(), label.clone()]
        });
        table.print(out, options)
    }
}

impl Print for AllocReport {
    fn print(&self, out: &mut dyn io::Write, options: &TextOptions<'_>) -> io::Result<()> {
        writeln!(
            out,
            "about {} allocated, estimated from {}\n",
            Bytes(self.allocated_bytes),
            Things(self.samples_count, "sample")
        )?;
        let columns = |last| {
            [
                Column::number("ALLOCATED"),
                Column::number("SHARE"),
                Column::number("SAMPLES"),
                Column::text(last),
            ]
        };
        let cells = |bytes: u64, samples: u64, name: &str| {
            let share = Percent { part: bytes, whole: self.allocated_bytes };
            [Bytes(bytes).to_string(), share.to_string(), Count(samples).to_string(), name.to_owned()]
        };
        let mut table = Table::new("type", columns("TYPE"));
        table.fill(self.types.iter(), options, |it| {
            let AllocatedType { name, allocated_bytes, samples_count } = it;
            cells(*allocated_bytes, *samples_count, name)
        });
        table.print(out, options)?;
        writeln!(out)?;
        let mut table = Table::new("method", columns("ALLOCATED BY"));
        table.fill(self.sites.iter(), options, |it| {
            let AllocSite { allocated_bytes, samples_count, label, .. } = it;
            cells(*allocated_bytes, *samples_count, label)
        });
        table.print(out, options)
    }
}

impl Print for ContentionReport {
    fn print(&self, out: &mut dyn io::Write, options: &TextOptions<'_>) -> io::Result<()> {
        let LocksReport { contentions_count, unfinished_count, waits, contentions, .. } = &self.locks;
        let LocksReport { handle_waits_count, handle_wait_times, handle_waits, .. } = &self.locks;
        let time = |ns: Option<u64>| known(ns.map(Nanoseconds));
        if *contentions_count > 0 {
            writeln!(
                out,
                "{} for locks: total {}, max {}; {}",
                Things(contentions_count.saturating_sub(*unfinished_count), "wait"),
                Nanoseconds(waits.total_ns),
                Nanoseconds(waits.max_ns),
                match unfinished_count {
                    0 => "0 still waiting at the end".to_owned(),
                    n => format!(
                        "{} more still waiting at the end (total {})",
                        Count(*n),
                        Nanoseconds(self.locks.unfinished_wait_ns)
                    ),
                }
            )?;
        } else {
            writeln!(out, "{}", options.missing(Missing::LockWaits))?;
        }
        if *handle_waits_count > 0 {
            writeln!(
                out,
                "{} for something else: total {}, max {}; {} still waiting at the end",
                Things(*handle_waits_count, "wait"),
                Nanoseconds(handle_wait_times.total_ns),
                Nanoseconds(handle_wait_times.max_ns),
                Count(self.locks.handle_waits_unfinished_count)
            )?;
        } else {
            writeln!(out, "{}", options.missing(Missing::HandleWaits))?;
        }
        if *contentions_count > 0 {
            writeln!(out)?;
            let columns =
                [Column::number("WAIT TIME"), Column::number("WAITS"), Column::text("WAITING METHOD")];
            let mut table = Table::new("method", columns);
            table.fill(self.sites.iter(), options, |it| {
                let WaitSite { contentions_count, wait_ns, label, .. } = it;
                [Nanoseconds(*wait_ns).to_string(), Count(*contentions_count).to_string(), label.clone()]
            });
            table.print(out, options)?;
            writeln!(out)?;
            let columns = [
                Column::number("START"),
                Column::number("WAIT TIME"),
                Column::number("THREAD"),
                Column::number("OWNER"),
                Column::text("LOCK"),
            ];
            let mut table = Table::new("wait", columns);
            table.fill(contentions.iter(), options, |it: &Wait| {
                [
                    Moment(it.start_ns).to_string(),
                    time(it.wait_ns),
                    it.thread.to_string(),
                    known(it.owner_thread),
                    it.lock.as_deref().unwrap_or(UNKNOWN).to_owned(),
                ]
            });
            table.print(out, options)?;
        }
        if handle_waits.is_empty() {
            return Ok(());
        }
        writeln!(out)?;
        let columns = [
            Column::number("START"),
            Column::number("WAIT TIME"),
            Column::number("THREAD"),
            Column::text("SOURCE"),
        ];
        let mut table = Table::new("wait", columns);
        table.fill(handle_waits.iter(), options, |it: &HandleWait| {
            [Moment(it.start_ns).to_string(), time(it.wait_ns), it.thread.to_string(), it.source.clone()]
        });
        table.print(out, options)
    }
}
