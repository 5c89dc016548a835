//! The errors that end a command, with what to do about them.

use std::path::PathBuf;

/// An error that ends a command.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// A file cannot be read or written.
    #[error("{}: {error}", path.display())]
    File {
        /// The file.
        path: PathBuf,
        /// The error of the operating system.
        error: std::io::Error,
    },
    /// A field of the configuration file is invalid.
    #[error("{}: {field}: {problem}", path.display())]
    Configuration {
        /// The file.
        path: PathBuf,
        /// The path of the field.
        field: String,
        /// What is wrong with the value, and what to write.
        problem: String,
    },
    /// No client can be created from the kubeconfig or the service account.
    #[error("{0}")]
    Kubeconfig(String),
    /// A request to the API server failed.
    #[error("{doing}: {problem}")]
    Api {
        /// What the request was for.
        doing: String,
        /// The API server's message, and what to do.
        problem: String,
    },
    /// The cluster lacks kinds, namespaces or permissions, one per line.
    #[error("the cluster is not ready:\n{}", .0.join("\n"))]
    NotReady(Vec<String>),
    /// A port cannot be used.
    #[error("port {port}: {error}; set {field} to a free one")]
    Port {
        /// The field of the configuration.
        field: &'static str,
        /// The port.
        port: u16,
        /// The error of the operating system.
        error: std::io::Error,
    },
    /// The process cannot continue.
    #[error("the scheduler stopped: {0}")]
    Stopped(String),
}

impl Error {
    /// The process cannot continue because of this.
    pub(crate) fn stopped(reason: impl ToString) -> Self {
        Self::Stopped(reason.to_string())
    }

    /// The request for `doing` failed.
    pub(crate) fn api(doing: impl Into<String>, error: &kube::Error) -> Self {
        let mut problem = problem(error);
        if matches!(error, kube::Error::Service(_)) {
            problem.push_str("; check that the API server runs and that its address in the kubeconfig is right");
        }
        Self::Api { doing: doing.into(), problem }
    }
}

/// Whether the API server responded with this status code.
pub fn has_code(error: &kube::Error, code: u16) -> bool {
    matches!(error, kube::Error::Api(status) if status.code == code)
}

/// The message of a client error with all its causes, and what to do where that is known.
pub fn problem(error: &kube::Error) -> String {
    let kube::Error::Api(status) = error else {
        let mut text = error.to_string().trim_start_matches("ServiceError: ").to_owned();
        let mut source = std::error::Error::source(error);
        while let Some(error) = source {
            let cause = error.to_string();
            if !text.contains(&cause) {
                text = format!("{text}: {cause}");
            }
            source = error.source();
        }
        return text;
    };
    match status.code {
        401 => "the API server does not accept these credentials; log in again, or set another --context".to_owned(),
        403 => {
            format!(
                "{}; bind a ClusterRole of deploy/manifests to this user (run: reprieve-run, else: reprieve-plan)",
                status.message
            )
        }
        _ => status.message.clone(),
    }
}
