//! Reads speedscope files: runtap's, which are sampled, and dotnet-trace's, which are evented. Numbers are in the unit
//! of the file. Makes no judgements.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;

use serde_json::Value;

/// One profile of a file: a thread.
#[derive(Debug)]
pub(crate) struct Thread {
    pub(crate) name: String,
    /// The stacks, outermost frame first, and their durations, ordered by time.
    pub(crate) slices: Vec<(Vec<String>, f64)>,
}

impl Thread {
    /// Returns the total time of its slices.
    pub(crate) fn total(&self) -> f64 {
        self.slices.iter().map(|(_, weight)| weight).sum()
    }

    /// Returns for each frame the share of the total during which it was anywhere on the stack.
    pub(crate) fn inclusive(&self) -> BTreeMap<&str, f64> {
        let total = self.total();
        let mut shares = BTreeMap::new();
        for (stack, weight) in &self.slices {
            for frame in stack.iter().collect::<BTreeSet<_>>() {
                *shares.entry(frame.as_str()).or_default() += weight / total;
            }
        }
        shares
    }

    /// Splits the time into consecutive parts of equal length; returns for each the share during which a frame that
    /// `fits` is on the stack.
    pub(crate) fn shares_in_parts(&self, parts: u32, fits: impl Fn(&str) -> bool) -> Vec<f64> {
        let part = self.total() / f64::from(parts);
        let mut shares = Vec::new();
        let (mut share, mut elapsed) = (0.0, 0.0);
        for (stack, weight) in &self.slices {
            if stack.iter().any(|frame| fits(frame)) {
                share += weight;
            }
            elapsed += weight;
            if elapsed >= part {
                shares.push(share / elapsed);
                (share, elapsed) = (0.0, 0.0);
            }
        }
        shares
    }
}

/// Reads a file.
#[track_caller]
pub(crate) fn read(file: &Path) -> Vec<Thread> {
    let bytes = fs::read(file).unwrap_or_else(|error| panic!("{}: {error}", file.display()));
    let document: Value = serde_json::from_slice(&bytes).expect("speedscope files are JSON");
    let frames: Vec<String> = list(&document["shared"]["frames"]).map(|frame| text(&frame["name"])).collect();
    let profile = |profile: &Value| {
        let slices = match profile["type"].as_str() {
            Some("sampled") => sampled(profile, &frames),
            Some("evented") => evented(profile, &frames),
            other => panic!("no profile of speedscope's: {other:?}"),
        };
        Thread { name: text(&profile["name"]), slices }
    };
    list(&document["profiles"]).map(profile).collect()
}

fn sampled(profile: &Value, frames: &[String]) -> Vec<(Vec<String>, f64)> {
    let stack = |sample: &Value| list(sample).map(|frame| frames[index(frame)].clone()).collect();
    let slices = list(&profile["samples"]).zip(list(&profile["weights"]));
    slices.map(|(sample, weight)| (stack(sample), number(weight))).collect()
}

fn evented(profile: &Value, frames: &[String]) -> Vec<(Vec<String>, f64)> {
    let mut slices = Vec::new();
    let mut stack: Vec<usize> = Vec::new();
    let mut since = number(&profile["startValue"]);
    for event in list(&profile["events"]) {
        let at = number(&event["at"]);
        if at > since && !stack.is_empty() {
            slices.push((stack.iter().map(|frame| frames[*frame].clone()).collect(), at - since));
        }
        since = at;
        match event["type"].as_str() {
            Some("O") => stack.push(index(&event["frame"])),
            _ => assert_eq!(
                stack.pop(),
                Some(index(&event["frame"])),
                "frames close in the order of their opening"
            ),
        }
    }
    slices
}

fn list(value: &Value) -> impl Iterator<Item = &Value> {
    value.as_array().expect("a list").iter()
}

fn number(value: &Value) -> f64 {
    value.as_f64().expect("a number")
}

fn index(value: &Value) -> usize {
    value.as_u64().and_then(|index| index.try_into().ok()).expect("an index")
}

fn text(value: &Value) -> String {
    value.as_str().expect("a text").to_owned()
}
