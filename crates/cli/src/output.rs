//! What is printed. Whoever stops reading, as `head` does, has read enough: that is no error.

use std::io::Write;

/// Prints a text; colours go where a terminal shows them.
pub fn print(text: &str) {
    let _ = anstream::stdout().write_all(text.as_bytes());
}

/// Prints a line.
pub fn line(text: &str) {
    print(&format!("{text}\n"));
}
