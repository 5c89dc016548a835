//! Arguments that `plan` and `compare` share: the input, the preemptor and the time.

use std::path::PathBuf;

use crate::complete;
use clap::Args;
use jiff::Timestamp;
use reprieve_api::{InputError, ObjectSet, PreemptorRef, Source, TestSpec};
use reprieve_cluster::client::Cluster;
use reprieve_engine::Policy;
use reprieve_engine::policy::kueue::PlacementMode;
use reprieve_loader::QueueSettings;

use crate::input::{self, Error, Input};

/// The input, the preemptor and the time.
#[derive(Debug, Args)]
pub struct QuestionArgs {
    /// Files and folders with Kubernetes objects, as printed by kubectl get -o yaml; - is standard input [default: read the cluster of
    /// the kubeconfig]
    #[arg(short, long = "filename", value_name = "FILE", num_args = 1..)]
    pub filename: Vec<PathBuf>,
    /// The cluster.
    #[command(flatten)]
    pub cluster: ClusterArgs,
    /// The preemptor: a pending Pod, PodGroup or Workload in the input
    #[arg(long = "for", value_name = "pod/NAME|podgroup/NAME|workload/NAME")]
    pub preemptor: Option<String>,
    /// Namespace of the preemptor, and of submitted objects without one [default: default]
    #[arg(short, long)]
    pub namespace: Option<String>,
    /// Time of the decision (RFC 3339) [default: now]
    #[arg(long, value_name = "TIME")]
    pub now: Option<String>,
}

/// The cluster to connect to.
#[derive(Debug, Args)]
pub struct ClusterArgs {
    /// Kubeconfig file of the cluster [default: KUBECONFIG, else ~/.kube/config]
    #[arg(long, value_name = "FILE")]
    pub kubeconfig: Option<PathBuf>,
    /// Context of the kubeconfig [default: the current context]
    #[arg(long, value_name = "NAME")]
    pub context: Option<String>,
}

impl ClusterArgs {
    /// The connection settings.
    pub fn cluster(&self) -> Cluster {
        Cluster { kubeconfig: self.kubeconfig.clone(), context: self.context.clone() }
    }
}

impl QuestionArgs {
    /// Reads the files, or the current state of the cluster with these queues. Only policy YuniKorn needs the ConfigMap with queues.
    pub fn read(&self, queues: &QueueSettings, reads_config_map: bool) -> Result<Input, Error> {
        if !self.filename.is_empty() {
            return input::read(&self.filename);
        }
        let (objects, warnings) = reprieve_cluster::snapshot::read(&self.cluster.cluster(), queues, reads_config_map)?;
        for warning in warnings {
            anstream::eprintln!("warning: {warning}");
        }
        Ok(Input { objects, test: None })
    }

    /// Refuses files without the objects that the policy needs (any policy, if none is given), and warns about others that are missing. A
    /// live cluster and a PreemptionTest are complete.
    pub fn check(
        &self,
        objects: &ObjectSet,
        recorded: Option<&TestSpec>,
        policy: Option<&Policy>,
    ) -> Result<Vec<String>, Error> {
        let quota_only = matches!(policy, Some(Policy::Kueue(kueue)) if kueue.placement == PlacementMode::QuotaOnly);
        if self.filename.is_empty() || recorded.is_some() || quota_only {
            return Ok(Vec::new());
        }
        Ok(complete::check(objects, &input::names(&self.filename))?)
    }

    /// The preemptor that `--for` names.
    pub fn named(&self) -> Result<Option<PreemptorRef>, Error> {
        self.preemptor
            .as_deref()
            .map(|name| preemptor_ref(name, self.namespace.as_deref().unwrap_or("default")))
            .transpose()
    }

    /// The time from the flag, else from the PreemptionTest in the input, else now.
    pub fn clock(&self, recorded: Option<&TestSpec>) -> Option<String> {
        let recorded = || recorded.map_or_else(|| Some(Timestamp::now().to_string()), |spec| spec.now.clone());
        self.now.clone().or_else(recorded)
    }

    /// The fields of a question that a flag sets, with the name of the flag.
    pub fn flags(&self) -> Vec<(String, String)> {
        let known = [(&self.preemptor, "preemptor", "--for"), (&self.now, "spec.now", "--now")];
        let given = known.iter().filter(|(value, ..)| value.is_some());
        given.map(|(_, field, flag)| ((*field).to_owned(), (*flag).to_owned())).collect()
    }
}

/// The usage error for a command without a preemptor; `or_else` names another way to give one.
pub fn missing_preemptor(or_else: &str) -> Error {
    let advice = "name a pending pod, pod group or workload with --for";
    Error::Usage(format!("no preemptor given: {advice}{or_else}"))
}

/// Replaces the field of an error by the flag that sets it; without such a flag, adds the location of the PreemptionTest.
pub fn attribute_to_flag(error: InputError, flags: &[(String, String)], test: Option<&Source>) -> InputError {
    let flag = flags.iter().find(|(field, _)| error.field.as_ref() == Some(field));
    match (flag, test) {
        (Some((_, flag)), _) => error.field(flag),
        (None, Some(test)) if error.source.is_none() => error.at(test),
        (None, _) => error,
    }
}

fn preemptor_ref(name: &str, namespace: &str) -> Result<PreemptorRef, Error> {
    let wrong =
        || Error::Usage(format!("--for {name}: not a preemptor; write pod/NAME, podgroup/NAME or workload/NAME"));
    let (kind, name) = name.split_once('/').filter(|(_, name)| !name.is_empty()).ok_or_else(wrong)?;
    let kind = match kind.to_ascii_lowercase().as_str() {
        "pod" | "pods" | "po" => "Pod",
        "podgroup" | "podgroups" | "pg" => "PodGroup",
        "workload" | "workloads" | "wl" => "Workload",
        _ => return Err(wrong()),
    };
    Ok(PreemptorRef { kind: kind.to_owned(), namespace: namespace.to_owned(), name: name.to_owned() })
}
