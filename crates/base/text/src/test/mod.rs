//! A run of tests as text: lines and progress while it runs, its summary, lists of tests, and messages about a run that has
//! none.

mod app_options;
mod failures;
mod format;
mod lines;
mod list;
pub mod messages;
mod module_failure;
pub mod nothing;
mod progress;
mod run_printer;
mod screen;
pub mod transcript;

pub use self::app_options::MergedOptions;
pub use self::format::{MAX_LINE, cleaned, printed};
pub use self::lines::{Detail, Lines};
pub use self::list::TestList;
pub use self::module_failure::{describe, explain};
pub use self::progress::Progress;
pub use self::run_printer::{LineOptions, RunOutput, RunPrinter, print_app_output};
pub use self::screen::{Screen, with_progress_erased};
