//! The way to a cluster: the kubeconfig, a context of it, or the service account of the pod it runs in.

use std::path::{Path, PathBuf};
use std::time::Duration;

use kube::config::{KubeConfigOptions, Kubeconfig};
use kube::{Client, Config};

use crate::error::Error;

/// Which cluster.
#[derive(Clone, Debug, Default)]
pub struct Cluster {
    /// The kubeconfig file; `KUBECONFIG`, `~/.kube/config` or the service account where nothing is said.
    pub kubeconfig: Option<PathBuf>,
    /// The context; the current one where nothing is said.
    pub context: Option<String>,
}

impl Cluster {
    /// A client of it. Nothing is asked of the cluster yet.
    pub async fn client(&self) -> Result<Client, Error> {
        let options = KubeConfigOptions { context: self.context.clone(), ..KubeConfigOptions::default() };
        let mut config = match &self.kubeconfig {
            Some(path) => {
                let kubeconfig = Kubeconfig::read_from(path).map_err(|error| unreadable(path, &error))?;
                Config::from_custom_kubeconfig(kubeconfig, &options).await.map_err(|error| unreadable(path, &error))?
            }
            None if self.context.is_some() => Config::from_kubeconfig(&options).await.map_err(|error| {
                let context = self.context.as_deref().unwrap_or_default();
                Error::Kubeconfig(format!("--context {context}: {error}; `kubectl config get-contexts` lists them"))
            })?,
            None => Config::infer().await.map_err(|error| {
                Error::Kubeconfig(format!(
                    "no way to a cluster: {error}; set --kubeconfig or KUBECONFIG, or run in a pod with a service account"
                ))
            })?,
        };
        config.connect_timeout = Some(Duration::from_secs(10));
        Client::try_from(config).map_err(|error| Error::Kubeconfig(format!("the kubeconfig cannot be used: {error}")))
    }
}

fn unreadable(path: &Path, error: &kube::config::KubeconfigError) -> Error {
    Error::Kubeconfig(format!("--kubeconfig {}: {error}", path.display()))
}
