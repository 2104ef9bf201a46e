//! The hottest methods and threads as a line of JSON: `docs/top.md` describes its members.

use serde::Serialize;

use super::rows::{Order, methods, percent, samples, threads};
use super::{TopData, TopTable};

/// A line of JSON, which has the type `top`.
#[derive(Debug, Serialize)]
pub struct TopLine {
    #[serde(rename = "type")]
    kind: &'static str,
    time: String,
    pid: Option<u32>,
    name: Option<String>,
    view: &'static str,
    window_s: f64,
    samples: u64,
    lost: u64,
    left_out: u64,
    names_complete: bool,
    exact_states: bool,
    methods: Vec<MethodMember>,
    threads: Vec<ThreadMember>,
}

#[derive(Debug, Serialize)]
struct MethodMember {
    name: String,
    module: Option<String>,
    #[serde(rename = "self")]
    own: u64,
    total: u64,
    self_percent: Option<f64>,
    total_percent: Option<f64>,
}

#[derive(Debug, Serialize)]
struct ThreadMember {
    tid: u64,
    name: Option<String>,
    samples: u64,
    all_samples: u64,
    running_percent: Option<f64>,
}

impl TopLine {
    /// Creates the line of a table. `rows` is the maximum number of methods; all if `None`.
    pub fn new(table: &TopTable<'_>, rows: Option<usize>) -> Self {
        let TopTable { data, view, inclusive } = *table;
        let TopData { trace, time, covers, lost, left_out, is_naming, has_exact_states } = data;
        let order = if inclusive { Order::Total } else { Order::Own };
        let (mut all, sum) = methods(trace, view, None, order);
        all.truncate(rows.unwrap_or(usize::MAX));
        let methods = all.into_iter().map(|row| MethodMember {
            name: row.name,
            module: row.module,
            own: samples(row.own),
            total: samples(row.total),
            self_percent: percent(row.own, sum),
            total_percent: percent(row.total, sum),
        });
        let threads = threads(trace, view).into_iter().map(|row| ThreadMember {
            tid: row.tid,
            name: row.name,
            samples: samples(row.weight),
            all_samples: samples(row.all),
            running_percent: percent(row.running, row.all),
        });
        Self {
            kind: "top",
            time: time.to_string(),
            pid: trace.process().pid,
            name: trace.process().name.clone(),
            view: view.name(),
            window_s: covers.as_secs_f64(),
            samples: samples(sum),
            lost: *lost,
            left_out: *left_out,
            names_complete: !is_naming,
            exact_states: *has_exact_states,
            methods: methods.collect(),
            threads: threads.collect(),
        }
    }
}
