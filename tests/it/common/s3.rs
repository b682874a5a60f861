//! Services that speak the protocol of Amazon S3, on loopback and in a temporary folder: SeaweedFS, which checks
//! signatures, and moto, which does not.

use std::fs::{self, File};
use std::net::SocketAddr;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use dropdex::bucket::S3Settings;
use dropdex::nodes::store::s3::S3;
use dropdex::outbound::dns::Dns;
use dropdex::outbound::guard::Guard;
use dropdex::outbound::http::Client;
use dropdex::outbound::settings;
use dropdex::vocab::secret::{Secret, SecretSource};
use dropdex::vocab::url::HostRules;
use tempfile::TempDir;

use super::nats::free_addresses;
use super::{tools, wait};

/// Deadline of a start.
const SOON: Duration = Duration::from_secs(60);
const BUCKET: &str = "dropdex-files";
const KEY_ID: &str = "test-key";
pub const SECRET: &str = "test/secret+";

/// A running service with an empty bucket. Dropping it kills it.
pub struct S3Service {
    folder: TempDir,
    command: Command,
    child: Child,
    address: SocketAddr,
}

impl S3Service {
    /// Starts SeaweedFS.
    pub fn seaweedfs() -> S3Service {
        let addresses = free_addresses(8);
        S3Service::start(addresses[0], |folder| {
            let keys = folder.join("keys.json");
            let identity = format!(
                "{{\"identities\": [{{\"name\": \"test\", \"actions\": [\"Admin\", \"Read\", \"Write\", \"List\"], \
                 \"credentials\": [{{\"accessKey\": \"{KEY_ID}\", \"secretKey\": \"{SECRET}\"}}]}}]}}"
            );
            fs::write(&keys, identity).expect("written");
            let mut command = Command::new(tools::weed());
            command.args(["server", "-s3", "-ip=127.0.0.1", "-ip.bind=127.0.0.1"]);
            command.args(["-volume.max=20", "-master.volumeSizeLimitMB=64"]);
            command.args(["-s3.port.iceberg=0", "-s3.port.lance=0"]);
            command.arg(format!("-dir={}", folder.display()));
            command.arg(format!("-s3.config={}", keys.display()));
            let parts = ["s3", "master", "volume", "filer"];
            for (part, ports) in parts.iter().zip(addresses.chunks_exact(2)) {
                command.arg(format!("-{part}.port={}", ports[0].port()));
                command.arg(format!("-{part}.port.grpc={}", ports[1].port()));
            }
            command
        })
    }

    /// Starts moto, which `tests/tools full` installs.
    pub fn moto() -> S3Service {
        let address = free_addresses(1)[0];
        S3Service::start(address, |_| {
            let mut command = Command::new(tools::full("../full-tools-moto/bin/moto_server"));
            command.args(["-H", "127.0.0.1", "-p", &address.port().to_string()]);
            command
        })
    }

    fn start(address: SocketAddr, command: impl FnOnce(&Path) -> Command) -> S3Service {
        let folder = tempfile::Builder::new().prefix("dropdex-s3-").tempdir();
        let folder = folder.expect("a temporary folder can be made");
        let mut command = command(folder.path());
        command.stdin(Stdio::null()).stdout(Stdio::null());
        let child = run(&mut command, folder.path());
        let service = S3Service { folder, command, child, address };
        wait::until_ok(SOON, || if service.make_bucket() { Ok(()) } else { Err(service.log()) });
        service
    }

    /// Starts a killed service again with its data.
    pub fn start_again(&mut self) {
        self.child = run(&mut self.command, self.folder.path());
    }

    fn log(&self) -> String {
        fs::read_to_string(self.folder.path().join("log")).unwrap_or_default()
    }

    /// Whether the bucket exists now.
    fn make_bucket(&self) -> bool {
        let made = Command::new("curl")
            .args(["--silent", "--fail", "--request", "PUT", "--max-time", "5"])
            .args(["--aws-sigv4", "aws:amz:us-east-1:s3", "--user", &format!("{KEY_ID}:{SECRET}")])
            .arg(format!("http://{}/{BUCKET}", self.address))
            .stdout(Stdio::null())
            .status();
        made.is_ok_and(|status| status.success())
    }

    /// Returns a section of settings with this name that uses it.
    pub fn section(&self, name: &str) -> String {
        let address = self.address;
        format!(
            "[{name}]\nendpoint = \"http://{address}\"\nbucket = \"{BUCKET}\"\naccess_key_id = \"{KEY_ID}\"\n\
             secret_access_key = \"{SECRET}\"\nallow = [\"{address}\"]\n"
        )
    }

    /// Returns a client with this secret.
    pub fn client(&self, secret: &str) -> S3 {
        let allow = serde_json::from_value(serde_json::json!([self.address.to_string()]));
        let endpoint = format!("http://{}", self.address).try_into().expect("a URL");
        let settings = S3Settings {
            endpoint,
            bucket: BUCKET.to_owned(),
            prefix: "a/prefix".to_owned(),
            region: "us-east-1".to_owned(),
            access_key_id: KEY_ID.to_owned(),
            secret_access_key: SecretSource::Text(Secret::new(secret.to_owned())),
            allow: allow.expect("an address"),
            ca_file: None,
        };
        let dns = Dns::new(&settings::Dns::default()).expect("a resolver");
        let rules = HostRules { allow: settings.allow.clone(), ..HostRules::default() };
        let client = Client::new(Guard::new(rules, dns), None).expect("a client");
        S3::new(&settings, client).expect("a bucket")
    }

    /// Kills the service.
    pub fn kill(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl Drop for S3Service {
    fn drop(&mut self) {
        self.kill();
    }
}

fn run(command: &mut Command, folder: &Path) -> Child {
    let log = File::create(folder.join("log")).expect("a log can be written");
    command.stderr(log).spawn().expect("the service can be run")
}
