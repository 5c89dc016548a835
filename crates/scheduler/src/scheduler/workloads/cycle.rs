//! Who gets quota: the cycle of policy Kueue over all workloads that wait, run when something changed that it reads.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};

use reprieve_engine::fit::Preemptor;
use reprieve_engine::laws::Law;
use reprieve_engine::policy::Policy;
use reprieve_engine::policy::kueue::{self, Considered, Ground, noted_cycle};
use reprieve_engine::workloads::Queueing;
use reprieve_engine::{Outcome, Timestamp, WorkloadId};
use reprieve_objects::cycle::{admission, reason};
use reprieve_objects::kueue::AdmissionSpec;
use reprieve_objects::object::{Key, Kind, Object};
use reprieve_objects::objects::FullName;
use reprieve_objects::question::Question;
use reprieve_objects::report::report;

use super::super::say::matter;
use super::super::{HELD_BACK, Scheduler, Step, Verdict};
use crate::action::{Action, Target};
use crate::bug::{Bug, FATAL};
use crate::change::preempted_for;
use crate::pending::{PATIENCE_SECONDS, State};
use crate::unit::UnitName;

/// The law by which a workload waits that says what nobody understands.
const MISUNDERSTOOD: &str = "Misunderstood";

/// What a cycle says of a workload, in names.
enum Head {
    Admit(Box<AdmissionSpec>),
    Preempt(Vec<(FullName, Ground)>),
    Wait {
        law: &'static str,
        why: String,
        until: Option<Timestamp>,
        /// Whether that is true of all that ask for the same.
        for_all: bool,
    },
}

impl Scheduler {
    /// The next step of a cycle; a new one is run if anybody's turn has come.
    pub(in crate::scheduler) fn cycle(&mut self, now: Timestamp) -> Option<Step> {
        if self.decided.is_empty() {
            self.run_cycle(now);
        }
        self.decided.pop_front().or_else(|| self.follow_up())
    }

    fn run_cycle(&mut self, now: Timestamp) {
        let Policy::Kueue(policy) = self.policy else { return };
        let woken: Vec<UnitName> = self.pending.active().filter(|unit| is_workload(unit)).cloned().collect();
        if !self.pending.take_quota_news() && woken.is_empty() {
            return;
        }
        let fails = self.has(Bug::Panic);
        let is_aside = |name: &FullName| {
            let one = self.pending.get(&UnitName::Workload(name.clone()));
            one.is_some_and(|one| matches!(one.state, State::Aside { .. }))
        };
        let unknown = self.work.claims.sort(&self.live, &policy, is_aside);
        let next: Vec<UnitName> = self.work.claims.next().cloned().map(UnitName::Workload).collect();
        let held = self.held_back(&next, now);
        let loaded = self.live.loaded();
        let ids: Vec<WorkloadId> = next
            .iter()
            .filter(|unit| !held.contains_key(unit))
            .map(|unit| unit.key().name)
            .filter(|name| !is_aside(name))
            .filter_map(|name| loaded.names.workload_id(&name))
            .collect();
        let deciding = &mut self.deciding;
        let mut note = |workload| {
            let name = loaded.names.workload(workload);
            *deciding = Some(UnitName::Workload(name.clone()));
            assert!(!fails || name.name != FATAL, "a fault that is there on purpose");
        };
        let heads: Vec<(WorkloadId, UnitName, Head)> = noted_cycle(&loaded.snapshot, &policy, &ids, now, &mut note)
            .into_iter()
            .map(|head| {
                let unit = UnitName::Workload(loaded.names.workload(head.workload).clone());
                (head.workload, unit, self.named_head(&head))
            })
            .collect();
        for unit in &woken {
            self.wait_for_quota(unit, "NotFirst", None, "others of its queue come first");
        }
        for (unit, (victim, until)) in &held {
            let why = format!("{victim} was preempted for a workload that has yet to get its quota");
            self.wait_for_quota(unit, HELD_BACK, Some(*until), &why);
        }
        let mut misunderstood: Vec<(UnitName, String)> = Vec::new();
        for unit in unknown.into_iter().map(UnitName::Workload) {
            if let Some(fault) = self.live.fault_of(&unit.key()) {
                let why = format!("it cannot be understood: {}", fault.problem);
                self.wait_for_quota(&unit, MISUNDERSTOOD, None, &why);
                misunderstood.push((unit, why));
            }
        }
        // An action changes the tables, so whatever reads them comes first.
        let explained = heads.into_iter().map(|(id, unit, head)| {
            self.deciding = Some(unit.clone());
            let explains = self.explains && matches!(head, Head::Preempt(_));
            let question = Question { policy: self.policy, now, preemptor: Preemptor::Workload(id) };
            let report = explains.then(|| Box::new(report(&question, self.live.loaded_mut())));
            let record = self.recorded(&unit, &question);
            (unit, head, report, record)
        });
        for (unit, head, report, record) in explained.collect::<Vec<_>>() {
            let is_free = self.pending.get(&unit).is_some_and(|one| matches!(one.state, State::Change { .. }));
            if !is_free {
                continue;
            }
            self.deciding = Some(unit.clone());
            let verdict = self.carry_out(&unit, head, now);
            let actions = std::mem::take(&mut self.outbox);
            if !actions.is_empty() {
                self.decided.push_back(Step { unit: Some(unit), verdict, actions, report, record, violations: 0 });
            }
        }
        self.deciding = None;
        for (unit, message) in misunderstood {
            if let Some(workload) = self.work_target(&unit.key()) {
                self.refuse(&unit, workload, (MISUNDERSTOOD, &message), now);
            }
        }
    }

    /// Those who were preempted lately, while whoever they yielded to waits: what they left is not for them. In a queue that is
    /// strict nobody goes before them. By unit of those who are next: who was preempted, and until when that counts.
    fn held_back(&self, next: &[UnitName], now: Timestamp) -> BTreeMap<UnitName, (UnitName, Timestamp)> {
        let loaded = self.live.loaded();
        let mut held = BTreeMap::new();
        for unit in &self.work.claims.alone().cloned().map(UnitName::Workload).collect::<Vec<_>>() {
            let Some(Object::KueueWorkload(workload)) = self.live.get(&unit.key()) else { continue };
            let Some((preemptor, since)) = preempted_for(workload) else { continue };
            let until = since.plus_seconds(PATIENCE_SECONDS);
            if until <= now || self.pending.get(&UnitName::Workload(preemptor)).is_none() {
                continue;
            }
            held.insert(unit.clone(), (unit.clone(), until));
            let queue = |unit: &UnitName| {
                let workload = loaded.snapshot.workload(loaded.names.workload_id(&unit.key().name)?);
                Some((workload.queue?, (Reverse(workload.priority), workload.created, workload.rank)))
            };
            let Some((own, place)) = queue(unit) else { continue };
            if loaded.snapshot.quota_rules().queues[own.index()].queueing == Queueing::StrictFifo {
                let behind = |other: &&UnitName| queue(other).is_some_and(|(of, at)| of == own && at > place);
                for other in next.iter().filter(behind) {
                    held.entry(other.clone()).or_insert_with(|| (unit.clone(), until));
                }
            }
        }
        held
    }

    /// What a unit waits for from now on, unless it waits for an action, or backs off.
    fn wait_for_quota(&mut self, unit: &UnitName, law: &'static str, until: Option<Timestamp>, why: &str) {
        self.pending.refused_by(unit, law);
        let state_now = self.pending.get(unit).map(|waiting| &waiting.state);
        if matches!(state_now, Some(State::Active | State::Change { .. })) {
            self.pending.set(unit, State::Change { until, why: why.into() });
        }
    }

    fn named_head(&self, head: &Considered) -> Head {
        let loaded = self.live.loaded();
        if let kueue::Verdict::Decided(outcome) = &head.verdict {
            match (outcome, &head.assignment) {
                (Outcome::Schedule(_), Some(given)) => {
                    return Head::Admit(Box::new(admission(loaded, head.workload, given)));
                }
                (Outcome::Preempt(plan), _) => {
                    let victims = plan.victims.iter().zip(&plan.grounds).filter_map(|(unit, ground)| {
                        let workload = loaded.snapshot.unit(*unit).workload?;
                        Some((loaded.names.workload(workload).clone(), *ground))
                    });
                    return Head::Preempt(victims.collect());
                }
                _ => {}
            }
        }
        let until = match &head.verdict {
            kueue::Verdict::Decided(Outcome::Wait(Law::Delay { until })) => Some(*until),
            _ => None,
        };
        let (law, why) = reason(loaded, head);
        let for_all = matches!(head.verdict, kueue::Verdict::Decided(_));
        Head::Wait { law: law.unwrap_or("NoPlan"), why, until, for_all }
    }

    fn carry_out(&mut self, unit: &UnitName, head: Head, now: Timestamp) -> Verdict {
        let key = unit.key();
        let Some(target) = self.work_target(&key) else {
            return self.unsettled(unit);
        };
        match head {
            Head::Admit(admission) => {
                let message = format!("admitted by ClusterQueue {}", admission.cluster_queue);
                self.send(Action::Admit { workload: target, admission }, Some(unit), now);
                self.record(key, None, "Admitted", message, now);
                Verdict::Schedule { placement: Vec::new() }
            }
            Head::Preempt(victims) => self.evict_workloads(unit, &victims, now),
            Head::Wait { law, why, until, for_all } => {
                self.refuse(unit, target, (law, &why), now);
                self.wait_for_quota(unit, law, until, &why);
                let others = if for_all { self.work.claims.tell(&key.name) } else { BTreeSet::new() };
                for other in others.into_iter().map(UnitName::Workload).filter(|other| other != unit) {
                    match self.work_target(&other.key()) {
                        Some(target) => self.refuse(&other, target, (law, &why), now),
                        None => self.work.claims.put(&other.key().name),
                    }
                }
                Verdict::Wait { law, why }
            }
        }
    }

    /// Says on a workload that it has no quota, by which law, and why, unless that is said already.
    fn refuse(&mut self, unit: &UnitName, workload: Target, (law, why): (&'static str, &str), now: Timestamp) {
        if !self.was_refused(&unit.key(), law) {
            self.send(Action::Refuse { workload, message: format!("{law}: {why}") }, Some(unit), now);
        }
    }

    /// Those who hold quota that the unit is to have, and were not told so yet, are told to yield.
    fn evict_workloads(&mut self, unit: &UnitName, victims: &[(FullName, Ground)], now: Timestamp) -> Verdict {
        let staying: Vec<(Key, Ground)> = victims
            .iter()
            .filter(|(name, _)| !self.is_evicted(name))
            .map(|(name, ground)| (Key::new(Kind::KueueWorkload, name.clone()), *ground))
            .collect();
        let target = |key: &Key| self.work_target(key).filter(|_| self.assumed.is_settled(key.kind, &key.name));
        let targets = staying.iter().map(|(key, ground)| Some((key.clone(), target(key)?, *ground)));
        let Some(targets) = targets.collect::<Option<Vec<_>>>() else {
            return self.unsettled(unit);
        };
        for (key, workload, ground) in targets {
            let action = Action::EvictWorkload { workload, preemptor: unit.key().name, ground };
            self.send(action, Some(unit), now);
            let message = format!("preempted for {unit}: {ground:?}");
            self.record(key.clone(), Some(unit.key()), "Preempted", message, now);
            self.record(unit.key(), Some(key.clone()), "Preempting", format!("{key} yields for it"), now);
        }
        self.wait_for_quota(unit, "Underway", None, "its victims are leaving");
        Verdict::Preempt { placement: Vec::new(), victims: victims.iter().map(|(name, _)| name.clone()).collect() }
    }

    fn unsettled(&mut self, unit: &UnitName) -> Verdict {
        let why = "waits to know what became of it, or of its victims".to_owned();
        self.wait_for_quota(unit, "Unsettled", None, &why);
        Verdict::Wait { law: "Unsettled", why }
    }

    fn is_evicted(&self, workload: &FullName) -> bool {
        let loaded = self.live.loaded();
        let id = loaded.names.workload_id(workload);
        id.and_then(|id| loaded.snapshot.workload(id).admission.as_ref()).is_none_or(|admission| admission.evicted)
    }

    /// Whether it says on the workload that it has no quota by this law, and since when it has none.
    fn was_refused(&self, key: &Key, law: &str) -> bool {
        let Some(Object::KueueWorkload(workload)) = self.live.get(key) else { return true };
        let conditions = workload.status.iter().flat_map(|status| &status.conditions);
        let quota = conditions.into_iter().find(|condition| condition.type_ == "QuotaReserved");
        quota.is_some_and(|condition| condition.status == "False" && matter(&condition.message) == law)
    }
}

fn is_workload(unit: &UnitName) -> bool {
    matches!(unit, UnitName::Workload(_))
}
