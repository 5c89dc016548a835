//! Connects to a cluster: by a kubeconfig and one of its contexts, or by the service account of the pod.

use std::path::{Path, PathBuf};
use std::time::Duration;

use http::HeaderValue;
use http::header::USER_AGENT;
use hyper_rustls::{FixedServerNameResolver, HttpsConnectorBuilder};
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::rt::{TokioExecutor, TokioTimer};
use kube::client::retry::RetryPolicy;
use kube::client::{Body, ConfigExt};
use kube::config::{KubeConfigOptions, Kubeconfig, KubeconfigError};
use kube::{Client, Config};
use tower::retry::RetryLayer;
use tower::{BoxError, ServiceBuilder};
use tower_http::decompression::DecompressionLayer;

use crate::error::Error;

/// The name in the API server's audit log and in managed fields.
const USER_AGENT_NAME: &str = concat!("reprieve/", env!("CARGO_PKG_VERSION"));
/// HTTP/2 pings detect a dead connection.
const PING_INTERVAL: Duration = Duration::from_secs(30);
const PING_TIMEOUT: Duration = Duration::from_secs(15);

/// The flags that select a cluster.
#[derive(Clone, Debug, Default)]
pub struct Cluster {
    /// The kubeconfig file. Default: `KUBECONFIG`, `~/.kube/config` or the service account.
    pub kubeconfig: Option<PathBuf>,
    /// The context. Default: the current context of the kubeconfig.
    pub context: Option<String>,
}

impl Cluster {
    /// A client with a connection of its own. Sends no request yet.
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
                    "cannot connect to a cluster: {error}; set --kubeconfig or KUBECONFIG, or run in a pod with a service account"
                ))
            })?,
        };
        config.connect_timeout = Some(Duration::from_secs(10));
        config.headers.push((USER_AGENT, HeaderValue::from_static(USER_AGENT_NAME)));
        build_client(config).map_err(|error| Error::Kubeconfig(format!("kubeconfig: {error}")))
    }
}

/// A client that sends all requests on one HTTP/2 connection: each further connection would cost a handshake and memory on both sides.
fn build_client(config: Config) -> Result<Client, Box<dyn std::error::Error>> {
    if let Some(proxy) = &config.proxy_url {
        let host = proxy.host().unwrap_or_default();
        let problem = format!(
            "proxy {host}: proxies are not supported; remove proxy-url from the kubeconfig, or unset HTTPS_PROXY"
        );
        return Err(problem.into());
    }
    let mut connector = HttpConnector::new();
    connector.enforce_http(false);
    connector.set_nodelay(true);
    connector.set_connect_timeout(config.connect_timeout);
    let mut https = HttpsConnectorBuilder::new().with_tls_config(config.rustls_client_config()?).https_or_http();
    if let Some(name) = &config.tls_server_name {
        https = https.with_server_name_resolver(FixedServerNameResolver::new(name.clone().try_into()?));
    }
    let http = hyper_util::client::legacy::Client::builder(TokioExecutor::new())
        .timer(TokioTimer::new())
        .http2_keep_alive_interval(PING_INTERVAL)
        .http2_keep_alive_timeout(PING_TIMEOUT)
        .http2_keep_alive_while_idle(true)
        .build::<_, Body>(https.enable_all_versions().wrap_connector(connector));
    let service = ServiceBuilder::new()
        .layer(config.base_uri_layer())
        .layer(DecompressionLayer::new())
        .layer(RetryLayer::new(RetryPolicy::server_retry()))
        .option_layer(config.auth_layer()?)
        .layer(config.extra_headers_layer()?)
        .map_err(BoxError::from)
        .service(http);
    Ok(Client::new(service, config.default_namespace))
}

fn unreadable(path: &Path, error: &KubeconfigError) -> Error {
    let problem = match error {
        KubeconfigError::ReadConfig(error, _) => error.to_string(),
        error => error.to_string(),
    };
    Error::Kubeconfig(format!("--kubeconfig {}: {problem}", path.display()))
}
