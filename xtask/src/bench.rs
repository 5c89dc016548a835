//! Prints a table of measurements, their goals, and the time that kube-scheduler or Kueue takes for the same decision.
//!
//! The programs of `reprieve-testkit` measure and print one figure per line. Instructions are counted if valgrind is installed: unlike times,
//! they hardly differ between runs and machines.

use std::path::Path;
use std::process::{Command, ExitCode, Stdio};

use crate::tasks::{cargo, output, release_folder};

/// Measures and prints the table. The exit status is 0 even if goals are missed, because times depend on the machine.
pub fn run(quick: bool) -> ExitCode {
    match measure(quick) {
        Ok(()) => ExitCode::SUCCESS,
        Err(problem) => {
            eprintln!("bench: {problem}");
            ExitCode::FAILURE
        }
    }
}

fn measure(quick: bool) -> Result<(), String> {
    cargo(&["build", "--quiet", "--release", "--package", "reprieve-testkit", "--bins"])?;
    let programs = release_folder()?;
    eprintln!("bench: times");
    let flags: &[&str] = if quick { &["--quick"] } else { &[] };
    let mut figures = figures(&programs.join("figures"), flags)?;
    eprintln!("bench: memory");
    figures.extend(self::figures(&programs.join("memory"), &[])?);
    let has_valgrind = Command::new("valgrind").arg("--version").output().is_ok_and(|output| output.status.success());
    if has_valgrind {
        // Building a large cluster under valgrind takes long, so a quick run counts only the scenarios with a goal and 10,000 pods.
        let is_quick = |figure: &Figure| figure.goal.is_some() && !figure.name.contains("5000");
        let is_counted = |figure: &&mut Figure| figure.kind == Kind::Decision && (!quick || is_quick(figure));
        for figure in figures.iter_mut().filter(is_counted) {
            eprintln!("bench: instructions of {}", figure.name);
            figure.instructions = Some(instructions(&programs.join("repeat"), &figure.name)?);
        }
    }
    print(&figures);
    if !has_valgrind {
        println!("no instruction counts: valgrind is missing (on Debian: apt-get install valgrind)");
    }
    Ok(())
}

/// The quantity that a figure measures.
#[derive(Clone, Copy, PartialEq)]
enum Kind {
    /// The time of a decision, in nanoseconds.
    Decision,
    /// Another time, in nanoseconds.
    Time,
    /// A ratio of two times.
    Ratio,
    /// Bytes per pod.
    Bytes,
}

struct Figure {
    name: String,
    kind: Kind,
    goal: Option<f64>,
    /// The median if the figure is a time.
    measured: f64,
    fastest: Option<f64>,
    peer: Option<f64>,
    note: String,
    instructions: Option<u64>,
}

fn figures(program: &Path, flags: &[&str]) -> Result<Vec<Figure>, String> {
    let program_path = program.display();
    let text = output(Command::new(program).args(flags).stderr(Stdio::inherit()))?;
    text.lines()
        .map(|line| figure(line).ok_or_else(|| format!("{program_path}: cannot parse the figure {line:?}")))
        .collect()
}

/// Parses a line: name, kind, goal, median, fastest, median of the peer, note, separated by tabs.
fn figure(line: &str) -> Option<Figure> {
    let fields: Vec<&str> = line.split('\t').collect();
    let [name, kind, goal, measured, fastest, peer, note] = fields.as_slice() else {
        return None;
    };
    let kind = match *kind {
        "decision" => Kind::Decision,
        "time" => Kind::Time,
        "ratio" => Kind::Ratio,
        "bytes" => Kind::Bytes,
        _ => return None,
    };
    Some(Figure {
        name: (*name).to_owned(),
        kind,
        goal: goal.parse().ok(),
        measured: measured.parse().ok()?,
        fastest: fastest.parse().ok(),
        peer: peer.parse().ok(),
        note: (*note).to_owned(),
        instructions: None,
    })
}

/// The mean number of instructions of three decisions.
fn instructions(program: &Path, name: &str) -> Result<u64, String> {
    const TIMES: u64 = 3;
    let output = Command::new("valgrind")
        .args(["--tool=callgrind", "--callgrind-out-file=/dev/null"])
        .args(["--collect-atstart=no", "--toggle-collect=*repeat::measured*"])
        .arg(program)
        .args([name, &TIMES.to_string()])
        .output()
        .map_err(|error| format!("cannot run valgrind: {error}"))?;
    let text = String::from_utf8_lossy(&output.stderr);
    let collected = text.lines().find_map(|line| line.split_once("Collected :")?.1.trim().parse::<u64>().ok());
    collected.map(|count| count / TIMES).ok_or_else(|| format!("valgrind printed no count for {name}: {text}"))
}

fn print(figures: &[Figure]) {
    let header = ["scenario", "goal", "median", "fastest", "of goal", "", "peer", "faster", "instructions", ""];
    let mut rows: Vec<[String; 10]> = vec![header.map(str::to_owned)];
    rows.extend(figures.iter().map(row));
    let width = |column: usize| rows.iter().map(|row| row[column].chars().count()).max().unwrap_or(0);
    let widths: Vec<usize> = (0..header.len()).map(width).collect();
    for row in &rows {
        let mut line = format!("{:1$}", row[0], widths[0]);
        for (column, cell) in row.iter().enumerate().skip(1) {
            // Text columns are left-aligned, numbers right-aligned.
            let pad = " ".repeat(widths[column] - cell.chars().count());
            line += &if matches!(column, 5 | 9) { format!("  {cell}{pad}") } else { format!("  {pad}{cell}") };
        }
        println!("{}", line.trim_end());
    }
    let has_missed = |figure: &&Figure| figure.goal.is_some_and(|goal| figure.measured > goal);
    let missed: Vec<&str> = figures.iter().filter(has_missed).map(|figure| figure.name.as_str()).collect();
    println!();
    match missed.as_slice() {
        [] => println!("all goals met"),
        missed => println!("missed goals: {}", missed.join(", ")),
    }
}

fn row(figure: &Figure) -> [String; 10] {
    let amount = |amount: f64| match figure.kind {
        Kind::Decision | Kind::Time => time(amount),
        Kind::Ratio => format!("x {amount:.2}"),
        Kind::Bytes => format!("{amount:.0} B/pod"),
    };
    let result = |goal: f64| if figure.measured > goal { "MISSED" } else { "met" };
    [
        figure.name.clone(),
        figure.goal.map(amount).unwrap_or_default(),
        amount(figure.measured),
        figure.fastest.map(amount).unwrap_or_default(),
        figure.goal.map(|goal| format!("{:.0}%", 100.0 * figure.measured / goal)).unwrap_or_default(),
        figure.goal.map(result).unwrap_or_default().to_owned(),
        figure.peer.map(time).unwrap_or_default(),
        figure.peer.map(|peer| format!("x {:.0}", peer / figure.measured)).unwrap_or_default(),
        figure.instructions.map(thousands).unwrap_or_default(),
        figure.note.clone(),
    ]
}

/// Three significant digits with a unit.
fn time(nanos: f64) -> String {
    let (amount, unit) = match nanos {
        nanos if nanos < 1e6 => (nanos / 1e3, "µs"),
        nanos if nanos < 1e9 => (nanos / 1e6, "ms"),
        nanos => (nanos / 1e9, "s"),
    };
    let decimals = if amount < 10.0 { 2 } else { usize::from(amount < 100.0) };
    format!("{amount:.decimals$} {unit}")
}

fn thousands(count: u64) -> String {
    let digits = count.to_string();
    let groups: Vec<&str> =
        digits.as_bytes().rchunks(3).rev().map(|group| std::str::from_utf8(group).expect("digits")).collect();
    groups.join(",")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn figures_are_formatted_with_units() {
        assert_eq!((time(64_075.0), time(2.4e6), time(15.0e9)), ("64.1 µs".into(), "2.40 ms".into(), "15.0 s".into()));
        assert_eq!((thousands(7), thousands(1_234_567)), ("7".into(), "1,234,567".into()));
    }

    #[test]
    fn line_without_goal_and_peer_is_a_figure() {
        let figure = figure("explain\ttime\t\t12\t11\t\t").unwrap();
        assert_eq!((figure.goal, figure.measured, figure.peer), (None, 12.0, None));
    }
}
