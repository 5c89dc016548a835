//! Processes that do not outlive the test, however it ends.
//!
//! They are killed when they are dropped. Where nothing is dropped, because the test itself was killed, the kernel kills them: `setpriv`
//! asks it to, for the moment when the thread that started them ends. So one thread starts all of them and never ends.

use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::OnceLock;
use std::sync::mpsc::{Sender, channel};
use std::thread;
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process};

/// A running program, with both of its outputs in a file.
pub struct Process {
    name: String,
    child: Child,
    log: PathBuf,
}

impl Process {
    /// Starts it. What it says is added to the log of that name.
    pub fn start(name: &str, program: &Path, arguments: &[String], logs: &Path) -> Self {
        let log = logs.join(format!("{name}.log"));
        let file = File::options().create(true).append(true).open(&log).expect("a log can be written");
        let mut command = Command::new("setpriv");
        command.args(["--pdeathsig", "KILL", "--"]).arg(program).args(arguments);
        command.envs([("MIMALLOC_PURGE_DELAY", "0"), ("MIMALLOC_ALLOW_THP", "0")]); // as in the image
        command.stdin(Stdio::null()).stdout(file.try_clone().expect("a file can be opened twice")).stderr(file);
        let child = spawn(command).unwrap_or_else(|error| panic!("setpriv (util-linux) could not be run: {error}"));
        Self { name: name.to_owned(), child, log }
    }

    /// What the kernel knows it by.
    pub fn id(&self) -> u32 {
        self.child.id()
    }

    /// All that it has said.
    pub fn log(&self) -> String {
        fs::read_to_string(&self.log).unwrap_or_default()
    }

    /// How it ended, if it did.
    pub fn ended(&mut self) -> Option<ExitStatus> {
        self.child.try_wait().expect("one's own child can be waited for")
    }

    /// Kills it: it learns nothing of it.
    pub fn kill(mut self) {
        self.end();
    }

    /// Asks it to stop, and waits until it has.
    pub async fn stop(mut self) -> ExitStatus {
        let id = Pid::from_child(&self.child);
        kill_process(id, Signal::TERM).unwrap_or_else(|error| panic!("{}: {error}", self.name));
        self.wait().await
    }

    /// Waits until it ends by itself.
    pub async fn wait(&mut self) -> ExitStatus {
        for _ in 0..600 {
            if let Some(status) = self.ended() {
                return status;
            }
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
        panic!("{} has not ended within a minute; its last words:\n{}", self.name, self.last_words());
    }

    /// Fails if it is not running.
    pub fn check(&mut self) {
        if let Some(status) = self.ended() {
            panic!("{} ended with {status}; its last words:\n{}", self.name, self.last_words());
        }
    }

    fn last_words(&self) -> String {
        let log = self.log();
        let lines: Vec<&str> = log.lines().collect();
        lines[lines.len().saturating_sub(20)..].join("\n")
    }

    fn end(&mut self) {
        let _ = self.child.kill(); // it may have ended by itself
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
                let _ = answer.send(command.spawn()); // whoever asked has been killed
            }
        });
        sender
    });
    let (sender, receiver) = channel();
    starter.send((command, sender)).expect("the starter never ends");
    receiver.recv().expect("the starter answers")
}
