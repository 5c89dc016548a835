//! The command line that reproduces a page.

/// A command of `reprieve` with these arguments, quoted for a shell.
pub fn command(arguments: impl Iterator<Item = String>) -> String {
    let is_plain = |letter: char| letter.is_alphanumeric() || "-_./,=:@%+".contains(letter);
    let quoted = |argument: String| match !argument.is_empty() && argument.chars().all(is_plain) {
        true => argument,
        false => format!("'{}'", argument.replace('\'', r"'\''")),
    };
    std::iter::once("reprieve".to_owned()).chain(arguments.map(quoted)).collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use super::command;

    #[test]
    fn command_can_be_pasted_into_a_shell() {
        let arguments = ["simulate", "my day.yaml", "--report", "it's.html", ""].map(str::to_owned);
        assert_eq!(command(arguments.into_iter()), r"reprieve simulate 'my day.yaml' --report 'it'\''s.html' ''");
    }
}
