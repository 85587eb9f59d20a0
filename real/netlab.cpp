#include "real/netlab.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <linux/if_tun.h>
#include <net/if.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sched.h>
#include <spawn.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/wait.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cmath>
#include <csignal>
#include <cstring>
#include <fstream>
#include <limits>
#include <sstream>

#include "algorithms/child_process.h"
#include "algorithms/serial.h"
#include "real/workers.h"

namespace gradwire {

namespace {

using Clock = std::chrono::steady_clock;

std::string with_reason(const std::string& what) { return what + ": " + std::strerror(errno); }

// ---- Tools

std::string contents(int fd) {
  std::string text(static_cast<std::size_t>(std::max<off_t>(lseek(fd, 0, SEEK_END), 0)), '\0');
  const ssize_t n = pread(fd, text.data(), text.size(), 0);
  text.resize(static_cast<std::size_t>(std::max<ssize_t>(n, 0)));
  return text;
}

// Returns the error of the last try; the folders are not on every user's path.
int spawn_tool(const std::string& tool, const Descriptor& input, const Descriptor& output,
               pid_t& pid) {
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_adddup2(&actions, input.get(), STDIN_FILENO);
  posix_spawn_file_actions_adddup2(&actions, output.get(), STDOUT_FILENO);
  posix_spawn_file_actions_adddup2(&actions, output.get(), STDERR_FILENO);
  std::array<std::string, 3> words{tool, "-batch", "-"};
  const std::array<char*, 4> argv{words[0].data(), words[1].data(), words[2].data(), nullptr};
  int error = ENOENT;
  for (const char* folder : {"/usr/sbin/", "/usr/bin/", "/sbin/", "/bin/"})
    if (error == ENOENT)
      error = posix_spawn(&pid, (folder + tool).c_str(), &actions, nullptr, argv.data(), environ);
  posix_spawn_file_actions_destroy(&actions);
  return error;
}

// Runs `tool -batch -` on the lines in the calling thread's network.
void run_batch(const std::string& tool, const std::string& lines) {
  const Descriptor input(memfd_create("gradwire", MFD_CLOEXEC), "memfd_create");
  const Descriptor output(memfd_create("gradwire", MFD_CLOEXEC), "memfd_create");
  if (write(input.get(), lines.data(), lines.size()) != static_cast<ssize_t>(lines.size()))
    throw LabUnavailable("cannot write to memory");
  lseek(input.get(), 0, SEEK_SET);
  pid_t pid = -1;
  if (const int error = spawn_tool(tool, input, output, pid); error != 0)
    throw LabUnavailable("cannot run " + tool + ": " + std::strerror(error));
  int status = 0;
  while (waitpid(pid, &status, 0) < 0 && errno == EINTR) {
  }
  if (WIFEXITED(status) && WEXITSTATUS(status) == 0) return;
  const std::string said = contents(output.get());
  throw LabUnavailable(tool + ": " + said.substr(0, said.find('\n')));
}

void write_setting(const std::string& file, const std::string& value) {
  std::ofstream out("/proc/sys/net/" + file);
  if (!(out << value << std::flush)) throw LabUnavailable("cannot set " + file);
}

// ---- Namespaces

Descriptor current_network() {
  return {open("/proc/thread-self/ns/net", O_RDONLY | O_CLOEXEC), "/proc/thread-self/ns/net"};
}

void enter_network(const Descriptor& network) {
  if (setns(network.get(), CLONE_NEWNET) != 0)
    throw std::system_error(errno, std::generic_category(), "setns");
}

// Back to where the thread was, in the end.
class Visit {
 public:
  explicit Visit(const Descriptor& network) : home_(current_network()) { enter_network(network); }
  ~Visit() { setns(home_.get(), CLONE_NEWNET); }
  Visit(const Visit&) = delete;
  Visit& operator=(const Visit&) = delete;

 private:
  Descriptor home_;
};

Descriptor make_network() {
  const Descriptor home = current_network();
  if (unshare(CLONE_NEWNET) != 0)
    throw LabUnavailable(with_reason("no permission to make a network namespace"));
  Descriptor made = current_network();
  enter_network(home);
  const Visit visit(made);
  for (const char* scope : {"all", "default"})  // no traffic but ours
    write_setting(std::string("ipv6/conf/") + scope + "/disable_ipv6", "1");
  write_setting("ipv4/tcp_congestion_control", "reno");
  write_setting("ipv4/tcp_slow_start_after_idle", "0");  // between batches
  run_batch("ip", "link set lo up\n");
  return made;
}

// ---- Addresses

constexpr std::size_t kMostWorkers = 250;

std::string address_of(std::size_t worker) { return "10.77.0." + std::to_string(worker + 1); }

std::string text_of(const MacAddress& mac) {
  std::ostringstream text;
  text << std::hex;
  for (std::size_t i = 0; i < mac.size(); ++i) text << (i == 0 ? "" : ":") << int{mac[i]};
  return text.str();
}

// Addresses of the worker's device, and everyone else's, so that nothing waits for ARP.
std::string address_lines(std::size_t worker, std::size_t workers) {
  std::string lines = "addr add " + address_of(worker) + "/24 dev eth0\nlink set eth0 up\n";
  for (std::size_t other = 0; other < workers; ++other)
    if (other != worker)
      lines += "neigh add " + address_of(other) + " lladdr " + text_of(mac_of_port(other)) +
               " dev eth0 nud permanent\n";
  return lines;
}

// ---- Shaping by the kernel

constexpr double kSlow_bit_per_s = 20e6;

// A bucket of more than a frame or two lets short messages pass too fast, a small one makes the
// kernel cut every large segment, which costs processor time: a compromise by rate.
struct Shaping {
  double up_to_bit_per_s;
  int burst_bytes;
  const char* latency;
};
constexpr std::array<Shaping, 3> kShapings{
    {{kSlow_bit_per_s, 5 << 10, "200ms"}, {200e6, 32 << 10, "200ms"}, {1e12, 128 << 10, "50ms"}}};

std::string shaping(double bit_per_s, const std::string& device) {
  const auto* const used =
      std::find_if(kShapings.begin(), kShapings.end() - 1,
                   [&](const Shaping& s) { return bit_per_s <= s.up_to_bit_per_s; });
  std::ostringstream line;
  line << "qdisc add dev " << device << " root tbf rate " << std::llround(bit_per_s) << "bit burst "
       << used->burst_bytes << " latency " << used->latency << "\n";
  return line.str();
}

// Single frames at slow rates, see above.
std::string segment_limit(double bit_per_s, const std::string& device) {
  const bool slow = bit_per_s > 0 && bit_per_s <= kSlow_bit_per_s;
  return slow ? "link set " + device + " gso_max_segs 1\n" : "";
}

// ---- The delaying switch

Descriptor make_tap() {
  Descriptor tap(open("/dev/net/tun", O_RDWR | O_NONBLOCK | O_CLOEXEC), "/dev/net/tun");
  ifreq request{};
  request.ifr_flags = IFF_TAP | IFF_NO_PI | IFF_VNET_HDR;
  std::strcpy(request.ifr_name, NetLab::kInterface);
  if (ioctl(tap.get(), TUNSETIFF, &request) != 0 ||
      ioctl(tap.get(), TUNSETOFFLOAD, TUN_F_CSUM | TUN_F_TSO4) != 0)
    throw LabUnavailable(with_reason("cannot make a TAP device"));
  return tap;
}

// How many frames TCP hands over at once: no more than the slowest port carries in a millisecond.
// Pairs are acknowledged as single frames are, larger pieces only once, which leaves more of the
// way back: for rates only at which the bridge's tbf would not cut them either.
std::string piece_limit(const std::vector<SwitchPort>& ports) {
  constexpr double kPairs_bit_per_s = 200e6, kMostFrames = 40, kFrame_bits = 8 * 1514;
  double slowest_bit_per_s = std::numeric_limits<double>::infinity();
  for (const SwitchPort& port : ports)
    for (const double bit_per_s : {port.up_bit_per_s, port.down_bit_per_s})
      if (bit_per_s > 0) slowest_bit_per_s = std::min(slowest_bit_per_s, bit_per_s);
  const double most = slowest_bit_per_s <= kPairs_bit_per_s ? 2 : kMostFrames;
  const double frames = std::clamp(1e-3 * slowest_bit_per_s / kFrame_bits, 1.0, most);
  return "link set eth0 gso_max_segs " + std::to_string(static_cast<int>(frames)) + "\n";
}

pid_t start_switch(const std::vector<SwitchPort>& ports, const std::vector<Descriptor>& taps) {
  const pid_t parent = getpid();
  const pid_t pid = fork();
  if (pid < 0) throw LabUnavailable(with_reason("fork"));
  if (pid > 0) return pid;
  die_with(parent);
  signal(SIGTERM, SIG_DFL);
  signal(SIGINT, SIG_IGN);  // workers report an interrupt, not a network that has gone
  sched_param priority{};
  priority.sched_priority = 2;
  sched_setscheduler(0, SCHED_RR, &priority);  // a frame is not to wait for what workers do
  std::vector<int> fds(taps.size());
  std::transform(taps.begin(), taps.end(), fds.begin(), [](const auto& tap) { return tap.get(); });
  run_delay_switch(ports, fds);
}

// ---- The check

constexpr std::uint16_t kPort = 7700;
constexpr int kPings = 11;

double seconds_since(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

sockaddr_in socket_address(std::size_t worker) {
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(kPort);
  inet_pton(AF_INET, address_of(worker).c_str(), &address.sin_addr);
  return address;
}

const sockaddr* generic(const sockaddr_in& address) {
  return reinterpret_cast<const sockaddr*>(&address);  // NOLINT(*-reinterpret-cast): as sockets are
}

void prepare_socket(const Descriptor& socket) {
  const timeval limit{10, 0};
  const int on = 1;
  setsockopt(socket.get(), SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof(limit));
  setsockopt(socket.get(), SOL_SOCKET, SO_SNDTIMEO, &limit, sizeof(limit));
  setsockopt(socket.get(), IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
}

Descriptor make_socket() {
  Descriptor made(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0), "socket");
  prepare_socket(made);
  return made;
}

void require(bool worked, const char* what) {
  if (!worked) throw std::system_error(errno, std::generic_category(), what);
}

// What a stream of `stream_s` brings in the second half of that time.
double receive_stream(const Descriptor& peer, double stream_s) {
  std::vector<char> buffer(1U << 16U);
  const auto start = Clock::now();
  double from_s = 0, to_s = 0, bytes = 0;
  for (;;) {
    const ssize_t n = recv(peer.get(), buffer.data(), buffer.size(), 0);
    if (n <= 0) break;
    const double now_s = seconds_since(start);
    if (now_s > stream_s) break;
    if (from_s > 0) bytes += static_cast<double>(n);
    if (from_s == 0 && now_s > stream_s / 2) from_s = now_s;
    to_s = now_s;
  }
  return to_s > from_s && from_s > 0 ? 8 * bytes / (to_s - from_s) : 0;
}

// The receiver of the check: echoes the pings, then counts.  Returns bit/s.
double receive_check(std::size_t self, double stream_s) {
  const Descriptor listener = make_socket();
  const sockaddr_in address = socket_address(self);
  require(bind(listener.get(), generic(address), sizeof(address)) == 0, "bind");
  require(listen(listener.get(), 1) == 0, "listen");
  const Descriptor peer(accept4(listener.get(), nullptr, nullptr, SOCK_CLOEXEC), "accept");
  prepare_socket(peer);
  char byte = 0;
  for (int i = 0; i < kPings; ++i)
    require(recv(peer.get(), &byte, 1, 0) == 1 && send(peer.get(), &byte, 1, 0) == 1, "echo");
  return receive_stream(peer, stream_s);
}

Descriptor connect_to(std::size_t worker) {
  const sockaddr_in address = socket_address(worker);
  for (const auto start = Clock::now();;) {
    Descriptor peer = make_socket();
    if (connect(peer.get(), generic(address), sizeof(address)) == 0) return peer;
    require(errno == ECONNREFUSED && seconds_since(start) < 10, "connect");
    usleep(2000);
  }
}

// The sender: returns the median round trip.
double send_check(std::size_t to, double stream_s) {
  const Descriptor peer = connect_to(to);
  std::vector<double> round_trips_s(kPings);
  char byte = 0;
  for (double& round_trip_s : round_trips_s) {
    const auto start = Clock::now();
    require(send(peer.get(), &byte, 1, 0) == 1 && recv(peer.get(), &byte, 1, 0) == 1, "ping");
    round_trip_s = seconds_since(start);
  }
  std::sort(round_trips_s.begin(), round_trips_s.end());
  const std::vector<char> block(1U << 14U);
  for (const auto start = Clock::now(); seconds_since(start) < stream_s;)
    if (send(peer.get(), block.data(), block.size(), MSG_NOSIGNAL) <= 0) break;
  return round_trips_s[kPings / 2];
}

}  // namespace

NetLab::NetLab(const std::vector<SwitchPort>& ports) : ports_(ports) {
  if (ports.size() < 2 || ports.size() > kMostWorkers)
    throw std::invalid_argument("a network lab has 2 to " + std::to_string(kMostWorkers) +
                                " workers, not " + std::to_string(ports.size()));
  for (const SwitchPort& port : ports)
    if (!(port.up_bit_per_s >= 0 && port.down_bit_per_s >= 0 && port.delay_s >= 0 &&
          port.delay_s <= 10))
      throw std::invalid_argument(
          "a network lab's rates and delays are not negative, delays at most 10 s");
  if (geteuid() != 0) throw LabUnavailable("only root may make network namespaces");
  try {
    for (std::size_t w = 0; w < ports.size(); ++w) networks_.push_back(make_network());
    delayed() ? make_switch() : make_bridge();
  } catch (const std::system_error& error) {
    throw LabUnavailable(error.what());
  }
}

NetLab::~NetLab() {
  if (switch_ <= 0) return;
  kill(switch_, SIGKILL);
  while (waitpid(switch_, nullptr, 0) < 0 && errno == EINTR) {
  }
}

bool NetLab::delayed() const {
  return std::any_of(ports_.begin(), ports_.end(), [](const auto& p) { return p.delay_s > 0; });
}

void NetLab::make_bridge() {
  switch_network_ = make_network();
  const std::string there =
      "/proc/" + std::to_string(getpid()) + "/fd/" + std::to_string(switch_network_.get());
  std::ostringstream bridge, down_shaping;
  bridge << "link add bridge0 type bridge stp_state 0 forward_delay 0 mcast_snooping 0\n"
            "link set bridge0 up\n";
  for (std::size_t w = 0; w < ports_.size(); ++w) {
    const auto [up, down] = std::pair(ports_[w].up_bit_per_s, ports_[w].down_bit_per_s);
    const std::string port = "port" + std::to_string(w);
    std::ostringstream cable;
    cable << "link add eth0 address " << text_of(mac_of_port(w)) << " type veth peer name " << port
          << " netns " << there << "\n"
          << address_lines(w, ports_.size()) << segment_limit(up, "eth0");
    const Visit visit(networks_[w]);
    run_batch("ip", cable.str());
    if (up > 0) run_batch("tc", shaping(up, "eth0"));
    bridge << "link set " << port << " master bridge0\nlink set " << port << " up\n"
           << segment_limit(down, port);
    if (down > 0) down_shaping << shaping(down, port);
  }
  const Visit visit(switch_network_);
  run_batch("ip", bridge.str());
  run_batch("tc", down_shaping.str());
}

// A TAP device disowns the frames in its ring at once, so that the sender's TCP would not notice a
// slow uplink until the ring overflows: tbf before it holds them back, the switch's clock takes out
// tbf's bursts.
void NetLab::make_switch() {
  std::vector<Descriptor> taps;
  const std::string limit = piece_limit(ports_);
  for (std::size_t w = 0; w < ports_.size(); ++w) {
    const Visit visit(networks_[w]);
    taps.push_back(make_tap());
    run_batch("ip", "link set eth0 address " + text_of(mac_of_port(w)) + " txqueuelen 1000\n" +
                        limit + address_lines(w, ports_.size()));
    if (ports_[w].up_bit_per_s > 0) run_batch("tc", shaping(ports_[w].up_bit_per_s, "eth0"));
  }
  switch_ = start_switch(ports_, taps);
}

void NetLab::enter(int worker) const {
  enter_network(networks_.at(static_cast<std::size_t>(worker)));
}

std::string NetLab::address(int worker) { return address_of(static_cast<std::size_t>(worker)); }

LabCheck NetLab::check(int from, int to) const {
  const SwitchPort& sender = ports_.at(static_cast<std::size_t>(from));
  const SwitchPort& receiver = ports_.at(static_cast<std::size_t>(to));
  LabCheck found;
  found.expected_round_trip_s = 2 * (sender.delay_s + receiver.delay_s);
  const double up = sender.up_bit_per_s, down = receiver.down_bit_per_s;
  const double slower = up > 0 && down > 0 ? std::min(up, down) : std::max(up, down);
  found.expected_goodput_bit_per_s = slower * 1448 / 1514;
  constexpr double kBits = 8e5, kMost_s = 10;  // some dozen frames, as far as there is time
  const double stream_s =
      0.4 + 20 * found.expected_round_trip_s + (slower > 0 ? std::min(kMost_s, kBits / slower) : 0);
  const auto measured = run_workers(2, 1, [&](int end) {
    enter(end == 0 ? from : to);
    const auto receiving = static_cast<std::size_t>(to);
    ByteWriter out;
    out.put(end == 0 ? send_check(receiving, stream_s) : receive_check(receiving, stream_s));
    return out.take();
  });
  found.round_trip_s = ByteReader(measured[0]).get<double>();
  found.goodput_bit_per_s = ByteReader(measured[1]).get<double>();
  return found;
}

std::vector<std::pair<double, double>> NetLab::bursts() {
  std::vector<std::pair<double, double>> all;
  for (const Shaping& shaping : kShapings)
    all.emplace_back(shaping.up_to_bit_per_s, shaping.burst_bytes);
  return all;
}

std::vector<std::pair<std::string, std::string>> NetLab::constants() const {
  const auto list = [&](double SwitchPort::*what) {
    const bool same = std::all_of(ports_.begin(), ports_.end(), [&](const SwitchPort& p) {
      return p.*what == ports_.front().*what;
    });
    std::ostringstream text;
    text << ports_.front().*what;
    for (std::size_t w = 1; w < ports_.size() && !same; ++w) text << "," << ports_[w].*what;
    return text.str();
  };
  return {{"lab", delayed() ? "user-space switch over TAP devices" : "bridge, tbf on both ends"},
          {"lab_up_bit_per_s", list(&SwitchPort::up_bit_per_s)},
          {"lab_down_bit_per_s", list(&SwitchPort::down_bit_per_s)},
          {"lab_delay_s", list(&SwitchPort::delay_s)},
          {"lab_congestion_control", "reno"}};
}

}  // namespace gradwire
