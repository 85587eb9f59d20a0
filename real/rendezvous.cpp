#include "real/rendezvous.h"

#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <stdexcept>
#include <thread>
#include <utility>

namespace gradwire {

namespace {

namespace fs = std::filesystem;
using Clock = std::chrono::steady_clock;

std::string seconds(double s) {
  std::ostringstream text;
  text << s << " s";
  return text.str();
}

// "worker 2, worker 3" of "mesh-2", "mesh-3".
std::string workers_of(const std::vector<std::string>& keys) {
  constexpr std::size_t kNamed = 8;
  std::string names;
  for (std::size_t i = 0; i < std::min(keys.size(), kNamed); ++i)
    names += (names.empty() ? "worker " : ", worker ") +
             keys[i].substr(keys[i].find_last_not_of("0123456789") + 1);
  if (keys.size() > kNamed) names += " and " + std::to_string(keys.size() - kNamed) + " more";
  return names;
}

}  // namespace

Rendezvous::Rendezvous(std::string folder, int rank, double timeout_s)
    : folder_(std::move(folder)),
      rank_(rank),
      timeout_s_(timeout_s),
      deadline_(Clock::now() + std::chrono::duration_cast<Clock::duration>(
                                   std::chrono::duration<double>(timeout_s))) {
  std::error_code error;
  fs::create_directories(folder_, error);
  if (error || access(folder_.c_str(), W_OK | X_OK) != 0)
    throw std::runtime_error("cannot write to the rendezvous folder " + folder_);
}

Rendezvous::~Rendezvous() {
  for (const std::string& entry : mine_) unlink(entry.c_str());
  rmdir(folder_.c_str());  // fails while it holds others' entries
}

void Rendezvous::put(const std::string& key, const std::string& value) {
  const std::string target = path(key);
  const std::string temporary = target + ".tmp" + std::to_string(getpid());
  {
    std::ofstream file(temporary, std::ios::binary);
    file << value;
    if (!file.flush()) {
      unlink(temporary.c_str());
      throw std::runtime_error("cannot write to the rendezvous folder " + folder_);
    }
  }
  const int error = link(temporary.c_str(), target.c_str()) == 0 ? 0 : errno;
  unlink(temporary.c_str());
  if (error == EEXIST)
    throw std::runtime_error("the rendezvous folder " + folder_ +
                             " already has an entry of worker " + std::to_string(rank_) +
                             ": another run uses it or has left it behind; give an empty folder");
  if (error != 0) throw std::runtime_error("cannot write " + target + ": " + std::strerror(error));
  mine_.push_back(target);
}

std::string Rendezvous::get(const std::string& key) const {
  wait_for({key}, [&](const std::string& k) { return has(k); });
  return read(key);
}

std::vector<std::string> Rendezvous::exchange(const std::string& mine, int size) {
  std::vector<std::string> hellos, thanks;
  for (int rank = 0; rank < size; ++rank) {
    hellos.push_back("hello-" + std::to_string(rank));
    thanks.push_back("thanks-" + std::to_string(rank));
  }
  put(hellos[static_cast<std::size_t>(rank_)], mine);
  wait_for(hellos, [&](const std::string& key) { return has(key); });
  std::vector<std::string> all(hellos.size());
  std::transform(hellos.begin(), hellos.end(), all.begin(),
                 [&](const std::string& key) { return read(key); });
  put(thanks[static_cast<std::size_t>(rank_)], "");
  // Whose hello has gone again has had all thanks and left.
  wait_for(thanks, [&](const std::string& key) {
    return has(key) || !has("hello-" + key.substr(std::strlen("thanks-")));
  });
  return all;
}

void Rendezvous::wait_for(std::vector<std::string> keys, const Condition& done) const {
  using std::chrono::milliseconds;
  // A hundred workers that each ask for all others must not keep the cores busy.
  const milliseconds longest(std::max<std::size_t>(50, 2 * keys.size()));
  for (milliseconds pause(1);; pause = std::min(2 * pause, longest)) {
    std::erase_if(keys, done);
    if (keys.empty()) return;
    if (Clock::now() > deadline_)
      throw std::runtime_error(workers_of(keys) + " did not come within " + seconds(timeout_s_) +
                               " (rendezvous folder " + folder_ + ")");
    std::this_thread::sleep_for(pause);
  }
}

bool Rendezvous::has(const std::string& key) const { return access(path(key).c_str(), R_OK) == 0; }

std::string Rendezvous::read(const std::string& key) const {
  std::ifstream file(path(key), std::ios::binary | std::ios::ate);
  const std::streamoff size = file.tellg();
  std::string text(static_cast<std::size_t>(std::max<std::streamoff>(size, 0)), '\0');
  file.seekg(0).read(text.data(), size);
  if (!file) throw std::runtime_error(workers_of({key}) + " left during the rendezvous");
  return text;
}

std::string Rendezvous::path(const std::string& key) const { return folder_ + "/" + key; }

}  // namespace gradwire
