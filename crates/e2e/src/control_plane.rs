//! A control plane: its processes, folder and ports.

use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU16, Ordering};
use std::{fs, io, thread};

use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::api::ListParams;
use kube::config::{KubeConfigOptions, Kubeconfig};
use kube::{Api, Client, Config};
use tempfile::TempDir;

use crate::{Process, User, access, cpu_seconds, etcd, eventually, programs};

/// A control plane. Dropping it ends all its processes. If the test fails, the logs stay, and their path is printed.
pub struct ControlPlane {
    client: Client,
    /// etcd, then the controllers and the kubelets.
    processes: Vec<Process>,
    api_server: Option<Process>,
    api_port: u16,
    etcd_port: u16,
    logs: PathBuf,
    folder: TempDir,
}

impl ControlPlane {
    /// Starts a control plane, and waits until it is ready and has Reprieve's custom resources. The folder of the logs has the test's name.
    pub async fn start(test: &str) -> Self {
        let control_plane = Self::start_bare(test).await;
        control_plane.install_custom_resources().await;
        control_plane
    }

    /// Starts a control plane without custom resources.
    pub async fn start_bare(test: &str) -> Self {
        let folder = tempfile::Builder::new().prefix("reprieve-e2e-").tempdir().expect("a folder can be created");
        let logs = programs::logs().join(test);
        let _ = fs::remove_dir_all(&logs); // from an earlier failure
        fs::create_dir_all(&logs).expect("the folder of the logs can be created");
        let (api_port, etcd_port) = (free_port(), free_port());
        access::write(folder.path(), &format!("https://127.0.0.1:{api_port}"));
        let etcd = start_etcd(&folder, &logs, etcd_port);
        let mut api_server = start_api_server(&folder, &logs, api_port, etcd_port);
        let client = ready_client(&folder.path().join(User::Admin.kubeconfig()), &mut api_server).await;
        let mut control_plane =
            Self { client, processes: vec![etcd], api_server: Some(api_server), api_port, etcd_port, logs, folder };
        control_plane.start_controllers();
        control_plane
    }

    /// A client with all permissions.
    pub fn client(&self) -> &Client {
        &self.client
    }

    /// A client with the permissions of this user.
    pub async fn client_of(&self, user: User) -> Client {
        let config = config(&self.kubeconfig(user)).await.expect("the API server has a certificate");
        Client::try_from(config).expect("a client")
    }

    /// The kubeconfig of a user.
    pub fn kubeconfig(&self, user: User) -> PathBuf {
        self.folder.path().join(user.kubeconfig())
    }

    /// A folder for the test's files, which is removed with the control plane.
    pub fn folder(&self) -> PathBuf {
        let folder = self.folder.path().join("files");
        fs::create_dir_all(&folder).expect("a folder can be created");
        folder
    }

    /// Starts `reprieve` with these arguments as this user. Each running process needs its own name.
    pub fn reprieve(&self, name: &str, user: User, arguments: &[&str]) -> Process {
        let kubeconfig = format!("--kubeconfig={}", self.kubeconfig(user).display());
        let arguments = arguments.iter().map(|argument| (*argument).to_owned()).chain([kubeconfig]).collect::<Vec<_>>();
        Process::start(name, &programs::reprieve(), &arguments, &self.logs)
    }

    /// Starts kube-scheduler, for comparisons.
    pub fn kube_scheduler(&self) -> Process {
        let arguments = [
            format!("--kubeconfig={}", self.kubeconfig(User::Admin).display()),
            "--leader-elect=false".to_owned(),
            "--feature-gates=GenericWorkload=true".to_owned(),
            "--secure-port=0".to_owned(),
            "--kube-api-qps=1000".to_owned(),
            "--kube-api-burst=2000".to_owned(),
        ];
        Process::start("kube-scheduler", &programs::program("kube-scheduler"), &arguments, &self.logs)
    }

    /// The CPU time of all its processes.
    pub fn cpu_seconds(&self) -> f64 {
        self.processes.iter().chain(&self.api_server).map(|process| cpu_seconds(process.id())).sum()
    }

    /// Stops the controllers and the kubelets, so that objects change only by requests of the test and its schedulers.
    pub fn stop_controllers(&mut self) {
        self.processes.truncate(1);
    }

    /// Kills the API server: all connections break, and no new one can be opened.
    pub fn stop_api_server(&mut self) {
        self.api_server.take().expect("the API server runs").kill();
    }

    /// Starts the API server again, on the same port and with the same data.
    pub async fn start_api_server(&mut self) {
        assert!(self.api_server.is_none(), "the API server runs");
        let mut api_server = start_api_server(&self.folder, &self.logs, self.api_port, self.etcd_port);
        ready_client(&self.kubeconfig(User::Admin), &mut api_server).await;
        self.api_server = Some(api_server);
    }

    /// Restarts the API server without its history: a watch that continues from an earlier version gets 410 Gone.
    pub async fn forget_history(&mut self) {
        self.stop_api_server();
        etcd::compact(self.etcd_port);
        self.start_api_server().await;
    }

    /// Panics if one of the processes has ended.
    pub fn check(&mut self) {
        self.processes.iter_mut().chain(&mut self.api_server).for_each(Process::check);
    }

    fn start_controllers(&mut self) {
        let path = |name: &str| self.folder.path().join(name).display().to_string();
        let kubeconfig = format!("--kubeconfig={}", path(User::Admin.kubeconfig()));
        let arguments = [
            kubeconfig.clone(),
            format!("--service-account-private-key-file={}", path("service-accounts.key")),
            "--leader-elect=false".to_owned(),
            "--feature-gates=GenericWorkload=true".to_owned(),
            "--secure-port=0".to_owned(),
            "--kube-api-qps=1000".to_owned(),
            "--kube-api-burst=1000".to_owned(),
            // Nodes without a kubelet send no heartbeats.
            "--node-monitor-grace-period=24h".to_owned(),
        ];
        let program = programs::program("kube-controller-manager");
        self.processes.push(Process::start("kube-controller-manager", &program, &arguments, &self.logs));

        let stages = self.folder.path().join("stages.yaml");
        fs::write(&stages, include_str!("stages.yaml")).expect("the stages can be written");
        let arguments = [
            kubeconfig,
            format!("--config={}", stages.display()),
            "--manage-all-nodes=true".to_owned(),
            "--node-lease-duration-seconds=0".to_owned(),
        ];
        self.processes.push(Process::start("kwok", &programs::program("kwok"), &arguments, &self.logs));
    }

    async fn install_custom_resources(&self) {
        let folder = programs::root().join("deploy/crds");
        let files = fs::read_dir(&folder).expect("deploy/crds exists");
        let text = |entry: io::Result<fs::DirEntry>| fs::read_to_string(entry?.path());
        let texts: io::Result<Vec<String>> = files.map(text).collect();
        self.apply(&texts.expect("the files can be read").join("\n---\n")).await;
        let api: Api<CustomResourceDefinition> = Api::all(self.client.clone());
        eventually("the custom resources are served", async || {
            let definitions = api.list(&ListParams::default()).await.ok()?;
            definitions.iter().all(is_served).then_some(())
        })
        .await;
    }
}

impl Drop for ControlPlane {
    fn drop(&mut self) {
        if thread::panicking() {
            eprintln!("the logs of the control plane are in {}", self.logs.display());
        } else {
            let _ = fs::remove_dir_all(&self.logs);
        }
    }
}

fn is_served(definition: &CustomResourceDefinition) -> bool {
    let conditions = definition.status.iter().flat_map(|status| status.conditions.iter().flatten());
    conditions.into_iter().any(|condition| condition.type_ == "Established" && condition.status == "True")
}

fn start_etcd(folder: &TempDir, logs: &Path, port: u16) -> Process {
    let client = format!("http://127.0.0.1:{port}");
    let arguments = [
        format!("--data-dir={}", folder.path().join("etcd").display()),
        format!("--listen-client-urls={client}"),
        format!("--advertise-client-urls={client}"),
        format!("--listen-peer-urls=http://127.0.0.1:{}", free_port()),
        "--unsafe-no-fsync".to_owned(),
        "--log-level=warn".to_owned(),
    ];
    Process::start("etcd", &programs::program("etcd"), &arguments, logs)
}

fn start_api_server(folder: &TempDir, logs: &Path, port: u16, etcd_port: u16) -> Process {
    let path = |name: &str| folder.path().join(name).display().to_string();
    let arguments = [
        format!("--etcd-servers=http://127.0.0.1:{etcd_port}"),
        format!("--cert-dir={}", path("certificates")),
        "--bind-address=127.0.0.1".to_owned(),
        format!("--secure-port={port}"),
        "--endpoint-reconciler-type=none".to_owned(),
        "--service-account-issuer=https://e2e.reprieve.dev".to_owned(),
        format!("--service-account-signing-key-file={}", path("service-accounts.key")),
        format!("--service-account-key-file={}", path("service-accounts.pub")),
        format!("--token-auth-file={}", path("tokens.csv")),
        "--authorization-mode=RBAC".to_owned(),
        // Pods need no token because no container runs.
        "--disable-admission-plugins=ServiceAccount".to_owned(),
        "--runtime-config=scheduling.k8s.io/v1beta1=true".to_owned(),
        "--feature-gates=GenericWorkload=true".to_owned(),
    ];
    Process::start("kube-apiserver", &programs::program("kube-apiserver"), &arguments, logs)
}

/// Waits until the API server is ready and returns a client. Each attempt creates a new client, because an earlier one may have read an incomplete
/// certificate.
async fn ready_client(kubeconfig: &Path, api_server: &mut Process) -> Client {
    eventually("the API server is ready", async || {
        api_server.check();
        let client = Client::try_from(config(kubeconfig).await?).ok()?;
        let request = http::Request::get("/readyz").body(Vec::new()).expect("a request");
        client.request_text(request).await.ok().map(|_| client)
    })
    .await
}

/// `None` while the API server has not written its certificate.
async fn config(kubeconfig: &Path) -> Option<Config> {
    let kubeconfig = Kubeconfig::read_from(kubeconfig).expect("a kubeconfig");
    Config::from_custom_kubeconfig(kubeconfig, &KubeConfigOptions::default()).await.ok()
}

/// A free port, from a range that the kernel does not use for outgoing connections.
fn free_port() -> u16 {
    static NEXT: AtomicU16 = AtomicU16::new(0);
    let process_offset = std::process::id() % 1_000 * 10;
    loop {
        let next = u32::from(NEXT.fetch_add(1, Ordering::Relaxed));
        let port = u16::try_from(20_000 + (process_offset + next) % 10_000).expect("below 30,000");
        if TcpListener::bind(("127.0.0.1", port)).is_ok() {
            return port;
        }
    }
}
