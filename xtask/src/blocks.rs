//! Parses the executable blocks of a Markdown file: `console` blocks with commands, and blocks with `file=NAME`, which become files for the
//! commands.

use std::ops::Range;

/// An executable block.
#[derive(Debug, PartialEq)]
pub enum Block {
    /// The commands of a `console` block.
    Console(Vec<Command>),
    /// The text of a file.
    File { name: String, text: String },
}

/// A command with its documented status and output.
#[derive(Debug, PartialEq)]
pub struct Command {
    /// The text that bash runs.
    pub text: String,
    /// The documented exit status.
    pub status: i32,
    /// The documented output; a line `...` matches any number of lines.
    pub output: Vec<String>,
    /// The lines of the output in the file, counted from 0.
    pub lines: Range<usize>,
    /// The number of blanks before each of these lines.
    pub indent: usize,
}

/// The executable blocks of a file, in order.
pub fn blocks(text: &str) -> Vec<Block> {
    let lines: Vec<&str> = text.lines().collect();
    let mut blocks = Vec::new();
    let mut index = 0;
    while index < lines.len() {
        let fence = lines[index].trim_start();
        let indent = lines[index].len() - fence.len();
        index += 1;
        let Some(words) = fence.strip_prefix("```") else {
            continue;
        };
        let is_end = |line: &&str| line.trim() == "```";
        let end = index + lines[index..].iter().take_while(|line| !is_end(line)).count();
        let body = index..end;
        index = end + 1;
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
    let mut continues = false;
    for index in body {
        let line = without_indent(lines[index], indent);
        if let Some(text) = line.strip_prefix("$ ") {
            let (text, lines) = (text.to_owned(), index + 1..index + 1);
            commands.push(Command { status: status(&text), text, output: Vec::new(), lines, indent });
            continues = line.ends_with('\\');
        } else if let Some(command) = commands.last_mut() {
            command.lines.end = index + 1;
            if continues {
                command.text = format!("{}\n{line}", command.text);
                command.status = status(&command.text);
                command.lines.start = index + 1;
                continues = line.ends_with('\\');
            } else {
                command.output.push(line.to_owned());
            }
        }
    }
    commands
}

/// The exit status in the comment at the end of a command, such as `reprieve plan -f cluster.yaml # exit 2`; 0 without one.
fn status(command: &str) -> i32 {
    let comment = command.rsplit_once("# exit ").map(|(_, status)| status.trim());
    comment.and_then(|status| status.parse().ok()).unwrap_or(0)
}

fn without_indent(line: &str, indent: usize) -> &str {
    let blanks = line.bytes().take(indent).take_while(|byte| *byte == b' ').count();
    &line[blanks..]
}

/// Whether the output is as documented, where `...` matches any number of lines.
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
    fn commands_have_a_status_and_the_lines_of_their_output() {
        let text = "Text\n```console\n$ true\n$ echo a; false # exit 1\na\n```\n```\n$ not run\n```\n";
        let command = |text: &str, status, output: &[&str], lines| {
            let output = output.iter().map(|line| (*line).to_owned()).collect();
            Command { text: text.to_owned(), status, output, lines, indent: 0 }
        };
        let expected = vec![command("true", 0, &[], 3..3), command("echo a; false # exit 1", 1, &["a"], 4..5)];
        assert_eq!(blocks(text), [Block::Console(expected)]);
    }

    #[test]
    fn command_continues_after_a_backslash() {
        let Block::Console(commands) = &blocks("```console\n$ echo a \\\n    b\na b\n```").remove(0) else { panic!() };
        assert_eq!((commands[0].text.as_str(), &commands[0].lines), ("echo a \\\n    b", &(3..4)));
    }

    #[test]
    fn files_in_lists_lose_their_indent() {
        let text = "- see\n  ```yaml file=a.yaml\n  a:\n    b: 1\n  ```\n";
        assert_eq!(blocks(text), [Block::File { name: "a.yaml".to_owned(), text: "a:\n  b: 1\n".to_owned() }]);
    }

    #[test]
    fn dots_match_any_number_of_lines() {
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
