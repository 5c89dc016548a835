//! The state machine: what it knows, and one step of its life.

mod observe;
mod outside;
mod preempt;
mod say;
mod workloads;

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::Arc;

use reprieve_engine::fit::Preemptor;
use reprieve_engine::hold::{could_fit, next_toleration_end};
use reprieve_engine::laws::Law;
use reprieve_engine::policy::Policy;
use reprieve_engine::{Outcome, PodId, QueueId, Timestamp};
use reprieve_objects::budget_report::pods_against_budgets;
use reprieve_objects::live::Live;
use reprieve_objects::load::Loaded;
use reprieve_objects::object::{Key, Kind, Object};
use reprieve_objects::objects::FullName;
use reprieve_objects::pod::Pod;
use reprieve_objects::question::Question;
use reprieve_objects::report::{Report, report};
use reprieve_objects::source::InputError;
use reprieve_objects::test_file::Profile;
use reprieve_objects::words;

use crate::action::{Action, ActionId, Target};
use crate::assumed::Assumed;
use crate::bug::{Bug, FATAL};
use crate::likeness::{Likeness, Looks};
use crate::pending::{CrowdId, Pending, Place, State, Waits};
use crate::roll::Roll;
use crate::unit::UnitName;
use workloads::Work;

pub use outside::Recorded;

/// How long a scheduler that was just started waits for what another one may have asked for to be done and seen.
pub const SETTLE_SECONDS: i64 = 1;

/// The law by which a unit waits for another that has waited longer.
const HELD_BACK: &str = "HeldBack";

/// The scheduler of the pods that name it.
pub struct Scheduler {
    name: String,
    policy: Policy,
    /// Whether every preemption is explained.
    explains: bool,
    /// The cluster as it will be if what is under way works.
    live: Live,
    /// The pods as the API has them.
    pods: BTreeMap<FullName, Arc<Pod>>,
    /// By object: the last version that was seen, of it or of its end.
    versions: BTreeMap<Key, Version>,
    assumed: Assumed,
    pending: Pending,
    roll: Roll,
    in_flight: BTreeMap<ActionId, Flight>,
    /// Pods that are being read anew.
    unsettled: BTreeSet<FullName>,
    /// By preemptor: who was told to yield for it.
    marks: BTreeMap<UnitName, BTreeSet<FullName>>,
    /// Preemptors that wait no longer, though somebody was told to yield for them.
    left_behind: BTreeSet<UnitName>,
    /// PodGroups that changed, or whose pods did: what is said of them is yet to be seen.
    unjudged: BTreeSet<FullName>,
    /// The workloads and Jobs of policy Kueue.
    work: Work,
    /// Steps of a cycle that were decided and not yet told.
    decided: VecDeque<Step>,
    /// Actions that no decision led to.
    outbox: Vec<(ActionId, Action)>,
    /// Kinds that were not listed yet: nothing is decided before.
    unlisted: BTreeSet<Kind>,
    /// By kind: as of which version it was listed last.
    listed: BTreeMap<Kind, u64>,
    next_action: u64,
    timer: Option<Timestamp>,
    settling: Settling,
    /// Counts changes of the cluster.
    generation: u64,
    /// Who is being decided: it is known even if that fails by a fault.
    deciding: Option<UnitName>,
    /// How the policy is written where every decision is recorded.
    recorded_as: Option<Profile>,
    looks: Looks,
    /// For which tables that is good.
    looks_of: u64,
    /// Who is next under YuniKorn, as of a generation: by the place of its queue.
    fair_order: (u64, BTreeSet<(usize, Place, Option<CrowdId>)>),
    #[cfg(feature = "deliberate-bugs")]
    bug: Option<Bug>,
}

/// A version of an object, and which of its name it was.
struct Version {
    version: u64,
    gone: bool,
}

/// What another scheduler asked for before this one was started may still be done. So it lets a moment pass, and lists
/// again what it changes itself.
#[derive(PartialEq, Eq)]
enum Settling {
    Started,
    Quiet(Timestamp),
    Listing(BTreeSet<Kind>),
    Settled,
}

/// An action that is under way.
struct Flight {
    action: Action,
    /// Who waits for it.
    unit: Option<UnitName>,
    /// The action whose outcome this one is to find out.
    settles: Option<ActionId>,
    /// Of an eviction: for whom, and why. It is recorded once it is known to have worked.
    preempts: Option<(Key, String)>,
}

/// A step: who was decided, what came of it, what is to be done.
#[derive(Debug)]
pub struct Step {
    /// Who was decided; `None` where the step only follows up on others.
    pub unit: Option<UnitName>,
    /// What came of it.
    pub verdict: Verdict,
    /// What is to be done, in parallel.
    pub actions: Vec<(ActionId, Action)>,
    /// Why, if that was asked for and somebody has to yield.
    pub report: Option<Box<Report>>,
    /// The decision as a file, if that was asked for.
    pub record: Option<Recorded>,
    /// How many pods it evicts although a disruption budget allows no more disruption of them.
    pub violations: usize,
}

/// What came of a step.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// Nothing was decided.
    FollowUp,
    /// Its pods are bound.
    Schedule {
        /// Pod to node.
        placement: Vec<(FullName, String)>,
    },
    /// It is prepared that these yield: pods are nominated, victims marked. Nobody is evicted.
    Prepare {
        /// Pod to node.
        placement: Vec<(FullName, String)>,
        /// Who is to yield.
        victims: Vec<FullName>,
    },
    /// The preparations stand and the decision is the same: these are evicted.
    Preempt {
        /// Pod to node.
        placement: Vec<(FullName, String)>,
        /// Who yields.
        victims: Vec<FullName>,
    },
    /// It waits.
    Wait {
        /// The law's name.
        law: &'static str,
        /// In words.
        why: String,
    },
    /// It cannot be scheduled as things are.
    Unschedulable {
        /// The law's name.
        law: &'static str,
        /// In words.
        why: String,
    },
}

/// What became of a decision.
struct Decided {
    verdict: Verdict,
    report: Option<Box<Report>>,
    record: Option<Recorded>,
    violations: usize,
}

impl From<Verdict> for Decided {
    fn from(verdict: Verdict) -> Self {
        Self { verdict, report: None, record: None, violations: 0 }
    }
}

impl Scheduler {
    /// A scheduler of the pods that name it, that knows of nothing yet.
    pub fn new(name: &str, policy: Policy) -> Self {
        Self {
            name: name.to_owned(),
            policy,
            explains: false,
            live: Live::default().for_scheduler(name, &policy),
            pods: BTreeMap::new(),
            versions: BTreeMap::new(),
            assumed: Assumed::default(),
            pending: Pending::default(),
            roll: Roll::default(),
            in_flight: BTreeMap::new(),
            unsettled: BTreeSet::new(),
            marks: BTreeMap::new(),
            left_behind: BTreeSet::new(),
            unjudged: BTreeSet::new(),
            work: Work::default(),
            decided: VecDeque::new(),
            outbox: Vec::new(),
            unlisted: Kind::ALL.iter().copied().collect(),
            listed: BTreeMap::new(),
            next_action: 0,
            timer: None,
            settling: Settling::Started,
            generation: 0,
            deciding: None,
            recorded_as: None,
            looks: Looks::default(),
            looks_of: 0,
            fair_order: (0, BTreeSet::new()),
            #[cfg(feature = "deliberate-bugs")]
            bug: None,
        }
    }

    /// The same, with an explanation of every preemption.
    pub fn explaining(mut self) -> Self {
        self.explains = true;
        self
    }

    /// The same, with a bug.
    #[cfg(feature = "deliberate-bugs")]
    pub fn with_bug(mut self, bug: Option<Bug>) -> Self {
        self.bug = bug;
        self
    }

    /// Whether it has this bug; none has, except in tests.
    fn has(&self, bug: Bug) -> bool {
        #[cfg(feature = "deliberate-bugs")]
        return self.bug == Some(bug);
        #[cfg(not(feature = "deliberate-bugs"))]
        return match bug {
            Bug::SecondRound
            | Bug::HalfAGang
            | Bug::ForgottenNomination
            | Bug::TrustedTimeout
            | Bug::IgnoredFence
            | Bug::EarlyQuota
            | Bug::Panic => false,
        };
    }

    /// The policy it decides by.
    pub fn policy(&self) -> &Policy {
        &self.policy
    }

    /// The cluster as it will be if what is under way works.
    pub fn live(&self) -> &Live {
        &self.live
    }

    /// All units that wait, and what each waits for.
    pub fn waiting(&self) -> impl Iterator<Item = (&UnitName, String)> {
        self.pending.iter().map(|(unit, waiting)| (unit, self.pending.why(&waiting.state).to_owned()))
    }

    /// The next step; `None` when there is nothing to do until the next event.
    pub fn step(&mut self, now: Timestamp) -> Option<Step> {
        if !self.unlisted.is_empty() {
            return self.follow_up();
        }
        if !self.is_settled(now) {
            return self.follow_up();
        }
        if let Err(error) = self.live.refresh() {
            let message = format!("{error}; what was in force before stays");
            self.record(self.culprit(&error), None, "Refused", message, now);
        }
        for (workload, fault) in self.live.take_faults() {
            self.record(workload, None, "Refused", format!("{fault}; it is left out"), now);
        }
        self.say_of_groups(now);
        self.clear_left_behind(now);
        self.pending.wake_due(now);
        self.keep_up(now);
        if let Some(step) = self.follow_up() {
            return Some(step);
        }
        if let Some(step) = self.cycle(now) {
            self.set_timer(now);
            return Some(step);
        }
        let Some(unit) = self.next(now) else {
            self.set_timer(now);
            return self.follow_up();
        };
        self.deciding = Some(unit.clone());
        let Decided { verdict, report, record, violations } = self.decide(&unit, now);
        self.deciding = None;
        if let Verdict::Wait { law, why } | Verdict::Unschedulable { law, why } = &verdict {
            self.say_why(&unit, law, why, now);
        }
        self.set_timer(now);
        let actions = std::mem::take(&mut self.outbox);
        Some(Step { unit: Some(unit), verdict, actions, report, record, violations })
    }

    /// The object that an error names; the namespace `default` stands for those that are not known.
    fn culprit(&self, error: &InputError) -> Key {
        let is_meant = |key: &&Key| error.object.as_ref().is_some_and(|object| object.is(key));
        let known = self.live.all().map(|(key, _)| key).find(is_meant).cloned();
        known.unwrap_or_else(|| Key::new(Kind::Namespace, FullName::new("", "default")))
    }

    /// Whether it is known what other schedulers asked for before this one was started.
    fn is_settled(&mut self, now: Timestamp) -> bool {
        match self.settling {
            Settling::Started => {
                let until = now.plus_seconds(SETTLE_SECONDS);
                self.settling = Settling::Quiet(until);
                self.send(Action::Timer { at: until }, None, now);
                false
            }
            Settling::Quiet(until) if now >= until => {
                let changed = [Kind::Pod, Kind::KueueWorkload, Kind::Job];
                let kinds = changed.into_iter().take(if self.is_kueue() { changed.len() } else { 1 });
                self.settling = Settling::Listing(kinds.clone().collect());
                for kind in kinds {
                    self.send(Action::List { kind }, None, now);
                }
                false
            }
            Settling::Quiet(_) | Settling::Listing(_) => false,
            Settling::Settled => true,
        }
    }

    /// What is to be done without deciding anything.
    pub fn follow_up(&mut self) -> Option<Step> {
        let actions = std::mem::take(&mut self.outbox);
        let verdict = Verdict::FollowUp;
        (!actions.is_empty()).then_some(Step {
            unit: None,
            verdict,
            actions,
            report: None,
            record: None,
            violations: 0,
        })
    }

    /// The next unit whose turn it is. Those that are held back wait, and so do those that are like others who do.
    fn next(&mut self, now: Timestamp) -> Option<UnitName> {
        self.look_again();
        loop {
            let (unit, crowd) = match self.policy {
                Policy::YuniKorn => self.next_by_queue()?,
                Policy::Kubernetes(_) | Policy::Koordinator(_) | Policy::Kueue(_) => self.pending.first()?,
            };
            let likeness = self.likeness(&unit, now);
            let speaks = crowd.is_some_and(|crowd| likeness.as_ref() == Some(self.pending.likeness(crowd)));
            if let Some((holder, until)) = self.pending.held_back(&unit, now) {
                let why = format!("held back for {holder}, which has waited longer");
                self.say_why(&unit, HELD_BACK, &why, now);
                let why = why.into();
                match likeness {
                    Some(likeness) if self.pending.waits_already(&unit, &likeness).is_some() => {}
                    Some(likeness) => {
                        let waits = Waits { until: Some(until), law: HELD_BACK, why, held_back: true };
                        self.pending.wait_with(&unit, likeness, waits, now);
                    }
                    None => self.pending.set(&unit, State::Change { until: Some(until), why }),
                }
                continue;
            }
            let others = likeness.filter(|_| !speaks);
            if let Some((law, why)) = others.and_then(|likeness| self.pending.waits_already(&unit, &likeness)) {
                self.say_why(&unit, law, &why, now);
                continue;
            }
            self.pending.set(&unit, State::Active);
            return Some(unit);
        }
    }

    /// What makes units alike is in the tables: with new ones, they part.
    fn look_again(&mut self) {
        if self.looks_of != self.live.times_made() {
            (self.looks, self.looks_of) = (Looks::default(), self.live.times_made());
            self.pending.part();
        } else if self.live.loaded().snapshot.has_aversions() {
            self.pending.part();
        }
    }

    /// Fair among queues: from the root down, the queue that uses least of what it is guaranteed; then by priority, age and name. The
    /// order holds until the cluster changes.
    fn next_by_queue(&mut self) -> Option<(UnitName, Option<CrowdId>)> {
        loop {
            if self.fair_order.0 != self.generation || self.fair_order.1.is_empty() {
                self.fair_order = (self.generation, self.by_queue());
            }
            let (queue, place, crowd) = self.fair_order.1.pop_first()?;
            let is_next = match crowd {
                None => self.pending.get(&place.2).is_some_and(|waiting| waiting.state == State::Active),
                Some(crowd) => {
                    let mut turns = self.pending.crowd(crowd);
                    let is_next = turns.next() == Some(&place);
                    // The next of the crowd has its turn after this one, if the crowd still has it then.
                    let next = turns.next().filter(|_| is_next).cloned();
                    self.fair_order.1.extend(next.map(|next| (queue, next, Some(crowd))));
                    is_next
                }
            };
            if is_next {
                return Some((place.2, crowd));
            }
        }
    }

    fn by_queue(&self) -> BTreeSet<(usize, Place, Option<CrowdId>)> {
        let Loaded { snapshot, names, .. } = self.live.loaded();
        let queues = snapshot.queues();
        let mut by_queue: BTreeMap<Option<QueueId>, Vec<(Place, Option<CrowdId>)>> = BTreeMap::new();
        for (place, crowd) in self.pending.turns() {
            let queue = match (crowd, &place.2) {
                (Some(crowd), _) => self.pending.likeness(crowd).queue(),
                (None, UnitName::Pod(name)) => names.pod_id(name).and_then(|pod| snapshot.pod(pod).queue),
                (None, UnitName::Group(_) | UnitName::Job(_) | UnitName::Workload(_) | UnitName::BatchJob(_)) => None,
            };
            by_queue.entry(queue).or_default().push((place.clone(), crowd));
        }
        let mut order: Vec<_> = by_queue.into_iter().collect();
        order.sort_by_cached_key(|(queue, _)| {
            let mut path: Vec<_> = queue.iter().flat_map(|queue| queues.path(*queue)).collect();
            path.reverse();
            path.into_iter().map(|queue| (queues.share(queue), queue)).collect::<Vec<_>>()
        });
        let numbered = order.into_iter().enumerate();
        numbered.flat_map(|(at, (_, turns))| turns.into_iter().map(move |(place, crowd)| (at, place, crowd))).collect()
    }

    fn decide(&mut self, unit: &UnitName, now: Timestamp) -> Decided {
        let Some((preemptor, _)) = self.preemptor(unit) else {
            let why = "waits for the rest of its pods, or for old ones to leave".to_owned();
            self.pending.set(unit, State::Change { until: None, why: why.as_str().into() });
            return Verdict::Wait { law: "Incomplete", why }.into();
        };
        let is_unknown = |pod: &FullName| self.unsettled.contains(pod) || self.assumed.is_binding(pod);
        if self.members(unit).iter().any(is_unknown) {
            let why = "waits to know what became of its pods".to_owned();
            self.pending.set(unit, State::Change { until: None, why: why.as_str().into() });
            return Verdict::Wait { law: "Unsettled", why }.into();
        }
        self.fail_on_purpose(unit);
        let question = Question { policy: self.policy, now, preemptor };
        let record = self.recorded(unit, &question);
        let outcome = question.decide(self.live.loaded_mut());
        let decided = self.carry_through(unit, &question, outcome, now);
        Decided { record, ..decided }
    }

    /// Sees to it that what was decided is done.
    fn carry_through(&mut self, unit: &UnitName, question: &Question, outcome: Outcome, now: Timestamp) -> Decided {
        match outcome {
            Outcome::Schedule(placement) => {
                let placement = self.named(&placement);
                self.bind(unit, &placement, now);
                Verdict::Schedule { placement }.into()
            }
            Outcome::Preempt(plan) => {
                if let Some(why) = self.under_way(unit, question, now) {
                    return Verdict::Wait { law: "Underway", why }.into();
                }
                let report = self.explains.then(|| Box::new(report(question, self.live.loaded_mut())));
                let violations = pods_against_budgets(&self.live.loaded().snapshot, &plan.victims);
                Decided { report, violations, ..self.preempt(unit, &plan, now).into() }
            }
            Outcome::Wait(law) => {
                let until = match &law {
                    Law::Delay { until } => Some(*until),
                    _ => None,
                };
                let words = words::law(&law, &self.live.loaded().names);
                self.finish_marked(unit, now);
                match law {
                    // Those that are like it came later, and wait for longer.
                    Law::Delay { .. } => self.wait_alike(unit, until, (words.name, &words.text), now),
                    Law::Underway { .. } => self.wait_to_land(unit, &words.text),
                    _ => self.wait(unit, State::Change { until, why: words.text.as_str().into() }),
                }
                Verdict::Wait { law: words.name, why: words.text }.into()
            }
            Outcome::Unschedulable(law) => {
                let is_obstacle = law.as_ref().is_some_and(Law::is_obstacle);
                let words = law.map(|law| words::law(&law, &self.live.loaded().names));
                let none =
                    if self.is_kueue() { "no node has room for it" } else { "no lawful set of victims makes it fit" };
                let (law, why) = words.map_or(("NoPlan", none.to_owned()), |words| (words.name, words.text));
                let priority = question.ask(self.live.loaded()).priority;
                let tolerated = next_toleration_end(&self.live.loaded().snapshot, priority, now);
                let until = tolerated.into_iter().chain(self.pending.patience_ends(unit, now)).min();
                let until = until.filter(|_| !is_obstacle);
                if is_obstacle {
                    self.pending.set_could_fit(unit, false); // no room would help it, so none is kept for it
                } else if self.pending.is_impatient(unit, now) {
                    let ask = question.ask(self.live.loaded());
                    let could_fit = could_fit(&mut self.live.loaded_mut().snapshot, &ask);
                    self.pending.set_could_fit(unit, could_fit);
                }
                self.give_up(unit, now);
                self.wait_alike(unit, until, (law, &why), now);
                Verdict::Unschedulable { law, why }.into()
            }
        }
    }

    /// The unit as the engine knows it, and its pods. `None` while it lacks pods, or those of an earlier start are leaving.
    fn preemptor(&self, unit: &UnitName) -> Option<(Preemptor, Vec<PodId>)> {
        let loaded = self.live.loaded();
        match unit {
            UnitName::Pod(name) => {
                let id = loaded.names.pod_id(name)?;
                Some((Preemptor::Pod(id), vec![id]))
            }
            UnitName::Group(name) => {
                let id = loaded.names.group_id(name)?;
                let group = loaded.snapshot.group(id);
                // Whether enough of them take part is for the decision to say: it names those that do not.
                let stays = |pod: &PodId| {
                    let pod = loaded.snapshot.pod(*pod);
                    pod.leaving.is_none() || !pod.takes_part()
                };
                let complete = group.members.len() >= group.min_count.max(1) && group.members.iter().all(stays);
                let members = group.members.iter().copied().filter(|&pod| loaded.snapshot.pod(pod).takes_part());
                complete.then(|| (Preemptor::Group(id), members.collect()))
            }
            UnitName::Job(_) => {
                self.live.get(&unit.key())?;
                let pending = self.members(unit).into_iter().filter_map(|name| loaded.names.pod_id(&name));
                let is_placed_with_it = |pod: &PodId| {
                    let pod = loaded.snapshot.pod(*pod);
                    pod.node.is_none() && pod.takes_part()
                };
                let members: Vec<PodId> = pending.filter(is_placed_with_it).collect();
                let first = *members.first()?;
                let job = loaded.snapshot.job(loaded.snapshot.pod(first).job?);
                let stays = |pod: &PodId| {
                    let pod = loaded.snapshot.pod(*pod);
                    pod.leaving.is_none() || !pod.takes_part()
                };
                let complete = job.members.len() >= job.min_member && job.members.iter().all(stays);
                complete.then_some((Preemptor::Pod(first), members))
            }
            UnitName::Workload(_) | UnitName::BatchJob(_) => None,
        }
    }

    /// The pods of a unit that this scheduler is to place, by name.
    fn members(&self, unit: &UnitName) -> Vec<FullName> {
        let is_ours = |name: &&FullName| self.live.pod(name).is_some_and(|pod| self.places(pod));
        match unit {
            UnitName::Pod(name) => vec![name.clone()],
            UnitName::Group(_) | UnitName::Job(_) => {
                self.live.members(&unit.key()).iter().filter(is_ours).cloned().collect()
            }
            UnitName::Workload(_) | UnitName::BatchJob(_) => Vec::new(),
        }
    }

    fn named(&self, placement: &[(PodId, reprieve_engine::NodeId)]) -> Vec<(FullName, String)> {
        let names = &self.live.loaded().names;
        placement.iter().map(|&(pod, node)| (names.pod(pod).clone(), names.node(node).to_owned())).collect()
    }

    fn bind(&mut self, unit: &UnitName, placement: &[(FullName, String)], now: Timestamp) {
        self.left_behind.insert(unit.clone());
        for (pod, node) in placement {
            let Some(target) = self.target(pod) else { continue };
            let message = format!("bound to {node}");
            let about = Key::new(Kind::Pod, pod.clone());
            self.send(Action::Bind { pod: target, node: node.clone() }, Some(unit), now);
            self.record(about, None, "Scheduled", message, now);
        }
    }

    /// What an action on a pod says of it; `None` while it is being found out what it is.
    fn target(&self, name: &FullName) -> Option<Target> {
        let pod = Object::Pod(Arc::clone(self.pods.get(name).filter(|_| !self.unsettled.contains(name))?));
        let version = pod.version().max(self.assumed.version(Kind::Pod, name));
        Some(Target { name: name.clone(), uid: pod.uid().to_owned(), version })
    }

    fn record(&mut self, about: Key, related: Option<Key>, reason: &'static str, message: String, now: Timestamp) {
        self.send(Action::Record { about, related, reason, message }, None, now);
    }

    /// Sends an action; a unit that waits for it is busy until its result comes.
    fn send(&mut self, action: Action, unit: Option<&UnitName>, now: Timestamp) {
        let id = ActionId(self.next_action);
        self.next_action += 1;
        if let Some((kind, name)) = action.changes().map(|(kind, target)| (kind, target.name.clone())) {
            self.assumed.add(id, &action, now);
            if !matches!(action, Action::Condition { .. }) {
                self.reconsider_any(kind, &name, now);
            }
        }
        if let Some(unit) = unit {
            self.pending.busy(unit, id);
        }
        let flight = Flight { action: action.clone(), unit: unit.cloned(), settles: None, preempts: None };
        self.in_flight.insert(id, flight);
        self.outbox.push((id, action));
    }

    /// The unit waits, unless it waits for what it asked for already.
    fn wait(&mut self, unit: &UnitName, state: State) {
        if !self.pending.is_busy(unit) {
            self.pending.set(unit, state);
        }
    }

    /// What [`Bug::Panic`] does.
    fn fail_on_purpose(&mut self, unit: &UnitName) {
        if self.has(Bug::Panic) && unit.key().name.name == FATAL {
            let Loaded { snapshot, names, .. } = self.live.loaded_mut();
            names.pod_ids().for_each(|pod| snapshot.remove_pod(pod));
            panic!("a fault that is there on purpose");
        }
    }

    fn is_kueue(&self) -> bool {
        matches!(self.policy, Policy::Kueue(_))
    }

    fn set_timer(&mut self, now: Timestamp) {
        if let Some(at) = self.pending.next_timer()
            && self.timer.is_none_or(|timer| timer <= now || at < timer)
        {
            self.timer = Some(at);
            self.send(Action::Timer { at }, None, now);
        }
    }

    /// The unit waits with all that are like it, unless it waits for what it asked for already.
    fn wait_alike(
        &mut self,
        unit: &UnitName,
        until: Option<Timestamp>,
        (law, why): (&'static str, &str),
        now: Timestamp,
    ) {
        let is_busy = self.pending.is_busy(unit);
        match self.likeness(unit, now).filter(|_| !is_busy) {
            Some(likeness) => {
                let waits = Waits { until, law, why: why.into(), held_back: false };
                for other in self.pending.wait_with(unit, likeness, waits, now) {
                    self.say_why(&other, law, why, now);
                }
            }
            None => self.wait(unit, State::Change { until, why: why.into() }),
        }
    }

    /// What tells a unit from others, where nothing but resources, nodes, priorities and queues matters.
    fn likeness(&mut self, unit: &UnitName, now: Timestamp) -> Option<Likeness> {
        if self.marks.contains_key(unit) {
            return None;
        }
        let (preemptor, pods) = self.preemptor(unit)?;
        let snapshot = &self.live.loaded().snapshot;
        Likeness::of(&mut self.looks, snapshot, &self.policy, (preemptor, &pods), now)
    }
}
