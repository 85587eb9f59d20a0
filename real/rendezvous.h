// The folder in which the workers of one run meet before they have connections.  Gloo's own
// FileStore waits 30 s whatever the caller asks for, does not say which worker is missing and
// leaves its files behind; this one keeps the caller's timeout, names workers and cleans up.
#pragma once

#include <chrono>
#include <functional>
#include <string>
#include <vector>

namespace gradwire {

class Rendezvous {
 public:
  /// Makes the folder, if need be, and stays `rank`'s view of it.  The timeout is for all that
  /// follows together.
  Rendezvous(std::string folder, int rank, double timeout_s);
  /// Removes this worker's entries, and the folder with the last of them.
  ~Rendezvous();
  Rendezvous(const Rendezvous&) = delete;
  Rendezvous& operator=(const Rendezvous&) = delete;

  /// Everyone's text, by rank, on everyone before any of the `size` workers goes on: they may part
  /// at once, each with its own complaint.
  std::vector<std::string> exchange(const std::string& mine, int size);

  /// Makes an entry that others see whole or not at all.  Keys end in the rank of who makes them.
  /// Throws std::runtime_error if it is there already: another run's, or one left behind.
  void put(const std::string& key, const std::string& value);
  /// Waits for an entry; throws std::runtime_error naming its worker if it is not there in time.
  std::string get(const std::string& key) const;
  std::chrono::steady_clock::time_point deadline() const { return deadline_; }

 private:
  using Condition = std::function<bool(const std::string& key)>;
  void wait_for(std::vector<std::string> keys, const Condition& done) const;
  bool has(const std::string& key) const;
  std::string read(const std::string& key) const;
  std::string path(const std::string& key) const;

  std::string folder_;
  int rank_;
  double timeout_s_;
  std::chrono::steady_clock::time_point deadline_;
  std::vector<std::string> mine_;  // paths
};

}  // namespace gradwire
