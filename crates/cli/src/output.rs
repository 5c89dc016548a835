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

/// The text with its control and format characters escaped: names come from the input and must not start a new line, change colours, or
/// change the order of what is shown.
pub fn escaped(text: &str) -> Cow<'_, str> {
    if text.bytes().all(|byte| matches!(byte, b' '..=b'~')) {
        return Cow::Borrowed(text);
    }
    let mut escaped = String::new();
    for character in text.chars() {
        match character {
            '"' | '\'' | '\\' => escaped.push(character),
            character => escaped.extend(character.escape_debug()),
        }
    }
    Cow::Owned(escaped)
}

/// Prints a line to standard error. A failure is ignored: there is no other place to report it.
pub fn note(text: &str) {
    let _ = writeln!(anstream::stderr(), "{text}");
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_cannot_change_what_a_terminal_shows() {
        for (text, shown) in [
            ("it's a \"pod\" in C:\\", "it's a \"pod\" in C:\\"),
            ("größer → €", "größer → €"),
            ("a\nPREEMPT", "a\\nPREEMPT"),
            ("\u{1b}[31mred", "\\u{1b}[31mred"),
            ("\u{202e}desrever", "\\u{202e}desrever"),
            ("a\u{200b}b\u{2028}\u{feff}", "a\\u{200b}b\\u{2028}\\u{feff}"),
        ] {
            assert_eq!(escaped(text), shown);
        }
    }
}
