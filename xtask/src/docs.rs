//! Checks the outputs in the documentation: runs the commands of its `console` blocks and compares their output. The commands run in the root
//! of the repository, with `reprieve` on the PATH; the variable DOCS names a temporary folder with the files of the `file=NAME` blocks.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{self, Stdio};

use crate::blocks::{Block, Command, blocks, matches};
use crate::tasks::{cargo, release_folder, root};

/// Runs all commands and fails if a status or an output differs.
pub fn check() -> Result<(), String> {
    let ran = run_all()?;
    let differs = |ran: &&Ran| !ran.has_documented_status() || !ran.has_documented_output();
    report(ran.iter().filter(differs), "if the new output is right, run `cargo xtask fix`")
}

/// Writes the actual outputs into the documentation. Fails if an exit status differs.
pub fn fix() -> Result<(), String> {
    let ran = run_all()?;
    for in_file in ran.chunk_by(|a, b| a.file == b.file) {
        write_outputs(&in_file[0].file, in_file)?;
    }
    report(ran.iter().filter(|ran| !ran.has_documented_status()), "correct the exit status by hand")
}

/// A command with its actual status and output.
struct Ran {
    file: PathBuf,
    command: Command,
    status: i32,
    output: Vec<String>,
}

impl Ran {
    fn has_documented_status(&self) -> bool {
        self.status == self.command.status
    }

    fn has_documented_output(&self) -> bool {
        matches(&self.command.output, &self.output)
    }
}

fn run_all() -> Result<Vec<Ran>, String> {
    cargo(&["build", "--locked", "--release", "-q"])?;
    let mut ran = Vec::new();
    for file in files()? {
        let text = fs::read_to_string(&file).map_err(|error| format!("{}: {error}", file.display()))?;
        let folder = Folder::new()?;
        for block in blocks(&text) {
            match block {
                Block::File { name, text } => folder.write(&name, &text)?,
                Block::Console(commands) => {
                    for command in commands {
                        let (status, output) = folder.run(&command.text)?;
                        ran.push(Ran { file: file.clone(), command, status, output });
                    }
                }
            }
        }
    }
    eprintln!("ran {} commands of the documentation", ran.len());
    Ok(ran)
}

fn report<'r>(differing: impl Iterator<Item = &'r Ran>, hint: &str) -> Result<(), String> {
    let mut count = 0;
    for ran in differing {
        count += 1;
        eprintln!("\n{}:{}: $ {}", relative(&ran.file), ran.command.lines.start, ran.command.text);
        if !ran.has_documented_status() {
            eprintln!("  exit status {}, documented is {}", ran.status, ran.command.status);
        }
        if !ran.has_documented_output() {
            ran.command.output.iter().for_each(|line| eprintln!("  - {line}"));
            ran.output.iter().for_each(|line| eprintln!("  + {line}"));
        }
    }
    if count == 0 {
        return Ok(());
    }
    Err(format!("{count} commands differ from the documentation (- documented, + actual); {hint}"))
}

/// Replaces the documented outputs that differ, from the last to the first, so that line numbers stay valid.
fn write_outputs(file: &Path, ran: &[Ran]) -> Result<(), String> {
    let problem = |error| format!("{}: {error}", file.display());
    let text = fs::read_to_string(file).map_err(problem)?;
    let mut lines: Vec<String> = text.lines().map(str::to_owned).collect();
    for Ran { command, output, .. } in ran.iter().rev().filter(|ran| !ran.has_documented_output()) {
        let indent = " ".repeat(command.indent);
        let indented = |line: &String| if line.is_empty() { String::new() } else { format!("{indent}{line}") };
        lines.splice(command.lines.clone(), output.iter().map(indented));
    }
    let mut new = lines.join("\n");
    new.push('\n');
    if new != text {
        fs::write(file, new).map_err(problem)?;
        eprintln!("{} rewritten", relative(file));
    }
    Ok(())
}

/// README.md, CONTRIBUTING.md and all Markdown files below docs.
fn files() -> Result<Vec<PathBuf>, String> {
    let mut files: Vec<PathBuf> = ["README.md", "CONTRIBUTING.md"].map(|name| root().join(name)).into();
    files.retain(|file| file.exists());
    let mut folders = vec![root().join("docs")];
    folders.retain(|folder| folder.exists());
    while let Some(folder) = folders.pop() {
        let problem = |error| format!("{}: {error}", folder.display());
        for entry in fs::read_dir(&folder).map_err(problem)? {
            let path = entry.map_err(problem)?.path();
            if path.is_dir() {
                folders.push(path);
            } else if path.extension().is_some_and(|extension| extension == "md") {
                files.push(path);
            }
        }
    }
    files.sort();
    Ok(files)
}

fn relative(file: &Path) -> String {
    file.strip_prefix(root()).unwrap_or(file).display().to_string()
}

/// A temporary folder, removed when it is dropped.
struct Folder(PathBuf);

impl Folder {
    fn new() -> Result<Self, String> {
        let path = std::env::temp_dir().join(format!("reprieve-docs-{}", process::id()));
        let _ = fs::remove_dir_all(&path); // from an earlier process with the same id
        fs::create_dir_all(&path).map_err(|error| format!("{}: {error}", path.display()))?;
        Ok(Self(path))
    }

    fn write(&self, name: &str, text: &str) -> Result<(), String> {
        let path = self.0.join(name);
        let folder = path.parent().unwrap_or(&self.0);
        fs::create_dir_all(folder)
            .and_then(|()| fs::write(&path, text))
            .map_err(|error| format!("{}: {error}", path.display()))
    }

    /// Runs a command. Returns its exit status and the lines of both outputs, with the folder's path replaced by `$DOCS`.
    fn run(&self, command: &str) -> Result<(i32, Vec<String>), String> {
        let mut path = release_folder()?.into_os_string();
        path.push(":");
        path.push(std::env::var_os("PATH").unwrap_or_default());
        let output = process::Command::new("bash")
            .args(["-eu", "-c", &format!("exec 2>&1\n{command}")])
            .current_dir(root())
            .env("PATH", path)
            .env("DOCS", &self.0)
            .env("NO_COLOR", "1")
            .env_remove("COLUMNS")
            .stdin(Stdio::null())
            .output()
            .map_err(|error| format!("cannot run bash: {error}"))?;
        let text = String::from_utf8_lossy(&output.stdout).replace(&*self.0.to_string_lossy(), "$DOCS");
        Ok((output.status.code().unwrap_or(-1), text.lines().map(str::to_owned).collect()))
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}
