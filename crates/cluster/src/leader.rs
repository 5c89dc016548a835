//! Leader election by a Lease: the replica that holds it schedules, and releases it when it shuts down.

use std::time::{Duration, Instant};

use jiff::Timestamp as Clock;
use k8s_openapi::api::coordination::v1::{Lease as Object, LeaseSpec};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::MicroTime;
use kube::api::{ObjectMeta, PostParams};
use kube::{Api, Client};
use tracing::{info, warn};

use crate::config::LeaderElection;
use crate::error::{has_code, problem};

/// The lease as this replica sees it.
pub struct Lease {
    leases: Api<Object>,
    name: String,
    identity: String,
    duration: Duration,
    /// The renew time of another holder's lease and when this replica first saw it. The clocks of machines differ, so only the time since
    /// then counts.
    observed: Option<(Option<MicroTime>, Instant)>,
}

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
            observed: None,
        }
    }

    /// Waits until this replica holds the lease, and reports after each attempt whether the API server is reachable.
    pub async fn acquire(&mut self, reachable: impl Fn(bool)) {
        let mut logged_holder = None;
        loop {
            let state = self.try_acquire().await;
            reachable(state.is_ok());
            match state {
                Ok(LeaseState::HeldByUs) => {
                    return info!(lease = self.name, identity = self.identity, "this replica is the leader");
                }
                Ok(LeaseState::HeldBy(holder)) => {
                    if logged_holder.as_ref() != Some(&holder) {
                        info!(lease = self.name, holder, "waiting for leadership");
                        logged_holder = Some(holder);
                    }
                }
                Err(error) => warn!(lease = self.name, error = problem(&error), "cannot acquire the lease"),
            }
            tokio::time::sleep(self.duration / 8).await;
        }
    }

    /// Renews the lease until another replica holds it or renewals have failed for two thirds of its duration.
    pub async fn renew_until_lost(&mut self) {
        let mut renewed = Instant::now();
        loop {
            tokio::time::sleep(self.duration / 5).await;
            match tokio::time::timeout(self.duration / 3, self.try_acquire()).await {
                Ok(Ok(LeaseState::HeldByUs)) => renewed = Instant::now(),
                Ok(Ok(LeaseState::HeldBy(holder))) => {
                    return warn!(lease = self.name, holder, "another replica took the lease");
                }
                Ok(Err(error)) => warn!(lease = self.name, error = problem(&error), "cannot renew the lease"),
                Err(_) => warn!(lease = self.name, "cannot renew the lease: timeout"),
            }
            if renewed.elapsed() > self.duration * 2 / 3 {
                return;
            }
        }
    }

    /// Releases the lease, so that another replica need not wait until it expires.
    pub async fn release(&mut self) {
        let Ok(Some(mut lease)) = self.leases.get_opt(&self.name).await else { return };
        let spec = lease.spec.get_or_insert_default();
        if spec.holder_identity.as_ref() != Some(&self.identity) {
            return;
        }
        spec.holder_identity = None;
        spec.lease_duration_seconds = Some(1);
        match self.leases.replace(&self.name, &PostParams::default(), &lease).await {
            Ok(_) => info!(lease = self.name, "lease released"),
            Err(error) => warn!(lease = self.name, error = problem(&error), "cannot release the lease"),
        }
    }

    /// Acquires or renews the lease, unless another replica holds it.
    async fn try_acquire(&mut self) -> Result<LeaseState, kube::Error> {
        let now = MicroTime(Clock::now());
        let Some(mut lease) = self.leases.get_opt(&self.name).await? else {
            let metadata = ObjectMeta { name: Some(self.name.clone()), ..ObjectMeta::default() };
            let spec = self.our_spec(now, None);
            return match self.leases.create(&PostParams::default(), &Object { metadata, spec: Some(spec) }).await {
                Ok(_) => Ok(LeaseState::HeldByUs),
                Err(error) if has_code(&error, 409) => Ok(LeaseState::HeldBy("another replica".to_owned())),
                Err(error) => Err(error),
            };
        };
        let before = lease.spec.take().unwrap_or_default();
        let holder = before.holder_identity.clone().filter(|holder| !holder.is_empty());
        if let Some(holder) = holder.filter(|holder| *holder != self.identity) {
            let seconds = u64::try_from(before.lease_duration_seconds.unwrap_or(0)).unwrap_or(0);
            if self.observed.as_ref().is_none_or(|(renewed, _)| *renewed != before.renew_time) {
                self.observed = Some((before.renew_time.clone(), Instant::now()));
                return Ok(LeaseState::HeldBy(holder));
            }
            if self.observed.as_ref().is_some_and(|(_, since)| since.elapsed() < Duration::from_secs(seconds)) {
                return Ok(LeaseState::HeldBy(holder));
            }
        }
        lease.spec = Some(self.our_spec(now, Some(before)));
        self.leases.replace(&self.name, &PostParams::default(), &lease).await.map(|_| LeaseState::HeldByUs)
    }

    fn our_spec(&self, now: MicroTime, before: Option<LeaseSpec>) -> LeaseSpec {
        let before = before.unwrap_or_default();
        let renewed = before.holder_identity.as_ref() == Some(&self.identity);
        LeaseSpec {
            holder_identity: Some(self.identity.clone()),
            lease_duration_seconds: i32::try_from(self.duration.as_secs()).ok(),
            acquire_time: if renewed { before.acquire_time } else { Some(now.clone()) },
            renew_time: Some(now),
            lease_transitions: Some(before.lease_transitions.unwrap_or(0) + i32::from(!renewed)),
            ..before
        }
    }
}
