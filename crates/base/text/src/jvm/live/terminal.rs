//! The terminal of a view: raw mode and the alternate screen, restored whenever the view ends.
//!
//! Owns: [`Screen`], and [`Ansi`], a backend that uses widely supported escape sequences. ratatui's own backends would add
//! another way to read keys and signals.

use std::io::{self, Write};
use std::sync::{Mutex, Once, PoisonError};

use ratatui_core::backend::{Backend, ClearType, WindowSize};
use ratatui_core::buffer::Cell;
use ratatui_core::layout::{Position, Size};
use ratatui_core::style::{Color, Modifier};
use rustix::termios::{LocalModes, OptionalActions, SpecialCodeIndex, Termios, tcgetattr, tcsetattr};

use crate::terminal_size;

/// Enter and leave the alternate screen; leaving also shows the cursor and resets colors.
const ENTER_SCREEN: &str = "\x1b[?1049h\x1b[?25l\x1b[2J";
const LEAVE_SCREEN: &str = "\x1b[0m\x1b[?25h\x1b[?1049l";

/// The terminal's original modes, while they are changed.
static ORIGINAL_MODES: Mutex<Option<Termios>> = Mutex::new(None);

/// Restores the terminal when dropped.
#[derive(Debug)]
pub(super) struct Screen;

impl Screen {
    /// Configures the terminal. Ctrl-C still raises a signal; Ctrl-Z and Ctrl-\ are disabled because they would leave the
    /// terminal in this state.
    ///
    /// # Errors
    /// Fails if standard input is not a terminal.
    pub(super) fn take() -> io::Result<Self> {
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
    }
}

/// A backend that writes escape sequences.
#[derive(Debug)]
pub(super) struct Ansi<W> {
    out: W,
    /// Whether to use colors; bold and reversed text are always used.
    colors: bool,
}

impl<W: Write> Ansi<W> {
    pub(super) fn new(out: W, colors: bool) -> Self {
        Self { out, colors }
    }

    fn style(&mut self, cell: &Cell) -> io::Result<()> {
        write!(self.out, "\x1b[0")?;
        for (modifier, code) in
            [(Modifier::BOLD, 1), (Modifier::DIM, 2), (Modifier::UNDERLINED, 4), (Modifier::REVERSED, 7)]
        {
            if cell.modifier.contains(modifier) {
                write!(self.out, ";{code}")?;
            }
        }
        let color = match cell.fg {
            Color::Red => 31,
            Color::Green => 32,
            Color::Yellow => 33,
            Color::Blue => 34,
            Color::Magenta => 35,
            Color::Cyan => 36,
            _ => 39,
        };
        if self.colors && color != 39 {
            write!(self.out, ";{color}")?;
        }
        write!(self.out, "m")
    }
}

impl<W: Write> Backend for Ansi<W> {
    type Error = io::Error;

    fn draw<'a, I>(&mut self, content: I) -> io::Result<()>
    where
        I: Iterator<Item = (u16, u16, &'a Cell)>,
    {
        let mut next = None;
        let mut style = None;
        for (x, y, cell) in content {
            if next != Some((x, y)) {
                write!(self.out, "\x1b[{};{}H", y + 1, x + 1)?;
            }
            // After a wide character the cursor is positioned again.
            next = Some((x + 1, y));
            let now = (cell.fg, cell.modifier);
            if style != Some(now) {
                self.style(cell)?;
                style = Some(now);
            }
            self.out.write_all(cell.symbol().as_bytes())?;
            if !cell.symbol().is_ascii() {
                next = None;
            }
        }
        self.out.write_all(b"\x1b[0m")
    }

    fn hide_cursor(&mut self) -> io::Result<()> {
        self.out.write_all(b"\x1b[?25l")
    }

    fn show_cursor(&mut self) -> io::Result<()> {
        self.out.write_all(b"\x1b[?25h")
    }

    /// Returns the origin: the cursor is hidden, and nothing is drawn relative to it.
    fn get_cursor_position(&mut self) -> io::Result<Position> {
        Ok(Position::ORIGIN)
    }

    fn set_cursor_position<P: Into<Position>>(&mut self, position: P) -> io::Result<()> {
        let Position { x, y } = position.into();
        write!(self.out, "\x1b[{};{}H", y + 1, x + 1)
    }

    fn clear(&mut self) -> io::Result<()> {
        self.clear_region(ClearType::All)
    }

    fn clear_region(&mut self, region: ClearType) -> io::Result<()> {
        self.out.write_all(match region {
            ClearType::All => b"\x1b[2J",
            ClearType::AfterCursor => b"\x1b[0J",
            ClearType::BeforeCursor => b"\x1b[1J",
            ClearType::CurrentLine => b"\x1b[2K",
            ClearType::UntilNewLine => b"\x1b[0K",
        })
    }

    fn size(&self) -> io::Result<Size> {
        let narrow = |n: usize| u16::try_from(n).unwrap_or(u16::MAX);
        let (rows, columns) = terminal_size::size().unwrap_or((24, 80));
        Ok(Size::new(narrow(columns), narrow(rows)))
    }

    fn window_size(&mut self) -> io::Result<WindowSize> {
        Ok(WindowSize { columns_rows: self.size()?, pixels: Size::ZERO })
    }

    fn flush(&mut self) -> io::Result<()> {
        self.out.flush()
    }
}

#[cfg(test)]
mod tests {
    use std::fs::File;
    use std::io::Read as _;
    use std::process::{Command, Stdio};

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
    fn adjacent_cells_are_written_as_one_text_and_colors_are_optional() {
        let cell = |symbol: &'static str, fg| {
            let mut cell = Cell::new(symbol);
            cell.fg = fg;
            cell
        };
        let cells =
            [cell("a", Color::Red), cell("b", Color::Red), cell("▸", Color::Reset), cell("c", Color::Reset)];
        let drawn = |colors| {
            let mut ansi = Ansi::new(Vec::new(), colors);
            ansi.draw((0..).zip(&cells).map(|(x, cell)| (x, 1, cell))).unwrap();
            String::from_utf8(ansi.out).unwrap()
        };
        assert_eq!(drawn(true), "\x1b[2;1H\x1b[0;31mab\x1b[0m▸\x1b[2;4Hc\x1b[0m");
        assert_eq!(drawn(false), "\x1b[2;1H\x1b[0mab\x1b[0m▸\x1b[2;4Hc\x1b[0m");
    }
}
