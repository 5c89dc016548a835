//! `reprieve run`: the scheduler of a real cluster, from its start to its end.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::sync::mpsc::{Sender, channel};
use std::time::{SystemTime, UNIX_EPOCH};

use kube::Client;
use reprieve_objects::object::{Key, Kind};
use reprieve_objects::question::policy_name;
use reprieve_scheduler::Scheduler;
use reprieve_scheduler::action::Action;
use reprieve_scheduler::event::{ActionResult, Event};
use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio::sync::mpsc::unbounded_channel;
use tokio::sync::oneshot;
use tracing::info;

use crate::audit::Audit;
use crate::brain::{Brain, Input, Inputs, Order, Profile};
use crate::client::Cluster;
use crate::config::Configuration;
use crate::error::Error;
use crate::hands::Hands;
use crate::lease::Lease;
use crate::metrics::Metrics;
use crate::resources::kinds;
use crate::watch::{Listener, list, watch};
use crate::{config, log, preflight, server};

/// How many objects are remembered before those are forgotten on which nothing is under way.
const MOST_TURNS: usize = 10_000;

/// Schedules until a signal comes or the lease is lost.
pub fn run(config: &Configuration, cluster: &Cluster, dry_run: bool) -> Result<(), Error> {
    log::begin(config.log_format);
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build();
    runtime.map_err(|error| Error::Stopped(error.to_string()))?.block_on(schedule(config, cluster, dry_run))
}

async fn schedule(config: &Configuration, cluster: &Cluster, dry_run: bool) -> Result<(), Error> {
    let mut stop = Stop::new()?;
    let client = cluster.client().await?;
    let profiles = profiles(config);
    let policies: Vec<_> = profiles.iter().map(|profile| *profile.scheduler.policy()).collect();
    preflight::check(&client, config, &policies, dry_run).await?;
    let metrics = Arc::new(Metrics::new());
    server::serve(config.ports.metrics, Arc::clone(&metrics)).await?;
    let identity = identity();
    let mut lease = (config.leader_election.enabled && !dry_run)
        .then(|| Lease::new(client.clone(), &config.leader_election, &identity));
    if let Some(lease) = &mut lease {
        metrics.set_serving(true);
        tokio::select! {
            () = lease.acquire() => metrics.set_serving(false),
            () = stop.asked() => return Ok(()),
        }
    }
    metrics.set_leader(true);
    for Profile { name, policy, .. } in &profiles {
        info!(schedulerName = name, policy, dry_run, "scheduling the pods that name it");
    }
    let audit = config.audit_folder.as_deref().map(Audit::new).transpose()?;
    let hands = Arc::new(Hands::new(client.clone(), config, &identity, dry_run, Arc::clone(&metrics)));
    let (inputs, mut ended) = begin(&client, profiles, &hands, &metrics, audit, config)?;
    let keep = async {
        match &mut lease {
            Some(lease) => lease.keep().await,
            None => std::future::pending().await,
        }
    };
    tokio::select! {
        () = stop.asked() => {}
        () = keep => return Err(Error::LeaseLost(config.leader_election.name.clone())),
        _ = &mut ended => return Err(Error::Stopped("by a fault of its own; it is safe to start it anew".to_owned())),
    }
    info!("stopping: what is under way is finished, nothing new is begun");
    // The thread may be gone already, which is as good.
    let _ = inputs.send(Input::Stop);
    let _ = ended.await;
    if let Some(lease) = &mut lease {
        lease.release().await;
    }
    Ok(())
}

/// Begins to watch, to decide and to act. What is sent last says that the deciding has ended.
fn begin(
    client: &Client,
    profiles: Vec<Profile>,
    hands: &Arc<Hands>,
    metrics: &Arc<Metrics>,
    audit: Option<Audit>,
    config: &Configuration,
) -> Result<(Sender<Input>, oneshot::Receiver<()>), Error> {
    let (inputs, heard) = channel();
    let (orders, mut ordered) = unbounded_channel();
    let watched: BTreeSet<Kind> = profiles.iter().flat_map(|profile| profile.kinds.iter().copied()).collect();
    let brain = Brain::new(profiles, heard, orders, Arc::clone(metrics), audit, config.protected_namespaces.clone());
    let (last, ended) = oneshot::channel();
    let thread = std::thread::Builder::new().name("scheduler".to_owned()).spawn(move || {
        let _last = last; // dropped when the thread ends, however it does
        brain.live();
    });
    thread.map_err(|error| Error::Stopped(error.to_string()))?;
    for kind in watched {
        let listener: Arc<dyn Listener> = Arc::new(Inputs(inputs.clone()));
        tokio::spawn(watch(client.clone(), kind, listener, metrics.pulse(kind)));
    }
    let (client, hands, results) = (client.clone(), Arc::clone(hands), inputs.clone());
    tokio::spawn(async move {
        let mut turns = Turns::default();
        while let Some(order) = ordered.recv().await {
            let turn = turns.next(&order.action);
            tokio::spawn(carry_out(client.clone(), Arc::clone(&hands), order, turn, results.clone()));
        }
    });
    Ok((inputs, ended))
}

/// By object: when the last action on it will be done. Actions on one object are carried out one after the other, as they were asked for.
#[derive(Default)]
struct Turns(BTreeMap<Key, oneshot::Receiver<()>>);

/// The turn of an action: it comes when the one before is done, and passes when it is dropped.
type Turn = Option<(Option<oneshot::Receiver<()>>, oneshot::Sender<()>)>;

impl Turns {
    fn next(&mut self, action: &Action) -> Turn {
        let (kind, target) = action.changes()?;
        if self.0.len() > MOST_TURNS {
            self.0.retain(|_, done| matches!(done.try_recv(), Err(oneshot::error::TryRecvError::Empty)));
        }
        let (done, wait) = oneshot::channel();
        Some((self.0.insert(Key::new(kind, target.name.clone()), wait), done))
    }
}

async fn carry_out(client: Client, hands: Arc<Hands>, order: Order, turn: Turn, results: Sender<Input>) {
    let Order { profile, id, action, references } = order;
    let _turn = match turn {
        Some((before, done)) => {
            if let Some(before) = before {
                let _ = before.await; // it is dropped, not sent
            }
            Some(done)
        }
        None => None,
    };
    let mut outcome = hands.carry_out(&action, references).await;
    if let Action::List { kind } = action {
        outcome = match list(&client, kind).await {
            Ok((objects, version)) => {
                let event = Event::Listed { kind, objects, version };
                let _ = results.send(Input::Listed { profile, event });
                Some(ActionResult::Ok { version: 0 })
            }
            Err(_) => Some(ActionResult::TimedOut),
        };
    }
    let _ = results.send(Input::Done { profile, action: id, result: outcome });
}

fn profiles(config: &Configuration) -> Vec<Profile> {
    let profile = |profile: &config::Profile| {
        let policy = profile.policy().expect("it was checked when it was read");
        let mut scheduler = Scheduler::new(&profile.name, policy);
        if config.audit_folder.is_some() {
            scheduler = scheduler.recording(profile.policy_profile());
        }
        let kinds = kinds(&policy).into_iter().collect();
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
    use reprieve_objects::objects::FullName;
    use reprieve_scheduler::action::Target;

    use super::*;

    #[tokio::test]
    async fn actions_on_one_object_take_turns() {
        let on = |name: &str| {
            let pod = Target { name: FullName::new("default", name), uid: String::new(), version: 1 };
            Action::Unmark { pod }
        };
        let mut turns = Turns::default();
        let (before, first) = turns.next(&on("a")).expect("it changes a pod");
        assert!(before.is_none(), "nothing is under way");
        assert!(turns.next(&on("b")).is_some_and(|(before, _)| before.is_none()), "another pod does not wait");
        let (before, _second) = turns.next(&on("a")).expect("it changes a pod");
        let mut before = before.expect("the first is under way");
        assert!(before.try_recv().is_err_and(|error| error == oneshot::error::TryRecvError::Empty));
        drop(first);
        assert!(before.await.is_err(), "the first is done");
    }
}
