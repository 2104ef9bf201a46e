//! The terminal while the live view has it: raw, on its other screen, and given back however it ends.
//!
//! Owns: [`Screen`], and [`Ansi`], which draws by escape sequences that every terminal of today knows. ratatui's own backends
//! bring a second way to read keys and signals with them; this program has one.

use std::io::{self, Write};
use std::sync::{Mutex, Once, PoisonError};

use ratatui_core::backend::{Backend, ClearType, WindowSize};
use ratatui_core::buffer::Cell;
use ratatui_core::layout::{Position, Size};
use ratatui_core::style::{Color, Modifier};
use rustix::termios::{LocalModes, OptionalActions, SpecialCodeIndex, Termios, tcgetattr, tcsetattr};

use crate::output;

/// To the other screen, without a cursor; and back, with one and without colours.
const ENTER: &str = "\x1b[?1049h\x1b[?25l\x1b[2J";
const LEAVE: &str = "\x1b[0m\x1b[?25h\x1b[?1049l";

/// How the terminal was, while it is not.
static BEFORE: Mutex<Option<Termios>> = Mutex::new(None);

/// Has the terminal until it is dropped.
#[derive(Debug)]
pub(super) struct Screen;

impl Screen {
    /// Takes the terminal. Ctrl-C stays a signal, which is heard where all signals are; Ctrl-Z and Ctrl-\ do nothing: they
    /// would leave the terminal as it is.
    ///
    /// # Errors
    /// Standard input is no terminal.
    pub(super) fn take() -> io::Result<Self> {
        static HOOK: Once = Once::new();
        HOOK.call_once(|| {
            let before = std::panic::take_hook();
            // A panic may end the program at once: nothing is dropped then.
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
        // From here on it is given back.
        let screen = Self;
        tcsetattr(&keyboard, OptionalActions::Now, &modes)?;
        write(ENTER)?;
        Ok(screen)
    }
}

impl Drop for Screen {
    fn drop(&mut self) {
        restore();
    }
}

fn lock() -> std::sync::MutexGuard<'static, Option<Termios>> {
    BEFORE.lock().unwrap_or_else(PoisonError::into_inner)
}

fn write(text: &str) -> io::Result<()> {
    let mut out = io::stdout();
    out.write_all(text.as_bytes())?;
    out.flush()
}

/// Gives the terminal back, if it was taken.
fn restore() {
    if let Some(before) = lock().take() {
        // Nobody is left to tell if the terminal is gone.
        let _ = write(LEAVE);
        let _ = tcsetattr(io::stdin(), OptionalActions::Now, &before);
    }
}

/// Draws by escape sequences.
#[derive(Debug)]
pub(super) struct Ansi<W> {
    out: W,
    /// Whether there are colours; bold and reversed text there is in any case.
    colours: bool,
}

impl<W: Write> Ansi<W> {
    pub(super) fn new(out: W, colours: bool) -> Self {
        Self { out, colours }
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
        let colour = match cell.fg {
            Color::Red => 31,
            Color::Green => 32,
            Color::Yellow => 33,
            Color::Blue => 34,
            Color::Magenta => 35,
            Color::Cyan => 36,
            _ => 39,
        };
        if self.colours && colour != 39 {
            write!(self.out, ";{colour}")?;
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
            // One that is two columns wide is moved behind anew.
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

    /// There is none to be seen: nothing is drawn in relation to it.
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
        let (rows, columns) = output::size().unwrap_or((24, 80));
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

    /// What the test below starts, on a terminal of its own.
    #[test]
    #[ignore = "takes the terminal and panics: the test below runs it"]
    #[should_panic(expected = "while the view is shown")]
    fn panics_while_it_has_the_terminal() {
        // A panic that ends the program at once drops nothing.
        std::mem::forget(Screen::take().expect("while the view is shown, on a terminal"));
        panic!("while the view is shown");
    }

    #[test]
    fn a_panic_gives_the_terminal_back_before_it_is_told() {
        let master = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY | OpenptFlags::CLOEXEC).unwrap();
        grantpt(&master).unwrap();
        unlockpt(&master).unwrap();
        let name = ptsname(&master, Vec::new()).unwrap();
        let terminal = || File::options().read(true).write(true).open(name.to_str().unwrap()).unwrap();
        // As long as somebody has it open, it can be read.
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
        // The last words of libtest: the result before them comes in pieces.
        while !shown.contains("finished in ") {
            let size = master.read(&mut bytes).unwrap();
            shown.push_str(&String::from_utf8_lossy(&bytes[..size]));
        }
        assert!(child.wait().unwrap().success(), "{shown}");
        assert!(shown.contains("1 passed"), "{shown}");
        let (_, after) = shown.split_once(ENTER).unwrap();
        let (view, told) = after.split_once(LEAVE).unwrap();
        assert!(!view.contains("while the view is shown"), "{shown}");
        assert!(told.contains("panicked at") && told.contains("while the view is shown"), "{shown}");
        assert_eq!(format!("{:?}", tcgetattr(&held).unwrap()), before);
    }

    #[test]
    fn cells_beside_each_other_are_one_text_and_colours_can_be_missing() {
        let cell = |symbol: &'static str, fg| {
            let mut cell = Cell::new(symbol);
            cell.fg = fg;
            cell
        };
        let cells =
            [cell("a", Color::Red), cell("b", Color::Red), cell("▸", Color::Reset), cell("c", Color::Reset)];
        let drawn = |colours| {
            let mut ansi = Ansi::new(Vec::new(), colours);
            ansi.draw((0..).zip(&cells).map(|(x, cell)| (x, 1, cell))).unwrap();
            String::from_utf8(ansi.out).unwrap()
        };
        assert_eq!(drawn(true), "\x1b[2;1H\x1b[0;31mab\x1b[0m▸\x1b[2;4Hc\x1b[0m");
        assert_eq!(drawn(false), "\x1b[2;1H\x1b[0mab\x1b[0m▸\x1b[2;4Hc\x1b[0m");
    }
}
