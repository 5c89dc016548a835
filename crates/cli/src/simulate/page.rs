//! The page of a simulation, and the command that makes it again.

use reprieve_simulator::input::SimulationInput;
use reprieve_simulator::summary::Summary;
use reprieve_simulator::trace::SkippedLines;

use super::show::{WAITING, figures, headline, skipped_lines};
use super::simulated::PolicyRun;
use crate::report::{self, Page};

/// The whole page.
pub fn page(blueprint: &SimulationInput, broken: &SkippedLines, simulated: &[PolicyRun], command: &str) -> String {
    let summaries: Vec<&Summary> = simulated.iter().map(|one| &one.summary).collect();
    let runs: Vec<report::PolicyRunPage<'_>> = simulated
        .iter()
        .map(|one| report::PolicyRunPage { policy: &one.summary.policy, run: &one.run, explained: &one.explained })
        .collect();
    let broken = skipped_lines(broken).map(|broken| format!("; {broken}")).unwrap_or_default();
    report::page(&Page {
        name: &blueprint.name,
        headline: &format!("{}{broken}", headline(blueprint).trim_end()),
        comparison: &figures(&summaries),
        legend: WAITING,
        runs: &runs,
        made_up: &blueprint.assumptions,
        command,
    })
}

/// A command of `reprieve` with these arguments, for a shell.
pub fn command(arguments: impl Iterator<Item = String>) -> String {
    let plain = |letter: char| letter.is_alphanumeric() || "-_./,=:@%+".contains(letter);
    let quoted = |argument: String| match !argument.is_empty() && argument.chars().all(plain) {
        true => argument,
        false => format!("'{}'", argument.replace('\'', r"'\''")),
    };
    std::iter::once("reprieve".to_owned()).chain(arguments.map(quoted)).collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use super::command;

    #[test]
    fn a_command_can_be_pasted_into_a_shell() {
        let arguments = ["simulate", "my day.yaml", "--report", "it's.html", ""].map(str::to_owned);
        assert_eq!(command(arguments.into_iter()), r"reprieve simulate 'my day.yaml' --report 'it'\''s.html' ''");
    }
}
