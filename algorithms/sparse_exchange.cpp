#include "algorithms/sparse_exchange.h"

#include <algorithm>
#include <cstring>
#include <iterator>
#include <numeric>
#include <stdexcept>
#include <utility>

namespace gradwire {

namespace {

using Bytes = std::vector<std::byte>;

// Everyone's number, by rank: (N-1) messages of 8 bytes.
std::vector<std::size_t> all_gather_number(Communicator& comm, std::size_t mine) {
  const auto number = static_cast<std::int64_t>(mine);
  const std::vector<std::size_t> sizes(static_cast<std::size_t>(comm.size()), sizeof number);
  const Bytes all = ring_all_gather(comm, bytes_of(std::span(&number, 1)), sizes);
  std::vector<std::int64_t> numbers(sizes.size());
  std::memcpy(numbers.data(), all.data(), all.size());
  return {numbers.begin(), numbers.end()};
}

Work merge_work(std::size_t pairs) { return pass_work(static_cast<Index>(pairs), 3, 4); }

// Pairs of neighbours merge until one list is left, so that a pair takes part in log2 N merges.
SparseList merge_all(Communicator& comm, std::vector<SparseList> lists) {
  while (lists.size() > 1) {
    std::vector<SparseList> merged;
    for (std::size_t i = 0; i + 1 < lists.size(); i += 2) {
      merged.push_back(merge(lists[i], lists[i + 1]));
      comm.charge(Phase::kReduction,
                  merge_work(lists[i].indices.size() + lists[i + 1].indices.size()));
    }
    if (lists.size() % 2 == 1) merged.push_back(std::move(lists.back()));
    lists = std::move(merged);
  }
  return std::move(lists.front());
}

template <class T>
Coordinates gather_union(Communicator& comm, const Coordinates& mine, std::size_t longest,
                         std::size_t d, const Coordinates& common) {
  std::vector<T> padded(mine.begin(), mine.end());
  padded.resize(longest, T{-1});
  const std::vector<std::size_t> sizes(static_cast<std::size_t>(comm.size()), longest * sizeof(T));
  const Bytes all = ring_all_gather(comm, bytes_of(std::span<const T>(padded)), sizes);
  std::vector<T> indices(all.size() / sizeof(T));
  if (!all.empty()) std::memcpy(indices.data(), all.data(), all.size());
  CoordinateSet set(d);
  for (const T i : indices) {
    if (i == T{-1}) continue;
    if (i < 0 || static_cast<std::size_t>(i) >= d)
      throw std::logic_error("a worker selected coordinate " + std::to_string(i) + " of " +
                             std::to_string(d));
    set.insert(static_cast<std::size_t>(i));
  }
  for (const std::uint32_t i : common) set.insert(i);
  comm.charge(Phase::kReduction, merge_work(indices.size()));
  return set.sorted();
}

// The k largest entries of a list, and the others.
struct Trimmed {
  SparseList kept;
  SparseList rest;
  Work work;
};
Trimmed trim(const SparseList& list, std::size_t k) {
  const Selection best = top_k(list.values, k);
  Trimmed trimmed{{}, {}, best.work};
  std::size_t next = 0;
  for (std::uint32_t i = 0; i < list.indices.size(); ++i) {
    const bool keep = next < best.indices.size() && best.indices[next] == i;
    if (keep) ++next;
    SparseList& to = keep ? trimmed.kept : trimmed.rest;
    to.indices.push_back(list.indices[i]);
    to.values.push_back(list.values[i]);
  }
  return trimmed;
}

void require_plain(IndexCode code) {
  if (code != IndexCode::kInt32 && code != IndexCode::kInt64)
    throw std::invalid_argument("lists of one size need index int32 or int64");
}

}  // namespace

double padding_waste(const std::vector<std::size_t>& selected) {
  const auto total =
      static_cast<double>(std::accumulate(selected.begin(), selected.end(), std::size_t{0}));
  if (total == 0) return 0;
  const auto longest = static_cast<double>(*std::max_element(selected.begin(), selected.end()));
  return static_cast<double>(selected.size()) * longest / total - 1;
}

SparseList merge(const SparseList& a, const SparseList& b) {
  SparseList sum;
  const std::size_t total = a.indices.size() + b.indices.size();
  sum.indices.reserve(total);
  sum.values.reserve(total);
  std::size_t i = 0;
  std::size_t j = 0;
  while (i < a.indices.size() || j < b.indices.size()) {
    const bool from_a =
        i < a.indices.size() && (j == b.indices.size() || a.indices[i] <= b.indices[j]);
    const bool from_b =
        j < b.indices.size() && (i == a.indices.size() || b.indices[j] <= a.indices[i]);
    sum.indices.push_back(from_a ? a.indices[i] : b.indices[j]);
    Scalar value = 0;
    if (from_a) value += a.values[i++];
    if (from_b) value += b.values[j++];
    sum.values.push_back(value);
  }
  return sum;
}

SparseSum all_gather_sum(Communicator& comm, const SparseList& mine, IndexCode code,
                         std::size_t d) {
  const Bytes block = encode(code, mine, d);
  comm.charge(Phase::kCompression, sparse_code_work(mine.indices.size()));
  const std::vector<std::size_t> sizes = all_gather_number(comm, block.size());
  const Bytes all = ring_all_gather(comm, block, sizes);
  SparseSum result;
  std::vector<SparseList> lists;
  std::size_t begin = 0;
  for (const std::size_t size : sizes) {
    lists.push_back(decode(code, std::span(all).subspan(begin, size), d));
    comm.charge(Phase::kReduction, sparse_code_work(lists.back().indices.size()));
    result.selected.push_back(lists.back().indices.size());
    begin += size;
  }
  result.sum = merge_all(comm, std::move(lists));
  return result;
}

SparseSum union_sum(Communicator& comm, const Coordinates& mine, std::span<const Scalar> dense,
                    IndexCode code, AllReduce all_reduce, const Coordinates& common) {
  require_plain(code);
  SparseSum result;
  result.selected = all_gather_number(comm, mine.size());
  const std::size_t longest = *std::max_element(result.selected.begin(), result.selected.end());
  const auto gather_indices =
      code == IndexCode::kInt32 ? gather_union<std::int32_t> : gather_union<std::int64_t>;
  result.sum = pick(dense, gather_indices(comm, mine, longest, dense.size(), common));
  comm.charge(Phase::kCompression, sparse_code_work(result.sum.indices.size()));
  all_reduce(comm, result.sum.values, Wire::kFp32);
  return result;
}

SparseSum shared_sum(Communicator& comm, const Coordinates& shared, std::span<const Scalar> dense,
                     AllReduce all_reduce) {
  SparseSum result{pick(dense, shared),
                   std::vector<std::size_t>(static_cast<std::size_t>(comm.size()), shared.size())};
  comm.charge(Phase::kCompression, sparse_code_work(shared.size()));
  all_reduce(comm, result.sum.values, Wire::kFp32);
  return result;
}

TreeSum tree_sum(Communicator& comm, const SparseList& mine, IndexCode code, std::size_t d) {
  require_plain(code);
  const std::size_t k = mine.indices.size();
  Bytes block((code == IndexCode::kInt32 ? 4 : 8) * k + k * sizeof(Scalar));
  SparseList sum = mine;
  SparseList dropped;
  const int me = comm.rank();
  for (int mask = 1; mask < comm.size(); mask *= 2) {
    if ((me & mask) != 0) {
      comm.send(me - mask, encode(code, sum, d));
      break;
    }
    if (me + mask >= comm.size()) continue;
    comm.recv(me + mask, block);
    const SparseList both = merge(sum, decode(code, block, d));
    Trimmed trimmed = trim(both, k);
    sum = std::move(trimmed.kept);
    dropped = merge(dropped, trimmed.rest);
    comm.charge(Phase::kReduction, merge_work(2 * k) + trimmed.work + sparse_code_work(2 * k));
  }
  if (me == 0) block = encode(code, sum, d);
  tree_broadcast(comm, 0, block);
  TreeSum result{
      {decode(code, block, d), std::vector<std::size_t>(static_cast<std::size_t>(comm.size()), k)},
      {}};
  comm.charge(Phase::kReduction, sparse_code_work(k));
  result.leaked.indices = intersection(dropped.indices, result.result.sum.indices);
  std::size_t next = 0;
  for (const std::uint32_t i : result.leaked.indices) {
    while (dropped.indices[next] < i) ++next;
    result.leaked.values.push_back(dropped.values[next]);
  }
  return result;
}

Coordinates intersection(const Coordinates& a, const Coordinates& b) {
  Coordinates both;
  std::set_intersection(a.begin(), a.end(), b.begin(), b.end(), std::back_inserter(both));
  return both;
}

Coordinates difference(const Coordinates& a, const Coordinates& b) {
  Coordinates rest;
  std::set_difference(a.begin(), a.end(), b.begin(), b.end(), std::back_inserter(rest));
  return rest;
}

}  // namespace gradwire
