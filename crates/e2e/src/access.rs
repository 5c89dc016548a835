//! The users of the API server: keys, tokens and kubeconfigs.

use std::fs;
use std::path::Path;

/// A user of the API server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum User {
    /// Has all permissions.
    Admin,
    /// The service account of `reprieve run`, with the permissions of the chart's roles.
    Run,
    /// The user `planner`, with the permissions that a test binds to it.
    Planner,
}

impl User {
    const ALL: [Self; 3] = [Self::Admin, Self::Run, Self::Planner];

    /// The file name in the control plane's folder.
    pub(crate) fn kubeconfig(self) -> &'static str {
        match self {
            Self::Admin => "admin.kubeconfig",
            Self::Run => "run.kubeconfig",
            Self::Planner => "planner.kubeconfig",
        }
    }

    fn token(self) -> &'static str {
        match self {
            Self::Admin => "admin-token",
            Self::Run => "run-token",
            Self::Planner => "planner-token",
        }
    }

    /// The names of the user and its groups.
    fn identity(self) -> (&'static str, &'static str) {
        match self {
            Self::Admin => ("admin", "system:masters"),
            Self::Run => (
                "system:serviceaccount:reprieve-system:reprieve",
                "system:serviceaccounts,system:serviceaccounts:reprieve-system",
            ),
            Self::Planner => ("planner", "people"),
        }
    }
}

/// Writes the key for service accounts, `tokens.csv`, and a kubeconfig for each user. The API server
/// writes its certificate to `certificates`.
pub fn write(folder: &Path, api_server: &str) {
    let write = |name: &str, text: &str| {
        let path = folder.join(name);
        fs::write(&path, text).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    };
    let key = rcgen::KeyPair::generate().expect("a key can be generated");
    write("service-accounts.key", &key.serialize_pem());
    write("service-accounts.pub", &key.public_key_pem());
    let token = |user: User| {
        let (name, groups) = user.identity();
        format!("{},{name},{name},\"{groups}\"\n", user.token())
    };
    write("tokens.csv", &User::ALL.map(token).concat());
    let certificate = folder.join("certificates/apiserver.crt");
    for user in User::ALL {
        let (name, token) = (user.identity().0, user.token());
        let text = serde_json::json!({
            "apiVersion": "v1",
            "kind": "Config",
            "clusters": [{"name": "e2e", "cluster": {"server": api_server, "certificate-authority": certificate}}],
            "users": [{"name": name, "user": {"token": token}}],
            "contexts": [{"name": "e2e", "context": {"cluster": "e2e", "user": name}}],
            "current-context": "e2e",
        });
        write(user.kubeconfig(), &text.to_string());
    }
}
