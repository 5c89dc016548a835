//! `reprieve run`: the scheduler of a real cluster, from its start to its end.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use futures::future::join_all;
use kube::Client;
use reprieve_api::kinds::Kind;
use reprieve_loader::policy::policy_name;
use reprieve_scheduler::Scheduler;
use reprieve_scheduler::action::Action;
use reprieve_scheduler::event::ActionResult;
use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio::sync::mpsc::{UnboundedReceiver, unbounded_channel};
use tokio::sync::oneshot;
use tokio::task::JoinSet;
use tracing::{debug, info, warn};

use crate::audit::Audit;
use crate::client::Cluster;
use crate::config::Configuration;
use crate::error::Error;
use crate::event_loop::{Dispatch, ProfileRuntime, SchedulerLoop};
use crate::event_queue::EventQueue;
use crate::executor::Executor;
use crate::leader::Lease;
use crate::messages::Message;
use crate::metrics::Metrics;
use crate::ordering::{OrderTicket, PerObjectOrder};
use crate::resources::kinds;
use crate::trim::ObjectTrimmer;
use crate::watch::{Listed, list, watch};
use crate::{config, logging, preflight, server};

/// Where one thing happens others soon do: for so long they are left to gather before it is looked for them.
const BATCH_DELAY: Duration = Duration::from_millis(2);
/// How many events may wait to be recorded. Nothing depends on them: what is too much is left out.
const MOST_RECORDS: usize = 10_000;

/// Schedules until a signal comes, whenever this replica holds the lease.
pub fn run(config: &Configuration, cluster: &Cluster, dry_run: bool) -> Result<(), Error> {
    logging::begin(config.log_format);
    disable_huge_pages();
    let mut runtime = tokio::runtime::Builder::new_current_thread();
    let runtime = runtime.enable_all().on_thread_park(|| std::thread::sleep(BATCH_DELAY)).build();
    runtime.map_err(|error| Error::Stopped(error.to_string()))?.block_on(schedule(config, cluster, dry_run))
}

/// Whoever runs for long is to take little: pages of two megabytes would be mostly empty.
fn disable_huge_pages() {
    #[cfg(target_os = "linux")]
    if let Err(error) = rustix::thread::disable_transparent_huge_pages(true) {
        debug!(%error, "huge pages cannot be done without");
    }
}

async fn schedule(config: &Configuration, cluster: &Cluster, dry_run: bool) -> Result<(), Error> {
    let mut stop = ShutdownSignals::new()?;
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
        for ProfileRuntime { name, policy, .. } in &profiles(config) {
            info!(schedulerName = name, policy, dry_run, "scheduling the pods that name it");
        }
        let hands = Arc::new(Executor::new(client.clone(), config, &identity, dry_run, Arc::clone(&metrics)));
        let mut term = LeaderSession::begin(&client, &listening, &hands, &metrics, config)?;
        let keep = async {
            match &mut lease {
                Some(lease) => lease.renew_until_lost().await,
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
struct LeaderSession {
    inputs: Arc<EventQueue>,
    /// Comes when the deciding has ended, however it did.
    ended: oneshot::Receiver<()>,
    tasks: JoinSet<()>,
}

impl LeaderSession {
    fn begin(
        client: &Client,
        listening: &Client,
        hands: &Arc<Executor>,
        metrics: &Arc<Metrics>,
        config: &Configuration,
    ) -> Result<Self, Error> {
        let profiles = profiles(config);
        let audit = config.audit_folder.as_deref().map(Audit::new).transpose()?;
        let inputs = Arc::<EventQueue>::default();
        let (orders, ordered) = unbounded_channel();
        let watched: BTreeSet<Kind> = profiles.iter().flat_map(|profile| profile.kinds.iter().copied()).collect();
        let brain = SchedulerLoop::new(
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
            brain.run();
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
        tasks.spawn(async move { handing_over.flush_loop().await });
        tasks.spawn(carry_out_all(client.clone(), Arc::clone(hands), ordered, Arc::clone(&inputs)));
        Ok(Self { inputs, ended, tasks })
    }

    /// Begins nothing new, and finishes what is under way.
    async fn finish(self) {
        info!("stopping: what is under way is finished, nothing new is begun");
        self.inputs.push(Message::Stop);
        let _ = self.ended.await;
    }

    /// Does nothing more.
    async fn abort(mut self) {
        self.tasks.shutdown().await;
        self.inputs.close();
        let _ = self.ended.await;
    }
}

async fn carry_out_all(
    client: Client,
    hands: Arc<Executor>,
    mut ordered: UnboundedReceiver<Dispatch>,
    results: Arc<EventQueue>,
) {
    let (mut turns, mut under_way) = (PerObjectOrder::default(), JoinSet::new());
    let (records, recorded) = tokio::sync::mpsc::channel(MOST_RECORDS);
    under_way.spawn(record_all(Arc::clone(&hands), recorded, Arc::clone(&results)));
    while let Some(order) = ordered.recv().await {
        while under_way.try_join_next().is_some() {}
        if matches!(order.action, Action::EmitEvent { .. }) {
            if let Err(full) = records.try_send(order) {
                let Dispatch { profile, id, action, .. } = full.into_inner();
                debug!(?action, "too many events wait to be recorded; this one is not");
                let result = Some(ActionResult::Unknown);
                results.push(Message::Done { profile, action: id, result });
            }
            continue;
        }
        let turn = turns.next(&order.action);
        under_way.spawn(carry_out(client.clone(), Arc::clone(&hands), order, turn, Arc::clone(&results)));
    }
    under_way.detach_all();
}

/// Records events: some at once where there is nothing to do, else one after another.
async fn record_all(
    hands: Arc<Executor>,
    mut recorded: tokio::sync::mpsc::Receiver<Dispatch>,
    results: Arc<EventQueue>,
) {
    while let Some(first) = recorded.recv().await {
        let most = hands.words().await;
        let others = std::iter::from_fn(|| recorded.try_recv().ok());
        let recording =
            std::iter::once(first).chain(others).take(most).map(async |Dispatch { profile, id, action, uids }| {
                let result = hands.execute(&action, uids, None).await;
                Message::Done { profile, action: id, result }
            });
        for done in join_all(recording).await {
            results.push(done);
        }
    }
}

async fn carry_out(
    client: Client,
    hands: Arc<Executor>,
    order: Dispatch,
    turn: Option<OrderTicket>,
    results: Arc<EventQueue>,
) {
    let Dispatch { profile, id, action, uids } = order;
    let mut outcome = hands.execute(&action, uids, turn).await;
    if let Action::Relist { kind } = action {
        let mut take = |objects| {
            results.push(Message::Page { profile, action: id, objects });
        };
        outcome = match Box::pin(list(&client, kind, &mut ObjectTrimmer::default(), &mut take)).await {
            // The watch of the kind reports the objects that are left out.
            Ok(Listed { version, .. }) => {
                results.push(Message::Listed { profile, action: id, kind, version });
                Some(ActionResult::Ok { version: 0 })
            }
            Err(_) => Some(ActionResult::Unknown),
        };
    }
    results.push(Message::Done { profile, action: id, result: outcome });
}

fn profiles(config: &Configuration) -> Vec<ProfileRuntime> {
    let profile = |profile: &config::Profile| {
        let policy = profile.policy().expect("it was checked when it was read");
        let mut scheduler = Scheduler::new(&profile.name, policy);
        if config.audit_folder.is_some() {
            scheduler = scheduler.recording(profile.policy_profile());
        }
        let kinds = kinds(&policy).collect();
        ProfileRuntime { scheduler, kinds, policy: policy_name(&policy), name: profile.name.clone() }
    };
    config.profiles.iter().map(profile).collect()
}

/// What sets this replica apart: the pod's name, and when it was started.
fn identity() -> String {
    let started = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_nanos();
    format!("{}_{:x}", gethostname::gethostname().to_string_lossy(), started)
}

/// The signals that ask it to stop.
struct ShutdownSignals {
    terminate: Signal,
    interrupt: Signal,
}

impl ShutdownSignals {
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
    use reprieve_api::kinds::ObjectKey;
    use reprieve_api::meta::NamespacedName;
    use reprieve_scheduler::action::{ActionId, EventReason};

    use super::*;
    use crate::executor::EventObjectUids;
    use crate::executor::tests::unanswered;

    #[tokio::test]
    async fn of_too_many_events_the_last_are_left_out() {
        let (client, hands) = unanswered(25);
        let hands = Arc::new(hands);
        let ((orders, ordered), results) = (unbounded_channel(), Arc::<EventQueue>::default());
        let held = MOST_RECORDS as u64 + hands.words().await as u64;
        let all = held + 3;
        for id in 0..all {
            let about = ObjectKey::new(Kind::Pod, NamespacedName::new("default", "a"));
            let action =
                Action::EmitEvent { about, related: None, reason: EventReason::Scheduled, message: String::new() };
            let order = Dispatch { profile: 0, id: ActionId(id), action, uids: EventObjectUids::default() };
            assert!(orders.send(order).is_ok());
        }
        drop(orders);
        carry_out_all(client, hands, ordered, Arc::clone(&results)).await;
        tokio::select! {
            biased;
            () = results.flush_loop() => unreachable!("it never ends"),
            () = tokio::task::yield_now() => {}
        }
        let heard = results.drain(Duration::ZERO).expect("it is not closed");
        let left_out: Vec<u64> = heard
            .iter()
            .map(|input| match input {
                Message::Done { action, result: Some(ActionResult::Unknown), .. } => action.0,
                _ => panic!("nobody answered"),
            })
            .collect();
        assert_eq!(left_out, [held, held + 1, held + 2], "some of the first are on their way");
    }
}
