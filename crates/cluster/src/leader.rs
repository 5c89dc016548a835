//! Which of several replicas schedules: the one that holds the lease. It gives it back when it stops.

use std::time::{Duration, Instant};

use jiff::Timestamp as Clock;
use k8s_openapi::api::coordination::v1::{Lease as Object, LeaseSpec};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::MicroTime;
use kube::api::{ObjectMeta, PostParams};
use kube::{Api, Client};
use tracing::{info, warn};

use crate::config::LeaderElection;
use crate::error::{has_code, problem};

/// The lease, from one replica's point of view.
pub struct Lease {
    leases: Api<Object>,
    name: String,
    identity: String,
    duration: Duration,
    /// Another's lease as it was last seen, and since when: clocks of machines differ.
    seen: Option<(Option<MicroTime>, Instant)>,
}

/// What came of asking for it.
enum LeaseState {
    HeldByUs,
    HeldBy(String),
}

impl Lease {
    pub fn new(client: Client, config: &LeaderElection, identity: &str) -> Self {
        Self {
            leases: Api::namespaced(client, &config.namespace),
            name: config.name.clone(),
            identity: identity.to_owned(),
            duration: Duration::from_secs(u64::from(config.lease_seconds)),
            seen: None,
        }
    }

    /// Waits until this replica holds the lease, and says meanwhile whether the server answers.
    pub async fn acquire(&mut self, reachable: impl Fn(bool)) {
        let mut told = None;
        loop {
            let asked = self.try_acquire().await;
            reachable(asked.is_ok());
            match asked {
                Ok(LeaseState::HeldByUs) => {
                    return info!(lease = self.name, identity = self.identity, "this replica schedules");
                }
                Ok(LeaseState::HeldBy(holder)) => {
                    if told.as_ref() != Some(&holder) {
                        info!(lease = self.name, holder, "standing by");
                        told = Some(holder);
                    }
                }
                Err(error) => warn!(lease = self.name, error = problem(&error), "the lease cannot be asked for"),
            }
            tokio::time::sleep(self.duration / 8).await;
        }
    }

    /// Renews the lease for as long as that works.
    pub async fn renew_until_lost(&mut self) {
        let mut renewed = Instant::now();
        loop {
            tokio::time::sleep(self.duration / 5).await;
            match tokio::time::timeout(self.duration / 3, self.try_acquire()).await {
                Ok(Ok(LeaseState::HeldByUs)) => renewed = Instant::now(),
                Ok(Ok(LeaseState::HeldBy(holder))) => {
                    return warn!(lease = self.name, holder, "another replica holds the lease");
                }
                Ok(Err(error)) => warn!(lease = self.name, error = problem(&error), "the lease is not renewed"),
                Err(_) => warn!(lease = self.name, "the lease is not renewed: no answer"),
            }
            if renewed.elapsed() > self.duration * 2 / 3 {
                return;
            }
        }
    }

    /// Gives it back, so that another need not wait until it runs out.
    pub async fn release(&mut self) {
        let Ok(Some(mut lease)) = self.leases.get_opt(&self.name).await else { return };
        let spec = lease.spec.get_or_insert_default();
        if spec.holder_identity.as_ref() != Some(&self.identity) {
            return;
        }
        spec.holder_identity = None;
        spec.lease_duration_seconds = Some(1);
        match self.leases.replace(&self.name, &PostParams::default(), &lease).await {
            Ok(_) => info!(lease = self.name, "the lease is given back"),
            Err(error) => warn!(lease = self.name, error = problem(&error), "the lease is not given back"),
        }
    }

    /// Takes or renews the lease, unless another holds it.
    async fn try_acquire(&mut self) -> Result<LeaseState, kube::Error> {
        let now = MicroTime(Clock::now());
        let Some(mut lease) = self.leases.get_opt(&self.name).await? else {
            let metadata = ObjectMeta { name: Some(self.name.clone()), ..ObjectMeta::default() };
            let spec = self.our_spec(now, None);
            return match self.leases.create(&PostParams::default(), &Object { metadata, spec: Some(spec) }).await {
                Ok(_) => Ok(LeaseState::HeldByUs),
                Err(error) if has_code(&error, 409) => Ok(LeaseState::HeldBy("another".to_owned())),
                Err(error) => Err(error),
            };
        };
        let before = lease.spec.take().unwrap_or_default();
        let holder = before.holder_identity.clone().filter(|holder| !holder.is_empty());
        if let Some(holder) = holder.filter(|holder| *holder != self.identity) {
            let seconds = u64::try_from(before.lease_duration_seconds.unwrap_or(0)).unwrap_or(0);
            match &self.seen {
                Some((renewed, since)) if *renewed == before.renew_time => {
                    if since.elapsed() < Duration::from_secs(seconds) {
                        return Ok(LeaseState::HeldBy(holder));
                    }
                }
                _ => {
                    self.seen = Some((before.renew_time.clone(), Instant::now()));
                    return Ok(LeaseState::HeldBy(holder));
                }
            }
        }
        lease.spec = Some(self.our_spec(now, Some(before)));
        self.leases.replace(&self.name, &PostParams::default(), &lease).await.map(|_| LeaseState::HeldByUs)
    }

    fn our_spec(&self, now: MicroTime, before: Option<LeaseSpec>) -> LeaseSpec {
        let before = before.unwrap_or_default();
        let kept = before.holder_identity.as_ref() == Some(&self.identity);
        LeaseSpec {
            holder_identity: Some(self.identity.clone()),
            lease_duration_seconds: i32::try_from(self.duration.as_secs()).ok(),
            acquire_time: if kept { before.acquire_time } else { Some(now.clone()) },
            renew_time: Some(now),
            lease_transitions: Some(before.lease_transitions.unwrap_or(0) + i32::from(!kept)),
            ..before
        }
    }
}
