//! What the documentation shows is what happens: the commands in its `console` blocks are run, and their output is compared with what
//! stands below them. They run in the root of the repository, with `reprieve` on the PATH and with DOCS naming a fresh folder in which
//! the blocks with `file=NAME` are files.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{self, Stdio};

use crate::blocks::{Block, Command, blocks, matches};
use crate::tasks::{cargo, release_folder, root};

/// Runs everything and names whatever differs.
pub fn check() -> Result<(), String> {
    let ran = run_all()?;
    let differs = |ran: &&Ran| !ran.has_documented_status() || !ran.has_documented_output();
    report(ran.iter().filter(differs), "run `cargo xtask fix` if what happens is right")
}

/// Writes what happens into the documentation. An exit status that differs is left to a person.
pub fn fix() -> Result<(), String> {
    let ran = run_all()?;
    for in_file in ran.chunk_by(|one, other| one.file == other.file) {
        write_outputs(&in_file[0].file, in_file)?;
    }
    report(ran.iter().filter(|ran| !ran.has_documented_status()), "a status is not corrected by a machine")
}

/// A command that was run, and what came of it.
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
    eprintln!("{} commands of the documentation were run", ran.len());
    Ok(ran)
}

fn report<'r>(differing: impl Iterator<Item = &'r Ran>, hint: &str) -> Result<(), String> {
    let mut count = 0;
    for ran in differing {
        count += 1;
        eprintln!("\n{}:{}: $ {}", shown(&ran.file), ran.command.lines.start, ran.command.text);
        if !ran.has_documented_status() {
            eprintln!("  exit status {}, where {} is documented", ran.status, ran.command.status);
        }
        if !ran.has_documented_output() {
            ran.command.output.iter().for_each(|line| eprintln!("  - {line}"));
            ran.output.iter().for_each(|line| eprintln!("  + {line}"));
        }
    }
    if count == 0 {
        return Ok(());
    }
    Err(format!("{count} commands do not do what is documented (- documented, + happens); {hint}"))
}

/// Replaces the documented output of every command whose output differs, from the last to the first, so that places stay right.
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
        eprintln!("{} rewritten", shown(file));
    }
    Ok(())
}

/// README.md, CONTRIBUTING.md and everything below docs, as far as they exist.
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

fn shown(file: &Path) -> String {
    file.strip_prefix(root()).unwrap_or(file).display().to_string()
}

/// A fresh folder, gone when it is dropped.
struct Folder(PathBuf);

impl Folder {
    fn new() -> Result<Self, String> {
        let path = std::env::temp_dir().join(format!("reprieve-docs-{}", process::id()));
        let _ = fs::remove_dir_all(&path); // what an earlier run with the same number left behind
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

    /// The exit status, and the lines of both outputs as they come. The folder's own name is not shown.
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
            .map_err(|error| format!("bash could not be run: {error}"))?;
        let text = String::from_utf8_lossy(&output.stdout).replace(&*self.0.to_string_lossy(), "$DOCS");
        Ok((output.status.code().unwrap_or(-1), text.lines().map(str::to_owned).collect()))
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}
