//! A headless browser, controlled by the DevTools protocol.

use std::io::{BufRead, BufReader, Read};
use std::net::TcpStream;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use serde_json::{Value, json};
use tungstenite::stream::MaybeTlsStream;
use tungstenite::{Message, WebSocket};

const NAMES: [&str; 4] = ["chromium", "chromium-browser", "google-chrome", "chrome"];

/// A page in a browser.
pub struct Browser {
    process: Child,
    socket: WebSocket<MaybeTlsStream<TcpStream>>,
    session: Option<String>,
    sent: u64,
    /// Errors of the page, and requests that its content security policy refused.
    pub errors: Vec<String>,
    /// The fetched addresses.
    pub fetched: Vec<String>,
    _profile: tempfile::TempDir,
}

impl Browser {
    /// Starts the browser; panics on a machine without one.
    pub fn start() -> Self {
        let profile = tempfile::tempdir().expect("a folder for the browser");
        let mut process = launch(profile.path());
        let mut errors = BufReader::new(process.stderr.take().expect("its errors are read"));
        let mut output = String::new();
        let address = loop {
            let before = output.len();
            let read = errors.read_line(&mut output).expect("the output of the browser");
            assert!(read > 0, "the browser ended before it accepted a connection:\n{output}");
            if let Some(address) = output[before..].trim().strip_prefix("DevTools listening on ") {
                break address.to_owned();
            }
        };
        std::thread::spawn(move || errors.read_to_end(&mut Vec::new()));
        let (mut socket, _) = tungstenite::connect(&address).expect("the browser answers");
        if let MaybeTlsStream::Plain(stream) = socket.get_mut() {
            stream.set_read_timeout(Some(Duration::from_secs(120))).expect("a time limit");
        }
        let mut browser = Self {
            process,
            socket,
            session: None,
            sent: 0,
            errors: Vec::new(),
            fetched: Vec::new(),
            _profile: profile,
        };
        let target = browser.call("Target.createTarget", json!({"url": "about:blank"}));
        let attached = browser.call("Target.attachToTarget", json!({"targetId": target["targetId"], "flatten": true}));
        browser.session = Some(attached["sessionId"].as_str().expect("a session").to_owned());
        for domain in ["Page", "Runtime", "Log", "Network"] {
            browser.call(&format!("{domain}.enable"), json!({}));
        }
        browser
    }

    /// Shows a file on a screen of this width, light or dark.
    pub fn open(&mut self, file: &std::path::Path, width: u32, scheme: &str) {
        let screen = json!({"width": width, "height": 1000, "deviceScaleFactor": 1, "mobile": width < 600});
        self.call("Emulation.setDeviceMetricsOverride", screen);
        let features = json!([{"name": "prefers-color-scheme", "value": scheme}]);
        self.call("Emulation.setEmulatedMedia", json!({"features": features}));
        self.call("Page.navigate", json!({"url": format!("file://{}", file.display())}));
        while self.value("document.readyState") != "complete" || self.value("location.protocol") != "file:" {
            std::thread::sleep(Duration::from_millis(20));
        }
    }

    /// The value of a JavaScript expression.
    pub fn value(&mut self, expression: &str) -> Value {
        let arguments = json!({"expression": expression, "returnByValue": true, "awaitPromise": true});
        let mut answer = self.call("Runtime.evaluate", arguments);
        assert!(answer["exceptionDetails"].is_null(), "{expression}: {answer:#}");
        answer["result"]["value"].take()
    }

    /// Points at the middle of the first element that a selector finds.
    pub fn point_at(&mut self, selector: &str) {
        let (x, y) = self.middle(selector);
        self.call("Input.dispatchMouseEvent", json!({"type": "mouseMoved", "x": x, "y": y}));
    }

    /// Clicks on the first element that a selector finds.
    pub fn click(&mut self, selector: &str) {
        let (x, y) = self.middle(selector);
        for kind in ["mouseMoved", "mousePressed", "mouseReleased"] {
            let button = if kind == "mouseMoved" { "none" } else { "left" };
            let event = json!({"type": kind, "x": x, "y": y, "button": button, "clickCount": 1});
            self.call("Input.dispatchMouseEvent", event);
        }
    }

    fn middle(&mut self, selector: &str) -> (f64, f64) {
        // Elements that scroll into view are laid out before the next frame.
        let place = self.value(&format!(
            "(async () => {{ const found = document.querySelector({selector:?}); found.scrollIntoView({{block: 'center'}}); \
             for (let frames = 0; frames < 2; frames++) await new Promise(requestAnimationFrame); \
             const box = found.getBoundingClientRect(); return [box.x + box.width / 2, box.y + box.height / 2]; }})()"
        ));
        (place[0].as_f64().expect("a place"), place[1].as_f64().expect("a place"))
    }

    fn call(&mut self, method: &str, params: Value) -> Value {
        self.sent += 1;
        let mut message = json!({"id": self.sent, "method": method, "params": params});
        if let Some(session) = &self.session {
            message["sessionId"] = json!(session);
        }
        self.socket.send(Message::text(message.to_string())).expect("the browser receives requests");
        loop {
            let answer = self.socket.read().expect("the browser answers");
            let Ok(mut answer) = serde_json::from_str::<Value>(answer.to_text().unwrap_or_default()) else { continue };
            if answer["id"] == self.sent {
                assert!(answer["error"].is_null(), "{method}: {}", answer["error"]);
                return answer["result"].take();
            }
            self.record(&answer);
        }
    }

    fn record(&mut self, event: &Value) {
        let params = &event["params"];
        match event["method"].as_str().unwrap_or_default() {
            "Runtime.exceptionThrown" => self.errors.push(params["exceptionDetails"].to_string()),
            "Runtime.consoleAPICalled" => self.errors.push(params["args"].to_string()),
            "Log.entryAdded" => self.errors.push(params["entry"]["text"].to_string()),
            "Network.requestWillBeSent" => {
                self.fetched.push(params["request"]["url"].as_str().unwrap_or_default().to_owned());
            }
            _ => {}
        }
    }
}

impl Drop for Browser {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

fn launch(profile: &std::path::Path) -> Child {
    let own = std::env::var("CHROMIUM").ok();
    let names: Vec<&str> = own.as_deref().map_or_else(|| NAMES.to_vec(), |own| vec![own]);
    for name in &names {
        let mut command = Command::new(name);
        command
            .args(["--headless", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--no-first-run"])
            .args(["--remote-debugging-port=0", "about:blank"])
            .arg(format!("--user-data-dir={}", profile.display()))
            .stdout(Stdio::null())
            .stderr(Stdio::piped());
        if let Ok(process) = command.spawn() {
            return process;
        }
    }
    panic!(
        "no browser: install chromium (on Debian `apt-get install chromium`), or name one with CHROMIUM; tried {names:?}"
    );
}
