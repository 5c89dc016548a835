//! Why nothing came of it, and what to do.

use std::path::PathBuf;

/// Why nothing came of it.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// A file could not be read or written.
    #[error("{}: {error}", path.display())]
    File {
        /// The file.
        path: PathBuf,
        /// Why.
        error: std::io::Error,
    },
    /// The configuration is wrong.
    #[error("{}: {field}: {problem}", path.display())]
    Configuration {
        /// The file.
        path: PathBuf,
        /// Where in it.
        field: String,
        /// What is wrong, and what to write.
        problem: String,
    },
    /// There is no way to the cluster.
    #[error("{0}")]
    Kubeconfig(String),
    /// The API server was asked, and did not answer as hoped.
    #[error("{doing}: {problem}")]
    Api {
        /// What was asked.
        doing: String,
        /// What it said, and what to do.
        problem: String,
    },
    /// Several things are missing in the cluster.
    #[error("the cluster is not ready for this:\n{}", .0.join("\n"))]
    NotReady(Vec<String>),
    /// A port is in use.
    #[error("port {port}: {error}; set ports.metrics to a free one")]
    Port {
        /// The port.
        port: u16,
        /// Why.
        error: std::io::Error,
    },
    /// A thread ended that must not.
    #[error("the scheduler stopped: {0}")]
    Stopped(String),
}

impl Error {
    /// The API server's answer, in words.
    pub fn api(doing: impl Into<String>, error: &kube::Error) -> Self {
        let problem = match error {
            kube::Error::Service(_) => {
                format!("{}; is the API server up, and its address in the kubeconfig right?", problem(error))
            }
            _ => problem(error),
        };
        Self::Api { doing: doing.into(), problem }
    }
}

/// Whether the API server answered with this code.
pub fn has_code(error: &kube::Error, code: u16) -> bool {
    matches!(error, kube::Error::Api(status) if status.code == code)
}

/// What an error of the client means, and what to do.
pub fn problem(error: &kube::Error) -> String {
    match error {
        kube::Error::Api(status) => match status.code {
            401 => {
                "the API server does not accept these credentials; log in again, or set another --context".to_owned()
            }
            403 => format!("{}; bind the ClusterRole of deploy/manifests to this user", status.message),
            _ => status.message.clone(),
        },
        other => {
            let text = other.to_string();
            let mut text = text.trim_start_matches("ServiceError: ").to_owned();
            let mut source = std::error::Error::source(other);
            while let Some(error) = source {
                let more = error.to_string();
                if !text.contains(&more) {
                    text = format!("{text}: {more}");
                }
                source = error.source();
            }
            text
        }
    }
}
