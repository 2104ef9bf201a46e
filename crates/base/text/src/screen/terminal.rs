//! The terminal of a view: raw mode and the alternate screen, restored whenever the view ends.
//!
//! Owns: [`Screen`], and [`ScreenBackend`], ratatui's crossterm backend without what could run another program or wait for an
//! answer of the terminal.

use std::io::{self, Stdout, Write};
use std::sync::{Mutex, Once, PoisonError};

use ratatui_core::backend::{Backend, ClearType, WindowSize};
use ratatui_core::buffer::Cell;
use ratatui_core::layout::{Position, Size};
use ratatui_core::style::Color;
use ratatui_crossterm::CrosstermBackend;
use ratatui_crossterm::crossterm::style::force_color_output;
use rustix::termios::{LocalModes, OptionalActions, SpecialCodeIndex, Termios, tcgetattr, tcsetattr};

use crate::{held, terminal_size};

/// Enter and leave the alternate screen, where the wheel of the mouse is reported; leaving also shows the cursor and resets colors.
const ENTER_SCREEN: &str = "\x1b[?1049h\x1b[?1000h\x1b[?1006h\x1b[?25l\x1b[2J";
const LEAVE_SCREEN: &str = "\x1b[0m\x1b[?25h\x1b[?1006l\x1b[?1000l\x1b[?1049l";

/// The terminal's original modes, while they are changed.
static ORIGINAL_MODES: Mutex<Option<Termios>> = Mutex::new(None);

/// Restores the terminal when dropped.
#[derive(Debug)]
pub(crate) struct Screen;

impl Screen {
    /// Configures the terminal. Ctrl-C still raises a signal; Ctrl-Z and Ctrl-\ are disabled because they would leave the
    /// terminal in this state.
    ///
    /// # Errors
    /// Fails if standard input is not a terminal.
    pub(crate) fn take() -> io::Result<Self> {
        static HOOK: Once = Once::new();
        HOOK.call_once(|| {
            let before = std::panic::take_hook();
            // A panic may abort the process without running destructors.
            std::panic::set_hook(Box::new(move |panic| {
                restore();
                before(panic);
            }));
        });
        let keyboard = io::stdin();
        let mut modes = tcgetattr(&keyboard)?;
        *lock() = Some(modes.clone());
        modes.make_raw();
        modes.local_modes |= LocalModes::ISIG;
        for code in [SpecialCodeIndex::VSUSP, SpecialCodeIndex::VQUIT] {
            modes.special_codes[code] = 0;
        }
        // From here on, dropping restores the terminal.
        let screen = Self;
        tcsetattr(&keyboard, OptionalActions::Now, &modes)?;
        held::begin();
        write(ENTER_SCREEN)?;
        Ok(screen)
    }
}

impl Drop for Screen {
    fn drop(&mut self) {
        restore();
    }
}

fn lock() -> std::sync::MutexGuard<'static, Option<Termios>> {
    ORIGINAL_MODES.lock().unwrap_or_else(PoisonError::into_inner)
}

fn write(text: &str) -> io::Result<()> {
    let mut out = io::stdout();
    out.write_all(text.as_bytes())?;
    out.flush()
}

/// Restores the terminal if it was changed.
fn restore() {
    if let Some(before) = lock().take() {
        // If the terminal is gone, the error cannot be shown.
        let _ = write(LEAVE_SCREEN);
        let _ = tcsetattr(io::stdin(), OptionalActions::Now, &before);
        held::end();
    }
}

/// Writes to the terminal, in one call for each drawing.
#[derive(Debug)]
pub(crate) struct ScreenBackend<W: Write = Stdout> {
    inner: CrosstermBackend<io::BufWriter<W>>,
    /// Whether to use colors; bold and reversed text are always used.
    colors: bool,
}

impl ScreenBackend {
    pub(crate) fn new(colors: bool) -> Self {
        Self::on(io::stdout(), colors)
    }
}

impl<W: Write> ScreenBackend<W> {
    fn on(out: W, colors: bool) -> Self {
        // The option decides, not the environment.
        force_color_output(true);
        Self { inner: CrosstermBackend::new(io::BufWriter::with_capacity(1 << 16, out)), colors }
    }
}

impl<W: Write> Backend for ScreenBackend<W> {
    type Error = io::Error;

    fn draw<'a, I>(&mut self, content: I) -> io::Result<()>
    where
        I: Iterator<Item = (u16, u16, &'a Cell)>,
    {
        if self.colors {
            return self.inner.draw(content);
        }
        let plain: Vec<(u16, u16, Cell)> = content
            .map(|(x, y, cell)| {
                let mut cell = cell.clone();
                (cell.fg, cell.bg) = (Color::Reset, Color::Reset);
                (x, y, cell)
            })
            .collect();
        self.inner.draw(plain.iter().map(|(x, y, cell)| (*x, *y, cell)))
    }

    fn hide_cursor(&mut self) -> io::Result<()> {
        self.inner.hide_cursor()
    }

    fn show_cursor(&mut self) -> io::Result<()> {
        self.inner.show_cursor()
    }

    /// Returns the origin: the cursor is hidden, and nothing is drawn relative to it. crossterm would ask the terminal.
    fn get_cursor_position(&mut self) -> io::Result<Position> {
        Ok(Position::ORIGIN)
    }

    fn set_cursor_position<P: Into<Position>>(&mut self, position: P) -> io::Result<()> {
        self.inner.set_cursor_position(position)
    }

    fn clear(&mut self) -> io::Result<()> {
        self.inner.clear()
    }

    fn clear_region(&mut self, region: ClearType) -> io::Result<()> {
        self.inner.clear_region(region)
    }

    /// Returns the size of the terminal. crossterm would run `tput` if it is unknown.
    fn size(&self) -> io::Result<Size> {
        let narrow = |n: usize| u16::try_from(n).unwrap_or(u16::MAX);
        let (rows, columns) = terminal_size::size().unwrap_or((24, 80));
        Ok(Size::new(narrow(columns), narrow(rows)))
    }

    fn window_size(&mut self) -> io::Result<WindowSize> {
        Ok(WindowSize { columns_rows: self.size()?, pixels: Size::ZERO })
    }

    fn flush(&mut self) -> io::Result<()> {
        Backend::flush(&mut self.inner)
    }
}

#[cfg(test)]
mod tests {
    use std::fs::File;
    use std::io::Read as _;
    use std::process::{Command, Stdio};

    use ratatui_core::style::Modifier;
    use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};

    use super::*;

    /// Run by the test below, on a separate terminal.
    #[test]
    #[ignore = "takes the terminal and panics: the test below runs it"]
    #[should_panic(expected = "while the view is shown")]
    fn panics_while_it_has_the_terminal() {
        // Simulates a panic that aborts, which runs no destructors.
        std::mem::forget(Screen::take().expect("while the view is shown, on a terminal"));
        panic!("while the view is shown");
    }

    #[test]
    fn a_panic_restores_the_terminal_before_its_message_is_printed() {
        let master = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY | OpenptFlags::CLOEXEC).unwrap();
        grantpt(&master).unwrap();
        unlockpt(&master).unwrap();
        let name = ptsname(&master, Vec::new()).unwrap();
        let terminal = || File::options().read(true).write(true).open(name.to_str().unwrap()).unwrap();
        // Reading the master fails if no process has the terminal open.
        let held = terminal();
        let before = format!("{:?}", tcgetattr(&held).unwrap());
        let module = module_path!().split_once("::").unwrap().1;
        let mut child = Command::new(std::env::current_exe().unwrap());
        child.args([
            "--exact",
            &format!("{module}::panics_while_it_has_the_terminal"),
            "--ignored",
            "--nocapture",
        ]);
        child.stdin(Stdio::from(terminal())).stdout(Stdio::from(terminal())).stderr(Stdio::from(terminal()));
        let mut child = child.spawn().unwrap();
        let mut master = File::from(master);
        let mut shown = String::new();
        let mut bytes = [0; 4096];
        // The last output of libtest; earlier output arrives in pieces.
        while !shown.contains("finished in ") {
            let size = master.read(&mut bytes).unwrap();
            shown.push_str(&String::from_utf8_lossy(&bytes[..size]));
        }
        assert!(child.wait().unwrap().success(), "{shown}");
        assert!(shown.contains("1 passed"), "{shown}");
        let (_, after) = shown.split_once(ENTER_SCREEN).unwrap();
        let (view, message) = after.split_once(LEAVE_SCREEN).unwrap();
        assert!(!view.contains("while the view is shown"), "{shown}");
        assert!(message.contains("panicked at") && message.contains("while the view is shown"), "{shown}");
        assert_eq!(format!("{:?}", tcgetattr(&held).unwrap()), before);
    }

    #[test]
    fn colors_are_optional_and_other_styles_are_not() {
        let cell = |symbol: &'static str, fg| {
            let mut cell = Cell::new(symbol);
            (cell.fg, cell.modifier) = (fg, Modifier::REVERSED);
            cell
        };
        let cells = [cell("a", Color::Red), cell("b", Color::Red), cell("▸", Color::Reset)];
        let drawn = |colors| {
            let mut bytes = Vec::new();
            let mut backend = ScreenBackend::on(&mut bytes, colors);
            backend.draw((0..).zip(&cells).map(|(x, cell)| (x, 1, cell))).unwrap();
            Backend::flush(&mut backend).unwrap();
            drop(backend);
            String::from_utf8(bytes).unwrap()
        };
        assert_eq!(drawn(true), "\x1b[2;1H\x1b[7m\x1b[38;5;1;49mab\x1b[39;49m▸\x1b[39m\x1b[49m\x1b[0m");
        assert_eq!(drawn(false), "\x1b[2;1H\x1b[7mab▸\x1b[39m\x1b[49m\x1b[0m");
    }
}
