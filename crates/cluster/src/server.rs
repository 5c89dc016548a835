//! The HTTP servers. Health checks have a port that the kubelet can reach; `/metrics` has another, by default only on the loopback interface.

use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::sync::Arc;

use axum::Router;
use axum::extract::State;
use axum::http::{StatusCode, header};
use axum::response::IntoResponse;
use axum::routing::get;
use tokio::net::TcpListener;
use tracing::info;

use crate::config::Ports;
use crate::error::Error;
use crate::metrics::Metrics;

/// Starts the servers, which run until the process ends. Returns the port of the metrics and that of the health checks.
pub async fn serve(ports: &Ports, metrics: Arc<Metrics>) -> Result<(u16, u16), Error> {
    let health = Router::new().route("/livez", get(|| async { "ok" })).route("/readyz", get(ready));
    // The checks are on both ports, so that one connection to the loopback interface is enough for a person.
    let all = health.clone().route("/metrics", get(metrics_text)).with_state(Arc::clone(&metrics));
    let address = ports.metrics_address;
    let metrics_port = start("ports.metrics", address, ports.metrics, all).await?;
    info!(%address, port = metrics_port, "serving /metrics, /livez and /readyz");
    let any = IpAddr::V4(Ipv4Addr::UNSPECIFIED);
    let health_port = start("ports.health", any, ports.health(), health.with_state(metrics)).await?;
    info!(address = %any, port = health_port, "serving the health checks /livez and /readyz");
    Ok((metrics_port, health_port))
}

/// Listens on a port and returns it; 0 selects a free one.
async fn start(field: &'static str, address: IpAddr, port: u16, routes: Router) -> Result<u16, Error> {
    let failed = |error| Error::Port { field, port, error };
    let listener = TcpListener::bind(SocketAddr::from((address, port))).await.map_err(failed)?;
    let port = listener.local_addr().map_err(failed)?.port();
    tokio::spawn(async move { axum::serve(listener, routes).await });
    Ok(port)
}

async fn metrics_text(State(metrics): State<Arc<Metrics>>) -> impl IntoResponse {
    let content_type = "application/openmetrics-text; version=1.0.0; charset=utf-8";
    ([(header::CONTENT_TYPE, content_type)], metrics.text())
}

/// A follower is ready, too: it can become the leader at any time.
async fn ready(State(metrics): State<Arc<Metrics>>) -> (StatusCode, String) {
    match metrics.readiness.problem() {
        None => (StatusCode::OK, "ok".to_owned()),
        Some(problem) => (StatusCode::SERVICE_UNAVAILABLE, format!("not ready: {problem}")),
    }
}

#[cfg(test)]
mod tests {
    use tokio::io::{AsyncReadExt, AsyncWriteExt};
    use tokio::net::TcpStream;

    use super::*;
    use crate::readiness::Source;

    /// The status and the body of the response to a GET.
    async fn get_path(address: &str, port: u16, path: &str) -> std::io::Result<(u16, String)> {
        let mut stream = TcpStream::connect((address, port)).await?;
        stream.write_all(format!("GET {path} HTTP/1.0\r\nHost: localhost\r\n\r\n").as_bytes()).await?;
        let mut text = String::new();
        stream.read_to_string(&mut text).await?;
        let (head, body) = text.split_once("\r\n\r\n").expect("a response has a head");
        let status = head.split(' ').nth(1).and_then(|status| status.parse().ok()).expect("a response has a status");
        Ok((status, body.to_owned()))
    }

    #[tokio::test]
    async fn metrics_are_on_loopback_only_and_health_has_a_port_of_its_own() {
        let metrics = Arc::new(Metrics::new());
        let ports = Ports { metrics: 0, ..Ports::default() };
        let (open, health) = serve(&ports, Arc::clone(&metrics)).await.expect("free ports");
        let (status, text) = get_path("127.0.0.1", open, "/metrics").await.expect("a response");
        assert!(status == 200 && text.contains("reprieve_leader"), "{text}");
        assert!(get_path("127.0.0.2", open, "/metrics").await.is_err(), "only 127.0.0.1 listens");
        assert_eq!(get_path("127.0.0.2", health, "/livez").await.expect("a response").0, 200);
        assert_eq!(get_path("127.0.0.2", health, "/metrics").await.expect("a response").0, 404);
    }

    #[tokio::test]
    async fn readyz_says_what_cannot_be_read() {
        let metrics = Arc::new(Metrics::new());
        let ports = Ports { metrics: 0, ..Ports::default() };
        let (_, health) = serve(&ports, Arc::clone(&metrics)).await.expect("free ports");
        let ready = || get_path("127.0.0.1", health, "/readyz");
        assert_eq!(ready().await.expect("a response").0, 503);
        metrics.readiness.set_serving(true);
        assert_eq!(ready().await.expect("a response"), (200, "ok".to_owned()));
        metrics.readiness.set_unreadable(Source::Kind(reprieve_api::Kind::Node), "forbidden");
        assert_eq!(ready().await.expect("a response"), (503, "not ready: cannot read nodes: forbidden".to_owned()));
    }
}
