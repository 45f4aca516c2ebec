//! Parties far from one another: over links with latency and a bandwidth a step is the same step, message by message.
//! What it takes is printed for the reader and judged by nobody.

#[cfg(target_os = "linux")]
use super::emulated::{CLIENT, Network, apart, has_netem};
use super::{Hosts, Parties, spec, units};
#[cfg(target_os = "linux")]
use super::{batches, loaded};
use difftest::timing::Link;
use reference::spec::{Head, NetworkSpec, Rounding, SgdSpec, TrainSpec};
use secure::cost::Spent;
use secure::engine::{Engine, EngineConfig};
use secure::testing::parameters;
use std::io::{Read, Write};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::time::{Duration, Instant};

/// The networks of the documentation.
const NETWORKS: [(&str, Link); 3] = [
    ("LAN", Link { latency_ms: 0.1, megabits_per_second: 10_000.0 }),
    ("WAN", Link { latency_ms: 20.0, megabits_per_second: 1_000.0 }),
    ("slow WAN", Link { latency_ms: 20.0, megabits_per_second: 100.0 }),
];

/// Nothing but what passing packets on costs.
#[cfg(target_os = "linux")]
const NO_DELAY: Link = Link { latency_ms: 0.0, megabits_per_second: f64::INFINITY };

/// Rounds of a step.
const ROUNDS: u64 = 70;

/// Messages that a step adds to a run's longest chain; a test of the library counts them.
const CHAIN: f64 = 59.0;

/// Trains the network of the documentation: 2 layers, softmax, probabilistic rounding, batch 128.
fn full_size(hosts: &Hosts) -> Engine {
    let spec = TrainSpec {
        network: NetworkSpec::dense(784, 128, 10, 2),
        sgd: SgdSpec::default(),
        ..spec(Head::Softmax, Rounding::Probabilistic, 2)
    };
    let mut engine = hosts.start(&EngineConfig::new(spec.clone())).unwrap();
    engine.load(&parameters(&spec.network, |n| units(n).iter().map(|v| v / 8).collect())).unwrap();
    engine.load_data(&units(128 * 784), &[3; 128]).unwrap();
    engine
}

/// Some steps: seconds for one, and what all of them cost. Rounds and bytes are those of a step in memory.
fn steps(engine: &mut Engine, number: usize) -> (f64, Spent) {
    let start = Instant::now();
    let spent = engine.train(&vec![(0..128).collect::<Vec<u32>>(); number]).unwrap();
    let seconds = start.elapsed().as_secs_f64() / number as f64;
    assert_eq!(spent.rounds, ROUNDS * number as u64);
    let megabytes = spent.bytes as f64 / 1e6 / number as f64;
    assert!((6.0..7.0).contains(&megabytes), "{megabytes} MB a step");
    (seconds, spent)
}

/// Passes connections on to `target`, each piece after `latency` and no faster than `bytes_per_second`, in both
/// directions. A stand-in for a distant network where the system offers none: it delays what TCP carries, not packets.
/// Its address.
fn distant(target: String, latency: Duration, bytes_per_second: f64) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap().to_string();
    let relay = move |mut from: TcpStream, mut to: TcpStream| {
        let (pieces, due) = std::sync::mpsc::channel::<(Instant, Vec<u8>)>();
        std::thread::spawn(move || {
            for (at, piece) in due {
                std::thread::sleep(at.saturating_duration_since(Instant::now()));
                if to.write_all(&piece).is_err() {
                    break;
                }
            }
            let _ = to.shutdown(Shutdown::Write);
        });
        let (mut free, mut buffer) = (Instant::now(), vec![0; 1 << 16]);
        while let Ok(n @ 1..) = from.read(&mut buffer) {
            free = free.max(Instant::now()) + Duration::from_secs_f64(n as f64 / bytes_per_second);
            if pieces.send((free + latency, buffer[..n].to_vec())).is_err() {
                break;
            }
        }
    };
    std::thread::spawn(move || {
        for near in listener.incoming().map_while(Result::ok) {
            let Ok(far) = TcpStream::connect(&target) else { continue };
            for (a, b) in [(&near, &far), (&far, &near)] {
                a.set_nodelay(true).unwrap();
                let (from, to) = (a.try_clone().unwrap(), b.try_clone().unwrap());
                std::thread::spawn(move || relay(from, to));
            }
        }
    });
    address
}

/// Prints what a step takes over links with latency and a bandwidth. Seconds are for the reader; that a step is the
/// same step is what is tested.
#[test]
fn a_step_between_distant_parties_takes_as_many_rounds_as_one_in_memory() {
    let parties = Parties::start();
    let over = |(name, link): (&str, Link)| {
        let (latency, rate) = (Duration::from_secs_f64(link.latency_ms / 1e3), link.megabits_per_second * 125_000.0);
        let far = |address: &String| distant(address.clone(), latency, rate);
        let mut engine = full_size(&Hosts { addresses: parties.addresses.each_ref().map(far), ..parties.hosts() });
        steps(&mut engine, 1);
        let (seconds, spent) = steps(&mut engine, 1);
        // Latency and bandwidth alone; six links carry the bytes side by side.
        let alone = CHAIN * link.latency_ms / 1e3 + spent.bytes as f64 / 6.0 / rate;
        println!("{name}: a step took {seconds:.3} s, of which latency and bandwidth are {alone:.3} s");
    };
    // Most of the time they wait.
    std::thread::scope(|scope| NETWORKS.into_iter().for_each(|network| drop(scope.spawn(move || over(network)))));
}

/// The parties and their client have an address of their own each, and nothing else in common but what they send.
#[cfg(target_os = "linux")]
#[test]
fn three_hosts_compute_the_same_bits_as_three_threads() {
    apart("parties::networks::three_hosts_compute_the_same_bits_as_three_threads", || {
        for link in [None, Some(Link { latency_ms: 1.0, megabits_per_second: 1_000.0 })] {
            let world = Hosted::start(link)?;
            for rounding in Rounding::ALL {
                let config = EngineConfig { seed: Some(7), ..EngineConfig::new(spec(Head::Softmax, rounding, 2)) };
                let run = |engine: Engine| {
                    let mut engine = loaded(engine);
                    (engine.train(&batches(2)).unwrap(), engine.parameters().unwrap())
                };
                let threads = run(Engine::start(config.clone()).unwrap());
                let hosts = world.network.on(CLIENT, || run(world.parties.hosts().start(&config).unwrap()));
                assert!(threads == hosts, "{rounding}, {}", world.network.by);
            }
            println!("three hosts: the same bits over {}", world.network.by);
        }
        Ok(())
    });
}

/// Parties on hosts of their own.
#[cfg(target_os = "linux")]
struct Hosted {
    parties: Parties,
    network: std::sync::Arc<Network>,
}

#[cfg(target_os = "linux")]
impl Hosted {
    fn start(link: Option<Link>) -> Result<Self, String> {
        // Packets of a local network are large, so that passing them on takes no more time than computing does.
        let mtu = if link.is_some_and(|link| link.latency_ms >= 1.0) { 1500 } else { 9000 };
        let network = std::sync::Arc::new(Network::new(link, mtu)?);
        let programs = std::sync::Arc::clone(&network);
        let parties = Parties::started_by(Box::new(move |k| programs.program(k)), |k, text| {
            text.replace("127.0.0.1:0", &format!("{}:7000", Network::address(k)))
        });
        Ok(Hosted { parties, network })
    }

    /// Median of some stretches of steps, in seconds a step, and bytes of a step.
    fn measure(&self, stretches: usize, number: usize) -> (f64, f64) {
        self.network.on(CLIENT, || {
            let mut engine = full_size(&self.parties.hosts());
            // Connections learn what the link carries.
            steps(&mut engine, number.min(5));
            let took: Vec<_> = (0..stretches).map(|_| steps(&mut engine, number)).collect();
            let mut seconds: Vec<f64> = took.iter().map(|(seconds, _)| *seconds).collect();
            seconds.sort_by(f64::total_cmp);
            (seconds[stretches / 2], took[0].1.bytes as f64 / number as f64)
        })
    }
}

/// The table of docs/parties.md.
#[cfg(target_os = "linux")]
#[test]
#[ignore = "measures for minutes; its rows are those of docs/parties.md"]
fn a_table_of_networks() {
    apart("parties::networks::a_table_of_networks", || {
        let bridge = Hosted::start(None)?.measure(5, 40).0;
        println!("| a bridge, no delay | {:.0} ms | | |", bridge * 1e3);
        // A relay takes time from the parties' cores, which no network does, so what it takes is measured first.
        let computing = if has_netem() { bridge } else { Hosted::start(Some(NO_DELAY))?.measure(5, 40).0 };
        println!("| no delay, by what delays below | {:.0} ms | | |", computing * 1e3);
        for (name, link) in NETWORKS {
            let world = Hosted::start(Some(link))?;
            let (seconds, bytes) = world.measure(5, if link.latency_ms < 1.0 { 40 } else { 5 });
            let projected = computing + link.seconds(CHAIN, bytes);
            let network = link.seconds(ROUNDS as f64, bytes);
            let (latency, rate) = (link.latency_ms, link.megabits_per_second);
            let cell = |of: f64| format!("{:.0} ms, {:.2}", of * 1e3, seconds / of);
            println!(
                "| {name}: {latency} ms, {rate} Mbit/s, {} | {:.0} ms | {} | {} |",
                world.network.by,
                seconds * 1e3,
                cell(projected),
                cell(network)
            );
        }
        Ok(())
    });
}
