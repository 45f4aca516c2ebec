//! The files that tell a party and a client who and where everybody is.

use super::certificates::Issuance;
use crate::error::{Error, PartiesError, SettingsCause};
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

/// The file that `difftest party --config` reads.
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
    /// The folder in which it keeps states of runs, so that they can be resumed; a relative path is one beside this
    /// file.
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

/// The file that `--parties FILE` reads.
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

/// The addresses of the parties.
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
        let one = |name: &'static str, text: &str| -> Result<Fingerprint, Error> {
            let bytes =
                text.as_bytes().chunks(2).map(|two| u8::from_str_radix(std::str::from_utf8(two).ok()?, 16).ok());
            let bytes = bytes.collect::<Option<Vec<_>>>().unwrap_or_default();
            bytes.try_into().map_err(|_| SettingsCause::Pin(name).of(file).into())
        };
        let pins = Pins {
            parties: [one("party0", &self.party0)?, one("party1", &self.party1)?, one("party2", &self.party2)?],
            client: one("client", &self.client)?,
        };
        let all = [pins.parties[0], pins.parties[1], pins.parties[2], pins.client];
        if (0..4).any(|i| all[..i].contains(&all[i])) {
            return Err(SettingsCause::PinnedTwice.of(file).into());
        }
        Ok(pins)
    }
}

impl AddressTable {
    /// The three values in the order of the parties.
    pub fn all(&self) -> [Option<String>; 3] {
        [self.party0.clone(), self.party1.clone(), self.party2.clone()]
    }

    pub(crate) fn check(&self, file: &Path) -> Result<(), Error> {
        for (party, address) in self.all().into_iter().enumerate() {
            let Some(address) = address else { continue };
            let port = address.rsplit_once(':').and_then(|(host, port)| Some((host, port.parse::<u16>().ok()?)));
            if port.is_none_or(|(host, port)| host.is_empty() || port == 0) {
                return Err(SettingsCause::Address { party, address }.of(file).into());
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
        SettingsCause::Syntax { line, what }.of(path).into()
    })
}

/// Refuses a time of no seconds, or of more than a clock can add up.
fn check_seconds(file: &Path, field: &'static str, found: u64, most: u64) -> Result<(), Error> {
    if (1..=most).contains(&found) {
        return Ok(());
    }
    Err(SettingsCause::Seconds { field, found, most }.of(file).into())
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
        .map_err(|what| SettingsCause::Credentials(what).of(file).into())
}

impl PartyFile {
    /// Reads and checks a file.
    ///
    /// # Errors
    /// The line and what is wrong with it.
    pub fn read(path: &Path) -> Result<(Self, PartyId, Credentials), Error> {
        let (file, id, pins) = Self::parse(path, &input::file(path, MAX_BYTES)?)?;
        let wrong = |cause: SettingsCause| Error::from(cause.of(path));
        if file.listen.to_socket_addrs().map_or(0, Iterator::count) == 0 {
            return Err(wrong(SettingsCause::Listen(file.listen)));
        }
        let credentials = credentials(path, [&file.authority, &file.certificate, &file.key], pins)?;
        Ok((file, id, credentials))
    }

    /// Reads and checks the text of a file that is called `path`, but nothing that it names.
    ///
    /// # Errors
    /// Those of [`read`](Self::read) that are about the text.
    pub(crate) fn parse(path: &Path, text: &str) -> Result<(Self, PartyId, Pins), Error> {
        let file: PartyFile = from_toml(path, text)?;
        let wrong = |cause: SettingsCause| Error::from(cause.of(path));
        let id = PartyId::ALL.get(usize::from(file.party)).copied();
        let id = id.ok_or_else(|| wrong(SettingsCause::Party(file.party)))?;
        if !(1..=1024).contains(&file.threads) || file.sessions == 0 {
            return Err(wrong(SettingsCause::Limits));
        }
        check_seconds(path, "patience_seconds", file.patience_seconds, MOST_PATIENCE)?;
        check_seconds(path, "idle_seconds", file.idle_seconds, MOST_IDLE)?;
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
    pub(crate) fn parse(path: &Path, text: &str) -> Result<Self, Error> {
        let file: HostsFile = from_toml(path, text)?;
        check_seconds(path, "patience_seconds", file.patience_seconds, MOST_PATIENCE)?;
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
    pub(crate) fn named(&self, path: &Path) -> Result<([String; 3], Pins), Error> {
        let [Some(a), Some(b), Some(c)] = self.addresses.all() else {
            return Err(SettingsCause::Addresses.of(path).into());
        };
        Ok(([a, b, c], self.pins.pins(path)?))
    }

    fn hosts(self, path: &Path) -> Result<Hosts, Error> {
        let (addresses, pins) = self.named(path)?;
        let credentials = credentials(path, [&self.authority, &self.certificate, &self.key], pins)?;
        Ok(Hosts { addresses, credentials, patience: Duration::from_secs(self.patience_seconds) })
    }
}

/// Where the parties that files are written for will run.
#[derive(Debug, Clone, Copy)]
pub enum Place<'p> {
    /// On machines of their own.
    Apart,
    /// On this machine, for a comparison: they choose their ports, record, take seeds, and keep states in `party<i>` of
    /// this folder.
    Here(Option<&'p Path>),
}

/// Writes everything that three parties and a client need into a folder: keys and certificates, party0.toml to
/// party2.toml, hosts.toml.
///
/// # Errors
/// A file that cannot be written.
pub fn write_all(folder: &Path, issuance: &Issuance, addresses: &[String; 3], place: Place<'_>) -> Result<(), Error> {
    let (local, states) = match place {
        Place::Apart => (false, None),
        Place::Here(states) => (true, states),
    };
    std::fs::create_dir_all(folder).map_err(Error::file(folder))?;
    let pins = issuance.pins().map_err(PartiesError::Fingerprint)?;
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
            states: states.map(|states| states.join(format!("party{id}"))),
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

fn toml_text(value: &impl Serialize) -> Result<String, PartiesError> {
    Ok(toml::to_string(value)?)
}

/// Writes a new file; a secret one is nobody else's to read from its first byte on.
fn write(path: &Path, text: &str, secret: bool) -> Result<(), Error> {
    let mut options = std::fs::OpenOptions::new();
    options.write(true).create_new(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, if secret { 0o600 } else { 0o644 });
    options.open(path).and_then(|mut f| f.write_all(text.as_bytes())).map_err(Error::file(path))
}
