//! Hosts with a network between them, on this machine alone: each is a network namespace, and nothing that they send
//! leaves them. The namespaces have no names and belong to processes of the test, so none outlives it, however it ends.
//!
//! Without a delay the hosts are on a bridge. With one, the kernel's `netem` delays what each sends to the bridge; a
//! kernel that has none delivers the packets to this process (a TUN device a host), which passes them on later.

use super::program;
use difftest::timing::Link;
use rustix::thread::{LinkNameSpaceType, move_into_link_name_space, set_current_timer_slack};
use std::fs::File;
use std::io::{Read, Write};
use std::num::NonZeroU64;
use std::os::fd::AsFd;
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::Arc;
use std::sync::mpsc::channel;
use std::time::{Duration, Instant};
use tun_tap::{Iface, Mode};

/// Says that this process has a network of its own.
const OWN: &str = "DIFFTEST_HAS_A_NETWORK_OF_ITS_OWN";

/// Hosts of parties 0, 1 and 2, and of their client.
pub const HOSTS: usize = 4;

/// The host of the client.
pub const CLIENT: usize = 3;

/// Runs the body of a test, given by the test's full name, in a process that has no network but its own. Where the
/// system forbids that, or the body says why it cannot run, the test is skipped with one line.
pub fn apart(test: &str, body: impl FnOnce() -> Result<(), String>) {
    if std::env::var_os(OWN).is_some() {
        return body().unwrap_or_else(|why| println!("skipped: {why}"));
    }
    let unshare = match unshare() {
        Ok(unshare) => unshare,
        Err(why) => return println!("skipped: this system lets nobody make network namespaces here: {why}"),
    };
    let mut command = Command::new("unshare");
    command.args(unshare).arg("--").arg(std::env::current_exe().unwrap()).env(OWN, "1");
    let output = command.args(["--exact", test, "--include-ignored", "--nocapture"]).output().unwrap();
    let [text, errors] = [&output.stdout, &output.stderr].map(|bytes| String::from_utf8_lossy(bytes));
    let own = |line: &&str| !line.is_empty() && !line.starts_with("running ") && !line.starts_with("test ");
    text.lines().filter(own).for_each(|line| println!("{line}"));
    assert!(output.status.success(), "{text}{errors}");
}

/// How this system makes a network namespace: at once, or for whom it lets be root in a namespace of users.
fn unshare() -> Result<&'static [&'static str], String> {
    let mut why = String::new();
    for flags in [&["--net"][..], &["--map-root-user", "--net"]] {
        let mut command = Command::new("unshare");
        match done(command.args(flags).args(["--", "ip", "link", "set", "lo", "up"])) {
            Ok(()) => return Ok(flags),
            Err(e) => why = e,
        }
    }
    Err(why)
}

/// Runs a command to its end.
fn done(command: &mut Command) -> Result<(), String> {
    let output = command.output().map_err(|e| format!("{:?}: {e}", command.get_program()))?;
    let error = String::from_utf8_lossy(&output.stderr);
    if output.status.success() { Ok(()) } else { Err(error.trim().replace('\n', "; ")) }
}

fn words(program: &str, line: &str) -> Result<(), String> {
    done(Command::new(program).args(line.split(' '))).map_err(|why| format!("{program} {line}: {why}"))
}

/// A network namespace for as long as a process lives that waits for the end of its input.
struct Host {
    holder: Child,
    _input: ChildStdin,
}

impl Host {
    fn start() -> Result<Self, String> {
        let mut command = Command::new("unshare");
        command.args(["--net", "--", "cat"]).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null());
        let mut holder = command.spawn().map_err(|e| format!("unshare: {e}"))?;
        let (mut input, mut echo) = (holder.stdin.take().unwrap(), holder.stdout.take().unwrap());
        let answered = input.write_all(b"?").and_then(|()| echo.read_exact(&mut [0]));
        let host = Host { holder, _input: input };
        answered.map(|()| host).map_err(|e| format!("unshare --net: {e}"))
    }

    fn namespace(&self) -> String {
        format!("/proc/{}/ns/net", self.holder.id())
    }

    fn command(&self, program: &str) -> Command {
        let mut command = Command::new("nsenter");
        command.arg(format!("--net={}", self.namespace())).arg(program);
        command
    }

    fn ip(&self, line: &str) -> Result<(), String> {
        done(self.command("ip").args(line.split(' '))).map_err(|why| format!("ip {line}: {why}"))
    }

    /// Moves the calling thread there.
    fn enter(&self) {
        let namespace = File::open(self.namespace()).unwrap();
        move_into_link_name_space(namespace.as_fd(), Some(LinkNameSpaceType::Network)).unwrap();
    }
}

impl Drop for Host {
    fn drop(&mut self) {
        // Whoever waits for its packets waits no longer.
        let _ = self.ip("link del wan0");
        let _ = self.holder.kill();
        let _ = self.holder.wait();
    }
}

/// Four hosts that reach one another.
pub struct Network {
    hosts: Vec<Host>,
    /// What delays their packets, for the reader.
    pub by: &'static str,
}

impl Network {
    /// Hosts each of whose outgoing links is such a one; without a delay if none is given. Packets have at most `mtu`
    /// bytes.
    ///
    /// # Errors
    /// What the system lacks.
    pub fn new(link: Option<Link>, mtu: u16) -> Result<Self, String> {
        let hosts = (0..HOSTS).map(|_| Host::start()).collect::<Result<Vec<_>, _>>()?;
        let by = match link {
            None => bridged(&hosts, mtu, None).map(|()| "a bridge"),
            Some(link) if has_netem() => bridged(&hosts, mtu, Some(link)).map(|()| "netem"),
            Some(link) => relayed(&hosts, mtu, link).map(|()| "a relay of packets in user space"),
        }?;
        Ok(Network { hosts, by })
    }

    /// The address of a host.
    pub fn address(host: usize) -> String {
        format!("10.18.0.{}", host + 1)
    }

    /// The program, to be started on a host.
    pub fn program(&self, host: usize) -> Command {
        self.hosts[host].command(program().get_program().to_str().unwrap())
    }

    /// Does something on a host.
    pub fn on<T: Send>(&self, host: usize, what: impl FnOnce() -> T + Send) -> T {
        std::thread::scope(|scope| {
            let there = scope.spawn(|| {
                self.hosts[host].enter();
                what()
            });
            there.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
        })
    }
}

/// Whether the kernel delays packets itself.
pub fn has_netem() -> bool {
    let found = words("tc", "qdisc add dev lo root netem delay 1ms").is_ok();
    let _ = words("tc", "qdisc del dev lo root");
    found
}

/// Every host has an end of a pair of interfaces whose other end is on a bridge of this process's namespace.
fn bridged(hosts: &[Host], mtu: u16, link: Option<Link>) -> Result<(), String> {
    // One of an earlier network may still be going.
    let _ = words("ip", "link del lan");
    words("ip", "link add lan type bridge")?;
    words("ip", "link set lan up")?;
    for (k, host) in hosts.iter().enumerate() {
        let id = host.holder.id();
        words("ip", &format!("link add h{id} mtu {mtu} type veth peer name eth0 mtu {mtu} netns {id}"))?;
        words("ip", &format!("link set h{id} master lan up"))?;
        host.ip(&format!("addr add {}/24 dev eth0", Network::address(k)))?;
        host.ip("link set eth0 up")?;
        if let Some(link) = link {
            let (latency, rate) = (link.latency_ms, link.megabits_per_second);
            let line = format!("qdisc add dev eth0 root netem delay {latency}ms rate {rate}mbit limit 1000000");
            done(host.command("tc").args(line.split(' '))).map_err(|why| format!("tc {line}: {why}"))?;
        }
    }
    Ok(())
}

/// Every host has a TUN device, whose packets threads of this process pass on.
fn relayed(hosts: &[Host], mtu: u16, link: Link) -> Result<(), String> {
    let mut devices = Vec::new();
    for (k, host) in hosts.iter().enumerate() {
        let open = || {
            host.enter();
            let opened = Iface::without_packet_info("wan0", Mode::Tun);
            opened.map_err(|e| format!("this system has neither netem nor TUN devices: {e}"))
        };
        let opened = std::thread::scope(|scope| scope.spawn(open).join().unwrap())?;
        devices.push(opened);
        host.ip(&format!("addr add {}/24 dev wan0", Network::address(k)))?;
        host.ip(&format!("link set wan0 mtu {mtu} txqueuelen 10000 up"))?;
    }
    let devices = Arc::new(devices);
    for from in 0..hosts.len() {
        let devices = Arc::clone(&devices);
        std::thread::spawn(move || pass_on(&devices, from, link));
    }
    Ok(())
}

/// Passes on what one host sends: one packet after the other leaves at the link's bandwidth, and arrives after its
/// latency. Ends with the host's device.
fn pass_on(devices: &Arc<Vec<Iface>>, from: usize, link: Link) {
    let (packets, due) = channel::<(Instant, usize, Vec<u8>)>();
    let to = Arc::clone(devices);
    std::thread::spawn(move || {
        // By default a sleep may be 0.05 ms longer, half the latency of a local network.
        let _ = set_current_timer_slack(NonZeroU64::new(1));
        for (at, host, packet) in due {
            std::thread::sleep(at.saturating_duration_since(Instant::now()));
            // A host that has gone receives nothing.
            let _ = to[host].send(&packet);
        }
    });
    let (mut free, mut buffer) = (Instant::now(), vec![0; 1 << 16]);
    let latency = Duration::from_secs_f64(link.latency_ms / 1e3);
    while let Ok(n) = devices[from].recv(&mut buffer) {
        // IPv4 to one of the hosts; the kernel also looks for neighbours of IPv6, and there are none.
        let Some(host) = host_of(&buffer[..n]) else { continue };
        let on_the_wire = Duration::from_secs_f64(n as f64 * 8.0 / (link.megabits_per_second * 1e6));
        free = free.max(Instant::now()) + on_the_wire;
        if packets.send((free + latency, host, buffer[..n].to_vec())).is_err() {
            break;
        }
    }
}

/// The host to which an IPv4 packet goes.
fn host_of(packet: &[u8]) -> Option<usize> {
    let version = packet.first()? >> 4;
    let last = usize::from(*packet.get(19)?);
    (version == 4 && (1..=HOSTS).contains(&last)).then(|| last - 1)
}
