//! The tables of one decision (`plan`, `demo`, `test`, and the HTML pages), and the functions with which other commands print tables. The
//! short form folds long lists by law and by filter; the wide form has a row for each unit and node, the actions and the queues.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::io::IsTerminal;

use comfy_table::{Attribute, Cell, Color, ContentArrangement, Table, presets};
use jiff::{SignedDuration, Timestamp};
use reprieve_api::OutcomeName;
use reprieve_report::budget_report::violates;
use reprieve_report::decision::{
    ActionReport, DecisionReport, FlavorReport, PlaceResult, PlacementReport, SparedReport, UnitReport, VictimReport,
};
use reprieve_report::plural::count;
use reprieve_report::queue_report::{FormattedAmount, QueueAmounts, QueueReport};
use reprieve_report::quota_report::{CohortReport, FlavorQuotaReport};
use reprieve_report::return_report::{JUDGING_ENDED, NOT_RECREATED};

use crate::output::escaped;

/// The level of detail.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Detail {
    /// Long lists are folded.
    Short,
    /// All rows.
    Wide,
}

/// A table before it is rendered for a terminal or a page.
pub struct Rows {
    /// The titles of the columns.
    pub header: Vec<&'static str>,
    /// The rows.
    pub rows: Vec<Vec<String>>,
    /// The colour of the first column on a terminal.
    colour: Option<Color>,
}

impl Rows {
    fn new(header: &[&'static str], rows: impl Iterator<Item = Vec<String>>, colour: Option<Color>) -> Self {
        Self { header: header.to_vec(), rows: rows.collect(), colour }
    }

    /// Removes the last column.
    fn without_last(mut self) -> Self {
        self.header.pop();
        self.rows.iter_mut().for_each(|row| drop(row.pop()));
        self
    }
}

/// The output of `plan`.
pub fn decision(report: &DecisionReport, detail: Detail) -> String {
    let parts = parts(report, detail).into_iter();
    let tables = parts.map(|Rows { header, rows, colour }| table(header, rows.into_iter(), colour));
    let violations = report.explanation.budgets.iter().map(|budget| budget.sentence("the plan"));
    let ended = report.explanation.judging_ended.then(|| JUDGING_ENDED.to_owned());
    let lost = report.explanation.lost_work.filter(|_| detail == Detail::Wide);
    let lost = lost.map(|lost| format!("the victims lose {lost} of work on {} GPUs", lost.gpus));
    document(headline(report), violations.chain(ended).chain(lost), tables, &report.warnings)
}

/// A first line, the violated budgets below it, the tables that are not empty, and the warnings. `violations` and `warnings` are made safe
/// for a terminal here; `first_line` and `tables` must be safe already.
pub fn document(
    first_line: String,
    violations: impl Iterator<Item = String>,
    tables: impl IntoIterator<Item = String>,
    warnings: &[String],
) -> String {
    let mut text = first_line + "\n";
    violations.for_each(|violation| text.extend([&*escaped(&violation), "\n"]));
    for table in tables.into_iter().filter(|table| !table.is_empty()) {
        text.extend(["\n", &table, "\n"]);
    }
    warnings.iter().for_each(|warning| text.extend(["\nwarning: ", &escaped(warning), "\n"]));
    text
}

/// The tables of a decision, without empty ones.
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
        parts.push(queue_tree(&explanation.queues, report.policy));
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

/// The requirements that `--assume` treats as met, for the end of the first line.
pub fn assumed(requirements: &[&str]) -> String {
    match requirements {
        [] => String::new(),
        requirements => format!(" (assuming that {} are satisfied)", requirements.join(" and ")),
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
    let units = report.explanation.victims.iter().map(|victim| &victim.unit);
    let rows = report.explanation.victims.iter().map(|victim| {
        let running_for = |start: Timestamp| format_duration(report.now.duration_since(start));
        let running = victim.unit.started.map_or_else(|| "not started".to_owned(), running_for);
        let mut reason = victim.text.clone();
        if !victim.violates.is_empty() {
            let _ = write!(reason, "; {}", violates(&victim.violates));
        }
        let returns = victim.returns.as_ref().map(|returns| returns.text.clone()).unwrap_or_default();
        vec![unit_name(&victim.unit), victim.unit.priority.to_string(), place(&victim.unit), running, reason, returns]
    });
    let header = ["VICTIM", "PRIORITY", place_title(units), "RUNNING FOR", "REASON", "WHEN IT RETURNS"];
    let part = Rows::new(&header, rows, Some(Color::Red));
    let may_return =
        |victim: &VictimReport| victim.returns.as_ref().is_some_and(|returns| returns.result != NOT_RECREATED);
    if report.explanation.victims.iter().any(may_return) { part } else { part.without_last() }
}

/// The title of the column with [`place`].
fn place_title<'u>(mut units: impl Iterator<Item = &'u UnitReport>) -> &'static str {
    if units.any(|unit| unit.workload.is_some()) { "QUEUE" } else { "NODE" }
}

/// The nodes of a unit, or the queue of a workload.
fn place(unit: &UnitReport) -> String {
    match (&unit.workload, &unit.queue) {
        (Some(_), Some(queue)) => queue.clone(),
        _ => first_n_and_more(&unit.nodes, 2),
    }
}

/// The nodes of the placement or, if the outcome is `Wait`, the nodes to which the pods are nominated already.
fn placed(report: &DecisionReport, detail: Detail) -> Rows {
    let nominated = &report.answer.nominated;
    let shown = if detail == Detail::Wide { usize::MAX } else { 8 };
    let mut rows: Vec<Vec<String>> =
        nominated.iter().take(shown).map(|(pod, node)| vec![pod.clone(), node.clone()]).collect();
    if nominated.len() > shown {
        rows.push(vec![format!("… {} more", nominated.len() - shown), String::new()]);
    }
    let title = if report.answer.outcome == OutcomeName::Wait { "NOMINATED" } else { "PLACED" };
    Rows::new(&[title, "NODE"], rows.into_iter(), Some(Color::Green))
}

fn actions(actions: &[ActionReport]) -> Rows {
    let row = |action: &ActionReport| {
        let named = [&action.pod, &action.workload, &action.group].into_iter().find(|name| !name.is_empty());
        vec![action.action.to_owned(), named.cloned().unwrap_or_default(), action.text.clone()]
    };
    Rows::new(&["ACTION", "OBJECT", "DETAIL"], actions.iter().map(row), None)
}

fn flavors(flavors: &[FlavorReport]) -> Rows {
    let rows = flavors.iter().map(|flavor| {
        let short = flavor.short.iter().map(|(resource, amount)| format!("{amount} {resource}"));
        vec![
            flavor.name.clone(),
            flavor.pod_set.to_string(),
            flavor.mode.clone(),
            flavor.borrowing_level.to_string(),
            if flavor.chosen { "yes" } else { "" }.to_owned(),
            short.collect::<Vec<_>>().join(", "),
        ]
    });
    let part = Rows::new(&["FLAVOR", "POD SET", "MODE", "BORROWING LEVEL", "CHOSEN", "SHORT OF"], rows, None);
    if flavors.iter().all(|flavor| flavor.short.is_empty()) { part.without_last() } else { part }
}

fn spared(spared: &[SparedReport], detail: Detail) -> Rows {
    let (spared, not_reached): (Vec<_>, Vec<_>) = spared.iter().partition(|spared| spared.reached);
    // One row for all of them: they have the law `NotReached`.
    let not_reached = not_reached.first().map(|first| {
        let text = if not_reached.len() == 1 { &first.text } else { first.text_of_many() };
        (count(not_reached.len(), "unit", "units"), first.law.to_owned(), text.to_owned())
    });
    if detail == Detail::Wide {
        let rows = spared.iter().map(|spared| {
            let unit = &spared.unit;
            vec![unit_name(unit), unit.priority.to_string(), place(unit), spared.law.to_owned(), spared.text.clone()]
        });
        let last = not_reached.map(|(units, law, reason)| vec![units, String::new(), String::new(), law, reason]);
        let place_title = place_title(spared.iter().map(|spared| &spared.unit));
        return Rows::new(&["SPARED", "PRIORITY", place_title, "LAW", "REASON"], rows.chain(last), None);
    }
    // A row has one sentence, so units share it only if the sentence is true of each.
    let mut by_reason: BTreeMap<(&str, &str), Vec<&SparedReport>> = BTreeMap::new();
    for spared in spared {
        by_reason.entry((spared.law, spared.text_of_many())).or_default().push(spared);
    }
    let rows = by_reason.into_iter().map(|((law, text_of_many), spared)| {
        let names: Vec<String> = spared.iter().map(|spared| unit_name(&spared.unit)).collect();
        let equal_cost = spared.iter().filter(|spared| spared.equal_cost).count();
        let reason = match (spared.as_slice(), equal_cost) {
            ([single], _) => single.text.clone(),
            (_, 0) => text_of_many.to_owned(),
            (_, equal) => format!("{text_of_many}; equal cost for {equal} of them"),
        };
        vec![first_n_and_more(&names, 3), law.to_owned(), reason]
    });
    let last = not_reached.map(|(units, law, reason)| vec![units, law, reason]);
    Rows::new(&["SPARED", "LAW", "REASON"], rows.chain(last), None)
}

fn places(kind: &'static str, places: &[PlacementReport], detail: Detail) -> Vec<Rows> {
    if places.len() == 1 && places[0].result == PlaceResult::Chosen {
        return Vec::new();
    }
    if detail == Detail::Wide {
        let row = |place: &PlacementReport| {
            let filter = place.filter.unwrap_or_default().to_owned();
            let victims = place.victims.join(", ");
            vec![place.name.clone(), format!("{:?}", place.result), filter, place.text.clone(), victims]
        };
        // Of infeasible domains: what each node lacks for the first member of the group that has no node.
        let nodes = places.iter().flat_map(|place| &place.nodes);
        return vec![
            Rows::new(&[kind, "RESULT", "FILTER", "REASON", "VICTIMS"], places.iter().map(row), None),
            Rows::new(&["NODE", "MISSING"], nodes.map(|(node, missing)| vec![node.clone(), missing.clone()]), None),
        ];
    }
    let mut folded: BTreeMap<(String, Option<&str>), Vec<&PlacementReport>> = BTreeMap::new();
    for place in places {
        folded.entry((format!("{:?}", place.result), place.filter)).or_default().push(place);
    }
    let rows = folded.into_iter().map(|((result, filter), places)| {
        let names: Vec<String> = places.iter().map(|place| place.name.clone()).collect();
        let mut reason = places[0].text.clone();
        if places.iter().any(|place| place.text != reason) {
            reason = format!("e.g. {reason}");
        }
        vec![first_n_and_more(&names, 3), result, filter.unwrap_or_default().to_owned(), reason]
    });
    vec![Rows::new(&[kind, "RESULT", "FILTER", "REASON"], rows, None)]
}

/// The queue tree of YuniKorn or Koordinator with a bar for each resource: usage before and after, with a mark at the guarantee or min.
fn queue_tree(queues: &[QueueReport], policy: &str) -> Rows {
    // The queues from the root to the current one. A name that contains the parent's is shown without it.
    let mut path: Vec<&str> = Vec::new();
    let rows = queues.iter().flat_map(move |queue| {
        path.truncate(queue.depth);
        let below_parent = path.last().and_then(|parent| queue.name.strip_prefix(parent)?.strip_prefix('.'));
        let name = format!("{}{}", "  ".repeat(queue.depth), below_parent.unwrap_or(&queue.name));
        path.push(&queue.name);
        let text = |amount: &Option<FormattedAmount>| {
            amount.as_ref().map_or_else(|| "-".to_owned(), |amount| amount.text.clone())
        };
        let row = move |(index, (resource, amounts)): (usize, (&String, &QueueAmounts))| {
            let name = if index == 0 { name.clone() } else { String::new() };
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
    // Koordinator's `min` is no guarantee, and each policy has its own words for the two amounts.
    let [guarantee, limit] = if policy == "Koordinator" { ["MIN", "MAX"] } else { ["GUARANTEED", "MAXIMUM"] };
    Rows::new(&["QUEUE", "RESOURCE", guarantee, limit, "BEFORE", "AFTER"], rows, None)
}

/// The Kueue quota tree: bars have a mark at the nominal quota; usage beyond the mark is borrowed.
fn quota_tree(queues: &[CohortReport]) -> Rows {
    let rows = queues.iter().flat_map(|queue| {
        let name = format!("{}{}", "  ".repeat(queue.depth), queue.name);
        let row = move |(index, cell): (usize, &FlavorQuotaReport)| {
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
                if index == 0 { name.clone() } else { String::new() },
                format!("{} of {}", cell.resource, cell.flavor),
                cell.nominal.text.clone(),
                change(&cell.borrowed, &cell.borrowed_after),
                change(&cell.lent, &cell.lent_after),
                format!("{} {}", bar(&cell.used), cell.used.text),
                format!("{} {}", bar(&cell.after), cell.after.text),
                if index == 0 { share } else { String::new() },
            ]
        };
        queue.quota.iter().enumerate().map(row).collect::<Vec<_>>()
    });
    let part =
        Rows::new(&["QUEUE", "QUOTA", "NOMINAL", "BORROWED", "LENT", "BEFORE", "AFTER", "SHARE (‰)"], rows, None);
    if queues.iter().all(|queue| queue.share.is_none()) { part.without_last() } else { part }
}

/// `####|##..`: usage as a bar, with a mark at the guarantee. `scale` is the amount of a full bar, at least 1.
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
        bar.push(' '); // All bars have the same length.
    }
    bar
}

fn unit_name(unit: &UnitReport) -> String {
    if let Some(workload) = &unit.workload {
        return workload.clone();
    }
    if let Some(owner) = &unit.owner {
        return format!("gang (from {owner}) ({})", count(unit.pods.len(), "pod", "pods"));
    }
    match (&unit.group, unit.pods.as_slice()) {
        (Some(group), pods) => format!("{group} ({})", count(pods.len(), "pod", "pods")),
        (None, pods) => pods.join(", "),
    }
}

/// The first names of a list, and the number of the others.
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

/// A table without borders, as kubectl prints it; empty if there are no rows.
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
    for (index, column) in table.column_iter_mut().enumerate() {
        column.set_padding((if index == 0 { 0 } else { 1 }, 2));
    }
    let lines: Vec<String> = table.lines().map(|line| line.trim_end().to_owned()).collect();
    lines.join("\n")
}
