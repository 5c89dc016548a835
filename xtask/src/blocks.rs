//! The fenced blocks of a Markdown file that do something: `console` blocks, whose commands are run, and blocks with `file=NAME`,
//! which are written to a file for the commands to use.

use std::ops::Range;

/// A block that does something.
#[derive(Debug, PartialEq)]
pub enum Block {
    /// The commands of a `console` block.
    Console(Vec<Command>),
    /// What a file is to contain.
    File { name: String, text: String },
}

/// A command, and what must come of it.
#[derive(Debug, PartialEq)]
pub struct Command {
    /// What bash is to run.
    pub text: String,
    /// The exit status that is expected.
    pub status: i32,
    /// The lines of output that are expected; `...` stands for any number of lines.
    pub output: Vec<String>,
    /// Where these lines stand in the file, counted from 0.
    pub lines: Range<usize>,
    /// The blanks before each of them.
    pub indent: usize,
}

/// The blocks of a file, in their order.
pub fn blocks(text: &str) -> Vec<Block> {
    let lines: Vec<&str> = text.lines().collect();
    let mut blocks = Vec::new();
    let mut at = 0;
    while at < lines.len() {
        let fence = lines[at].trim_start();
        let indent = lines[at].len() - fence.len();
        at += 1;
        let Some(words) = fence.strip_prefix("```") else {
            continue;
        };
        let is_end = |line: &&str| line.trim() == "```";
        let end = at + lines[at..].iter().take_while(|line| !is_end(line)).count();
        let body = at..end;
        at = end + 1;
        let mut words = words.split_whitespace();
        let is_console = words.next() == Some("console");
        if is_console {
            blocks.push(Block::Console(commands(&lines, body, indent)));
        } else if let Some(name) = words.find_map(|word| word.strip_prefix("file=")) {
            let text = body.map(|line| format!("{}\n", without_indent(lines[line], indent))).collect();
            blocks.push(Block::File { name: name.to_owned(), text });
        }
    }
    blocks
}

fn commands(lines: &[&str], body: Range<usize>, indent: usize) -> Vec<Command> {
    let mut commands: Vec<Command> = Vec::new();
    let mut goes_on = false;
    for at in body {
        let line = without_indent(lines[at], indent);
        if let Some(text) = line.strip_prefix("$ ") {
            let (text, lines) = (text.to_owned(), at + 1..at + 1);
            commands.push(Command { status: status(&text), text, output: Vec::new(), lines, indent });
            goes_on = line.ends_with('\\');
        } else if let Some(command) = commands.last_mut() {
            command.lines.end = at + 1;
            if goes_on {
                command.text = format!("{}\n{line}", command.text);
                command.status = status(&command.text);
                command.lines.start = at + 1;
                goes_on = line.ends_with('\\');
            } else {
                command.output.push(line.to_owned());
            }
        }
    }
    commands
}

/// The status that a comment at the end of the command asks for: `reprieve plan -f cluster.yaml # exit 2`.
fn status(command: &str) -> i32 {
    let comment = command.rsplit_once("# exit ").map(|(_, status)| status.trim());
    comment.and_then(|status| status.parse().ok()).unwrap_or(0)
}

fn without_indent(line: &str, indent: usize) -> &str {
    let blanks = line.bytes().take(indent).take_while(|byte| *byte == b' ').count();
    &line[blanks..]
}

/// Whether the output is as expected, where `...` stands for any number of lines.
pub fn matches(expected: &[String], output: &[String]) -> bool {
    match expected {
        [] => output.is_empty(),
        [any, rest @ ..] if any == "..." => (0..=output.len()).any(|skipped| matches(rest, &output[skipped..])),
        [first, rest @ ..] => output.first() == Some(first) && matches(rest, &output[1..]),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lines(text: &str) -> Vec<String> {
        text.lines().map(str::to_owned).collect()
    }

    #[test]
    fn finds_commands_their_status_and_where_their_output_stands() {
        let text = "Text\n```console\n$ true\n$ echo a; false # exit 1\na\n```\n```\n$ not run\n```\n";
        let command = |text: &str, status, output: &[&str], lines| {
            let output = output.iter().map(|line| (*line).to_owned()).collect();
            Command { text: text.to_owned(), status, output, lines, indent: 0 }
        };
        let expected = vec![command("true", 0, &[], 3..3), command("echo a; false # exit 1", 1, &["a"], 4..5)];
        assert_eq!(blocks(text), [Block::Console(expected)]);
    }

    #[test]
    fn a_command_goes_on_after_a_backslash() {
        let Block::Console(commands) = &blocks("```console\n$ echo a \\\n    b\na b\n```").remove(0) else { panic!() };
        assert_eq!((commands[0].text.as_str(), &commands[0].lines), ("echo a \\\n    b", &(3..4)));
    }

    #[test]
    fn files_and_blocks_within_lists_lose_their_indent() {
        let text = "- see\n  ```yaml file=a.yaml\n  a:\n    b: 1\n  ```\n";
        assert_eq!(blocks(text), [Block::File { name: "a.yaml".to_owned(), text: "a:\n  b: 1\n".to_owned() }]);
    }

    #[test]
    fn dots_stand_for_any_number_of_lines() {
        for (expected, output, is_match) in [
            ("", "", true),
            ("a", "a", true),
            ("a", "a\nb", false),
            ("a\n...", "a", true),
            ("a\n...\nd", "a\nb\nc\nd", true),
            ("a\n...\nd", "a\nb\nc", false),
            ("...\nb\n...", "a\nb\nc", true),
            ("a ", "a", false),
        ] {
            assert_eq!(matches(&lines(expected), &lines(output)), is_match, "{expected:?} {output:?}");
        }
    }
}
