//! The HTTP server of `/metrics`, `/livez` and `/readyz`.

use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;

use axum::Router;
use axum::extract::State;
use axum::http::{StatusCode, header};
use axum::response::IntoResponse;
use axum::routing::get;
use tokio::net::TcpListener;
use tracing::info;

use crate::error::Error;
use crate::metrics::Metrics;

/// Starts the server, which runs until the process ends, and returns its port.
pub async fn serve(port: u16, metrics: Arc<Metrics>) -> Result<u16, Error> {
    let failed = |error| Error::Port { port, error };
    let listener = TcpListener::bind(SocketAddr::from((Ipv4Addr::UNSPECIFIED, port))).await.map_err(failed)?;
    let port = listener.local_addr().map_err(failed)?.port();
    let routes = Router::new()
        .route("/metrics", get(metrics_text))
        .route("/livez", get(|| async { "ok" }))
        .route("/readyz", get(ready))
        .with_state(metrics);
    info!(port, "serving /metrics, /livez and /readyz");
    tokio::spawn(async move { axum::serve(listener, routes).await });
    Ok(port)
}

async fn metrics_text(State(metrics): State<Arc<Metrics>>) -> impl IntoResponse {
    let content_type = "application/openmetrics-text; version=1.0.0; charset=utf-8";
    ([(header::CONTENT_TYPE, content_type)], metrics.text())
}

/// A follower is ready, too: it can become the leader at any time.
async fn ready(State(metrics): State<Arc<Metrics>>) -> (StatusCode, &'static str) {
    match metrics.is_serving() {
        true => (StatusCode::OK, "ok"),
        false => (
            StatusCode::SERVICE_UNAVAILABLE,
            "not ready: waiting for the API server or for the first list of every kind",
        ),
    }
}
