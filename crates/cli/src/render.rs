//! A decision as a short table: what happens, to whom, and why. Long lists are folded by law and by filter; `wide` unfolds them.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::io::IsTerminal;

use comfy_table::{Attribute, Cell, Color, ContentArrangement, Table, presets};
use jiff::{SignedDuration, Timestamp};
use reprieve_api::test_file::OutcomeName;
use reprieve_report::budget_report::violates;
use reprieve_report::decision::{
    ActionReport, DecisionReport, FlavorReport, PlaceResult, PlacementReport, SparedReport, UnitReport,
};
use reprieve_report::plural::count;
use reprieve_report::queue_report::{FormattedAmount, QueueAmounts, QueueReport};
use reprieve_report::quota_report::{CohortReport, FlavorQuotaReport};

use crate::output::escaped;

/// How much is shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Detail {
    /// Lists are folded.
    Short,
    /// Everything.
    Wide,
}

/// A table of a decision, before it is drawn in a terminal or on a page.
pub struct Rows {
    /// What the columns are.
    pub header: Vec<&'static str>,
    /// The rows.
    pub rows: Vec<Vec<String>>,
    /// What the first column is shown in.
    colour: Option<Color>,
}

impl Rows {
    fn new<const N: usize>(
        header: [&'static str; N],
        rows: impl Iterator<Item = Vec<String>>,
        colour: Option<Color>,
    ) -> Self {
        Self { header: header.into(), rows: rows.collect(), colour }
    }

    /// The same without the last column, where no row has anything in it.
    fn without_last(mut self) -> Self {
        self.header.pop();
        self.rows.iter_mut().for_each(|row| drop(row.pop()));
        self
    }
}

/// The whole decision.
pub fn decision(report: &DecisionReport, detail: Detail) -> String {
    let mut text = headline(report);
    text.push('\n');
    for budget in &report.explanation.budgets {
        let _ = writeln!(text, "{}", escaped(&budget.sentence("the plan")));
    }
    for Rows { header, rows, colour } in parts(report, detail) {
        let _ = write!(text, "\n{}\n", table(header, rows.into_iter(), colour));
    }
    for warning in &report.warnings {
        let _ = write!(text, "\nwarning: {}\n", escaped(warning));
    }
    text
}

/// The tables of a decision that have rows.
pub fn parts(report: &DecisionReport, detail: Detail) -> Vec<Rows> {
    let explanation = &report.explanation;
    let mut parts = vec![victims(report), placed(report, detail), flavors(&explanation.flavors)];
    if detail == Detail::Wide {
        parts.push(actions(&explanation.actions));
    }
    parts.push(spared(&explanation.spared, detail));
    parts.extend(places("NODE", &explanation.nodes, detail));
    parts.extend(places("DOMAIN", &explanation.domains, detail));
    if detail == Detail::Wide {
        parts.push(queue_tree(&explanation.queues));
        parts.push(quota_tree(&explanation.quotas));
    }
    parts.retain(|part| !part.rows.is_empty());
    parts
}

/// The outcome in one line.
pub fn headline(report: &DecisionReport) -> String {
    let outcome = report.answer.outcome;
    let style = anstyle::Style::new().bold().fg_color(Some(colour(outcome).into()));
    let assumed = assumed(&report.assumed);
    let summary = escaped(&report.explanation.summary);
    format!("{style}{}{style:#}  {summary}{assumed}", format!("{outcome:?}").to_uppercase())
}

/// What was taken for met, at the end of a first line.
pub fn assumed(words: &[&str]) -> String {
    match words {
        [] => String::new(),
        words => format!(" (assuming that its {} are satisfied)", words.join(" and ")),
    }
}

fn colour(outcome: OutcomeName) -> anstyle::AnsiColor {
    match outcome {
        OutcomeName::Schedule => anstyle::AnsiColor::Green,
        OutcomeName::Preempt => anstyle::AnsiColor::Yellow,
        OutcomeName::Wait => anstyle::AnsiColor::Cyan,
        OutcomeName::Unschedulable => anstyle::AnsiColor::Red,
    }
}

fn victims(report: &DecisionReport) -> Rows {
    let rows = report.explanation.victims.iter().map(|victim| {
        let ran_for = |start: Timestamp| format_duration(report.now.duration_since(start));
        let ran = victim.unit.started.map_or_else(|| "not started".to_owned(), ran_for);
        let mut why = victim.text.clone();
        if !victim.violates.is_empty() {
            let _ = write!(why, "; {}", violates(&victim.violates));
        }
        vec![unit_name(&victim.unit), victim.unit.priority.to_string(), place(&victim.unit), ran, why]
    });
    Rows::new(["VICTIM", "PRIORITY", "WHERE", "RAN FOR", "WHY IT CANNOT STAY"], rows, Some(Color::Red))
}

/// The nodes of a unit; a workload's queue.
fn place(unit: &UnitReport) -> String {
    match (&unit.workload, &unit.queue) {
        (Some(_), Some(queue)) => queue.clone(),
        _ => first_n_and_more(&unit.nodes, 2),
    }
}

fn placed(report: &DecisionReport, detail: Detail) -> Rows {
    let nominated = &report.answer.nominated;
    let shown = if detail == Detail::Wide { usize::MAX } else { 8 };
    let mut rows: Vec<Vec<String>> =
        nominated.iter().take(shown).map(|(pod, node)| vec![pod.clone(), node.clone()]).collect();
    if nominated.len() > shown {
        rows.push(vec![format!("… {} more", nominated.len() - shown), String::new()]);
    }
    let title = if report.answer.outcome == OutcomeName::Wait { "NOMINATED" } else { "PLACED" };
    Rows::new([title, "NODE"], rows.into_iter(), Some(Color::Green))
}

fn actions(actions: &[ActionReport]) -> Rows {
    let row = |action: &ActionReport| {
        let named = [&action.pod, &action.workload, &action.group].into_iter().find(|name| !name.is_empty());
        let whom = named.cloned().unwrap_or_default();
        vec![action.action.to_owned(), whom, action.text.clone()]
    };
    Rows::new(["TO DO", "TO WHOM", ""], actions.iter().map(row), None)
}

fn flavors(flavors: &[FlavorReport]) -> Rows {
    let rows = flavors.iter().map(|flavor| {
        let short = flavor.short.iter().map(|(resource, amount)| format!("{amount} {resource}"));
        vec![
            flavor.name.clone(),
            flavor.pod_set.to_string(),
            flavor.mode.clone(),
            flavor.borrowing_level.to_string(),
            if flavor.chosen { "taken" } else { "" }.to_owned(),
            short.collect::<Vec<_>>().join(", "),
        ]
    });
    let part = Rows::new(["FLAVOR", "POD SET", "MODE", "BORROWS UP", "", "SHORT OF"], rows, None);
    if flavors.iter().all(|flavor| flavor.short.is_empty()) { part.without_last() } else { part }
}

fn spared(spared: &[SparedReport], detail: Detail) -> Rows {
    let (spared, not_reached): (Vec<_>, Vec<_>) = spared.iter().partition(|spared| spared.reached);
    // Where the search looked at no unit at all, a table of units says nothing.
    let not_reached = not_reached.first().filter(|_| !spared.is_empty()).map(|first| {
        (count(not_reached.len(), "unit", "units"), first.law.to_owned(), first.text_of_many().to_owned())
    });
    if detail == Detail::Wide {
        let rows = spared.iter().map(|spared| {
            let unit = &spared.unit;
            vec![unit_name(unit), unit.priority.to_string(), place(unit), spared.law.to_owned(), spared.text.clone()]
        });
        let last = not_reached.map(|(units, law, why)| vec![units, String::new(), String::new(), law, why]);
        return Rows::new(["SPARED", "PRIORITY", "WHERE", "LAW", "WHY"], rows.chain(last), None);
    }
    let mut by_law: BTreeMap<&str, Vec<&SparedReport>> = BTreeMap::new();
    for spared in spared {
        by_law.entry(spared.law).or_default().push(spared);
    }
    let rows = by_law.into_iter().map(|(law, spared)| {
        let names: Vec<String> = spared.iter().map(|spared| unit_name(&spared.unit)).collect();
        let why = match spared.as_slice() {
            [one] => one.text.clone(),
            many => match many.iter().filter(|spared| spared.equal_cost).count() {
                0 => many[0].text_of_many().to_owned(),
                equal => format!("{}; equal cost for {equal} of them", many[0].text_of_many()),
            },
        };
        vec![first_n_and_more(&names, 3), law.to_owned(), why]
    });
    let last = not_reached.map(|(units, law, why)| vec![units, law, why]);
    Rows::new(["SPARED", "LAW", "WHY"], rows.chain(last), None)
}

fn verdict(place: &PlacementReport) -> &'static str {
    match place.verdict {
        PlaceResult::Chosen => "Chosen",
        PlaceResult::HigherCost => "HigherCost",
        PlaceResult::EqualCost => "EqualCost",
        PlaceResult::Infeasible => "Infeasible",
    }
}

fn places(kind: &'static str, places: &[PlacementReport], detail: Detail) -> Vec<Rows> {
    let trivial = places.len() == 1 && places[0].verdict == PlaceResult::Chosen;
    if trivial {
        return Vec::new();
    }
    if detail == Detail::Wide {
        let row = |place: &PlacementReport| {
            let filter = place.filter.unwrap_or_default().to_owned();
            let victims = place.victims.join(", ");
            vec![place.name.clone(), verdict(place).to_owned(), filter, place.text.clone(), victims]
        };
        let members = places.iter().flat_map(|place| &place.nodes);
        return vec![
            Rows::new([kind, "VERDICT", "FILTER", "WHY", "WOULD TAKE"], places.iter().map(row), None),
            Rows::new(["NODE", "WHAT IT LACKS"], members.map(|(node, why)| vec![node.clone(), why.clone()]), None),
        ];
    }
    let mut folded_places: BTreeMap<(&str, Option<&str>), Vec<&PlacementReport>> = BTreeMap::new();
    for place in places {
        folded_places.entry((verdict(place), place.filter)).or_default().push(place);
    }
    let rows = folded_places.into_iter().map(|((verdict, filter), places)| {
        let names: Vec<String> = places.iter().map(|place| place.name.clone()).collect();
        let mut why = places[0].text.clone();
        if places.iter().any(|place| place.text != why) {
            why = format!("e.g. {why}");
        }
        vec![first_n_and_more(&names, 3), verdict.to_owned(), filter.unwrap_or_default().to_owned(), why]
    });
    vec![Rows::new([kind, "VERDICT", "FILTER", "WHY"], rows, None)]
}

/// The tree with a bar for each resource: what is used before and after, up to the guarantee and beyond it.
fn queue_tree(queues: &[QueueReport]) -> Rows {
    let rows = queues.iter().flat_map(|queue| {
        let leaf = queue.name.rsplit('.').next().unwrap_or_default();
        let name = format!("{}{leaf}", "  ".repeat(queue.depth));
        let text = |amount: &Option<FormattedAmount>| {
            amount.as_ref().map_or_else(|| "-".to_owned(), |amount| amount.text.clone())
        };
        let row = move |(at, (resource, amounts)): (usize, (&String, &QueueAmounts))| {
            let name = if at == 0 { name.clone() } else { String::new() };
            let QueueAmounts { guarantee, maximum, used, after } = amounts;
            let numbers = [used, after].into_iter().chain(guarantee).chain(maximum).map(|amount| amount.number);
            let scale = numbers.max().unwrap_or(1).max(1);
            let bar =
                |amount: &FormattedAmount| bar(amount.number, guarantee.as_ref().map(|amount| amount.number), scale);
            vec![
                name,
                resource.clone(),
                text(guarantee),
                text(maximum),
                format!("{} {}", bar(used), used.text),
                format!("{} {}", bar(after), after.text),
            ]
        };
        queue.resources.iter().enumerate().map(row).collect::<Vec<_>>()
    });
    Rows::new(["QUEUE", "RESOURCE", "GUARANTEED", "MAXIMUM", "BEFORE", "AFTER"], rows, None)
}

/// The same for quotas that are lent: the bar ends where the queue's own does, and whatever is beyond is borrowed.
fn quota_tree(queues: &[CohortReport]) -> Rows {
    let rows = queues.iter().flat_map(|queue| {
        let name = format!("{}{}", "  ".repeat(queue.depth), queue.name);
        let row = move |(at, cell): (usize, &FlavorQuotaReport)| {
            let scale = [&cell.nominal, &cell.used, &cell.after].map(|amount| amount.number).into_iter().max();
            let bar =
                |amount: &FormattedAmount| bar(amount.number, Some(cell.nominal.number), scale.unwrap_or(1).max(1));
            let change = |before: &FormattedAmount, after: &FormattedAmount| match before == after {
                true => before.text.clone(),
                false => format!("{} → {}", before.text, after.text),
            };
            let share = match (&queue.share, &queue.share_after) {
                (Some(before), Some(after)) if before != after => format!("{before} → {after}"),
                (share, _) => share.clone().unwrap_or_default(),
            };
            vec![
                if at == 0 { name.clone() } else { String::new() },
                format!("{} of {}", cell.resource, cell.flavor),
                cell.nominal.text.clone(),
                change(&cell.borrowed, &cell.borrowed_after),
                change(&cell.lent, &cell.lent_after),
                format!("{} {}", bar(&cell.used), cell.used.text),
                format!("{} {}", bar(&cell.after), cell.after.text),
                if at == 0 { share } else { String::new() },
            ]
        };
        queue.quota.iter().enumerate().map(row).collect::<Vec<_>>()
    });
    let part = Rows::new(["QUEUE", "QUOTA", "NOMINAL", "BORROWED", "LENT", "BEFORE", "AFTER", "SHARE"], rows, None);
    if queues.iter().all(|queue| queue.share.is_none()) { part.without_last() } else { part }
}

/// `####|##..`: what is used, with a stroke where the guarantee ends.
fn bar(used: i64, guarantee: Option<i64>, scale: i64) -> String {
    const WIDTH: i64 = 16;
    let cells = |amount: i64| (i128::from(amount.clamp(0, scale)) * i128::from(WIDTH) / i128::from(scale)) as i64;
    let (filled, mark) = (cells(used), guarantee.map(cells));
    let mut bar = String::new();
    for cell in 0..=WIDTH {
        if mark == Some(cell) {
            bar.push('|');
        }
        if cell < WIDTH {
            bar.push(if cell < filled { '#' } else { '.' });
        }
    }
    if mark.is_none() {
        bar.push(' '); // so that all bars are of one length
    }
    bar
}

fn unit_name(unit: &UnitReport) -> String {
    if let Some(workload) = &unit.workload {
        return workload.clone();
    }
    match (&unit.group, unit.pods.as_slice()) {
        (Some(group), pods) => format!("{group} ({})", count(pods.len(), "pod", "pods")),
        (None, pods) => pods.join(", "),
    }
}

/// The first few of a list, and how many more there are.
pub fn first_n_and_more(names: &[String], shown: usize) -> String {
    if names.len() <= shown {
        return names.join(", ");
    }
    format!("{} and {} more", names[..shown].join(", "), names.len() - shown)
}

/// `3d4h`, `5h12m`, `40s`.
pub fn format_duration(duration: SignedDuration) -> String {
    let seconds = duration.as_secs().max(0);
    let (days, hours, minutes) = (seconds / 86_400, seconds / 3_600 % 24, seconds / 60 % 60);
    match (days, hours, minutes) {
        (0, 0, 0) => format!("{seconds}s"),
        (0, 0, _) => format!("{minutes}m"),
        (0, _, 0) => format!("{hours}h"),
        (0, _, _) => format!("{hours}h{minutes}m"),
        (_, 0, _) => format!("{days}d"),
        (_, _, _) => format!("{days}d{hours}h"),
    }
}

/// A table without lines, as kubectl prints them; empty where there are no rows.
pub fn table<'t>(
    header: impl IntoIterator<Item = &'t str>,
    rows: impl Iterator<Item = Vec<String>>,
    first_column: Option<Color>,
) -> String {
    let mut table = Table::new();
    table.load_preset(presets::NOTHING);
    let arrangement =
        if std::io::stdout().is_terminal() { ContentArrangement::Dynamic } else { ContentArrangement::Disabled };
    table.set_content_arrangement(arrangement);
    table.set_header(header.into_iter().map(|title| Cell::new(title).add_attribute(Attribute::Bold)));
    for row in rows {
        let mut cells: Vec<Cell> = row.iter().map(|text| Cell::new(escaped(text))).collect();
        if let (Some(colour), Some(first)) = (first_column, cells.first_mut()) {
            *first = std::mem::replace(first, Cell::new("")).fg(colour);
        }
        table.add_row(cells);
    }
    if table.row_iter().next().is_none() {
        return String::new();
    }
    for (at, column) in table.column_iter_mut().enumerate() {
        column.set_padding((if at == 0 { 0 } else { 1 }, 2));
    }
    let lines: Vec<String> = table.lines().map(|line| line.trim_end().to_owned()).collect();
    lines.join("\n")
}
