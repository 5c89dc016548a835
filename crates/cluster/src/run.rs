//! `reprieve run`: the scheduler of a real cluster, from its start to its end.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use futures::future::join_all;
use kube::Client;
use reprieve_api::kinds::Kind;
use reprieve_loader::question::policy_name;
use reprieve_scheduler::Scheduler;
use reprieve_scheduler::action::Action;
use reprieve_scheduler::event::ActionResult;
use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio::sync::mpsc::{UnboundedReceiver, unbounded_channel};
use tokio::sync::oneshot;
use tokio::task::JoinSet;
use tracing::{debug, info, warn};

use crate::audit::Audit;
use crate::brain::{Brain, Order, Profile};
use crate::client::Cluster;
use crate::config::Configuration;
use crate::error::Error;
use crate::hands::Hands;
use crate::inbox::Inbox;
use crate::lease::Lease;
use crate::messages::Input;
use crate::metrics::Metrics;
use crate::resources::kinds;
use crate::slim::Slim;
use crate::turns::{Turn, Turns};
use crate::watch::{Listed, list, watch};
use crate::{config, log, preflight, server};

/// Where one thing happens others soon do: for so long they are left to gather before it is looked for them.
const A_MOMENT: Duration = Duration::from_millis(2);
/// How many events may wait to be recorded. Nothing depends on them: what is too much is left out.
const MOST_RECORDS: usize = 10_000;

/// Schedules until a signal comes, whenever this replica holds the lease.
pub fn run(config: &Configuration, cluster: &Cluster, dry_run: bool) -> Result<(), Error> {
    log::begin(config.log_format);
    stay_small();
    let mut runtime = tokio::runtime::Builder::new_current_thread();
    let runtime = runtime.enable_all().on_thread_park(|| std::thread::sleep(A_MOMENT)).build();
    runtime.map_err(|error| Error::Stopped(error.to_string()))?.block_on(schedule(config, cluster, dry_run))
}

/// Whoever runs for long is to take little: pages of two megabytes would be mostly empty.
fn stay_small() {
    #[cfg(target_os = "linux")]
    if let Err(error) = rustix::thread::disable_transparent_huge_pages(true) {
        debug!(%error, "huge pages cannot be done without");
    }
}

async fn schedule(config: &Configuration, cluster: &Cluster, dry_run: bool) -> Result<(), Error> {
    let mut stop = Stop::new()?;
    let client = cluster.client().await?;
    // What is asked for must not delay what is heard: the watches, and the Lease, have a connection of their own.
    let listening = cluster.client().await?;
    let policies: Vec<_> = profiles(config).iter().map(|profile| *profile.scheduler.policy()).collect();
    preflight::check(&client, config, &policies, dry_run).await?;
    let metrics = Arc::new(Metrics::new());
    server::serve(config.ports.metrics, Arc::clone(&metrics)).await?;
    let identity = identity();
    let mut lease = (config.leader_election.enabled && !dry_run)
        .then(|| Lease::new(listening.clone(), &config.leader_election, &identity));
    loop {
        if let Some(lease) = &mut lease {
            tokio::select! {
                () = lease.acquire(|reachable| metrics.set_serving(reachable)) => metrics.set_serving(false),
                () = stop.asked() => return Ok(()),
            }
        }
        metrics.set_leader(true);
        for Profile { name, policy, .. } in &profiles(config) {
            info!(schedulerName = name, policy, dry_run, "scheduling the pods that name it");
        }
        let hands = Arc::new(Hands::new(client.clone(), config, &identity, dry_run, Arc::clone(&metrics)));
        let mut term = Term::begin(&client, &listening, &hands, &metrics, config)?;
        let keep = async {
            match &mut lease {
                Some(lease) => lease.keep().await,
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            () = stop.asked() => break term.finish().await,
            () = keep => {}
            _ = &mut term.ended => {
                return Err(Error::Stopped("by a fault of its own; it is safe to start it anew".to_owned()));
            }
        }
        metrics.set_leader(false);
        metrics.set_serving(false);
        warn!(
            lease = config.leader_election.name,
            "the lease is lost: nothing more is done, and this replica begins anew"
        );
        term.abort().await;
    }
    if let Some(lease) = &mut lease {
        lease.release().await;
    }
    Ok(())
}

/// The time for which this replica schedules: what watches, what decides and what acts.
struct Term {
    inputs: Arc<Inbox>,
    /// Comes when the deciding has ended, however it did.
    ended: oneshot::Receiver<()>,
    tasks: JoinSet<()>,
}

impl Term {
    fn begin(
        client: &Client,
        listening: &Client,
        hands: &Arc<Hands>,
        metrics: &Arc<Metrics>,
        config: &Configuration,
    ) -> Result<Self, Error> {
        let profiles = profiles(config);
        let audit = config.audit_folder.as_deref().map(Audit::new).transpose()?;
        let inputs = Arc::<Inbox>::default();
        let (orders, ordered) = unbounded_channel();
        let watched: BTreeSet<Kind> = profiles.iter().flat_map(|profile| profile.kinds.iter().copied()).collect();
        let brain = Brain::new(
            profiles,
            Arc::clone(&inputs),
            orders,
            Arc::clone(metrics),
            audit,
            config.protected_namespaces.clone(),
            config.client_limits.max_in_flight,
        );
        let (last, ended) = oneshot::channel();
        let thread = std::thread::Builder::new().name("scheduler".to_owned()).spawn(move || {
            let _last = last; // dropped when the thread ends, however it does
            brain.live();
        });
        thread.map_err(|error| Error::Stopped(error.to_string()))?;
        let mut tasks = JoinSet::new();
        for kind in watched {
            tasks.spawn(watch(
                listening.clone(),
                kind,
                Arc::clone(&inputs),
                metrics.pulse(kind),
                metrics.undecodable(kind),
            ));
        }
        let handing_over = Arc::clone(&inputs);
        tasks.spawn(async move { handing_over.hand_over_all().await });
        tasks.spawn(carry_out_all(client.clone(), Arc::clone(hands), ordered, Arc::clone(&inputs)));
        Ok(Self { inputs, ended, tasks })
    }

    /// Begins nothing new, and finishes what is under way.
    async fn finish(self) {
        info!("stopping: what is under way is finished, nothing new is begun");
        self.inputs.put(Input::Stop);
        let _ = self.ended.await;
    }

    /// Does nothing more.
    async fn abort(mut self) {
        self.tasks.shutdown().await;
        self.inputs.close();
        let _ = self.ended.await;
    }
}

async fn carry_out_all(client: Client, hands: Arc<Hands>, mut ordered: UnboundedReceiver<Order>, results: Arc<Inbox>) {
    let (mut turns, mut under_way) = (Turns::default(), JoinSet::new());
    let (records, recorded) = tokio::sync::mpsc::channel(MOST_RECORDS);
    under_way.spawn(record_all(Arc::clone(&hands), recorded, Arc::clone(&results)));
    while let Some(order) = ordered.recv().await {
        while under_way.try_join_next().is_some() {}
        if matches!(order.action, Action::Record { .. }) {
            if let Err(full) = records.try_send(order) {
                let Order { profile, id, action, .. } = full.into_inner();
                debug!(?action, "too many events wait to be recorded; this one is not");
                let result = Some(ActionResult::TimedOut);
                results.put(Input::Done { profile, action: id, result });
            }
            continue;
        }
        let turn = turns.next(&order.action);
        under_way.spawn(carry_out(client.clone(), Arc::clone(&hands), order, turn, Arc::clone(&results)));
    }
    under_way.detach_all();
}

/// Records events: some at once where there is nothing to do, else one after another.
async fn record_all(hands: Arc<Hands>, mut recorded: tokio::sync::mpsc::Receiver<Order>, results: Arc<Inbox>) {
    while let Some(first) = recorded.recv().await {
        let most = hands.words().await;
        let others = std::iter::from_fn(|| recorded.try_recv().ok());
        let recording =
            std::iter::once(first).chain(others).take(most).map(async |Order { profile, id, action, uids }| {
                let result = hands.carry_out(&action, uids, None).await;
                Input::Done { profile, action: id, result }
            });
        for done in join_all(recording).await {
            results.put(done);
        }
    }
}

async fn carry_out(client: Client, hands: Arc<Hands>, order: Order, turn: Option<Turn>, results: Arc<Inbox>) {
    let Order { profile, id, action, uids } = order;
    let mut outcome = hands.carry_out(&action, uids, turn).await;
    if let Action::List { kind } = action {
        let mut take = |objects| {
            results.put(Input::Page { profile, action: id, objects });
        };
        outcome = match Box::pin(list(&client, kind, &mut Slim::default(), &mut take)).await {
            // The watch of the kind reports the objects that are left out.
            Ok(Listed { version, .. }) => {
                results.put(Input::Listed { profile, action: id, kind, version });
                Some(ActionResult::Ok { version: 0 })
            }
            Err(_) => Some(ActionResult::TimedOut),
        };
    }
    results.put(Input::Done { profile, action: id, result: outcome });
}

fn profiles(config: &Configuration) -> Vec<Profile> {
    let profile = |profile: &config::Profile| {
        let policy = profile.policy().expect("it was checked when it was read");
        let mut scheduler = Scheduler::new(&profile.name, policy);
        if config.audit_folder.is_some() {
            scheduler = scheduler.recording(profile.policy_profile());
        }
        let kinds = kinds(&policy).collect();
        Profile { scheduler, kinds, policy: policy_name(&policy), name: profile.name.clone() }
    };
    config.profiles.iter().map(profile).collect()
}

/// What sets this replica apart: the pod's name, and when it was started.
fn identity() -> String {
    let started = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_nanos();
    format!("{}_{:x}", gethostname::gethostname().to_string_lossy(), started)
}

/// The signals that ask it to stop.
struct Stop {
    terminate: Signal,
    interrupt: Signal,
}

impl Stop {
    fn new() -> Result<Self, Error> {
        let failed = |error: std::io::Error| Error::Stopped(error.to_string());
        Ok(Self {
            terminate: signal(SignalKind::terminate()).map_err(failed)?,
            interrupt: signal(SignalKind::interrupt()).map_err(failed)?,
        })
    }

    async fn asked(&mut self) {
        tokio::select! {
            _ = self.terminate.recv() => {}
            _ = self.interrupt.recv() => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use reprieve_api::kinds::Key;
    use reprieve_api::meta::FullName;
    use reprieve_scheduler::action::ActionId;

    use super::*;
    use crate::hands::Uids;
    use crate::hands::tests::unanswered;

    #[tokio::test]
    async fn of_too_many_events_the_last_are_left_out() {
        let (client, hands) = unanswered(25);
        let hands = Arc::new(hands);
        let ((orders, ordered), results) = (unbounded_channel(), Arc::<Inbox>::default());
        let held = MOST_RECORDS as u64 + hands.words().await as u64;
        let all = held + 3;
        for id in 0..all {
            let about = Key::new(Kind::Pod, FullName::new("default", "a"));
            let action = Action::Record { about, related: None, reason: "Scheduled", message: String::new() };
            let order = Order { profile: 0, id: ActionId(id), action, uids: Uids::default() };
            assert!(orders.send(order).is_ok());
        }
        drop(orders);
        carry_out_all(client, hands, ordered, Arc::clone(&results)).await;
        tokio::select! {
            biased;
            () = results.hand_over_all() => unreachable!("it never ends"),
            () = tokio::task::yield_now() => {}
        }
        let heard = results.take(Duration::ZERO).expect("it is not closed");
        let left_out: Vec<u64> = heard
            .iter()
            .map(|input| match input {
                Input::Done { action, result: Some(ActionResult::TimedOut), .. } => action.0,
                _ => panic!("nobody answered"),
            })
            .collect();
        assert_eq!(left_out, [held, held + 1, held + 2], "some of the first are on their way");
    }
}
