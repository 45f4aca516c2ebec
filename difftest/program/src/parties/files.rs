//! The files that tell a party and a client who and where everybody is.

use super::certificates::Issuance;
use difftest::error::Error;
use difftest::input;
use secure::engine::remote::Hosts;
use secure::host::hex;
use secure::id::PartyId;
use secure::net::tls::{Credentials, Fingerprint, Peer, Pins};
use serde::{Deserialize, Serialize};
use std::io::Write;
use std::net::ToSocketAddrs;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// Damaged inputs, as for every other reader (`difftest/tests/readers.rs`).
#[cfg(test)]
#[path = "../../../tests/readers/mutate.rs"]
mod mutate;

/// What `difftest party --config` reads.
#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PartyFile {
    /// 0, 1 or 2.
    pub party: u8,
    /// Where it listens: "address:port". Nothing else is listened on.
    pub listen: String,
    /// Files in PEM; a relative path is one beside this file.
    pub authority: PathBuf,
    /// Its own certificate.
    pub certificate: PathBuf,
    /// Its key.
    pub key: PathBuf,
    /// Threads for one session's matrix products.
    #[serde(default = "default_threads")]
    pub threads: usize,
    /// Sessions that may be open at a time.
    #[serde(default = "default_sessions")]
    pub sessions: usize,
    /// Hand out probes and views of coins, which a comparison needs and a deployment does not.
    #[serde(default)]
    pub record: bool,
    /// Take a seed from the client: repeatable, and worthless as a protection.
    #[serde(default)]
    pub insecure_seeds: bool,
    /// The folder in which it keeps states of runs, so that they can be resumed; a relative path is one beside this file.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub states: Option<PathBuf>,
    /// Seconds in which a connection must say what it is for.
    #[serde(default = "default_patience")]
    pub patience_seconds: u64,
    /// Seconds after which a session without a job is closed.
    #[serde(default = "default_idle")]
    pub idle_seconds: u64,
    /// SHA-256 of everybody's certificate.
    pub pins: PinTable,
    /// Where the two other parties are: "host:port". Without one, the client says.
    #[serde(default)]
    pub addresses: AddressTable,
}

/// What `--parties FILE` reads.
#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct HostsFile {
    /// Files in PEM; a relative path is one beside this file.
    pub authority: PathBuf,
    /// The client's certificate.
    pub certificate: PathBuf,
    /// The client's key.
    pub key: PathBuf,
    /// Seconds in which a party must answer a connection.
    #[serde(default = "default_patience")]
    pub patience_seconds: u64,
    /// SHA-256 of everybody's certificate.
    pub pins: PinTable,
    /// Where the parties are: "host:port".
    pub addresses: AddressTable,
}

/// Fingerprints, in hexadecimal.
#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PinTable {
    party0: String,
    party1: String,
    party2: String,
    client: String,
}

/// Addresses.
#[derive(Debug, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct AddressTable {
    #[serde(skip_serializing_if = "Option::is_none")]
    party0: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    party1: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    party2: Option<String>,
}

fn default_threads() -> usize {
    std::thread::available_parallelism().map_or(1, usize::from)
}

fn default_sessions() -> usize {
    16
}

fn default_patience() -> u64 {
    10
}

fn default_idle() -> u64 {
    600
}

impl PinTable {
    fn of(pins: &Pins) -> Self {
        let [party0, party1, party2] = pins.parties.each_ref().map(|p| hex(p));
        PinTable { party0, party1, party2, client: hex(&pins.client) }
    }

    fn pins(&self, file: &Path) -> Result<Pins, Error> {
        let one = |name: &str, text: &str| -> Result<Fingerprint, Error> {
            let bytes =
                text.as_bytes().chunks(2).map(|two| u8::from_str_radix(std::str::from_utf8(two).ok()?, 16).ok());
            let bytes = bytes.collect::<Option<Vec<_>>>().unwrap_or_default();
            bytes.try_into().map_err(|_| {
                let what =
                    "is not the SHA-256 of a certificate: 64 hexadecimal digits, as `difftest certs` writes them";
                Error::Usage(format!("{}: pins.{name} {what}", file.display()))
            })
        };
        let pins = Pins {
            parties: [one("party0", &self.party0)?, one("party1", &self.party1)?, one("party2", &self.party2)?],
            client: one("client", &self.client)?,
        };
        let all = [pins.parties[0], pins.parties[1], pins.parties[2], pins.client];
        if (0..4).any(|i| all[..i].contains(&all[i])) {
            let what = "one certificate is pinned twice; everybody needs a certificate of their own";
            return Err(Error::Usage(format!("{}: {what}", file.display())));
        }
        Ok(pins)
    }
}

impl AddressTable {
    /// In order.
    pub fn all(&self) -> [Option<String>; 3] {
        [self.party0.clone(), self.party1.clone(), self.party2.clone()]
    }

    fn check(&self, file: &Path) -> Result<(), Error> {
        for (k, address) in self.all().into_iter().enumerate() {
            let Some(address) = address else { continue };
            let port = address.rsplit_once(':').and_then(|(host, port)| Some((host, port.parse::<u16>().ok()?)));
            if port.is_none_or(|(host, port)| host.is_empty() || port == 0) {
                return Err(Error::Usage(format!(
                    "{}: addresses.party{k} is {address:?}; write host:port, [address]:port for IPv6",
                    file.display()
                )));
            }
        }
        Ok(())
    }
}

/// The largest configuration, certificate or key that is read, in bytes.
const MAX_BYTES: u64 = 1 << 20;

/// Seconds of the longest patience: a day.
const MOST_PATIENCE: u64 = 86_400;

/// Seconds after which a session may be closed at the latest: a year.
const MOST_IDLE: u64 = 366 * 86_400;

/// A value from the text of a TOML file that is called `path`. What is wrong with it is told with its line.
fn from_toml<T: serde::de::DeserializeOwned>(path: &Path, text: &str) -> Result<T, Error> {
    toml::from_str(text).map_err(|e| {
        let line = e.span().map_or(1, |span| 1 + text.bytes().take(span.start).filter(|b| *b == b'\n').count());
        let what = e.message().replace('\n', " ");
        Error::Usage(format!("{}: line {line}: {what}; `difftest certs` writes a right one", path.display()))
    })
}

/// Refuses a patience that is none, or that no clock can add up.
fn check_patience(file: &Path, seconds: u64) -> Result<(), Error> {
    if (1..=MOST_PATIENCE).contains(&seconds) {
        return Ok(());
    }
    let what = format!("patience_seconds is {seconds}; it must be 1 to {MOST_PATIENCE}");
    Err(Error::Usage(format!("{}: {what}", file.display())))
}

/// Key, certificate and pins. The files' contents are never part of an error.
fn credentials(file: &Path, [authority, certificate, key]: [&Path; 3], pins: Pins) -> Result<Credentials, Error> {
    let beside = |path: &Path| file.parent().unwrap_or(Path::new("")).join(path);
    let text = |path: &Path| {
        let path = beside(path);
        input::file(&path, MAX_BYTES)
    };
    let certificate_text = text(certificate)?;
    Credentials::new(&text(authority)?, &certificate_text, &text(key)?, pins)
        .map_err(|what| Error::Usage(format!("{}: {what}", file.display())))
}

impl PartyFile {
    /// Reads and checks a file.
    ///
    /// # Errors
    /// The line and what is wrong with it.
    pub fn read(path: &Path) -> Result<(Self, PartyId, Credentials), Error> {
        let (file, id, pins) = Self::parse(path, &input::file(path, MAX_BYTES)?)?;
        let wrong = |what: String| Error::Usage(format!("{}: {what}", path.display()));
        if file.listen.to_socket_addrs().map_or(0, Iterator::count) == 0 {
            return Err(wrong(format!("listen is {:?}; write address:port, 127.0.0.1:7000 for instance", file.listen)));
        }
        let credentials = credentials(path, [&file.authority, &file.certificate, &file.key], pins)?;
        Ok((file, id, credentials))
    }

    /// Reads and checks the text of a file that is called `path`, but nothing that it names.
    ///
    /// # Errors
    /// Those of [`read`](Self::read) that are about the text.
    fn parse(path: &Path, text: &str) -> Result<(Self, PartyId, Pins), Error> {
        let file: PartyFile = from_toml(path, text)?;
        let wrong = |what: String| Error::Usage(format!("{}: {what}", path.display()));
        let id = PartyId::ALL.get(usize::from(file.party)).copied();
        let id = id.ok_or_else(|| wrong(format!("party is {}; it is 0, 1 or 2", file.party)))?;
        if !(1..=1024).contains(&file.threads) || file.sessions == 0 {
            return Err(wrong("threads must be 1 to 1024, sessions at least 1".into()));
        }
        check_patience(path, file.patience_seconds)?;
        if file.idle_seconds > MOST_IDLE {
            return Err(wrong(format!("idle_seconds is {}; it must be at most {MOST_IDLE}", file.idle_seconds)));
        }
        file.addresses.check(path)?;
        let pins = file.pins.pins(path)?;
        Ok((file, id, pins))
    }
}

impl HostsFile {
    /// Reads and checks a file.
    ///
    /// # Errors
    /// The line and what is wrong with it.
    pub fn read(path: &Path) -> Result<Hosts, Error> {
        let file = Self::parse(path, &input::file(path, MAX_BYTES)?)?;
        file.addresses.check(path)?;
        file.hosts(path)
    }

    /// Reads the text of a file that is called `path`; addresses and pins are checked later.
    fn parse(path: &Path, text: &str) -> Result<Self, Error> {
        let file: HostsFile = from_toml(path, text)?;
        check_patience(path, file.patience_seconds)?;
        Ok(file)
    }

    /// Reads a file of parties that have not chosen their ports yet.
    ///
    /// # Errors
    /// The line and what is wrong with it.
    pub fn read_local(path: &Path) -> Result<Hosts, Error> {
        Self::parse(path, &input::file(path, MAX_BYTES)?)?.hosts(path)
    }

    /// The addresses of all three and the pins.
    fn named(&self, path: &Path) -> Result<([String; 3], Pins), Error> {
        let [Some(a), Some(b), Some(c)] = self.addresses.all() else {
            let what = "addresses must name party0, party1 and party2";
            return Err(Error::Usage(format!("{}: {what}", path.display())));
        };
        Ok(([a, b, c], self.pins.pins(path)?))
    }

    fn hosts(self, path: &Path) -> Result<Hosts, Error> {
        let (addresses, pins) = self.named(path)?;
        let credentials = credentials(path, [&self.authority, &self.certificate, &self.key], pins)?;
        Ok(Hosts { addresses, credentials, patience: Duration::from_secs(self.patience_seconds) })
    }
}

/// Writes everything that three parties and a client need into a folder: keys and certificates, party0.toml to party2.toml, hosts.toml.
/// With `local`, for three parties on this machine that compare: they choose their ports, record and take seeds.
///
/// # Errors
/// A file that cannot be written.
pub fn write_all(folder: &Path, issuance: &Issuance, addresses: &[String; 3], local: bool) -> Result<(), Error> {
    std::fs::create_dir_all(folder).map_err(Error::file(folder))?;
    let pins = issuance.pins().map_err(Error::Usage)?;
    write(&folder.join("authority.pem"), &issuance.authority, false)?;
    if !local {
        write(&folder.join("authority.key"), &issuance.authority_key, true)?;
    }
    for issued in &issuance.issued {
        let name = short(issued.peer);
        write(&folder.join(format!("{name}.pem")), &issued.certificate, false)?;
        write(&folder.join(format!("{name}.key")), &issued.key, true)?;
    }
    for id in PartyId::ALL {
        let other = |of: PartyId| (!local && of != id).then(|| addresses[of.index()].clone());
        let file = PartyFile {
            party: id.index() as u8,
            listen: addresses[id.index()].clone(),
            authority: "authority.pem".into(),
            certificate: format!("party{id}.pem").into(),
            key: format!("party{id}.key").into(),
            threads: if local { default_threads().div_ceil(3) } else { default_threads() },
            sessions: default_sessions(),
            record: local,
            insecure_seeds: local,
            states: None,
            patience_seconds: default_patience(),
            idle_seconds: default_idle(),
            pins: PinTable::of(&pins),
            addresses: AddressTable {
                party0: other(PartyId::P0),
                party1: other(PartyId::P1),
                party2: other(PartyId::P2),
            },
        };
        write(&folder.join(format!("party{id}.toml")), &toml_text(&file)?, false)?;
    }
    let [a, b, c] = addresses.clone();
    let hosts = HostsFile {
        authority: "authority.pem".into(),
        certificate: "client.pem".into(),
        key: "client.key".into(),
        patience_seconds: default_patience(),
        pins: PinTable::of(&pins),
        addresses: AddressTable { party0: Some(a), party1: Some(b), party2: Some(c) },
    };
    write(&folder.join("hosts.toml"), &toml_text(&hosts)?, false)
}

fn short(peer: Peer) -> String {
    match peer {
        Peer::Party(id) => format!("party{id}"),
        Peer::Client => "client".into(),
    }
}

fn toml_text(value: &impl Serialize) -> Result<String, Error> {
    toml::to_string(value).map_err(|e| Error::Usage(format!("cannot write a configuration: {e}")))
}

/// Writes a new file; a secret one is nobody else's to read from its first byte on.
fn write(path: &Path, text: &str, secret: bool) -> Result<(), Error> {
    let mut options = std::fs::OpenOptions::new();
    options.write(true).create_new(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, if secret { 0o600 } else { 0o644 });
    options.open(path).and_then(|mut f| f.write_all(text.as_bytes())).map_err(Error::file(path))
}

#[cfg(test)]
mod tests {
    use super::*;
    use rand::SeedableRng;
    use rand_chacha::ChaCha8Rng;

    type Parse = fn(&Path, &str) -> Result<(), Error>;

    const READERS: [(&str, Parse); 2] = [
        ("party-file", |path, text| PartyFile::parse(path, text).map(drop)),
        ("hosts-file", |path, text| {
            let file = HostsFile::parse(path, text)?;
            file.addresses.check(path)?;
            file.named(path).map(drop)
        }),
    ];

    fn corpus(name: &str) -> Vec<Vec<u8>> {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fixtures/corpus").join(name);
        let mut paths: Vec<_> = std::fs::read_dir(folder).unwrap().map(|e| e.unwrap().path()).collect();
        paths.sort();
        paths.iter().map(|path| std::fs::read(path).unwrap()).collect()
    }

    /// Any text is a configuration or refused in words. `READERS_INPUTS` and `READERS_SEED` as for the other readers.
    #[test]
    fn no_text_makes_the_reader_of_a_configuration_panic() {
        let asked = |name: &str| std::env::var(name).ok().map(|v| v.parse::<u64>().expect("a number"));
        let (inputs, seed) = (asked("READERS_INPUTS").unwrap_or(2000), asked("READERS_SEED").unwrap_or(1));
        for (name, parse) in READERS {
            let corpus = corpus(name);
            let path = Path::new("f.toml");
            let good = corpus.iter().filter_map(|b| std::str::from_utf8(b).ok()).filter(|t| parse(path, t).is_ok());
            assert!(good.count() > 0, "{name}: a good one is in the corpus");
            let mut rng = ChaCha8Rng::seed_from_u64(seed);
            for k in 0..corpus.len() + inputs as usize {
                let input = corpus.get(k).cloned().unwrap_or_else(|| mutate::mutated(&mut rng, &corpus));
                let Ok(text) = input::text(&input[..], path, MAX_BYTES) else { continue };
                if let Err(error) = parse(path, &text) {
                    let error = error.to_string();
                    assert!(
                        error.starts_with("f.toml: ") && error.lines().count() == 1,
                        "{name}, seed {seed}, {k}: {error}"
                    );
                }
            }
        }
    }

    #[test]
    fn times_that_no_clock_can_add_up_are_refused_with_their_limit() {
        let good =
            String::from_utf8(corpus("party-file").iter().find(|b| b.starts_with(b"party = 0")).unwrap().clone());
        let good = good.unwrap();
        for (line, says) in [
            ("patience_seconds = 0\n", "patience_seconds is 0; it must be 1 to 86400"),
            ("patience_seconds = 9223372036854775807\n", "it must be 1 to 86400"),
            (
                "idle_seconds = 9223372036854775807\n",
                "idle_seconds is 9223372036854775807; it must be at most 31622400",
            ),
        ] {
            let base: String = good.lines().filter(|l| !l.contains("_seconds")).map(|l| format!("{l}\n")).collect();
            let error = PartyFile::parse(Path::new("f"), &format!("{line}{base}")).unwrap_err().to_string();
            assert!(error.contains(says), "{error}");
        }
    }
}
