//! The hottest methods while samples arrive: on a full-screen interface, as tables, or as lines of JSON.

use std::io;

use runtap_model::{Trace, View};

use crate::{Output, TextOptions, TopData, TopLine, TopTable};

/// The number of methods in a table.
const TABLE_ROWS: usize = 20;

/// Shows the hottest methods.
#[derive(Debug)]
pub struct TopDisplay {
    view: View,
    inclusive: bool,
    rows: Option<usize>,
    output: Output,
    #[cfg(all(unix, feature = "tui"))]
    screen: Option<crate::screen::ShownScreen<crate::screen::TopScreen>>,
}

impl TopDisplay {
    /// Creates a display. `rows` is the maximum number of methods apart from a full-screen interface.
    pub fn new(view: View, inclusive: bool, rows: Option<usize>, output: Output) -> Self {
        Self {
            view,
            inclusive,
            rows,
            output,
            #[cfg(all(unix, feature = "tui"))]
            screen: None,
        }
    }

    /// Shows the full-screen interface if there can be one. `quit` is called when the user wants to quit; `save` writes a profile
    /// with the samples of a view to a file, and returns a message.
    ///
    /// # Errors
    /// Fails if the terminal can't be configured.
    pub fn start(&mut self, quit: fn(), save: fn(&Trace, View) -> String) -> io::Result<()> {
        #[cfg(all(unix, feature = "tui"))]
        if self.output.can_show_screen() {
            let view = crate::screen::TopScreen::new(self.view, self.inclusive, save);
            self.screen = Some(crate::screen::ShownScreen::show(view, self.output.colors(), quit)?);
        }
        let _ = (quit, save);
        Ok(())
    }

    /// Shows the samples of a window.
    ///
    /// # Errors
    /// Fails if the output can't be written.
    #[cfg_attr(
        not(all(unix, feature = "tui")),
        expect(
            clippy::needless_pass_by_value,
            reason = "the full-screen interface, if compiled in, keeps the data"
        )
    )]
    pub fn update(&self, data: TopData) -> io::Result<()> {
        #[cfg(all(unix, feature = "tui"))]
        if let Some(screen) = &self.screen {
            screen.update(|screen| screen.update(data));
            return Ok(());
        }
        let table = TopTable { data: &data, view: self.view, inclusive: self.inclusive };
        if self.output.json() {
            return self.output.document_line(&TopLine::new(&table, self.rows));
        }
        let rows = Some(self.rows.unwrap_or(TABLE_ROWS));
        let options = TextOptions {
            width: self.output.columns(),
            rows,
            more: Some("--number shows more"),
            ..self.output.options()
        };
        self.output.print(&table, &options)
    }
}
