//! The browser of one test: `ChromeDriver` on its own port, Chromium with an empty profile. Everything
//! ends with the test.

use std::io::{BufRead as _, BufReader};
use std::process::{Child, Command, Stdio};
use std::sync::mpsc;
use std::thread;
use std::time::{Duration, Instant};

use fantoccini::error::CmdError;
use fantoccini::wd::WebDriverCompatibleCommand;
use fantoccini::{Client, ClientBuilder};
use hyper_util::client::legacy::connect::HttpConnector;
use serde_json::{Value, json};
use tempfile::TempDir;
use tokio::runtime::Runtime;
use url::Url;

use crate::common::{Server, tools};

/// Deadline of every wait; conditions are met long before, even on a busy machine.
pub const WAIT_MAX: Duration = Duration::from_secs(30);
/// Interval between two polls of a wait.
const PERIOD: Duration = Duration::from_millis(40);
/// Deadline from the start of the programs to the first page.
const START_MAX: Duration = Duration::from_secs(90);

/// Widths at which pages are checked.
pub const DESKTOP: u32 = 1280;
pub const PHONE: u32 = 390;
pub const WIDE: u32 = 1920;

/// Maximum height of a picture in pixels, because the rest of a long page looks the same.
const PICTURE_HEIGHT_MAX: f64 = 1_700.0;

/// Flags to run as root, headless, and without background requests.
const FLAGS: [&str; 17] = [
    "--headless=new",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-dev-shm-usage",
    "--disable-quic",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-default-apps",
    "--disable-domain-reliability",
    "--disable-extensions",
    "--disable-sync",
    "--no-first-run",
    "--no-default-browser-check",
    "--password-store=basic",
    "--hide-scrollbars",
    "--force-color-profile=srgb",
    "--lang=en-US",
];

/// A viewport and colour scheme.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Look {
    pub width: u32,
    pub dark: bool,
}

impl Look {
    /// A wide window, light.
    pub const DESKTOP: Look = Look { width: DESKTOP, dark: false };
    /// A phone, light.
    pub const PHONE: Look = Look { width: PHONE, dark: false };
    /// Each width and each colour scheme once.
    pub const OPPOSITE: [Look; 2] = [Look::DESKTOP, Look { width: PHONE, dark: true }];
    /// The other looks.
    pub const OTHERS: [Look; 4] = [
        Look { width: DESKTOP, dark: true },
        Look::PHONE,
        Look { width: WIDE, dark: false },
        Look { width: WIDE, dark: true },
    ];

    /// Describes the look in words that can be part of a file's name.
    pub fn word(self) -> String {
        format!("{}-{}", self.width, if self.dark { "dark" } else { "light" })
    }
}

/// A browser that shows the pages of one server.
pub struct Browser {
    runtime: Runtime,
    client: Client,
    driver: Child,
    base: Url,
    _profile: TempDir,
}

impl Browser {
    /// A browser with a wide window.
    pub fn new(server: &Server) -> Browser {
        Browser::start(server, true)
    }

    /// Creates a browser that does not run scripts of pages.
    pub fn without_scripts(server: &Server) -> Browser {
        Browser::start(server, false)
    }

    fn start(server: &Server, scripts: bool) -> Browser {
        let profile = tempfile::Builder::new().prefix("dropdex-browser-").tempdir();
        let profile = profile.expect("a temporary folder can be made");
        let (driver, port) = start_driver(&profile);
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .worker_threads(1)
            .enable_all()
            .build()
            .expect("a runtime can be made");
        let mut builder = ClientBuilder::new(HttpConnector::new());
        let Value::Object(capabilities) = capabilities(&profile, scripts) else { unreachable!() };
        builder.capabilities(capabilities);
        let address = format!("http://127.0.0.1:{port}");
        let connected = async { tokio::time::timeout(START_MAX, builder.connect(&address)).await };
        let client = match runtime.block_on(connected) {
            Ok(Ok(client)) => client,
            Ok(Err(err)) => panic!("Chromium did not start: {err}"),
            Err(_) => panic!("Chromium did not start in {START_MAX:?}"),
        };
        let base = format!("http://{}/", server.address()).parse().expect("an address");
        let browser = Browser { runtime, client, driver, base, _profile: profile };
        browser.look(Look::DESKTOP);
        browser
    }

    /// Continues with a server that replaced another. The browser keeps its cookies, because these
    /// belong to the host and not to a port.
    pub fn moved_to(&mut self, server: &Server) {
        self.base = format!("http://{}/", server.address()).parse().expect("an address");
    }

    /// Uses this look from now on.
    pub fn look(&self, look: Look) {
        let phone = look.width < 600;
        self.cdp(
            "Emulation.setDeviceMetricsOverride",
            json!({
                "width": look.width,
                "height": if phone { 844 } else { 900 },
                "deviceScaleFactor": 1,
                "mobile": phone,
            }),
        );
        let scheme = if look.dark { "dark" } else { "light" };
        let features = json!([{"name": "prefers-color-scheme", "value": scheme}]);
        self.cdp("Emulation.setEmulatedMedia", json!({ "features": features }));
    }

    /// Opens a page of the server and waits until it is loaded.
    #[track_caller]
    pub fn open(&self, path: &str) {
        let url = self.base.join(path).expect("a path");
        if let Err(err) = self.run(self.client.goto(url.as_str())) {
            panic!("{url}: {err}");
        }
        self.until_loaded();
    }

    /// Waits until the page and everything that it needs have loaded.
    #[track_caller]
    pub fn until_loaded(&self) {
        self.until("the page is loaded", || {
            let state = self.try_script("return document.readyState", &[])?;
            Ok((state == "complete").then_some(()))
        });
    }

    /// Path and query of the page.
    pub fn place(&self) -> String {
        let url = self.run(self.client.current_url()).expect("a page has an address");
        match url.query() {
            Some(query) => format!("{}?{query}", url.path()),
            None => url.path().to_owned(),
        }
    }

    /// Runs a script from outside the page, even where the page's own policy forbids scripts.
    #[track_caller]
    pub fn script(&self, script: &str, arguments: &[Value]) -> Value {
        let done = self.try_script(script, arguments);
        done.unwrap_or_else(|err| panic!("{err}\n{script}"))
    }

    /// As [`Browser::script`], but for pages that may disappear meanwhile.
    pub fn try_script(&self, script: &str, arguments: &[Value]) -> Result<Value, CmdError> {
        self.run(self.client.execute(script, arguments.to_vec()))
    }

    /// Sends a command of the protocol of Chrome's developer tools.
    #[track_caller]
    pub fn cdp(&self, command: &'static str, parameters: Value) -> Value {
        self.try_cdp(command, parameters).expect("Chromium knows the command")
    }

    fn try_cdp(&self, command: &'static str, parameters: Value) -> Result<Value, CmdError> {
        let body = json!({"cmd": command, "params": parameters});
        self.run(self.client.issue_cmd(Extension { path: "goog/cdp/execute", body }))
    }

    /// Returns console messages since the last call.
    pub fn console(&self) -> Vec<Value> {
        let command = Extension { path: "se/log", body: json!({"type": "browser"}) };
        let log = self.run(self.client.issue_cmd(command)).expect("there is a log");
        log.as_array().cloned().unwrap_or_default()
    }

    /// Takes a picture of the page from its top as a PNG file: the whole page, but at most the
    /// height of two screens.
    pub fn picture(&self) -> Vec<u8> {
        let measure =
            "const it = document.documentElement; return [it.clientWidth, it.scrollHeight]";
        let picture = self.until("a picture", || {
            let size = self.try_script(measure, &[])?;
            let height = size[1].as_f64().unwrap_or_default().min(PICTURE_HEIGHT_MAX);
            let clip = json!({"x": 0, "y": 0, "width": size[0], "height": height, "scale": 1});
            let how = json!({"format": "png", "captureBeyondViewport": true, "clip": clip});
            self.try_cdp("Page.captureScreenshot", how).map(Some)
        });
        let text = picture["data"].as_str().expect("a picture");
        base64::Engine::decode(&base64::prelude::BASE64_STANDARD, text).expect("base64")
    }

    /// Repeats `attempt` until it returns a value. Failures, such as a click on a removed element,
    /// are retried.
    #[track_caller]
    pub fn until<T>(
        &self,
        what: &str,
        mut attempt: impl FnMut() -> Result<Option<T>, CmdError>,
    ) -> T {
        let begun = Instant::now();
        loop {
            let got = attempt();
            match got {
                Ok(Some(value)) => return value,
                Ok(None) | Err(CmdError::Standard(_)) if begun.elapsed() < WAIT_MAX => {
                    self.run(async { tokio::time::sleep(PERIOD).await });
                }
                Ok(None) => panic!("not so after {WAIT_MAX:?}: {what}\n{}", self.describe()),
                Err(err) => panic!("{what}: {err}\n{}", self.describe()),
            }
        }
    }

    /// Describes the page in words, for a failed test.
    pub fn describe(&self) -> String {
        let text = self.try_script("return document.body.innerText", &[]);
        let text = text.ok().and_then(|text| text.as_str().map(str::to_owned)).unwrap_or_default();
        let shown: String = text.chars().take(3_000).collect();
        format!("at {}, which shows:\n{shown}", self.place())
    }

    pub(super) fn run<T>(&self, work: impl Future<Output = T>) -> T {
        self.runtime.block_on(work)
    }

    pub(super) fn client(&self) -> &Client {
        &self.client
    }
}

impl Drop for Browser {
    fn drop(&mut self) {
        // Once Chromium has ended, the driver has no children.
        let end = async { tokio::time::timeout(WAIT_MAX, self.client.clone().close()).await };
        let _ = self.runtime.block_on(end);
        let _ = self.driver.kill();
        let _ = self.driver.wait();
    }
}

fn start_driver(profile: &TempDir) -> (Child, u16) {
    let mut driver = Command::new(tools::chromedriver())
        .args(["--port=0", "--log-level=SEVERE"])
        .env("HOME", profile.path())
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .expect("ChromeDriver can be started");
    let lines = BufReader::new(driver.stdout.take().expect("piped")).lines();
    let (found, port) = mpsc::channel();
    // Reads to the end, so that the driver never blocks on its output.
    thread::spawn(move || {
        for line in lines.map_while(Result::ok) {
            let number = line.strip_prefix("ChromeDriver was started successfully on port ");
            if let Some(number) = number.and_then(|rest| rest.trim_end_matches('.').parse().ok()) {
                let _ = found.send(number);
            }
        }
    });
    let port = port.recv_timeout(START_MAX).expect("ChromeDriver says which port it took");
    (driver, port)
}

fn capabilities(profile: &TempDir, scripts: bool) -> Value {
    let mut args: Vec<String> = FLAGS.iter().map(|&flag| flag.to_owned()).collect();
    args.push(format!("--user-data-dir={}", profile.path().display()));
    args.push(format!("--window-size={DESKTOP},900"));
    let mut preferences = json!({
        "credentials_enable_service": false,
        "profile.password_manager_enabled": false,
        "profile.password_manager_leak_detection": false,
    });
    if !scripts {
        preferences["profile.managed_default_content_settings.javascript"] = json!(2);
    }
    json!({
        "browserName": "chrome",
        "goog:loggingPrefs": {"browser": "ALL"},
        "goog:chromeOptions": {
            "binary": tools::chromium(),
            "args": args,
            "prefs": preferences,
        },
    })
}

/// A command of `ChromeDriver` that is not in the standard.
#[derive(Debug)]
struct Extension {
    path: &'static str,
    body: Value,
}

impl WebDriverCompatibleCommand for Extension {
    fn endpoint(&self, base: &Url, session: Option<&str>) -> Result<Url, url::ParseError> {
        let session = session.expect("commands need a session");
        base.join(&format!("session/{session}/{}", self.path))
    }

    fn method_and_body(&self, _: &Url) -> (hyper::Method, Option<String>) {
        (hyper::Method::POST, Some(self.body.to_string()))
    }
}
