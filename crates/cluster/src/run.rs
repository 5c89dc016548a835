//! `reprieve run`: starts the scheduler, runs it while this replica is the leader, and shuts it down.

use std::pin::pin;
use std::sync::Arc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use kube::Client;
use reprieve_api::Kind;
use reprieve_loader::policy_name;
use reprieve_scheduler::Scheduler;
use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::mpsc::unbounded_channel;
use tokio::sync::oneshot;
use tokio::task::JoinSet;
use tracing::{debug, info, warn};

use crate::audit::Audit;
use crate::client::Cluster;
use crate::config::Configuration;
use crate::error::Error;
use crate::event_loop::{ProfileRuntime, SchedulerLoop};
use crate::event_queue::EventQueue;
use crate::executor::Executor;
use crate::leader::Lease;
use crate::messages::Message;
use crate::metrics::Metrics;
use crate::queue_configuration::{QueueConfiguration, QueueLocation};
use crate::resources::{kinds, scopes};
use crate::watch::watch;
use crate::{config, logging, preflight, server};

/// Before the async thread sleeps it waits this long, so that events that arrive shortly after each other are handled together.
const BATCH_DELAY: Duration = Duration::from_millis(2);

/// Schedules whenever this replica is the leader, until the process receives SIGTERM or SIGINT.
pub fn run(config: &Configuration, cluster: &Cluster, dry_run: bool) -> Result<(), Error> {
    logging::init(config.log_format);
    disable_huge_pages();
    let mut runtime = tokio::runtime::Builder::new_current_thread();
    let runtime = runtime.enable_all().on_thread_park(|| std::thread::sleep(BATCH_DELAY)).build();
    runtime.map_err(Error::stopped)?.block_on(schedule(config, cluster, dry_run))
}

/// Huge pages would be mostly empty and increase the memory use of a long-running process.
fn disable_huge_pages() {
    #[cfg(target_os = "linux")]
    if let Err(error) = rustix::thread::disable_transparent_huge_pages(true) {
        debug!(%error, "cannot disable huge pages");
    }
}

async fn schedule(config: &Configuration, cluster: &Cluster, dry_run: bool) -> Result<(), Error> {
    let mut shutdown = pin!(shutdown_signal()?);
    let client = cluster.client().await?;
    // The watches and the lease have a connection of their own, so that the executor's requests do not delay them.
    let watch_client = cluster.client().await?;
    preflight::check(&client, config, &config.policies(), dry_run).await?;
    let metrics = Arc::new(Metrics::new());
    server::serve(&config.ports, Arc::clone(&metrics)).await?;
    let readiness = Arc::clone(&metrics.readiness);
    let identity = identity();
    let mut lease = (config.leader_election.enabled && !dry_run)
        .then(|| Lease::new(watch_client.clone(), &config.leader_election, &identity));
    loop {
        if let Some(lease) = &mut lease {
            tokio::select! {
                () = lease.acquire(|reachable| readiness.set_serving(reachable)) => readiness.set_serving(false),
                () = &mut shutdown => return Ok(()),
            }
        }
        metrics.set_leader(true);
        for ProfileRuntime { name, policy, .. } in &profiles(config) {
            info!(schedulerName = name, policy, dry_run, "scheduling pods with this schedulerName");
        }
        let executor = Executor::new(client.clone(), config, &identity, dry_run, Arc::clone(&metrics));
        let mut session = LeaderSession::start(&watch_client, executor, &metrics, config)?;
        let leadership_lost = async {
            match &mut lease {
                Some(lease) => lease.renew_until_lost().await,
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            () = &mut shutdown => break session.finish().await,
            () = leadership_lost => {}
            _ = &mut session.ended => return Err(Error::stopped("the scheduler thread panicked; a restart is safe")),
        }
        metrics.set_leader(false);
        readiness.set_serving(false);
        warn!(lease = config.leader_election.name, "leadership lost; restarting as a follower");
        session.abort().await;
        readiness.forget();
    }
    if let Some(lease) = &mut lease {
        lease.release().await;
    }
    Ok(())
}

/// The watches, the scheduler thread and the executor while this replica is the leader.
struct LeaderSession {
    messages: Arc<EventQueue>,
    /// Closed when the scheduler thread ends, also by a panic.
    ended: oneshot::Receiver<()>,
    tasks: JoinSet<()>,
}

impl LeaderSession {
    fn start(
        watch_client: &Client,
        executor: Executor,
        metrics: &Arc<Metrics>,
        config: &Configuration,
    ) -> Result<Self, Error> {
        let profiles = profiles(config);
        let audit = config.audit_folder.as_deref().map(Audit::new).transpose()?;
        let messages = Arc::<EventQueue>::default();
        let (sender, actions) = unbounded_channel();
        let location = config.config_map_of_queues().map(|config_map| QueueLocation {
            config_map,
            copy: Some(config.copy_of_queues()).filter(|_| !executor.reporter.dry_run),
        });
        let scheduler_loop = SchedulerLoop::new(
            profiles,
            Arc::clone(&messages),
            sender,
            Arc::clone(metrics),
            audit,
            config.namespaces(),
            config.client_limits.max_in_flight,
        );
        let (end_guard, ended) = oneshot::channel();
        let thread = std::thread::Builder::new().name("scheduler".to_owned()).spawn(move || {
            let _end_guard = end_guard; // dropped when the thread ends, also by a panic
            scheduler_loop.run();
        });
        thread.map_err(Error::stopped)?;
        let mut tasks = JoinSet::new();
        for scope in scopes(&config.policies()) {
            let location = location.clone().filter(|_| scope.kind == Kind::ConfigMap);
            let queues = location.map(|location| {
                QueueConfiguration::new(watch_client.clone(), location, executor.reporter.clone(), Arc::clone(metrics))
            });
            let client = (watch_client.clone(), Arc::clone(&executor.versions));
            tasks.spawn(watch(client, scope, Arc::clone(&messages), Arc::clone(metrics), queues));
        }
        let queue = Arc::clone(&messages);
        tasks.spawn(async move { queue.flush_loop().await });
        tasks.spawn(Arc::new(executor).run(actions, Arc::clone(&messages)));
        Ok(Self { messages, ended, tasks })
    }

    /// Starts no new action, and waits for those in flight.
    async fn finish(self) {
        info!("shutting down: waiting for requests in flight");
        self.messages.push(Message::Stop);
        let _ = self.ended.await;
    }

    /// Stops at once, because another replica may be the leader now.
    async fn abort(mut self) {
        self.tasks.shutdown().await;
        self.messages.close();
        let _ = self.ended.await;
    }
}

fn profiles(config: &Configuration) -> Vec<ProfileRuntime> {
    let profile = |profile: &config::Profile| {
        let policy = profile.policy().expect("the configuration was validated when it was read");
        let queues = profile.queues().expect("the configuration was validated when it was read");
        let mut scheduler = Scheduler::new(&profile.name, policy).with_queues(queues);
        if let Some(names) = profile.name_preemptors {
            scheduler = scheduler.naming_preemptors(names);
        }
        if config.audit_folder.is_some() {
            scheduler = scheduler.recording(profile.policy_profile());
        }
        let kinds = kinds(&policy).collect();
        ProfileRuntime { scheduler, kinds, policy: policy_name(&policy), name: profile.name.clone() }
    };
    config.profiles.iter().map(profile).collect()
}

/// A unique identity of this replica: the name of the pod and the start time.
fn identity() -> String {
    let started = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_nanos();
    format!("{}_{:x}", gethostname::gethostname().to_string_lossy(), started)
}

/// Ends when the process receives SIGTERM or SIGINT.
fn shutdown_signal() -> Result<impl Future<Output = ()>, Error> {
    let mut terminate = signal(SignalKind::terminate()).map_err(Error::stopped)?;
    let mut interrupt = signal(SignalKind::interrupt()).map_err(Error::stopped)?;
    Ok(async move {
        tokio::select! {
            _ = terminate.recv() => {}
            _ = interrupt.recv() => {}
        }
    })
}
