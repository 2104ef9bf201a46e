//! Counters as they are reported: on a full-screen interface, in a table that is redrawn, or as lines.

use std::io;

use runtap_model::counters::{CounterBoard, CounterRow};

use crate::{CounterTable, Output, TextOptions, counter_line, terminal_size};

/// Shows counters while they are reported.
#[derive(Debug)]
pub struct CounterDisplay {
    deltas: bool,
    /// Whether lines name the process.
    several: bool,
    output: Output,
    #[cfg(all(unix, feature = "tui"))]
    screen: Option<crate::screen::ShownScreen<crate::screen::CounterScreen>>,
}

impl CounterDisplay {
    /// Creates a display, which is a full-screen interface if [that has the terminal](Output::has_screen). `deltas` is whether it shows the changes since the last reading; `several` is whether there can be
    /// several processes.
    pub fn new(deltas: bool, several: bool, output: Output) -> Self {
        Self {
            deltas,
            several,
            output,
            #[cfg(all(unix, feature = "tui"))]
            screen: None,
        }
    }

    /// Starts to show the counters of a process. `quit` is called when the user wants to quit.
    ///
    /// # Errors
    /// Fails if the terminal can't be configured.
    pub fn start(&mut self, process: u32, name: &str, quit: fn()) -> io::Result<()> {
        #[cfg(all(unix, feature = "tui"))]
        if self.output.has_screen() {
            let screen = if let Some(screen) = &self.screen {
                screen
            } else {
                let view = crate::screen::CounterScreen::new(self.deltas);
                self.screen.insert(crate::screen::ShownScreen::show(view, self.output.colors(), quit)?)
            };
            screen.update(|screen| screen.start(process, name));
        }
        let _ = (process, name, quit);
        Ok(())
    }

    /// Shows a reading.
    ///
    /// # Errors
    /// Fails if the output can't be written.
    pub fn reading(&self, row: &CounterRow) -> io::Result<()> {
        if self.output.can_draw() {
            return Ok(());
        }
        self.output.text(counter_line(row, self.several, self.deltas))
    }

    /// Shows the latest readings of all series.
    ///
    /// # Errors
    /// Fails if the output can't be written.
    pub fn board(&self, board: &CounterBoard) -> io::Result<()> {
        #[cfg(all(unix, feature = "tui"))]
        if let Some(screen) = &self.screen {
            screen.update(|screen| screen.update(board));
            return Ok(());
        }
        if !self.output.can_draw() {
            return Ok(());
        }
        let (rows, width) = terminal_size::size().unzip();
        let rows = rows.map(|rows| rows.saturating_sub(5));
        let options = TextOptions { width, rows, ..self.output.options() };
        let table = CounterTable { board, deltas: self.deltas }.to_text(&options);
        self.output.screen(format_args!("{table}\nCtrl-C stops\n"))
    }
}
