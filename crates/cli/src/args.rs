//! What a question about one preemptor begins with, whichever command asks it: the files, who asks, and when.

use std::path::PathBuf;

use crate::complete;
use clap::Args;
use jiff::Timestamp;
use reprieve_api::object_set::ObjectSet;
use reprieve_api::source::{InputError, Source};
use reprieve_api::test_file::{PreemptorRef, TestSpec};
use reprieve_cluster::client::Cluster;
use reprieve_engine::policy::Policy;
use reprieve_engine::policy::kueue::PlacementMode;
use reprieve_loader::build::OnInvalid;

use crate::input::{self, Error, Input};

/// The files, who asks, and when.
#[derive(Debug, Args)]
pub struct QuestionArgs {
    /// Files and folders with Kubernetes objects, as kubectl get -o yaml prints them; - is standard input. Without it the cluster of
    /// the kubeconfig is read
    #[arg(short, long = "filename", value_name = "FILE", num_args = 1..)]
    pub filename: Vec<PathBuf>,
    /// Which cluster.
    #[command(flatten)]
    pub cluster: ClusterArgs,
    /// Who asks: a pending pod, pod group or workload of the input
    #[arg(long = "for", value_name = "pod/NAME|podgroup/NAME|workload/NAME")]
    pub preemptor: Option<String>,
    /// The namespace of the one who asks, and of submitted objects that name none [default: default]
    #[arg(short, long)]
    pub namespace: Option<String>,
    /// The decision's clock; the present where nothing is said
    #[arg(long, value_name = "TIME")]
    pub now: Option<String>,
}

/// Which cluster.
#[derive(Debug, Args)]
pub struct ClusterArgs {
    /// The kubeconfig file of the cluster; KUBECONFIG or ~/.kube/config where nothing is said
    #[arg(long, value_name = "FILE")]
    pub kubeconfig: Option<PathBuf>,
    /// The context of the kubeconfig
    #[arg(long, value_name = "NAME")]
    pub context: Option<String>,
}

impl ClusterArgs {
    /// The way to it.
    pub fn cluster(&self) -> Cluster {
        Cluster { kubeconfig: self.kubeconfig.clone(), context: self.context.clone() }
    }
}

impl QuestionArgs {
    /// The files, or the cluster as it is now, which is only read.
    pub fn read(&self) -> Result<Input, Error> {
        if !self.filename.is_empty() {
            return input::read(&self.filename);
        }
        let (objects, warnings) = reprieve_cluster::snapshot::read(&self.cluster.cluster())?;
        for warning in warnings {
            anstream::eprintln!("warning: {warning}");
        }
        Ok(Input { objects, test: None })
    }

    /// How strictly what was read is judged: whoever asks a cluster that lives takes it as it is.
    pub fn strictness(&self) -> OnInvalid {
        if self.filename.is_empty() { OnInvalid::Live } else { OnInvalid::Files }
    }

    /// Refuses files that lack what the policy needs, or any policy where none is given; the warnings are about what else is missing. A
    /// live cluster is complete, and so is a PreemptionTest.
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

    /// Who asks, as `--for` names it.
    pub fn named(&self) -> Result<Option<PreemptorRef>, Error> {
        self.preemptor
            .as_deref()
            .map(|name| preemptor_ref(name, self.namespace.as_deref().unwrap_or("default")))
            .transpose()
    }

    /// What the flag says, else what the input itself says, else the present.
    pub fn clock(&self, recorded: Option<&TestSpec>) -> Option<String> {
        let recorded = || recorded.map_or_else(|| Some(Timestamp::now().to_string()), |spec| spec.now.clone());
        self.now.clone().or_else(recorded)
    }

    /// The fields of a question for which a flag stands, with the flag.
    pub fn flags(&self) -> Vec<(String, String)> {
        let known = [(&self.preemptor, "preemptor", "--for"), (&self.now, "spec.now", "--now")];
        let given = known.iter().filter(|(value, ..)| value.is_some());
        given.map(|(_, field, flag)| ((*field).to_owned(), (*flag).to_owned())).collect()
    }
}

/// A question that cannot be asked, with whatever asked it: the flag that stands for the field, else the file.
pub fn attribute_to_flag(error: InputError, flags: &[(String, String)], test: Option<&Source>) -> InputError {
    let flag = flags.iter().find(|(field, _)| error.field.as_ref() == Some(field));
    match (flag, test) {
        (Some((_, flag)), _) => error.field(flag),
        (None, Some(test)) if error.source.is_none() => error.at(test),
        (None, _) => error,
    }
}

fn preemptor_ref(name: &str, namespace: &str) -> Result<PreemptorRef, Error> {
    let wrong = || Error::Usage(format!("--for {name}: write pod/NAME, podgroup/NAME or workload/NAME"));
    let (kind, name) = name.split_once('/').filter(|(_, name)| !name.is_empty()).ok_or_else(wrong)?;
    let kind = match kind.to_ascii_lowercase().as_str() {
        "pod" | "pods" | "po" => "Pod",
        "podgroup" | "podgroups" | "pg" => "PodGroup",
        "workload" | "workloads" | "wl" => "Workload",
        _ => return Err(wrong()),
    };
    Ok(PreemptorRef { kind: kind.to_owned(), namespace: namespace.to_owned(), name: name.to_owned() })
}
