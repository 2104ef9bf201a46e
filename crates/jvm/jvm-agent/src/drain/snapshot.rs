//! Snapshots of counts and of coverage.

use std::sync::atomic::Ordering;
use std::time::Instant;

use runtap_bytefrog_proto::RecordMode;
use runtap_bytefrog_proto::f1::Count;

use super::Drain;
use crate::clock;
use crate::lines;
use crate::ring::Ring;

impl Drain {
    /// Excludes counts and coverage of an earlier trace.
    pub(super) fn forget_counts(&mut self) {
        self.before = self.sums();
        for method in 0..self.agent.methods.count() {
            self.agent.coverage.byte(method).store(0, Ordering::Relaxed);
        }
        for line in 0..self.agent.lines.count() {
            self.agent.coverage.byte(lines::place(line)).store(0, Ordering::Relaxed);
        }
    }

    /// Notes the current counts when recording is suspended: later counts are not reported.
    pub(super) fn hold_counts(&mut self) {
        if self.record == RecordMode::Coverage {
            self.snapshot(false);
        }
        self.held = Some(self.sums());
    }

    /// Skips the counts made during a suspension, when recording resumes.
    pub(super) fn pass_counts(&mut self) {
        let Some(held) = self.held.take() else { return };
        let sums = self.sums();
        self.before.resize(sums.len(), [0; 2]);
        for (method, (before, now)) in self.before.iter_mut().zip(&sums).enumerate() {
            let then = held.get(method).copied().unwrap_or_default();
            for ((before, now), then) in before.iter_mut().zip(now).zip(then) {
                *before += now.saturating_sub(then);
            }
        }
        for method in 0..self.agent.methods.count() {
            if self.covered.get(method) != Some(&true) {
                self.agent.coverage.byte(method).store(0, Ordering::Relaxed);
            }
        }
        for line in 0..self.agent.lines.count() {
            if self.covered_lines.get(line) != Some(&true) {
                self.agent.coverage.byte(lines::place(line)).store(0, Ordering::Relaxed);
            }
        }
    }

    /// Keeps the counts of a thread that has ended.
    pub(super) fn keep_counts(&mut self, ring: &Ring) {
        add(&mut self.gone, ring, self.agent.methods.count());
    }

    pub(super) fn snapshot_is_due(&self, finishing: bool) -> bool {
        if self.record == RecordMode::Full && !self.any_degraded {
            return false;
        }
        let due = !self.interval.is_zero() && self.last_snapshot.elapsed() >= self.interval;
        due || finishing || self.session.wants_snapshot()
    }

    fn sums(&self) -> Vec<[u64; 2]> {
        let mut sums = self.gone.clone();
        for reader in &self.reading.readers {
            add(&mut sums, &reader.ring, self.agent.methods.count());
        }
        sums
    }

    pub(super) fn snapshot(&mut self, reset: bool) {
        self.last_snapshot = Instant::now();
        let time = self.reading.stream.since_start(clock::now());
        if self.record == RecordMode::Coverage {
            if !self.is_suspended() {
                self.coverage(time, reset);
            }
            return;
        }
        let sums = self.held.clone().unwrap_or_else(|| self.sums());
        let mut counts = Vec::new();
        for (method, [calls, thrown]) in sums.iter().enumerate() {
            let [calls_before, thrown_before] = self.before.get(method).copied().unwrap_or_default();
            let (calls, thrown) = (calls.saturating_sub(calls_before), thrown.saturating_sub(thrown_before));
            if calls > 0 || thrown > 0 {
                let method = u32::try_from(method).unwrap_or(u32::MAX);
                counts.push(Count { method, calls, thrown, nanoseconds: 0 });
            }
        }
        self.reading.stream.counts(time, &counts, reset);
        if reset {
            self.before = sums;
        }
    }

    fn coverage(&mut self, time: u64, reset: bool) {
        self.agent.lines.append_new(&mut self.lines);
        // Read after the lines: every line belongs to a method that is counted here.
        let count = self.agent.methods.count();
        self.covered.resize(count, false);
        self.covered_lines.resize(self.lines.len(), false);
        let marked = |place: usize| {
            let byte = self.agent.coverage.byte(place);
            (if reset { byte.swap(0, Ordering::Relaxed) } else { byte.load(Ordering::Relaxed) }) != 0
        };
        let mut has_run: Vec<bool> = (0..count).map(marked).collect();
        let mut hits = Vec::new();
        for (number, (line, covered)) in self.lines.iter().zip(&mut self.covered_lines).enumerate() {
            let is_marked = marked(lines::place(number));
            // A line that has run belongs to a method that has run.
            if let (true, Some(has_run)) = (is_marked, has_run.get_mut(line.method as usize)) {
                *has_run = true;
            }
            if is_marked && !*covered {
                hits.push((u32::try_from(number).unwrap_or(u32::MAX), *line));
            }
            *covered = !reset && (*covered || is_marked);
        }
        let mut methods = Vec::new();
        for (method, (has_run, covered)) in has_run.into_iter().zip(&mut self.covered).enumerate() {
            if has_run && !*covered {
                methods.push(u32::try_from(method).unwrap_or(u32::MAX));
            }
            *covered = !reset && (*covered || has_run);
        }
        self.reading.stream.coverage(time, &methods, &hits);
    }
}

fn add(sums: &mut Vec<[u64; 2]>, ring: &Ring, methods: usize) {
    if sums.len() < methods {
        sums.resize(methods, [0; 2]);
    }
    ring.add_counts(sums);
}
