//! Prints results and warnings. Each text is flushed, so that a failed write is an error of the command and an incomplete result is never
//! mistaken for a decision.

use std::borrow::Cow;
use std::io::Write;

use crate::input::Error;

/// Prints a text, with colours if standard output is a terminal.
pub fn print(text: &str) -> Result<(), Error> {
    let mut stdout = anstream::stdout().lock();
    stdout.write_all(text.as_bytes()).and_then(|()| stdout.flush()).map_err(Error::Output)
}

/// Prints a line.
pub fn line(text: &str) -> Result<(), Error> {
    print(&format!("{text}\n"))
}

/// The text with its control characters escaped: names come from the input and must not start a new line or change colours.
pub fn escaped(text: &str) -> Cow<'_, str> {
    if !text.contains(char::is_control) {
        return Cow::Borrowed(text);
    }
    let escape = |c: char| if c.is_control() { c.escape_default().to_string() } else { c.to_string() };
    Cow::Owned(text.chars().map(escape).collect())
}

/// Prints a line to standard error. A failure is ignored: there is no other place to report it.
pub fn note(text: &str) {
    let _ = writeln!(anstream::stderr(), "{text}");
}
