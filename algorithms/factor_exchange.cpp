#include "algorithms/factor_exchange.h"

#include <cstdint>
#include <span>
#include <vector>

#include "algorithms/collectives.h"
#include "algorithms/gradient_parts.h"

namespace gradwire {

namespace {

Matrix padded(const Matrix& m, Index rows) {
  Matrix result = Matrix::Zero(rows, m.cols());
  result.topRows(m.rows()) = m;
  return result;
}

// Everyone's (rows, cols) matrix, stacked.
Matrix all_gather_rows(Communicator& comm, const Matrix& mine, AllGather gather) {
  const std::span<const std::byte> block = bytes_of(scalars(mine));
  const std::vector<std::size_t> sizes(static_cast<std::size_t>(comm.size()), block.size());
  const std::vector<std::byte> all = gather(comm, block, sizes);
  Matrix stacked(mine.rows() * comm.size(), mine.cols());
  std::span<const std::byte> rest = all;
  if (comm.carries_data())
    take_rows(rest, stacked, 0, stacked.rows());
  else
    stacked.setZero();
  return stacked;
}

std::vector<std::byte> block_of(const Factors& factors) {
  std::vector<std::byte> block;
  append(block, factors.activation);
  append(block, factors.delta);
  return block;
}

std::size_t block_bytes(Index rank, const Factors& shape) {
  return static_cast<std::size_t>(rank * (shape.activation.cols() + shape.delta.cols())) *
         sizeof(Scalar);
}

// What worker 0 has received of the others, below its own.
Factors stack(const Factors& mine, const std::vector<std::int32_t>& ranks,
              const std::vector<std::vector<std::byte>>& blocks) {
  Index total = 0;
  for (const std::int32_t rank : ranks) total += rank;
  Factors all{Matrix(total, mine.activation.cols()), Matrix(total, mine.delta.cols())};
  all.delta.topRows(mine.delta.rows()) = mine.delta;
  all.activation.topRows(mine.delta.rows()) = mine.activation;
  Index row = mine.delta.rows();
  for (std::size_t w = 1; w < ranks.size(); ++w) {
    std::span<const std::byte> bytes = blocks[w];
    take_rows(bytes, all.activation, row, ranks[w]);
    take_rows(bytes, all.delta, row, ranks[w]);
    row += ranks[w];
  }
  return all;
}

Factors gather_on_root(Communicator& comm, const Factors& mine) {
  const auto workers = static_cast<std::size_t>(comm.size());
  std::vector<std::int32_t> ranks(workers, static_cast<std::int32_t>(mine.delta.rows()));
  std::vector<Request> requests;
  for (std::size_t w = 1; w < workers; ++w)
    requests.push_back(comm.irecv(static_cast<int>(w), writable_bytes_of(std::span(&ranks[w], 1))));
  for (const Request request : requests) comm.wait(request);
  requests.clear();
  std::vector<std::vector<std::byte>> blocks(workers);
  for (std::size_t w = 1; w < workers; ++w) {
    if (ranks[w] == 0) continue;
    blocks[w].resize(block_bytes(ranks[w], mine));
    requests.push_back(comm.irecv(static_cast<int>(w), blocks[w]));
  }
  for (const Request request : requests) comm.wait(request);
  return stack(mine, ranks, blocks);
}

}  // namespace

Factors all_gather_factors(Communicator& comm, const Factors& mine, AllGather gather) {
  const Index rank = all_reduce_max(comm, static_cast<std::int32_t>(mine.delta.rows()));
  Factors all;
  all.activation = all_gather_rows(comm, padded(mine.activation, rank), gather);
  all.delta = all_gather_rows(comm, padded(mine.delta, rank), gather);
  return all;
}

Factors star_factors(Communicator& comm, const Factors& mine,
                     const std::function<Factors(Factors stacked)>& reduce) {
  const auto bytes = [](std::int32_t& x) { return writable_bytes_of(std::span(&x, 1)); };
  auto rank = static_cast<std::int32_t>(mine.delta.rows());
  std::vector<std::byte> block = block_of(mine);
  Factors result;
  if (comm.rank() == 0) {
    result = reduce(gather_on_root(comm, mine));
    rank = static_cast<std::int32_t>(result.delta.rows());
    star_broadcast(comm, 0, bytes(rank));
    block = block_of(result);
    if (rank > 0) star_broadcast(comm, 0, block);
    return result;
  }
  comm.send(0, bytes(rank));
  if (rank > 0) comm.send(0, block);
  star_broadcast(comm, 0, bytes(rank));
  block.resize(block_bytes(rank, mine));
  if (rank > 0) star_broadcast(comm, 0, block);
  result = {Matrix(rank, mine.activation.cols()), Matrix(rank, mine.delta.cols())};
  std::span<const std::byte> rest = block;
  take_rows(rest, result.activation, 0, rank);
  take_rows(rest, result.delta, 0, rank);
  return result;
}

}  // namespace gradwire
