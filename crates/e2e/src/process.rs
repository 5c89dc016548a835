//! Processes that end with the test.
//!
//! Dropping a process kills it. If the test itself is killed, the kernel kills its processes: `setpriv` requests that for the time when the thread
//! that started them ends. For that reason one thread starts all processes and never ends.

use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::OnceLock;
use std::sync::mpsc::{Sender, channel};
use std::thread;
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process};

/// A running program with a log file for both of its outputs.
pub struct Process {
    name: String,
    child: Child,
    log: PathBuf,
}

impl Process {
    /// Starts a program and appends its output to the log of that name.
    pub fn start(name: &str, program: &Path, arguments: &[String], logs: &Path) -> Self {
        let log = logs.join(format!("{name}.log"));
        let file = File::options().create(true).append(true).open(&log).expect("a log can be written");
        let mut command = Command::new("setpriv");
        command.args(["--pdeathsig", "KILL", "--"]).arg(program).args(arguments);
        command.envs([("MIMALLOC_PURGE_DELAY", "0"), ("MIMALLOC_ALLOW_THP", "0")]); // as in the image
        command.stdin(Stdio::null()).stdout(file.try_clone().expect("a file can be opened twice")).stderr(file);
        let child = spawn(command).unwrap_or_else(|error| panic!("cannot run setpriv (util-linux): {error}"));
        Self { name: name.to_owned(), child, log }
    }

    /// The process id.
    pub fn id(&self) -> u32 {
        self.child.id()
    }

    /// The output so far.
    pub fn log(&self) -> String {
        fs::read_to_string(&self.log).unwrap_or_default()
    }

    /// The exit status, if the process has ended.
    pub fn ended(&mut self) -> Option<ExitStatus> {
        self.child.try_wait().expect("a child process can be waited for")
    }

    /// Kills the process with SIGKILL.
    pub fn kill(mut self) {
        self.end();
    }

    /// Stops the process with SIGTERM and waits until it has ended.
    pub async fn stop(mut self) -> ExitStatus {
        let id = Pid::from_child(&self.child);
        kill_process(id, Signal::TERM).unwrap_or_else(|error| panic!("{}: {error}", self.name));
        self.wait().await
    }

    /// Waits until the process has ended.
    pub async fn wait(&mut self) -> ExitStatus {
        for _ in 0..600 {
            if let Some(status) = self.ended() {
                return status;
            }
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
        panic!("{} has not ended within a minute; the end of its log:\n{}", self.name, self.end_of_log());
    }

    /// Panics if the process has ended.
    pub fn check(&mut self) {
        if let Some(status) = self.ended() {
            panic!("{} ended with {status}; the end of its log:\n{}", self.name, self.end_of_log());
        }
    }

    fn end_of_log(&self) -> String {
        let log = self.log();
        let lines: Vec<&str> = log.lines().collect();
        lines[lines.len().saturating_sub(20)..].join("\n")
    }

    fn end(&mut self) {
        let _ = self.child.kill(); // fails if the process has already ended
        let _ = self.child.wait();
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        self.end();
    }
}

type Answer = Sender<io::Result<Child>>;

fn spawn(command: Command) -> io::Result<Child> {
    static STARTER: OnceLock<Sender<(Command, Answer)>> = OnceLock::new();
    let starter = STARTER.get_or_init(|| {
        let (sender, receiver) = channel::<(Command, Answer)>();
        thread::spawn(move || {
            for (mut command, answer) in receiver {
                let _ = answer.send(command.spawn()); // fails if the caller has ended
            }
        });
        sender
    });
    let (sender, receiver) = channel();
    starter.send((command, sender)).expect("the starter thread never ends");
    receiver.recv().expect("the starter thread answers")
}
